"""One quantile from its found place, its noisy excess there and noisy counts around: post-processing.

Let c be the lower edge of the found cell, A its noisy excess (rows below it less the share q of all
rows), L_k and R_k the noisy counts of w_k cells to its left and right, 1, 2, 4, .. or 1, 4, 16, ...

The estimate. Where each cell is one value, the found one is the estimate. With Laplace noise nearly all is
spent on the choice of the place: it is the middle of the cell; there is no A. With Gaussian noise
the place of a real value is corrected. If the found cell itself is
clearly full, and by A the quantile is in it, it stays there, in a straight line from end to end. Otherwise it
moves by -A, at the density of the smallest window [c - w_k, c + w_k] that is clear of its noise and holds |A|
to each side. If none is, at that of the clearest one, no further than its ends; and if that is not clear
at all it stays. A density of count T and variance V counts as T / (T^2 + V) to divide by, which is T's own
where it is clear.

The interval. Edges in order are c - w_k, .., c, .., c + w_k, of which the excess is A - L_k, A, A + R_k up to
noise. Without A, the choice itself misses by at most t rows (but for a small chance): the excess of c is at
most t and that of c + 1 at least -t, so that it is at most t - L_k to the left, and at least R_k - R_0 - t to
the right, where the found cell does not count. These counts have the noise of k annuli; the last one
alone has less noise and, where rows are spread evenly, three quarters of the rows: whichever shows more.
And since the annuli hold all rows, any edge has an excess of 1 - q times those below it less q times those
above, with the noise of all: that tells where many rows share one value.
Noise is whole: of each, half a step is added to what its continuous law says (`core/noise_sums`).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.aggregates.answer import Answer
from sfumato.aggregates.quantiles import between
from sfumato.aggregates.ratios import Estimate
from sfumato.core.noise_law import NoiseLaw
from sfumato.core.noise_sums import widest_quantile

__all__ = ["CLEAR", "half_widths", "located"]

_Floats = npt.NDArray[np.float64]
_Integers = npt.NDArray[np.int64]

CLEAR = 6.0
"""A window's count is clear at so many deviations: the correction is then off by a sixth at most, mostly."""
_FULL = 3.0  # likewise, of the found cell alone: values that many rows share are not to be left
_NEAR = 2.0  # deviations within which the excess of an edge may be on either side
_SOME = 2.0  # less than this is no density


def half_widths(cells: int, *, anchored: bool) -> npt.NDArray[np.int64]:
    """Return how many cells to each side the annuli reach together, up to all of them.

    To correct a place, windows of any width are needed; for an interval, few annuli that hold many rows.

    >>> half_widths(5, anchored=True).tolist(), half_widths(5, anchored=False).tolist()
    ([1, 2, 4, 8], [1, 4, 16])
    """
    widths = [1]
    while widths[-1] < cells:
        widths.append(widths[-1] * (2 if anchored else 4))
    return np.array(widths, dtype=np.int64)


def located(
    answer: Answer,
    layers: tuple[npt.NDArray[Any], ...],
    quantile: Fraction,
    rate: Fraction,
    anchor: NoiseLaw | None,
    annuli: NoiseLaw,
    chance: float,
) -> Estimate:
    """Return the quantile of each group, with an interval.

    It is never NULL: of no values at all it is any value, with an interval from bound to bound.

    Theorem: given the place, noise is fresh. The quantile is at or above an edge exactly if its excess
    is below zero, which holds up to some edge and not beyond. Going up from the first edge and
    stopping at the first that is not surely too low errs only if the first edge that is not too low is
    passed: with a chance of at most half of `chance`; likewise from above. Edges beyond all cells need no
    test. Without an anchor a tenth of `chance` is left for a choice that misses by more than t
    (`analysis/single_quantile` proves how rare that is); each of the three tests of an edge has a third
    of the rest.
    """
    edges = np.asarray(answer.edges, dtype=np.float64)
    cells, place = len(edges) - 1, layers[0].astype(np.int64)
    widths = half_widths(cells, anchored=anchor is not None)
    moved, low, high = np.full(place.shape, 0.5), np.zeros(len(place), int), np.full(len(place), cells)
    if len(layers) > 1:  # something was measured
        left, right = np.split(np.asarray(layers[-1], dtype=np.float64), 2, axis=1)
        if anchor is not None:
            below = np.asarray(layers[1], dtype=np.float64) / quantile.denominator  # in rows' parts
        if anchor is not None and not answer.points:
            deviation = anchor.deviation / quantile.denominator
            moved = _moved(place, below, left, right, widths, cells, deviation, float(annuli.variance))
        if chance:
            excess = (
                _by_choice(
                    left, right, float(quantile), math.log(10 * cells / chance) / float(rate), annuli, chance
                )
                if anchor is None
                else _by_anchor(left, right, below, quantile.denominator, [anchor, annuli], chance)
            )
            low, high = _ends(place, widths, cells, *excess)
    if answer.points:
        values = edges[place][:, 0]
        high = np.maximum(high - 1, 0)  # what is below an edge is at most the point of the cell before it
    else:
        values = np.interp((place + moved)[:, 0], np.arange(cells + 1), edges)
    return between(answer, values, edges[low], edges[np.maximum(low, high)])


