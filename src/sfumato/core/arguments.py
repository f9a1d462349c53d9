"""Reading numbers that people write: exact values out, typed errors with hints.

Two readings of a float exist, and each parameter has exactly one of them:

* **scales, sensitivities, data values** (`exact`): the binary value the float holds;
* **budget quantities** such as epsilon, delta and rho (`budget_quantity`): the shortest
  decimal that prints as that float, because `epsilon=0.1` means one tenth. Ten times
  0.1 is then exactly 1.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Rational
from typing import Any

import numpy as np

from sfumato.errors import InvalidArgument

__all__ = [
    "Number",
    "budget_quantity",
    "count",
    "delta_quantity",
    "exact",
    "non_negative",
    "positive",
    "probability",
    "upper_float",
]


Number = int | float | Fraction | Decimal


def exact(value: Any, name: str) -> Fraction:
    """Return the exact rational value of a finite number.

    >>> exact(0.5, "scale")
    Fraction(1, 2)
    """
    if isinstance(value, (bool, np.bool_, str, bytes)) or value is None:
        raise _wrong_type(value, name)
    if isinstance(value, (Integral, Rational)):
        return Fraction(int(value.numerator), int(value.denominator))
    if isinstance(value, (float, np.floating, Decimal)):
        if not math.isfinite(value):
            nan = "NaN comes from a division 0/0 or a missing value; look where this one was computed"
            infinite = "a literal such as 1e400 overflows to infinity; write it as an int or a Fraction"
            raise InvalidArgument(
                f"{name} must be finite, got {value!r}",
                place=name,
                hints=(nan if math.isnan(value) else infinite,),
            )
        return Fraction(value) if isinstance(value, (float, Decimal)) else Fraction(float(value))
    raise _wrong_type(value, name)


def positive(value: Any, name: str) -> Fraction:
    """Return the exact value of a number above zero.

    >>> positive(3, "scale")
    Fraction(3, 1)
    """
    return _above_zero(exact(value, name), value, name)


def non_negative(value: Any, name: str) -> Fraction:
    """Return the exact value of a number that is zero or more."""
    rational = exact(value, name)
    if rational < 0:
        raise InvalidArgument(
            f"{name} must not be negative, got {value!r}", place=name, hints=("give zero or more",)
        )
    return rational


def budget_quantity(value: Any, name: str, *, zero: bool = False) -> Fraction:
    """Read epsilon, rho, mu or delta as the decimal a person wrote.

    >>> budget_quantity(0.1, "epsilon")
    Fraction(1, 10)
    """
    rational = exact(value, name)
    if isinstance(value, (float, np.floating)):
        rational = Fraction(repr(float(value)))
    if zero and rational == 0:
        return rational
    return _above_zero(rational, value, name)


def delta_quantity(value: Any, *, people: int | None = None, name: str = "delta") -> Fraction:
    """Read a delta: at least 0, below 1, and below 1/n where the number of people is public."""
    rational = budget_quantity(value, name, zero=True)
    if rational >= 1:
        raise InvalidArgument(
            f"{name} must be below 1, got {value!r}",
            place=name,
            hints=("at delta = 1 anything may be published; a usual choice is far below 1/n",),
        )
    if people is not None and rational * count(people, "people") >= 1:
        raise InvalidArgument(
            f"{name} = {value!r} is not below 1/n for n = {people}",
            place=name,
            hints=(
                "at 1/n, publishing a few whole records would count as private",
                f"choose {name} far below {1 / people:.2g}",
            ),
        )
    return rational


def probability(value: Any, name: str) -> Fraction:
    """Return the exact value of a number in [0, 1]."""
    rational = exact(value, name)
    if not 0 <= rational <= 1:
        raise InvalidArgument(
            f"{name} must lie in [0, 1], got {value!r}",
            place=name,
            hints=("it is a probability, such as 0.75 or Fraction(3, 4)",),
        )
    return rational


def count(value: Any, name: str, *, least: int = 1) -> int:
    """Return a whole number of at least `least`."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Integral):
        raise InvalidArgument(
            f"{name} must be a whole number, got {type(value).__name__}",
            place=name,
            hints=("give an int, such as 3",),
        )
    if value < least:
        raise InvalidArgument(
            f"{name} must be at least {least}, got {value}", place=name, hints=(f"give {least} or more",)
        )
    return int(value)


def upper_float(value: Fraction | float) -> float:
    """Return the smallest float that is at least `value`.

    >>> upper_float(Fraction(1, 3)) >= Fraction(1, 3)
    True
    """
    try:
        nearest = float(value)
    except OverflowError:
        return math.inf if value > 0 else -float(np.finfo(float).max)
    return nearest if math.isinf(nearest) or Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def _above_zero(rational: Fraction, value: Any, name: str) -> Fraction:
    if rational <= 0:
        usual = {"epsilon": "usual values are 0.1 to 5", "rho": "usual values are 0.001 to 1"}
        raise InvalidArgument(
            f"{name} must be above zero, got {value!r}",
            place=name,
            hints=(usual.get(name, f"{name} measures a size: give a number above zero"),),
        )
    return rational


def _wrong_type(value: Any, name: str) -> InvalidArgument:
    hints = ("pass a plain number, such as 0.5",)
    if isinstance(value, (bool, np.bool_)):
        hints = ("True and False are not numbers here",)
    elif isinstance(value, (str, bytes)):
        hints = ("pass a number, not text",)
    return InvalidArgument(
        f"{name} must be an int, float, Fraction or Decimal, got {type(value).__name__}",
        place=name,
        hints=hints,
    )
