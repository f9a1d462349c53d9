"""Cube estimates: noisy tables over sets of columns become one estimate in which all tables agree.

The columns have n_1, n_2, .. values, and every combination is there. A table over a set S of columns was
measured with independent noise of variance v_S in each cell; any sets may have been measured.

Theorem (residuals): the table over S falls apart into orthogonal parts, one for each subset A of S: the sums
over the columns outside A, with the means along every column of A taken off. Every table over S that holds A
measures the part of A, with the same law of noise up to a factor: its variance is v_S times the product of n
over the columns of S outside A. So least squares is the mean of these, each weighted by the inverse of its
variance, part by part, and parts do not meet. With p_A the sum of the inverses,
Var(cell of S) = sum over A in S of 1 / p_A * product over A of (1 - 1/n) / product over S outside A of n^2.
Theorem (Gauss-Markov): no linear unbiased estimate of any cell has a smaller variance.
Rounds: float64, to a relative 1e-12 or so of the largest number.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, combinations

import numpy as np

from sfumato.core.arguments import FloatArray
from sfumato.errors import InvalidArgument

__all__ = ["cube_variances", "estimate_cube"]

_Set = tuple[int, ...]


def estimate_cube(
    sizes: Sequence[int], measured: Mapping[_Set, FloatArray], variances: Mapping[_Set, float]
) -> dict[_Set, FloatArray]:
    """Return the least-squares estimate of every table that was measured.

    A table over columns (0, 2) has the shape (sizes[0], sizes[2], cells): every cell is a cube by itself.

    >>> tables = {(0,): np.array([[2.0], [4.0]]), (): np.array([9.0])}
    >>> found = estimate_cube([2], tables, {(0,): 1.0, (): 1.0})
    >>> found[0,].ravel().tolist(), found[()].tolist()
    ([3.0, 5.0], [8.0])
    """
    for chosen, table in measured.items():
        if table.shape[:-1] != tuple(sizes[column] for column in chosen) or chosen != tuple(sorted(chosen)):
            raise InvalidArgument("a table has an axis for each of its columns, in order", place="measured")
    precisions = _precisions(sizes, variances)
    parts = {}
    for part, precision in precisions.items():
        total: FloatArray | float = 0.0
        for chosen, table in measured.items():
            if set(part) <= set(chosen):
                outside = tuple(place for place, column in enumerate(chosen) if column not in part)
                total = total + _precision(sizes, chosen, part, variances) / precision * table.sum(
                    axis=outside
                )
        residual = np.asarray(total)
        for axis in range(len(part)):
            residual = residual - residual.mean(axis=axis, keepdims=True)
        parts[part] = residual
    found = {}
    for chosen, table in measured.items():
        estimate = np.zeros(table.shape)
        for part in _subsets(chosen):
            outside = tuple(place for place, column in enumerate(chosen) if column not in part)
            number = math.prod(sizes[chosen[place]] for place in outside)
            estimate += np.expand_dims(parts[part], outside) / number
        found[chosen] = estimate
    return found


def cube_variances(sizes: Sequence[int], variances: Mapping[_Set, float]) -> dict[_Set, float]:
    """Return the variance of each cell of every table's estimate.

    >>> cube_variances([2], {(0,): 1.0, (): 1.0})[()]
    0.6666666666666666
    """
    precisions = _precisions(sizes, variances)
    return {
        chosen: math.fsum(
            math.prod(1 - 1 / sizes[column] for column in part)
            / precisions[part]
            / math.prod(sizes[column] ** 2 for column in chosen if column not in part)
            for part in _subsets(chosen)
        )
        for chosen in variances
    }


def _precisions(sizes: Sequence[int], variances: Mapping[_Set, float]) -> dict[_Set, float]:
    """Return the inverse of the variance of each part."""
    parts = dict.fromkeys(chain.from_iterable(_subsets(chosen) for chosen in variances))
    return {
        part: math.fsum(
            _precision(sizes, chosen, part, variances) for chosen in variances if set(part) <= set(chosen)
        )
        for part in parts
    }


def _precision(sizes: Sequence[int], chosen: _Set, part: _Set, variances: Mapping[_Set, float]) -> float:
    outside = math.prod(sizes[column] for column in chosen if column not in part)
    return 1 / (variances[chosen] * outside)


def _subsets(chosen: _Set) -> Iterator[_Set]:
    return chain.from_iterable(combinations(chosen, size) for size in range(len(chosen) + 1))
