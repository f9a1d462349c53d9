"""The public fixed-point grid: real values become exact integers before any noise meets them.

Floats must not meet noise: the low bits of a float sum depend on order and can identify a
value. A `Grid` is declared in public, before data is seen, and maps every value to a whole
number of steps; sums of those are exact, whatever their order.

One rule for every value, and none of them is ever an error:

* a finite value is rounded to the grid, then clamped to the bounds;
* an infinity is clamped to the bound on its side;
* NaN and None (missing) become the grid point of the bounds that is nearest to zero.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.core.arguments import FloatArray, Number, exact, nearest_float, positive
from sfumato.errors import InvalidArgument

__all__ = ["Grid"]

_IntArray = npt.NDArray[np.int64]

_LIMIT = 2**62  # noise and one addition still fit into 64 bits
_FURTHEST = 4000  # decimal exponents: steps and bounds lie within
_FAST = 2.0**50  # below this a quotient's fraction still has bits to spare
_STEP_RANGE = (Fraction(1, 2**900), Fraction(2**900))  # where a float step has its full precision
_RELATIVE_ERROR = 2.0**-51  # of a float quotient: step and division rounded once each, and as much again


@dataclass(frozen=True, slots=True, init=False)
class Grid:
    """A public fixed-point grid: multiples of `step` between declared bounds.

    Bounds are rounded inward, so a clamped value never leaves the declared range. Values
    are rounded to the nearest multiple, halves upward: rounding then commutes with whole
    steps, so two values at most d apart are at most ceil(d / step) steps apart afterwards
    (rounding halves to even does not: 0.5 and 1.5 would become 0 and 2). With
    `toward_zero=True`, for vectors, no coordinate and hence no norm ever grows.

    >>> grid = Grid(step=Fraction(1, 4), lower=0, upper=1.9)
    >>> grid.to_integers([0.3, 0.4, 99.0, float("nan")]).tolist()
    [1, 2, 7, 0]
    >>> grid.to_real(7)
    1.75
    """

    step: Fraction
    lower: Fraction
    upper: Fraction
    toward_zero: bool
    low: int = field(repr=False, compare=False)
    """The lowest grid point, in steps: the lower bound rounded inward."""
    high: int = field(repr=False, compare=False)
    """The highest grid point, in steps: the upper bound rounded inward."""

    def __init__(self, *, step: Number = 1, lower: Number, upper: Number, toward_zero: bool = False) -> None:
        set_field = object.__setattr__  # the dataclass is frozen; this is its construction
        set_field(self, "step", positive(step, "step"))
        set_field(self, "lower", exact(lower, "lower"))
        set_field(self, "upper", exact(upper, "upper"))
        set_field(self, "toward_zero", toward_zero)
        set_field(self, "low", math.ceil(self.lower / self.step))
        set_field(self, "high", math.floor(self.upper / self.step))
        if not isinstance(self.toward_zero, bool):
            raise InvalidArgument("toward_zero must be True or False", place="toward_zero")
        if self.lower > self.upper:
            raise InvalidArgument("lower must not be above upper", place="lower", hints=("swap the bounds",))
        if self.low > self.high:
            hint = "choose a smaller step or wider bounds"
            raise InvalidArgument("no multiple of step lies between the bounds", place="step", hints=(hint,))
        if self.sensitivity > _LIMIT:
            raise InvalidArgument(
                "the bounds are more than 2^62 steps away from zero",
                place="step",
                hints=("choose a larger step or narrower bounds",),
            )
        if self.toward_zero and not self.low <= 0 <= self.high:
            raise InvalidArgument(
                "rounding toward zero needs bounds that include zero",
                place="toward_zero",
                hints=("clamping to bounds on one side of zero could make a norm grow",),
            )

    @property
    def sensitivity(self) -> int:
        """The furthest a value can be from zero, in steps: what adding or removing one value changes."""
        return max(abs(self.low), abs(self.high))

    @property
    def width(self) -> int:
        """The furthest two values can be apart, in steps: what replacing one value changes."""
        return self.high - self.low

    @property
    def missing(self) -> int:
        """The grid point that stands for NaN and None, in steps: the nearest to zero."""
        return min(max(0, self.low), self.high)

    def steps_of(self, distance: Number) -> int:
        """Return how many steps apart two values at most `distance` apart can become.

        Theorem: rounding (halves upward, or toward zero) is monotone, and a shift by whole
        steps commutes with the former; toward zero, values on both sides of zero only get
        closer. So the steps are at most ceil(distance / step), and clamping only brings
        values closer: at most `width`. Rounds: up.
        """
        return min(math.ceil(positive(distance, "distance") / self.step), self.width)

    def to_integer(self, value: Number | None) -> int:
        """Return the number of steps that stands for one value, in exact arithmetic."""
        if value is None or (isinstance(value, Decimal) and value.is_nan()):
            return self.missing
        if isinstance(value, (float, np.floating, Decimal)) and not math.isfinite(value):
            if math.isnan(value):
                return self.missing
            return self.high if value > 0 else self.low
        quotient = _rational(value) / self.step
        steps = math.trunc(quotient) if self.toward_zero else math.floor(quotient + Fraction(1, 2))
        return min(max(steps, self.low), self.high)

    def to_integers(self, values: npt.ArrayLike) -> _IntArray:
        """Return the number of steps that stands for each value; equal to `to_integer` of each.

        Floats are divided in float64 where a rigorous error bound settles the rounding, and
        in exact arithmetic where it does not. A step that is a power of two is always fast.
        """
        array = np.asarray(values)
        if array.dtype == object:
            each = [self.to_integer(value) for value in array.ravel()]
            return np.array(each, dtype=np.int64).reshape(array.shape)
        if array.dtype.kind not in "iuf" or array.dtype.itemsize > 8:
            raise InvalidArgument(
                f"values must be numbers of at most 64 bits, got {array.dtype}", place="values"
            )
        if array.dtype.kind in "iu":
            return self._from_integers(array)
        return self._from_floats(array.astype(np.float64, copy=False))

    def _from_integers(self, array: npt.NDArray[Any]) -> _IntArray:
        if self.step == 1:
            fits = (
                array if array.dtype.kind == "i" else np.minimum(array.astype(np.uint64), np.uint64(_LIMIT))
            )
            return np.clip(fits.astype(np.int64), self.low, self.high)
        small = (array < 2**53) & (array > -(2**53)) if array.dtype.kind == "i" else array < 2**53
        if small.all():
            return self._from_floats(array.astype(np.float64))
        return self.to_integers(array.astype(object))

    def _from_floats(self, values: FloatArray) -> _IntArray:
        if not _STEP_RANGE[0] < self.step < _STEP_RANGE[1]:
            return self.to_integers(values.astype(object))
        flat = values.ravel()
        # A step that is a power of two has exact quotients, which cannot land on the wrong side.
        inexact = (self.step.numerator * self.step.denominator).bit_count() != 1
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            quotients = flat / float(self.step)
            margin = np.abs(quotients) * _RELATIVE_ERROR
            if self.toward_zero:
                steps, nearest = np.trunc(quotients), np.rint(quotients)
                doubt = (np.abs(quotients - nearest) <= margin) & (nearest != 0) & inexact
            else:
                down = np.floor(quotients)
                part = quotients - down
                steps = down + (part >= 0.5)
                doubt = (np.abs(part - 0.5) <= margin + 2.0**-53) & inexact
        settled = np.abs(quotients) < _FAST
        result = np.zeros(len(flat), dtype=np.int64)
        result[settled] = np.clip(steps[settled].astype(np.int64), self.low, self.high)
        result[np.isnan(flat)] = self.missing
        # Far outside narrow bounds the quotient's error does not matter.
        above, below = quotients >= _FAST, quotients <= -_FAST
        result[above], result[below] = self.high, self.low
        unsettled = doubt & settled
        unsettled |= above & (self.high >= 2**49) | below & (self.low <= -(2**49))
        for i in np.flatnonzero(unsettled):
            result[i] = self.to_integer(float(flat[i]))
        return result.reshape(values.shape)

    def to_real(self, steps: int | npt.ArrayLike) -> Any:
        """Return steps * step as the nearest float: post-processing, for people to read."""
        if isinstance(steps, (int, np.integer)):
            return nearest_float(int(steps) * self.step)
        array = np.asarray(steps)
        if array.dtype != object and array.dtype.kind not in "iu":
            raise InvalidArgument("steps must be whole numbers", place="steps")
        numerator, denominator = self.step.numerator, self.step.denominator
        largest = max((abs(int(array.min())), abs(int(array.max()))), default=0) if array.size else 0
        if array.dtype != object and largest * numerator < 2**53 and denominator < 2**53:
            return array.astype(np.float64) * numerator / denominator  # one rounding, that of the division
        each = [nearest_float(int(value) * self.step) for value in array.ravel()]
        return np.array(each, dtype=np.float64).reshape(array.shape)


def _rational(value: Number) -> Fraction:
    """Return a finite value exactly; one so small or so long that nobody meant it, nearly. Never an error."""
    if isinstance(value, Decimal):
        if abs(value.adjusted()) > _FURTHEST:
            return Fraction(0) if value.adjusted() < 0 else Fraction(10**_FURTHEST * (-1 if value < 0 else 1))
        value = Context(prec=2 * _FURTHEST).plus(value)
    return Fraction(value) if isinstance(value, (int, Decimal, Fraction)) else exact(value, "value")
