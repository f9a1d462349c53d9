"""Rounding to the safe side, and one-dimensional searches that end on it."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from sfumato.core.arguments import upper_float
from sfumato.errors import Unsupported

__all__ = ["SLACK", "bracket", "largest", "lower_float", "minimum", "round_up", "smallest"]

SLACK = 2.0**-36
"""Relative inflation of a computed float, 1.5e-11: at least ten times the error of the formulas used."""

_GOLDEN = (math.sqrt(5) - 1) / 2


def round_up(value: float) -> float:
    """Return a float above `value` by a relative `SLACK` and at least one step."""
    return math.nextafter(value + abs(value) * SLACK, math.inf)


def lower_float(value: Fraction | float) -> float:
    """Return the largest float that is at most `value`.

    >>> lower_float(Fraction(1, 3)) <= Fraction(1, 3)
    True
    """
    return -upper_float(-value)


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
