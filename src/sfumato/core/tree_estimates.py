"""Tree estimates: noisy counts of every level of a hierarchy become one estimate that adds up.

Each level of a tree was measured with independent noise of one variance. Weighted least squares finds the
numbers that add up (every parent is the sum of its children) and fit all measurements best.

Theorem (Hay et al. 2010, for any variances): two passes over the tree compute the least-squares solution.
Upward, z is the best estimate of a node from its own subtree, with variance V: of the node's own measurement
and of the sum of its children's z, each weighted by the inverse of its variance. Downward, a child moves
by its part V / (sum of the V of its siblings and itself) of what the parent's final number is above the sum.
Theorem (Gauss-Markov): no linear unbiased estimate has a smaller variance, for any node. So no node errs
more than its own measurement does, nor more than the sum of the leaves below it.
Theorem (variance): z_c - w Z, with w the part and Z the sum of all z, is uncorrelated with Z, and with all
that is measured outside the parent's subtree; so Var(child) = V (1 - w) + w^2 Var(parent).
Rounds: float64, to a relative 1e-12 or so of the largest number. `tree_rounding` makes exact integers of it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from sfumato.core.arguments import FloatArray
from sfumato.errors import InvalidArgument

__all__ = ["LevelTree", "TreeEstimate", "estimate_tree"]

_N = TypeVar("_N", bound=np.generic)


@dataclass(frozen=True, slots=True, eq=False)
class LevelTree:
    """Levels of nodes, the roots first: `parents[l]` names the parent of each node of level l + 1.

    >>> tree = LevelTree(roots=1, parents=(np.array([0, 0, 0]),))
    >>> tree.sizes
    (1, 3)
    """

    roots: int
    parents: tuple[npt.NDArray[np.int64], ...] = ()

    def __post_init__(self) -> None:
        above = self.roots
        for level, parents in enumerate(self.parents):
            if not len(parents) or parents.min() < 0 or parents.max() >= above:
                raise InvalidArgument(f"a node of level {level + 1} has no parent", place="parents")
            if np.bincount(parents, minlength=above).min() < 1:
                raise InvalidArgument(f"a node of level {level} has no child", place="parents")
            above = len(parents)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of nodes of each level."""
        return (self.roots, *(len(parents) for parents in self.parents))

    def sums(self, level: int, values: npt.NDArray[_N]) -> npt.NDArray[_N]:
        """Return, for each node of a level, the sum of the values of its children."""
        found: npt.NDArray[_N] = np.zeros((self.sizes[level], *values.shape[1:]), dtype=values.dtype)
        np.add.at(found, self.parents[level], values)
        return found


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TreeEstimate:
    """Estimates of every level, a row per node and a column per cell; the variance of a node's cells."""

    values: tuple[FloatArray, ...]
    variances: tuple[FloatArray, ...]


def estimate_tree(
    tree: LevelTree,
    measured: Sequence[npt.NDArray[Any]],
    variances: Sequence[float],
    totals: Mapping[int, npt.NDArray[Any]] | None = None,
) -> TreeEstimate:
    """Return the least-squares estimate of every node.

    `measured[l]` has a row per node of level l and a column per cell; every cell has a tree of its own, with
    noise of variance `variances[l]`. `totals[l]` are the sums over all cells of each node of a level that
    are known exactly.

    Theorem (totals): the noise of all cells is alike, so least squares falls apart into the sum of a node's C
    cells and the deviations of cells from their mean. Only the sum meets the totals: it is a tree by itself,
    with C times the variances and none where totals are known. Var(cell) = V (1 - 1/C) + Var(sum) / C^2.

    >>> tree = LevelTree(roots=1, parents=(np.array([0, 0]),))
    >>> found = estimate_tree(tree, [np.array([[9.0]]), np.array([[2.0], [4.0]])], [1.0, 1.0])
    >>> found.values[1].ravel().tolist(), found.variances[0].round(3).tolist()
    ([3.0, 5.0], [0.667])
    """
    tables = [np.asarray(one, dtype=np.float64) for one in measured]
    shapes = [one.shape[0] for one in tables]
    if tuple(shapes) != tree.sizes or len(variances) != len(tables):
        raise InvalidArgument("every level of a tree is measured once", place="measured")
    if not all(0 < variance < math.inf for variance in variances):
        raise InvalidArgument("variances are above zero", place="variances")
    found = _two_passes(tree, tables, [float(one) for one in variances])
    if not totals:
        return found
    cells = tables[0].shape[1]
    known = dict(totals)
    sums = [
        (np.asarray(known[level], dtype=np.float64) if level in known else table.sum(axis=1))[:, None]
        for level, table in enumerate(tables)
    ]
    whole = _two_passes(
        tree, sums, [0.0 if level in known else cells * one for level, one in enumerate(variances)]
    )
    return TreeEstimate(
        values=tuple(
            own + (total - own.sum(axis=1, keepdims=True)) / cells
            for own, total in zip(found.values, whole.values, strict=True)
        ),
        variances=tuple(
            own * (1 - 1 / cells) + total / cells**2
            for own, total in zip(found.variances, whole.variances, strict=True)
        ),
    )


def _two_passes(tree: LevelTree, tables: Sequence[FloatArray], variances: Sequence[float]) -> TreeEstimate:
    """Return the least-squares estimate; a variance of zero means that the level is known exactly."""
    last = len(tables) - 1
    upward, own = [tables[last]], [np.full(tree.sizes[last], variances[last])]
    sums: list[FloatArray] = []
    spreads: list[FloatArray] = []
    for level in range(last - 1, -1, -1):
        below, spread = tree.sums(level, upward[0]), tree.sums(level, own[0])
        together = spread + variances[level]
        with np.errstate(invalid="ignore"):
            weight = np.where(together > 0, spread / together, 0.0)  # of the node's own measurement
        upward.insert(0, below + weight[:, None] * (tables[level] - below))
        own.insert(0, weight * variances[level])
        sums.insert(0, below)
        spreads.insert(0, spread)
    values, found = [upward[0]], [own[0]]
    for level in range(last):
        parents, spread = tree.parents[level], spreads[level]
        with np.errstate(invalid="ignore", divide="ignore"):
            part = np.where(spread[parents] > 0, own[level + 1] / spread[parents], 0.0)
        above = values[level] - sums[level]
        values.append(upward[level + 1] + part[:, None] * above[parents])
        found.append(own[level + 1] * (1 - part) + part**2 * found[level][parents])
    return TreeEstimate(values=tuple(values), variances=tuple(found))
