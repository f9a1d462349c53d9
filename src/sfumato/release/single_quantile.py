"""Finding one quantile in exact histograms: the place, by a private choice; what is measured there.

What is here sees exact integers and is called by `noise`, which opened them; all that leaves it is a
choice of an exact selection mechanism, and integers to which `noise` adds noise at once. See
`analysis/single_quantile` for the steps and for what one unit can move of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.aggregates.quantile_estimate import half_widths
from sfumato.analysis.single_quantile import QuantileSearch

__all__ = ["Search"]

_Integers = npt.NDArray[Any]


class Search:
    """Histograms, a row of cells per group, in which one quantile is looked for. Secret.

    `excess[g, i]` is d times D_i of group g, for the quantile n/d.
    """

    def __init__(self, cells: _Integers, finding: QuantileSearch) -> None:
        n, d = finding.quantile.numerator, finding.quantile.denominator
        if cells.dtype != object and cells.size:
            largest = float(np.abs(cells.astype(np.float64)).sum(axis=1).max())
            if largest * d >= 2.0**62:
                cells = cells.astype(object)
        below = np.zeros((cells.shape[0], cells.shape[1] + 1), dtype=cells.dtype)
        np.cumsum(cells, axis=1, out=below[:, 1:])
        self.below = below
        self.excess: _Integers = below * d - below[:, -1:] * n
        self.finding = finding

    def utilities(self) -> _Integers:
        """Return the utility of each cell: less the rows by which it misses the quantile, if it does."""
        return np.minimum(-self.excess[:, :-1], self.excess[:, 1:])

    def find(self) -> npt.NDArray[np.int64]:
        """Return a cell per group, by the exponential mechanism, or by permute and flip."""
        from sfumato.core.selection import ExponentialMechanism, PermuteAndFlip  # few questions need them

        kind = PermuteAndFlip if self.finding.flips else ExponentialMechanism
        choice = kind(self.finding.epsilon, sensitivity=self.finding.sensitivity)
        return choice.release_each(self.utilities())

    def anchors(self, places: npt.NDArray[np.int64]) -> _Integers:
        """Return the excess at the lower edge of each group's cell."""
        found: _Integers = self.excess[np.arange(len(places)), places]
        return found

    def annuli(self, places: npt.NDArray[np.int64]) -> _Integers:
        """Return the counts to the left of that edge, nearest first, then to its right; none is 0."""
        cells = self.below.shape[1] - 1
        widths = np.concatenate([[0], half_widths(cells, anchored=self.finding.anchor is not None)])
        rows = np.arange(len(places))[:, None]
        left = self.below[rows, np.maximum(places[:, None] - widths, 0)]
        right = self.below[rows, np.minimum(places[:, None] + widths, cells)]
        return np.concatenate([left[:, :-1] - left[:, 1:], right[:, 1:] - right[:, :-1]], axis=1)
