"""Intervals: where the value of an expression lies, from what is declared of its columns.

An interval holds every value that an expression takes while its columns stay within what was
declared; NULL is not a value. Ends are exact fractions, or an infinity where nothing bounds that
side; what is irrational is rounded outward.

Columns are not clamped: only the whole expression is, to its interval, by its grid. A row whose
column lies outside the declared bounds, an infinity, or a float's rounding may take an expression
outside its interval before that, never after. Intervals that were too narrow would therefore bias
an answer; they could not break its privacy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction

__all__ = ["EVERYTHING", "End", "Interval", "hull"]

End = Fraction | float
"""A fraction, or a float infinity."""

_HUGE = Fraction(10) ** 300  # beyond this an end counts as infinite: floats end soon after
_FLOAT_ERROR = 2.0**-48  # of the mathematical functions of Python's library, generously


@dataclass(frozen=True, slots=True)
class Interval:
    """All numbers from `low` to `high`, both included where finite.

    >>> Interval(0, 2) * Interval(-1, 3)
    Interval(low=Fraction(-2, 1), high=Fraction(6, 1))
    """

    low: End
    high: End

    def __post_init__(self) -> None:
        object.__setattr__(self, "low", _end(self.low))
        object.__setattr__(self, "high", _end(self.high))
        if not self.low <= self.high:
            raise ValueError("an interval's low end is above its high end")

    @property
    def bounded(self) -> bool:
        """Whether both ends are finite."""
        return isinstance(self.low, Fraction) and isinstance(self.high, Fraction)

    @property
    def magnitude(self) -> End:
        """The largest absolute value."""
        return max(_size(self.low), _size(self.high))

    def __contains__(self, value: End) -> bool:
        return self.low <= value <= self.high

    def __neg__(self) -> Interval:
        return Interval(-self.high, -self.low)

    def __add__(self, other: Interval) -> Interval:
        return Interval(_plus(self.low, other.low), _plus(self.high, other.high))

    def __sub__(self, other: Interval) -> Interval:
        return self + -other

    def __mul__(self, other: Interval) -> Interval:
        return _around(_times(a, b) for a in (self.low, self.high) for b in (other.low, other.high))

    def __abs__(self) -> Interval:
        least = Fraction(0) if 0 in self else min(_size(self.low), _size(self.high))
        return Interval(least, self.magnitude)

    def divided_by(self, other: Interval, *, whole: bool) -> Interval:
        """Return where quotients lie; a divisor of zero gives NULL. `whole`: divisors are integers."""
        parts: list[Interval] = []
        for side in (other.clipped(low=0), other.clipped(high=0)):
            if side is None:
                continue
            sign = 1 if side.high > 0 else -1
            near, far = sorted((_size(side.low), _size(side.high)))
            if far == 0:
                continue  # zero alone: NULL
            if near == 0 and whole:
                near = Fraction(1)
            if near <= far:  # 1/y for y from near to far; near = 0 stands for divisors as small as any
                inverse = Interval(_inverse(far), _inverse(near))
                parts.append(self * (inverse if sign > 0 else -inverse))
        return hull(parts) or Interval(0, 0)

    def clipped(self, *, low: End = -math.inf, high: End = math.inf) -> Interval | None:
        """Return the part between two ends, None if there is none."""
        bottom, top = max(self.low, low), min(self.high, high)
        return Interval(bottom, top) if bottom <= top else None

    def outward(self, places: int = 0) -> Interval:
        """Return the interval with ends moved outward to `places` decimals, as far as any rounding."""
        unit = Fraction(10) ** places
        low = Fraction(math.floor(self.low * unit)) / unit if isinstance(self.low, Fraction) else self.low
        high = Fraction(math.ceil(self.high * unit)) / unit if isinstance(self.high, Fraction) else self.high
        return Interval(low, high)

    def rising(self, function: Callable[[float], float], *, bottom: float = -math.inf) -> Interval:
        """Return where a function that never falls takes this; `bottom` is its value at minus infinity."""
        low = bottom if self.low == -math.inf else _outside(function, self.low, -1)
        return Interval(max(low, bottom), _outside(function, self.high, 1))

    def power(self, exponent: int) -> Interval:
        """Return where whole powers lie, for an exponent of at least zero."""
        if exponent == 0:
            return Interval(1, 1)
        ends = [_power(self.low, exponent), _power(self.high, exponent)]
        if exponent % 2 == 0 and 0 in self:
            ends.append(Fraction(0))
        return _around(ends)


def hull(intervals: Iterable[Interval | None]) -> Interval | None:
    """Return the smallest interval that holds all of several; None stands for no value at all."""
    present = [interval for interval in intervals if interval is not None]
    if not present:
        return None
    return Interval(min([one.low for one in present]), max([one.high for one in present]))


def _end(value: End) -> End:
    if isinstance(value, float) and math.isinf(value):
        return value
    exact = Fraction(value)
    if abs(exact) > _HUGE:
        return math.inf if exact > 0 else -math.inf
    return exact


def _size(end: End) -> End:
    return -end if end < 0 else end


def _around(ends: Iterable[End]) -> Interval:
    several = list(ends)
    return Interval(min(several), max(several))


def _plus(a: End, b: End) -> End:
    return a + b if not (isinstance(a, float) and isinstance(b, float)) else a  # both infinite, of one sign


def _times(a: End, b: End) -> End:
    if a == 0 or b == 0:
        return Fraction(0)  # nought times anything finite, however large
    if isinstance(a, Fraction) and isinstance(b, Fraction):
        return a * b
    return math.inf if (a > 0) == (b > 0) else -math.inf


def _inverse(end: End) -> End:
    if end == 0:
        return math.inf
    return 1 / end if isinstance(end, Fraction) else Fraction(0)


def _power(end: End, exponent: int) -> End:
    sign = -1 if end < 0 and exponent % 2 else 1
    if not isinstance(end, Fraction):
        return sign * math.inf
    if end and exponent * abs(math.log2(abs(end.numerator)) - math.log2(end.denominator)) > 1100:
        # A power too large or too small to write down; what stands for it lies outside.
        return Fraction(sign, 2**1000) if abs(end) < 1 else sign * math.inf
    return end**exponent


def _outside(function: Callable[[float], float], end: End, sign: int) -> float:
    """Return a function's value at an end, rounded to the side of `sign`."""
    try:
        value = function(float(end))
    except OverflowError:
        return math.inf
    if math.isinf(value):
        return value
    return math.nextafter(value + sign * abs(value) * _FLOAT_ERROR, sign * math.inf)


EVERYTHING = Interval(-math.inf, math.inf)
"""Nothing is known."""
