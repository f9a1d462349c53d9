"""One quantile from its found place, its noisy excess there and noisy counts around: post-processing.

Let c be the lower edge of the found cell, A its noisy excess (rows below it less the share q of all
rows), L_k and R_k the noisy counts of w_k = 1, 2, 4, .. cells to its left and right.

The estimate. With Laplace noise nearly all is spent on the choice of the place: it is the middle of the
cell, or its point. With Gaussian noise the place is corrected. If the found cell itself is clearly full, and
by A the quantile is in it, it stays there, in a straight line from end to end. Otherwise it moves by -A, at
the density of the smallest window [c - w_k, c + w_k] that is clear of its noise and holds |A| to each side.
If none is, at that of the clearest one, no further than its ends; and if that is not clear at all it
stays. A density of count T and variance V counts as T / (T^2 + V) to divide by, which is T's own where
it is clear.

The interval. Edges in order are c - w_k, .., c, .., c + w_k, each with its noisy excess A - L_k, A, A + R_k.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.analysis.answer import Answer
from sfumato.analysis.laws import Law, widest_quantile
from sfumato.analysis.moments import Estimate
from sfumato.release.finding import half_widths

__all__ = ["CLEAR", "located"]

_Floats = npt.NDArray[np.float64]

CLEAR = 6.0
"""A window's count is clear at so many deviations: the correction is then off by a sixth at most, mostly."""
_FULL = 3.0  # likewise, of the found cell alone: values that many rows share are not to be left
_NEAR = 2.0  # deviations within which the excess of an edge may be on either side
_SOME = 2.0  # less than this is no density


def located(
    answer: Answer,
    layers: tuple[npt.NDArray[Any], ...],
    quantile: Fraction,
    anchor: Law,
    annuli: Law,
    chance: float,
) -> Estimate:
    """Return the quantile of each group, with an interval.

    It is never NULL: of no values at all it is any value, with an interval from bound to bound.

    Theorem: given the place, noise is fresh. The quantile is at or above an edge exactly if its excess
    is below zero, which holds up to some edge and not beyond. Going up from the first edge and
    stopping at the first whose noisy excess is not below its one-sided margin errs only if the first
    edge that is too high is passed: with a chance of at most half of `chance`; likewise from above. Edges
    beyond all cells need no test.
    """
    edges = np.asarray(answer.edges, dtype=np.float64)
    cells, widths = len(edges) - 1, half_widths(len(edges) - 1)
    place = layers[0].astype(np.int64)
    below = np.asarray(layers[1], dtype=np.float64) / quantile.denominator  # the excess, in rows' parts
    counts = np.asarray(layers[2], dtype=np.float64)
    left, right = (np.cumsum(side, axis=1) for side in (counts[:, : len(widths)], counts[:, len(widths) :]))
    deviation, spread = anchor.deviation / quantile.denominator, annuli.deviation**2
    moved = np.full(below.shape, 0.5)
    if anchor.kind == "gaussian":
        moved = _moved(place, below, left, right, widths, cells, deviation, spread)
    if answer.points:
        values = edges[np.clip(np.floor(place + moved), 0, cells - 1).astype(np.int64)][:, 0]
    else:
        values = np.interp((place + moved)[:, 0], np.arange(cells + 1), edges)

    spots = np.clip(np.concatenate([place - widths[::-1], place, place + widths], axis=1), 0, cells)
    excess = np.concatenate([(below - left)[:, ::-1], below, below + right], axis=1)
    steps = np.arange(1, len(widths) + 1)
    variance = deviation**2 + spread * np.concatenate([steps[::-1], [0], steps])
    margin = (widest_quantile(chance, [anchor, annuli]) if chance else 1e9) * np.sqrt(variance)
    not_above, not_below = (excess < -margin) | (spots == 0), (excess > margin) | (spots == cells)
    passed = np.cumprod(not_above, axis=1).sum(axis=1) - 1
    group = np.arange(len(place))
    first = spots[group, np.maximum(passed, 0)] * (passed >= 0)
    back = np.cumprod(not_below[:, ::-1], axis=1).sum(axis=1)
    last = np.where(back > 0, spots[group, np.minimum(spots.shape[1] - back, spots.shape[1] - 1)], cells)
    if answer.points:  # what is below an edge is at most the point of the cell before it
        last = np.maximum(last - 1, 0)
    low, high = edges[first], edges[np.maximum(first, last)]
    values, low, high = (np.clip(each, answer.lower, answer.upper) for each in (values, low, high))
    return Estimate(values=values, low=np.fmin(low, values), high=np.fmax(high, values))


def _moved(
    place: npt.NDArray[np.int64],
    below: _Floats,
    left: _Floats,
    right: _Floats,
    widths: npt.NDArray[np.int64],
    cells: int,
    deviation: float,
    spread: float,
) -> _Floats:
    """Return how many cells from the lower edge of the found cell the quantile is thought to be."""
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
