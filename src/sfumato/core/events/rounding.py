"""Sums, square roots and exponentials of costs, rounded so that none comes out too small."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

import numpy as np

from sfumato.core.arguments import Cost, FloatArray, upper_float

__all__ = ["exp_excess", "root_above", "sum_above"]

_ROOT_BITS = 80


def sum_above(costs: Iterable[Cost]) -> Cost:
    """Return the sum of costs: exact where all are rational, else the next float above it.

    >>> sum_above([Fraction(1, 10)] * 10)
    Fraction(1, 1)
    """
    terms = list(costs)
    if any(isinstance(term, float) and math.isinf(term) for term in terms):
        return math.inf
    total = sum((Fraction(term) for term in terms), Fraction(0))
    return total if all(isinstance(term, (int, Fraction)) for term in terms) else upper_float(total)


def root_above(square: Fraction) -> Cost:
    """Return the square root of a rational: exact where that is rational, else the next float above.

    >>> root_above(Fraction(9, 4))
    Fraction(3, 2)
    """
    numerator, denominator = square.numerator, square.denominator
    top, bottom = math.isqrt(numerator), math.isqrt(denominator)
    if top * top == numerator and bottom * bottom == denominator:
        return Fraction(top, bottom)
    # Enough bits that the integer root's rounding lies far below a float's.
    shift = max(0, _ROOT_BITS + (denominator.bit_length() - numerator.bit_length()) // 2)
    root = math.isqrt((numerator << 2 * shift) // denominator) + 1
    return upper_float(Fraction(root, 1 << shift))


def exp_excess(x: FloatArray | float) -> FloatArray:
    """Return e^x - 1 - x, which is never negative, to full relative accuracy; inf where it overflows."""
    values = np.asarray(x, dtype=np.float64)
    small = np.clip(values, -1.0, 1.0)
    series = np.ones_like(small)
    for divisor in range(21, 2, -1):
        series = 1 + small / divisor * series
    with np.errstate(over="ignore"):
        direct = np.expm1(values) - values
    excess: FloatArray = np.where(np.abs(values) < 1, small * small / 2 * series, direct)
    return excess
