"""Quantiles and histograms from noisy layers of cells, with intervals from the error of ranks.

All quantiles of one column come from one noisy tree. The estimated number of rows below each
edge is made to rise (the mean of the highest so far and the lowest still to come), and read off
backwards: within a cell in a straight line; where cells are single points, at the point.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sfumato.aggregates.answer import Answer
from sfumato.aggregates.ratios import Estimate
from sfumato.aggregates.trees import Tree
from sfumato.catalog.kind import Kind
from sfumato.core.noise_law import NoiseLaw
from sfumato.core.noise_sums import widest_quantile

__all__ = ["between", "quantiles"]

_Floats = npt.NDArray[np.float64]

_AT_ONCE = 1 << 22  # cells


def quantiles(
    answer: Answer, layers: tuple[npt.NDArray[np.generic], ...], tree: Tree, law: NoiseLaw, chance: float
) -> list[Estimate]:
    """Return an estimate for each of the answer's quantiles; they rise with the quantile.

    The interval covers the quantile of the bounded values as far as cells tell: the true one and
    any other value of its cell. An estimated total of zero or less makes the quantile NULL.

    Theorem: let D_i be the number of rows below edge i less q times all rows; the quantile is at or
    above edge i exactly if D_i <= 0, which holds up to one edge and not beyond. Going up from the
    first edge and stopping at the first i whose noisy D_i is not below -w_i, with w_i its
    one-sided quantile, errs only if the first edge that is too high is passed, which has a chance
    of at most half; likewise from above (a fixed sequence of tests needs no correction). Noise is whole, and
    half a step wider than its continuous law.
    """
    most = max(1, _AT_ONCE // tree.cells)
    if len(layers[0]) > most:  # in parts, for the sake of memory
        ranges = [slice(start, start + most) for start in range(0, len(layers[0]), most)]
        parts = [
            quantiles(answer, tuple(layer[part] for layer in layers), tree, law, chance) for part in ranges
        ]
        return [_joined(each) for each in zip(*parts, strict=True)]
    edges = np.asarray(answer.edges, dtype=np.float64)
    ranks = np.cumsum(tree.consistent(layers), axis=1)
    ranks = np.concatenate([np.zeros((len(ranks), 1)), ranks], axis=1)
    rising = _rising(ranks)
    variances, covariances, total = tree.prefix_variances()
    wide = widest_quantile(chance, [law]) if chance else 1e9
    estimates = []
    for q in answer.quantiles:
        values = np.where(ranks[:, -1] > 0, _read(rising, edges, q, points=answer.points), np.nan)
        excess = ranks - q * ranks[:, -1:]
        margin = wide * np.sqrt(np.maximum(0.0, variances - 2 * q * covariances + q * q * total)) + 0.5
        below = np.cumprod(excess < -margin, axis=1).sum(axis=1)  # edges that are surely not above
        above = np.cumprod((excess > margin)[:, ::-1], axis=1).sum(axis=1)
        first, last = np.maximum(0, below - 1), np.minimum(len(edges) - 1, len(edges) - above)
        if answer.points:  # what is below edge i is at most the point of the cell before it
            last = np.maximum(last - 1, 0)
        estimates.append(between(answer, values, edges[first], edges[np.maximum(first, last)]))
    return estimates


def between(answer: Answer, values: _Floats, low: _Floats, high: _Floats) -> Estimate:
    """Return an estimate with an interval of cells, within the bounds and around the value.

    Edges of real values are floats, and so is the difference by which a value is put into its cell: either
    may be off by a unit in the last place of the bounds' distance, so that two are added at each end.
    """
    if answer.kind is Kind.REAL and not answer.points:
        first, last = answer.edges[0], answer.edges[-1]
        slack = 2 * np.spacing(max(abs(first), abs(last), last - first))
        low, high = np.maximum(low - slack, first), np.minimum(high + slack, last)
    values, low, high = (np.clip(each, answer.lower, answer.upper) for each in (values, low, high))
    return Estimate(values=values, low=np.fmin(low, values), high=np.fmax(high, values))


def _joined(parts: tuple[Estimate, ...]) -> Estimate:
    return Estimate(
        values=np.concatenate([part.values for part in parts]),
        low=np.concatenate([part.low for part in parts]),
        high=np.concatenate([part.high for part in parts]),
    )


def _rising(ranks: _Floats) -> _Floats:
    highest = np.maximum.accumulate(ranks, axis=1)
    lowest = np.minimum.accumulate(ranks[:, ::-1], axis=1)[:, ::-1]
    return (highest + lowest) / 2


def _read(rising: _Floats, edges: _Floats, q: float, *, points: bool) -> _Floats:
    """Return where each row of ranks reaches the share q of its way from start to end."""
    target = rising[:, :1] + q * (rising[:, -1:] - rising[:, :1])
    cells = rising.shape[1] - 1
    cell = np.clip((rising[:, 1:] < target).sum(axis=1), 0, cells - 1)
    group = np.arange(len(rising))
    if points:
        return np.asarray(edges[cell])
    left, right = rising[group, cell], rising[group, cell + 1]
    gap = right - left
    part = np.where(gap > 0, (target[:, 0] - left) / np.where(gap > 0, gap, 1.0), 0.5)
    found: _Floats = edges[cell] + np.clip(part, 0.0, 1.0) * (edges[cell + 1] - edges[cell])
    return found
