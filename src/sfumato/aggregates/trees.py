"""Layers of noisy histograms made consistent: the best estimate of every cell, and how good it is.

Each layer counts the same people in blocks of branching^l cells, with noise of its own. Blocks
and the cells inside them disagree; the weighted least-squares estimate, in which every block is
exactly the sum of its parts, has the least variance of all unbiased linear ones. On a tree it
takes one pass up and one pass down (Hay, Rastogi, Miklau and Suciu 2010, with the weights of
Honaker 2015). All of this is post-processing of noisy numbers with public weights.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["Tree"]

_Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """The public shape of a layered histogram, whose every block has noise of one variance."""

    cells: int
    levels: int
    branching: int
    variance: float

    def widths(self) -> list[int]:
        """Return the number of blocks of each layer, cells first."""
        return [-(-self.cells // self.branching**layer) for layer in range(self.levels)]

    def consistent(self, layers: tuple[npt.NDArray[np.generic], ...]) -> _Floats:
        """Return the least-squares estimate of every cell: a row of cells per group."""
        widths = self.widths()
        noisy = [
            np.asarray(layer, dtype=np.float64).reshape(-1, width)
            for layer, width in zip(layers, widths, strict=True)
        ]
        merged, spread = self._variances()
        best = [noisy[0]]
        for layer in range(1, self.levels):
            below = self._gather(best[-1])
            own = merged[layer] / self.variance  # the share of the block's own noisy number
            best.append(own * noisy[layer] + (1 - own) * below.sum(axis=2))
        final = best[-1]
        for layer in range(self.levels - 1, 0, -1):
            parts = self._gather(best[layer - 1])
            share = self._gather(merged[layer - 1][None, :])[0] / spread[layer][:, None]
            moved = parts + (final - parts.sum(axis=2))[:, :, None] * share
            final = moved.reshape(-1, moved.shape[1] * self.branching)[:, : widths[layer - 1]]
        return final

    def prefix_variances(self) -> tuple[_Floats, _Floats, float]:
        """Return Var(F_i), Cov(F_i, F_all) and Var(F_all), for F_i the estimated sum of the first i cells.

        Inside a block, given the block's final estimate h, the sum of the first cells is
        lean * h + a rest of variance `rest` that does not depend on h; up the tree both follow
        from the children's variances, for children are independent but for their sum.
        """
        merged, spread = self._variances()
        edges = np.arange(self.cells)
        lean, rest = np.zeros(self.cells), np.zeros(self.cells)
        for layer in range(1, self.levels):
            child = edges // self.branching ** (layer - 1)
            parent = child // self.branching
            own, total = merged[layer - 1][child], spread[layer][parent]
            before = np.concatenate([[0.0], np.cumsum(merged[layer - 1])])
            left = before[child] - before[parent * self.branching]
            part = left + lean * own
            rest = np.maximum(0.0, left + lean**2 * own - part**2 / total) + rest
            lean = part / total
        top = merged[-1]
        block = edges // self.branching ** (self.levels - 1)
        left = np.concatenate([[0.0], np.cumsum(top)])[block]
        total_variance = float(top.sum())
        variances = np.append(left + lean**2 * top[block] + rest, total_variance)
        return variances, np.append(left + lean * top[block], total_variance), total_variance

    def _variances(self) -> tuple[list[_Floats], list[_Floats]]:
        """Return, per layer, the variance of each block's best estimate from below, and of its parts' sum."""
        widths = self.widths()
        merged = [np.full(widths[0], self.variance)]
        spread = [np.zeros(widths[0])]
        for _ in range(1, self.levels):
            parts = self._gather(merged[-1][None, :])[0].sum(axis=1)
            spread.append(parts)
            merged.append(1 / (1 / self.variance + 1 / parts))
        return merged, spread

    def _gather(self, rows: _Floats) -> _Floats:
        """Return rows of blocks as rows of parents of `branching` blocks each, absent ones as zeros."""
        groups, width = rows.shape
        parents = -(-width // self.branching)
        padded = np.zeros((groups, parents * self.branching))
        padded[:, :width] = rows
        return padded.reshape(groups, parents, self.branching)