def _by_choice(
    left: _Floats, right: _Floats, q: float, missed: float, annuli: NoiseLaw, chance: float
) -> tuple[_Floats, _Floats]:
    """Return at most, and at least, how much excess each edge has if the choice misses by so many rows."""
    wide = widest_quantile(0.3 * chance, [annuli]) * annuli.deviation
    number = left.shape[1]
    steps = np.arange(1, number + 1)

    def surely(counts: _Floats) -> _Floats:
        """Return how many rows there are at least up to each edge."""
        nearest = steps[: counts.shape[1]]
        together = np.cumsum(counts, axis=1) - wide * np.sqrt(nearest) - nearest / 2
        return np.maximum(together, counts - wide - 0.5)

    at, unknown = np.full((len(left), 1), missed), np.full(left.shape, math.inf)
    most = np.concatenate([(at - surely(left))[:, ::-1], at, unknown], axis=1)
    least = np.concatenate([-unknown, -at, -at, surely(right[:, 1:]) - at], axis=1)

    below = np.arange(2 * number + 1)  # annuli, of all that there are; the others are above
    above = 2 * number - below
    margin = wide * np.sqrt(below * (1 - q) ** 2 + above * q**2) + (below * (1 - q) + above * q) / 2
    own = (1 - q) * left.sum(axis=1, keepdims=True) - q * right.sum(axis=1, keepdims=True)
    excess = _around(own, left, right)
    return np.minimum(most, excess + margin), np.maximum(least, excess - margin)


def _by_anchor(
    left: _Floats, right: _Floats, below: _Floats, parts: int, laws: list[NoiseLaw], chance: float
) -> tuple[_Floats, _Floats]:
    """Return the same around an edge whose noisy excess is `below`, to whole `parts` of a row."""
    steps = np.arange(1, left.shape[1] + 1)
    noises = np.concatenate([steps[::-1], [0], steps])
    variance = (laws[0].deviation / parts) ** 2 + float(laws[1].variance) * noises
    excess = _around(below, left, right)
    margin = widest_quantile(chance, laws) * np.sqrt(variance) + (noises + 1 / parts) / 2
    return excess + margin, excess - margin


def _around(own: _Floats, left: _Floats, right: _Floats) -> _Floats:
    """Return the noisy excess of every edge, from that of the found one."""
    down, up = (np.cumsum(side, axis=1) for side in (left, right))
    return np.concatenate([(own - down)[:, ::-1], own, own + up], axis=1)


def _ends(
    place: _Integers, widths: _Integers, cells: int, most: _Floats, least: _Floats
) -> tuple[_Integers, _Integers]:
    """Return the last edge from below that is surely too low, and the last from above that is too high."""
    spots = np.clip(np.concatenate([place - widths[::-1], place, place + widths], axis=1), 0, cells)
    sides = np.arange(spots.shape[1]) - len(widths)  # left of the place, or right of it
    not_above = (most < 0) | ((spots == 0) & (sides < 0))
    not_below = (least > 0) | ((spots == cells) & (sides > 0))
    passed = np.cumprod(not_above, axis=1).sum(axis=1) - 1
    group = np.arange(len(place))
    first = spots[group, np.maximum(passed, 0)] * (passed >= 0)
    back = np.cumprod(not_below[:, ::-1], axis=1).sum(axis=1)
    last = np.where(back > 0, spots[group, np.minimum(spots.shape[1] - back, spots.shape[1] - 1)], cells)
    return first, last


def _moved(
    place: _Integers,
    below: _Floats,
    left: _Floats,
    right: _Floats,
    widths: _Integers,
    cells: int,
    deviation: float,
    spread: float,
) -> _Floats:
    """Return how many cells from the lower edge of the found cell the quantile is thought to be."""
    left, right = np.cumsum(left, axis=1), np.cumsum(right, axis=1)
    own = right[:, :1]  # of the found cell
    inside = (own > _FULL * spread**0.5) & (below <= _NEAR * deviation)
    inside &= below + own >= -_NEAR * (deviation**2 + spread) ** 0.5
    within = np.clip(-below / np.where(inside, own, 1.0), 0.0, 1 - 2.0**-30)
    count, noise = left + right, 2 * spread * np.arange(1, len(widths) + 1)
    wide = np.minimum(place + widths, cells) - np.maximum(place - widths, 0)
    clarity = count / np.sqrt(noise)
    clear = (clarity >= CLEAR) & (2 * np.abs(below) <= count)
    found = clear.any(axis=1, keepdims=True)
    window = np.where(found, clear.argmax(axis=1)[:, None], clarity.argmax(axis=1)[:, None])
    total, width = (np.take_along_axis(each, window, axis=1) for each in (count, wide))
    step = np.clip(-below * width * total / (total**2 + noise[window]), -width / 2, width / 2)
    some = np.take_along_axis(clarity, window, axis=1) > _SOME
    moved: _Floats = np.where(inside, within, np.where(some, step, 0.5))
    return moved
