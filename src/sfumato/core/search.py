"""Rounding to the safe side, and one-dimensional searches that end on it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction

import numpy as np

from sfumato.core.arguments import Cost, FloatArray, upper_float
from sfumato.errors import Unsupported

__all__ = [
    "SLACK",
    "bracket",
    "chance_of_any",
    "exp_excess",
    "geometric_sum",
    "largest",
    "least_whole",
    "lower_float",
    "minimum",
    "root_above",
    "round_up",
    "smallest",
    "sum_above",
]

SLACK = 2.0**-36
"""Relative inflation of a computed float, 1.5e-11: at least ten times the error of the formulas used."""

_GOLDEN = (math.sqrt(5) - 1) / 2
_ROOT_BITS = 80


def round_up(value: float) -> float:
    """Return a float above `value` by a relative `SLACK` and at least one step."""
    return math.nextafter(value + abs(value) * SLACK, math.inf)


def lower_float(value: Fraction | float) -> float:
    """Return the largest float that is at most `value`."""
    return -upper_float(-value)


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


def chance_of_any(chances: Iterable[tuple[float, int]]) -> float:
    """Return how likely any of independent events is, each tried as often as its count says. Rounds: up."""
    logs = [count * math.log1p(-chance) if chance < 1.0 else -math.inf for chance, count in chances]
    return min(1.0, abs(math.expm1(math.fsum(logs))) * (1.0 + 2.0**-50))


def geometric_sum(exponent: float, terms: int) -> float:
    """Return 1 + e^x + ... + e^((terms-1) x), rounded up, inf where it overflows."""
    if terms == 1 or exponent == 0:
        return float(terms)
    if (terms - 1) * exponent > 700:
        return math.inf
    return round_up(math.exp((terms - 1) * exponent) * math.expm1(-terms * exponent) / math.expm1(-exponent))


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


def smallest(holds: Callable[[float], bool], low: float, high: float, resolution: float = 2.0**-48) -> float:
    """Return about the smallest number at which a monotone condition holds; it holds at `high`.

    The result is `high` or a number that passed the test, never one that failed it.
    """
    if holds(low):
        return low
    while high - low > abs(high) * resolution:
        middle = low + (high - low) / 2
        if not low < middle < high:
            break
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def largest(holds: Callable[[float], bool], low: float, high: float, resolution: float = 2.0**-48) -> float:
    """Return about the largest number at which a monotone condition holds; it holds at `low`."""
    return -smallest(lambda value: holds(-value), -high, -low, resolution)


def least_whole(holds: Callable[[int], bool], least: int = 0, near: int = 0) -> int:
    """Return the least whole number, from `least` up, at which a condition that starts to hold does.

    The search begins at `near`, a guess that saves tests of the condition and changes no result.

    >>> least_whole(lambda n: n * n > 1000), least_whole(lambda n: n * n > 1000, near=30)
    (32, 32)
    """
    high, step = max(least, near), 1
    low = high - 1
    if holds(high):
        while low >= least and holds(low):
            low, high, step = max(low - step, least - 1), low, 2 * step
    else:
        low, high = high, high + 1
        while not holds(high):
            low, high, step = high, high + 2 * step, 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def bracket(holds: Callable[[float], bool], start: float) -> tuple[float, float]:
    """Return (low, high), a factor of two apart, such that a condition that starts to hold does so between.

    It holds at `high`; below the range of floats the search gives up and `low` is zero.
    """
    high = start
    while not holds(high):
        high *= 2
        if math.isinf(high):
            raise Unsupported("no amount of noise reaches the target", hints=("ask for less privacy",))
    while high > 0 and holds(high / 2):
        high /= 2
    return high / 2, high


def minimum(function: Callable[[float], float], low: float, high: float, tolerance: float = 1e-8) -> float:
    """Return about where a unimodal function is least, by golden-section search.

    Where both inner points are infinite the search moves to the lower side. It ends at the latest
    where floats do.
    """
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = function(left), function(right)
    while high - low > max(tolerance, 2.0**-40 * (abs(low) + abs(high))):
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = function(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = function(right)
    return left if at_left <= at_right else right
