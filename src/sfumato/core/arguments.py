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
import numpy.typing as npt

from sfumato.errors import InvalidArgument

__all__ = [
    "Cost",
    "FloatArray",
    "LARGE_DELTA",
    "MOST_EVENTS",
    "Number",
    "budget_quantity",
    "checked_order",
    "count",
    "delta_quantity",
    "exact",
    "loss_quantity",
    "nearest_float",
    "noise_width",
    "non_negative",
    "positive",
    "probability",
    "upper_float",
    "whole_shift",
    "written",
]

Number = int | float | Fraction | Decimal
FloatArray = npt.NDArray[np.float64]
Cost = Fraction | float
"""An upper bound on a privacy parameter: exact where it is rational, else a float rounded up, or inf."""

MOST_EVENTS = 10**12
"""The most events of one batch: beyond it, what floats round of each loss adds up."""

_MOST_DIGITS = 4000  # of a numerator or a denominator: more would take long to read, and nobody means them
_MOST_BITS = 13_288
_LARGEST = 10**100  # losses and scales of noise: floats hold their squares
_WIDTHS = {power: (Fraction(1, _LARGEST**power), Fraction(_LARGEST**power)) for power in (1, 2)}
_LARGEST_ORDER = int(math.ldexp(1.0 - 2.0**-53, 1024))


def exact(value: Any, name: str) -> Fraction:
    """Return the exact rational value of a finite number.

    >>> exact(0.5, "scale")
    Fraction(1, 2)
    """
    if isinstance(value, (bool, np.bool_, str, bytes)) or value is None:
        raise _wrong_type(value, name)
    if isinstance(value, (Integral, Rational)):
        top, bottom = int(value.numerator), int(value.denominator)
        if max(top.bit_length(), bottom.bit_length()) > _MOST_BITS:
            raise _too_long(name)
        return Fraction(top, bottom)
    if isinstance(value, (float, np.floating, Decimal)):
        if not (value.is_finite() if isinstance(value, Decimal) else math.isfinite(value)):
            hint = "a literal such as 1e400 overflows to infinity; write it as an int or a Fraction"
            if value.is_nan() if isinstance(value, Decimal) else math.isnan(value):
                hint = "NaN comes from a division 0/0 or a missing value; look where this one was computed"
            raise InvalidArgument(f"{name} must be finite, got {value!r}", place=name, hints=(hint,))
        if (
            isinstance(value, Decimal)
            and max(abs(value.adjusted()), len(value.as_tuple().digits)) > _MOST_DIGITS
        ):
            raise _too_long(name)
        return Fraction(value) if isinstance(value, (float, Decimal)) else Fraction(float(value))
    raise _wrong_type(value, name)


def positive(value: Any, name: str) -> Fraction:
    """Return the exact value of a number above zero."""
    return _above_zero(exact(value, name), name)


def non_negative(value: Any, name: str) -> Fraction:
    """Return the exact value of a number that is zero or more."""
    rational = exact(value, name)
    if rational < 0:
        raise InvalidArgument(f"{name} must not be negative", place=name, hints=("give zero or more",))
    return rational if rational == 0 else _above_zero(rational, name)


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
    return _above_zero(rational, name)


def loss_quantity(value: Any, name: str = "loss", *, zero: bool = False) -> Fraction:
    """Read a privacy loss: a budget quantity of at most 1e100, so that floats hold its square."""
    loss = budget_quantity(value, name, zero=zero)
    if loss > _LARGEST:
        hint = "a loss this large hides nobody"
        raise InvalidArgument(f"{name} must be at most 1e100", place=name, hints=(hint,))
    return loss


def checked_order(order: Any) -> float:
    """Read a Renyi order: finite and above 1."""
    rational = exact(order, "order")
    if not 1 < rational <= _LARGEST_ORDER or float(rational) <= 1:
        raise InvalidArgument("a Renyi order must be above 1, and one that floats hold", place="order")
    return float(rational)


LARGE_DELTA = 1e-4
"""A delta above this is for few people only; where nobody says how many there are, it is asked about."""


