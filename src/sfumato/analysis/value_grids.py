"""Grids: the public fixed-point grid of each value, chosen from its bounds alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from sfumato.core.grid import Grid
from sfumato.core.intervals import EVERYTHING, Interval
from sfumato.core.steps import spend

__all__ = ["Cells", "PARTS", "cells_of", "centred_grid", "clamped_grid", "ones", "ranked_cells"]

PARTS = 1024
"""A row of a unit with several counts in parts: its weight min(n, max_rows) / n is rarely whole."""

_FINE = 20  # a real interval is about 2^20 steps wide
_FURTHEST = 2**40  # steps from zero: a sum of 2^20 rows of many units stays far inside 128 bits
_FURTHEST_SQUARED = 2**24  # where values are multiplied
_MOST_POINTS = 4096  # cells of a quantile's histogram
_MOST_GROUPED = 1024  # of one by groups


@lru_cache(maxsize=256)
def centred_grid(
    low: Fraction, high: Fraction, *, whole: bool, parts: int, centred: bool, multiplied: bool
) -> tuple[Grid, float]:
    """Return the grid of (x - centre) for x between two bounds, and the centre.

    Integers get a step of 1, or of a power of two below that makes the furthest of them about `parts`
    steps away; real values a power of two near 2^-20 of the width. Either gets a larger power of
    two where the furthest value would be too many steps away. Bounds round inward.

    >>> centred_grid(Fraction(0), Fraction(9), whole=True, parts=1, centred=True, multiplied=False)
    (Grid(step=Fraction(1, 1), lower=Fraction(-4, 1), upper=Fraction(5, 1), toward_zero=False), 4.0)
    """
    if whole:
        low, high = _inward(low, high, Fraction(1))
    step = Fraction(1) if whole else _power_of_two(high - low or abs(high) or Fraction(1)) / 2**_FINE
    middle = (low + high) / 2 if centred else Fraction(0)
    furthest = max(abs(low - middle), abs(high - middle))
    while whole and furthest < parts * step and step * parts > 1:
        step /= 2
    limit = _FURTHEST_SQUARED if multiplied else _FURTHEST
    while furthest / step > limit:
        step *= 2
    unit = max(step, Fraction(1)) if whole else step
    centre = Fraction(float(math.floor(middle / unit) * unit))
    low, high = _inward(low - centre, high - centre, step)
    return Grid(step=step, lower=low, upper=high), float(centre)


def clamped_grid(
    low: Fraction, high: Fraction, *, whole: bool, rows: Interval = EVERYTHING
) -> tuple[Grid, tuple[int, int]]:
    """Return the grid of single rows where it is their sum that is bounded, and that bound in steps.

    Rows themselves are kept where they are known to lie, and within 1024 times what their sum may
    be: so far out that only sums of huge values of opposite sign could tell.
    """
    step = Fraction(1) if whole else _power_of_two(high - low or abs(high) or Fraction(1)) / 2**_FINE
    while max(abs(low), abs(high)) / step > _FURTHEST:
        step *= 2
    inner = _inward(low, high, step)
    far = max(Fraction(1), 1024 * max(abs(low), abs(high)))
    near = rows.clipped(low=-far, high=far) or Interval(-far, far)
    assert isinstance(near.low, Fraction) and isinstance(near.high, Fraction)
    bottom, top = _inward(near.low, near.high, step)
    return Grid(step=step, lower=bottom, upper=top), (int(inner[0] / step), int(inner[1] / step))


@lru_cache(maxsize=8)
def ones(parts: int = 1) -> Grid:
    """Return the grid that makes `parts` of every value: it counts those that are there."""
    return Grid(step=Fraction(1, parts), lower=1, upper=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """A histogram of equal cells: the grid's integer of (x - centre) is the index of the cell."""

    grid: Grid
    centre: float
    edges: tuple[float, ...]
    points: bool  # each cell holds one value


def ranked_cells(low: Fraction, high: Fraction, *, whole: bool, grouped: bool) -> Cells:
    """Return the cells among which quantiles are found: one for each of few integers, else of a power of two.

    Groups have fewer rows, and so more noise in values: there fewer cells of real values are as fine as is
    seen, and permute and flip errs less among fewer.

    >>> [len(ranked_cells(Fraction(0), Fraction(100), whole=False, grouped=it).edges) for it in (False, True)]
    [3201, 801]
    """
    if whole:
        return cells_of(low, high, whole=True, most=_MOST_POINTS)
    size = _power_of_two(high - low or Fraction(1)) / ((_MOST_GROUPED if grouped else _MOST_POINTS) // 2)
    return _real_cells(low, high, size)


def cells_of(low: Fraction, high: Fraction, *, whole: bool, most: int) -> Cells:
    """Cut the values between two bounds into at most `most` equal cells, one per value if that is enough.

    >>> cells_of(Fraction(1), Fraction(3), whole=True, most=10).edges
    (1.0, 2.0, 3.0, 4.0)
    """
    if not whole:
        return _real_cells(low, high, (high - low) / most or Fraction(1))
    low, high = _inward(low, high, Fraction(1))
    values = int(high - low + 1)
    size = Fraction(1 << max(0, (-(-values // most) - 1).bit_length()))
    return _cells(low, size, -(-values // int(size)), points=size == 1)


def _real_cells(low: Fraction, high: Fraction, size: Fraction) -> Cells:
    return _cells(low, size, max(1, math.ceil((high - low) / size)), points=False)


def _cells(low: Fraction, size: Fraction, number: int, *, points: bool) -> Cells:
    centre = low if points else low + size / 2  # rounding halves upward makes that the cell's index
    grid = Grid(step=size, lower=0, upper=(number - 1) * size)
    spend(number // 4)
    edges = tuple(float(low + i * size) for i in range(number + 1))
    return Cells(grid=grid, centre=float(centre), edges=edges, points=points)


def _inward(low: Fraction, high: Fraction, step: Fraction) -> tuple[Fraction, Fraction]:
    """Round bounds inward to multiples of a step; to the nearest one where none lies between."""
    bottom, top = math.ceil(low / step), math.floor(high / step)
    if bottom > top:
        bottom = top = round((low + high) / 2 / step)
    return bottom * step, top * step


def _power_of_two(value: Fraction) -> Fraction:
    """Return the largest power of two that is at most a positive value."""
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    if Fraction(2) ** exponent > value:
        exponent -= 1
    return Fraction(2) ** exponent
