"""Rounding at random: a number becomes one of its two neighbours on a public grid, without any bias."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from sfumato.core.arguments import Number, exact
from sfumato.core.entropy import random_words
from sfumato.core.exponential import falls_below
from sfumato.errors import InvalidArgument
from sfumato.local.arrays import Array, Floats, Integers

__all__ = ["bounds_of", "round_at_random"]


_BITS = 64
_REACH = 2**100  # bounds beyond this, or closer than one part of it, belong to no survey


def bounds_of(low: Number, high: Number) -> tuple[Fraction, Fraction]:
    """Read the declared range of a number: 0.1 means one tenth, as a person wrote it.

    >>> bounds_of(0.1, 2)
    (Fraction(1, 10), Fraction(2, 1))
    """
    first, last = _written(low, "low"), _written(high, "high")
    if first >= last:
        raise InvalidArgument("low must be below high", place="low", hints=("swap the bounds",))
    if max(-first, last) > _REACH or (last - first) * _REACH < 1:
        raise InvalidArgument(
            "the declared range is too far out or too narrow",
            place="low",
            hints=("count in other units", "declare what an answer can be, such as 0 to 110"),
        )
    return first, last


def round_at_random(values: Array, low: Fraction, high: Fraction, cells: int) -> Integers:
    """Return for each number a point 0 .. cells of the even grid from `low` to `high`.

    A phone does: 1. clamp the number to the range, and write (number - low) * cells / (high - low) as
    n + r/b in whole numbers, r below b; 2. draw u below b; 3. report n + 1 if u < r, otherwise n.

    Theorem: the expected point is exactly the clamped number, for it is n + 1 with chance r/b. A
    float stands for the binary value it holds. Arrays are decided in float64 with an error margin,
    and in exact arithmetic where that margin does not settle it.
    Assumes: integers beyond 2^53 may stand for the nearest float.

    >>> round_at_random(np.array([0.0, 5.0, 99.0]), Fraction(0), Fraction(10), 2).tolist()
    [0, 1, 2]
    """
    given = _numbers(values)
    scale = cells / (high - low)
    words = random_words(len(given))
    positions = (np.clip(given, float(low), float(high)) - float(low)) * float(scale)
    # Four roundings, each of at most 2^-53 of what it rounds, and eight times as much to spare.
    margin = (cells + float(max(abs(low), abs(high)) * scale)) * 2.0**-48 + 2.0**-48
    points = np.floor(positions)
    part, drawn = positions - points, words * 2.0**-_BITS
    sure = (np.abs(positions - np.rint(positions)) > margin) & (np.abs(drawn - part) > margin)
    points += drawn < part
    rounded: Integers = np.clip(points, 0, cells).astype(np.int64)
    doubtful = np.flatnonzero(~sure)
    if not len(doubtful):
        return rounded
    # The same few numbers are in doubt again and again: the bounds, and whatever lies on the grid.
    distinct, places = np.unique(given[doubtful], return_inverse=True)
    spots = [_spot(value, low, high, scale) for value in distinct.tolist()]
    rounded[doubtful] = np.array([spot.numerator // spot.denominator for spot in spots])[places]
    between = np.array([spot.denominator > 1 for spot in spots])[places]
    for i, place in zip(doubtful[between].tolist(), places[between].tolist(), strict=True):
        rounded[i] += falls_below(int(words[i]), _BITS, ratio=spots[place] % 1, exponent=Fraction(0))
    return rounded


def _spot(value: float, low: Fraction, high: Fraction, scale: Fraction) -> Fraction:
    """Return where a number lies on the grid, exactly."""
    if np.isinf(value):
        return (high - low) * scale if value > 0 else Fraction(0)
    return (min(max(Fraction(value), low), high) - low) * scale


def _numbers(values: Array) -> Floats:
    """Read answers; one that is missing is its sender's mistake, and is not repeated."""
    found = np.asarray(values)
    if (
        found.ndim != 1
        or found.dtype.kind not in "iuf"
        or (found.dtype.kind == "f" and np.isnan(found).any())
    ):
        raise InvalidArgument(
            "answers must be numbers, one per person",
            place="answers",
            hints=("drop those who gave none: a report stands for a number",),
        )
    return found.astype(np.float64)


def _written(value: Number, name: str) -> Fraction:
    rational = exact(value, name)
    return Fraction(repr(float(value))) if isinstance(value, (float, np.floating)) else rational