def delta_quantity(value: Any, *, people: int | None = None, name: str = "delta") -> Fraction:
    """Read a delta: at least 0, below 1, and below 1/n where the number of people is public."""
    rational = budget_quantity(value, name, zero=True)
    if rational >= 1:
        hint = "at delta = 1 anything may be published; a usual choice is far below 1/n"
        raise InvalidArgument(f"{name} must be below 1", place=name, hints=(hint,))
    if people is not None and rational * count(people, "people") >= 1:
        raise InvalidArgument(
            f"{name} = {float(rational):g} is not below 1/n for n = {people}",
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
        hint = "it is a probability, such as 0.75 or Fraction(3, 4)"
        raise InvalidArgument(f"{name} must lie in [0, 1]", place=name, hints=(hint,))
    return rational


def noise_width(value: Any, name: str, *, power: int = 1) -> Fraction:
    """Read a noise scale; one that floats cannot work with is refused rather than guessed at."""
    width, (narrowest, widest) = exact(value, name), _WIDTHS[power]
    if not narrowest <= width <= widest:
        _above_zero(width, name)
        raise InvalidArgument(
            f"{name} must lie between 1e-{100 * power} and 1e{100 * power}",
            place=name,
            hints=("noise this narrow hides nobody, and noise this wide leaves no answer",),
        )
    return width


def whole_shift(value: Any) -> int:
    """Read how far one person moves an integer."""
    return count(value, "sensitivity", most=_LARGEST)


def written(value: Any, name: str) -> Fraction:
    """Return the exact value of a number or of its text, as records and files hold it.

    >>> written("3/4", "rate"), written("2.5e-3", "rate")
    (Fraction(3, 4), Fraction(1, 400))
    """
    if not isinstance(value, str):
        return exact(value, name)
    _, _, power = value.lower().partition("e")
    digits = power.strip().lstrip("+-").lstrip("0")
    if (
        len(value) > 2 * _MOST_DIGITS
        or len(digits) > 4
        or (digits.isdecimal() and int(digits) > _MOST_DIGITS)
    ):
        raise _too_long(name)
    try:
        return exact(Fraction(value), name)
    except (ValueError, ZeroDivisionError):
        hint = "write it as '3/4' or '0.75'"
        raise InvalidArgument(f"{name} is not a number", place=name, hints=(hint,)) from None


def count(value: Any, name: str, *, least: int = 1, most: int | None = None) -> int:
    """Return a whole number of at least `least` and, if that is said, at most `most`."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Integral):
        raise InvalidArgument(
            f"{name} must be a whole number, got {type(value).__name__}",
            place=name,
            hints=("give an int, such as 3",),
        )
    number = int(value)
    if number < least:
        got = f", got {number}" if number.bit_length() < 64 else ""
        hint = f"give {least} or more"
        raise InvalidArgument(f"{name} must be at least {least}{got}", place=name, hints=(hint,))
    if number.bit_length() > _MOST_BITS:
        raise _too_long(name)
    if most is not None and number > most:
        raise InvalidArgument(f"{name} is too large", place=name, hints=(f"give at most {float(most):.0e}",))
    return number


def upper_float(value: Fraction | float) -> float:
    """Return the smallest float that is at least `value`."""
    try:
        nearest = float(value)
    except OverflowError:
        return math.inf if value > 0 else -float(np.finfo(float).max)
    return nearest if math.isinf(nearest) or Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def nearest_float(value: Fraction) -> float:
    """Return the nearest float; -inf or inf where there is none."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _above_zero(rational: Fraction, name: str) -> Fraction:
    if rational <= 0:
        usual = {"epsilon": "usual values are 0.1 to 5", "rho": "usual values are 0.001 to 1"}
        raise InvalidArgument(
            f"{name} must be above zero, got {0.0 - upper_float(-rational):g}",
            place=name,
            hints=(usual.get(name, f"{name} measures a size: give a number above zero"),),
        )
    return rational


def _too_long(name: str) -> InvalidArgument:
    hint = f"numbers of up to {_MOST_DIGITS:,} digits are read; round this one"
    return InvalidArgument(f"{name} has too many digits", place=name, hints=(hint,))


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
