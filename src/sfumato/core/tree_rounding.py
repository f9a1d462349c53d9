"""Tree rounding: estimates of a hierarchy become integers that add up exactly, from the top down.

A root is rounded to the nearest integer. The children of a node get the integers below their estimates, and
those with the largest fractions get one more, until they add up to the node.

Theorem: every integer is less than one away from its estimate. Let the estimates of n children add up to
h, their fractions to f, and let the parent's integer be h + d with |d| < 1. Then f + d ones are left to give;
that is an integer above -1 and below n + 1, so it is between 0 and n, and each child gets one or none.
Where totals over cells are known, the node's cells are such children of the total; levels above are sums.

With `non_negative`, the children of a node are first moved to the nearest numbers that are not below zero and
add up to the node. That is biased: small counts become too high on average, large ones beside them too low.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.core.arguments import FloatArray
from sfumato.core.tree_estimates import LevelTree

__all__ = ["round_tree", "rounding_variances", "whole_numbers"]

_Integers = npt.NDArray[Any]  # of 64 bits, or Python's where these might not do
_WIDEST = 2.0**50


def whole_numbers(values: FloatArray) -> _Integers:
    """Return whole floats as integers; as Python's, where sums and multiples might not fit in 64 bits.

    >>> whole_numbers(np.array([3.0])).dtype, whole_numbers(np.array([2.0**70])).tolist()
    (dtype('int64'), [1180591620717411303424])
    """
    if np.abs(values).sum() < _WIDEST:
        return values.astype(np.int64)
    return np.array([int(one) for one in values.ravel().tolist()], dtype=object).reshape(values.shape)


def round_tree(
    tree: LevelTree,
    estimates: Sequence[FloatArray],
    totals: Mapping[int, _Integers] | None = None,
    *,
    non_negative: bool = False,
) -> tuple[_Integers, ...]:
    """Return integers of every level, a row per node and a column per cell.

    `totals[l]` are integers that the cells of each node of a level have to add up to.

    >>> tree = LevelTree(roots=1, parents=(np.array([0, 0, 0]),))
    >>> top, leaves = round_tree(tree, [np.array([[1.2]]), np.array([[0.4], [0.4], [0.4]])])
    >>> top.tolist(), leaves.ravel().tolist()
    ([[1]], [1, 0, 0])
    """
    start = max(totals, default=0) if totals else 0
    first = np.asarray(estimates[start], dtype=np.float64)
    if totals:
        nodes, cells = first.shape
        whole = np.asarray(totals[start])
        rounded = _shared_out(
            first.ravel(), np.repeat(np.arange(nodes), cells), whole, non_negative=non_negative
        ).reshape(nodes, cells)
    else:
        rounded = whole_numbers(np.rint(np.maximum(first, 0) if non_negative else first))
    found = [rounded]
    for level in range(start, len(tree.parents)):
        parents, below = tree.parents[level], estimates[level + 1]
        columns = [
            _shared_out(below[:, cell], parents, found[-1][:, cell], non_negative=non_negative)
            for cell in range(below.shape[1])
        ]
        found.append(np.stack(columns, axis=1))
    for level in range(start - 1, -1, -1):
        found.insert(0, tree.sums(level, found[0]))
    return tuple(found)


def _shared_out(
    estimates: FloatArray, parents: _Integers, whole: _Integers, *, non_negative: bool
) -> _Integers:
    """Return integers near the estimates; those of one parent add up to its whole."""
    number = np.bincount(parents, minlength=len(whole))
    if non_negative:
        estimates = _onto_simplex(estimates, parents, whole, number)
    floors = np.floor(estimates)
    found = whole_numbers(floors)
    taken = np.full(len(whole), 0, dtype=found.dtype)
    np.add.at(taken, parents, found)
    left = whole - taken
    each, rest = left // number, left % number  # each is 0 but for the rounding of float64
    order = np.lexsort((floors - estimates, parents))
    found = found + each[parents]
    found[order] += (_ranks(parents[order], number) < rest[parents[order]]).astype(np.int64)
    return found


def _onto_simplex(
    estimates: FloatArray, parents: _Integers, whole: _Integers, number: _Integers
) -> FloatArray:
    """Return the nearest numbers that are not below zero and add up to each parent's whole.

    Theorem: they are max(x - t, 0), with t from the largest j estimates of which the last stays above zero.
    """
    order = np.lexsort((-estimates, parents))
    own = parents[order]
    ranks = _ranks(own, number)
    sums = np.cumsum(estimates[order])
    starts = np.cumsum(number) - number
    before = np.where(starts > 0, sums[starts - 1], 0.0)
    excess = (sums - before[own] - whole.astype(np.float64)[own]) / (ranks + 1)
    stays = (estimates[order] > excess) | (ranks == 0)
    kept = np.bincount(own, weights=stays, minlength=len(whole)).astype(np.int64)
    cut = excess[starts + kept - 1]
    nearest: FloatArray = np.maximum(estimates - cut[parents], 0.0)
    return nearest


def _ranks(sorted_parents: _Integers, number: _Integers) -> _Integers:
    """Return the place of each child among those of its parent."""
    starts = np.cumsum(number) - number
    ranks: _Integers = np.arange(len(sorted_parents)) - starts[sorted_parents]
    return ranks


def rounding_variances(tree: LevelTree, start: int) -> list[FloatArray]:
    """Return the variance that rounding adds to levels above the one where it begins: a third a node.

    A number that is rounded up or down by less than one, in either direction, has no more if that is even.
    """
    found: list[FloatArray] = [np.zeros(1)] * len(tree.sizes)
    below = np.full(tree.sizes[start], 1 / 3)
    for level in range(start - 1, -1, -1):
        below = np.asarray(tree.sums(level, below))
        found[level] = below
    return found
