"""Bases: what is asked about one column of a table, and the integers that are measured for it.

A column with n cells is divided into its sum over all cells and what is left, the *residual*. A base
measures the residual by a matrix B of whole numbers whose rows each sum to zero, so that it says nothing
about the sum. Tables of several columns use products of the columns' matrices (`residuals`).

    what is asked       B                                      why
    each cell           n I - 1 1^T                            optimal: cells are alike
    prefixes, ranges,   K X^(1/2) rounded, X the best Gram     optimal but for the rounding, whose effect
    a matrix            matrix with equal column norms         is part of every variance that is told

Theorem (Yuan et al. 2016; the fixed point: Denisov et al. 2022, Theorem 3.2): of all Gram matrices X with
diag(X) <= 1, the trace of V X^+ is least for X = D^(-1/2) (D^(1/2) V D^(1/2))^(1/2) D^(-1/2), where D is
diagonal with D = diag((D^(1/2) V D^(1/2))^(1/2)). Here V = P G P, with G the Gram matrix of what is asked and
P = I - 1 1^T / n, so that X 1 = 0. Privacy does not rest on it: sensitivities are of the rounded B itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.core.arguments import FloatArray
from sfumato.errors import InvalidArgument

__all__ = ["Base", "cells", "custom", "prefixes", "ranges"]

_Integers = npt.NDArray[np.int64]

_SCALE = 1 << 10  # K: entries of a matrix are whole multiples of 1/K of its column norm
_ROUNDS = 100
_CLOSE = 1e-4
_LEAST = 1e-6  # of what is asked: so much is asked of what nobody asks, so that all cells can be recovered
_MOST_CELLS = 2_000  # of a column whose matrix is searched for: the search takes the cube of it


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Base:
    """What is asked about one column of `size` cells, by `queries` linear queries, and what is measured.

    `gram` is W^T W of the matrix W of what is asked, and `matrix` is B; both are None where each cell is
    asked for. `inverse` is the pseudo-inverse of B.

    >>> base = cells(4)
    >>> base.sensitivity_squared, base.measure(np.array([3, 0, 0, 1]), 0).tolist()
    (12, [8, -4, -4, 0])
    """

    size: int
    queries: int
    gram: FloatArray | None = None
    matrix: _Integers | None = None
    inverse: FloatArray | None = field(default=None, repr=False)
    sensitivity_squared: int = field(init=False)
    """The largest squared norm of a column of B: what one more row of one person can change."""
    residual_variance: float = field(init=False)
    """The sum of variances of what is asked, for independent noise of variance 1 on what is measured."""
    sum_variance: float = field(init=False)
    """The same for noise of variance 1 on the sum over all cells, of which each has an equal share."""

    def __post_init__(self) -> None:
        size = self.size
        if size < 1:
            raise InvalidArgument("a column has one cell at least", place="size")
        if self.gram is None or self.matrix is None or self.inverse is None:
            found = size * (size - 1), (size - 1) / size**2, 1 / size
        else:
            if self.matrix.sum(axis=1).any():
                raise InvalidArgument("rows of a residual matrix sum to zero", place="matrix")
            asked = float(((self.gram @ self.inverse) * self.inverse).sum())  # the trace of W B^+ (W B^+)^T
            largest = int((self.matrix**2).sum(axis=0).max())
            found = largest, asked, float(self.gram.sum()) / size**2
        for name, value in zip(
            ("sensitivity_squared", "residual_variance", "sum_variance"), found, strict=True
        ):
            object.__setattr__(self, name, value)

    @property
    def rows(self) -> int:
        """How many integers are measured."""
        return self.size if self.matrix is None else len(self.matrix)

    @property
    def cell_variances(self) -> FloatArray:
        """The variance of each cell's residual, for independent noise of variance 1 on what is measured."""
        if self.inverse is None:
            return np.full(self.size, (self.size - 1) / self.size**3)
        found: FloatArray = (self.inverse**2).sum(axis=1)
        return found

    @property
    def largest(self) -> int:
        """A bound of how many times a count an integer that is measured, or a step of its sum, can be."""
        return 2 * self.size if self.matrix is None else int(np.abs(self.matrix).max())

    def measure(self, counts: npt.NDArray[Any], axis: int) -> npt.NDArray[Any]:
        """Multiply integers along an axis by B, exactly."""
        if self.matrix is None:
            product: npt.NDArray[Any] = self.size * counts - counts.sum(axis=axis, keepdims=True)
            return product
        return _along(self.matrix.astype(counts.dtype), counts, axis)

    def recover(self, measured: npt.NDArray[Any], axis: int) -> FloatArray:
        """Multiply by the pseudo-inverse: the least-squares estimate of the residual, which sums to zero."""
        if self.inverse is None:
            centred: FloatArray = (measured - measured.mean(axis=axis, keepdims=True)) / self.size
            return centred
        return _along(self.inverse, measured, axis)

    def weigh(self, query: FloatArray, axis: int) -> FloatArray:
        """Multiply by the transposed pseudo-inverse: how much of each measured integer is in a query."""
        return self.recover(query, axis) if self.inverse is None else _along(self.inverse.T, query, axis)


def _along(matrix: npt.NDArray[Any], values: npt.NDArray[Any], axis: int) -> npt.NDArray[Any]:
    product: npt.NDArray[Any] = np.moveaxis(np.tensordot(matrix, values, axes=(1, axis)), 0, axis)
    return product


def cells(size: int) -> Base:
    """Ask for each cell."""
    return Base(size=size, queries=size)


@lru_cache(maxsize=64)
def prefixes(size: int) -> Base:
    """Ask for the sums of the first 1, 2, .., n cells: how many are at most so old."""
    places = np.arange(size)
    return _best(size - np.maximum.outer(places, places).astype(np.float64), size)


@lru_cache(maxsize=64)
def ranges(size: int) -> Base:
    """Ask for the sum of every range of neighbouring cells."""
    places = np.arange(size)
    gram = (np.minimum.outer(places, places) + 1.0) * (size - np.maximum.outer(places, places))
    return _best(gram, size * (size + 1) // 2)


def custom(asked: Any) -> Base:
    """Ask for the linear queries that are the rows of a matrix, one column per cell."""
    try:
        matrix = np.array(asked, dtype=np.float64)
    except (TypeError, ValueError):
        matrix = np.zeros(0)
    if matrix.ndim != 2 or not matrix.size or not np.isfinite(matrix).all() or not matrix.any():
        raise InvalidArgument(
            "what is asked about a column is a matrix: a row per query, a number per cell",
            place="base",
            hints=("[[1, 1, 0], [0, 0, 1]] asks for the sum of two cells, and for the third",),
        )
    return _custom(tuple(map(tuple, matrix.tolist())))


@lru_cache(maxsize=64)
def _custom(rows: tuple[tuple[float, ...], ...]) -> Base:
    matrix = np.array(rows)
    return _best(matrix.T @ matrix, len(matrix))


def _best(gram: FloatArray, queries: int) -> Base:
    """Return a base for what has this Gram matrix."""
    size = len(gram)
    if size > _MOST_CELLS:
        raise InvalidArgument(
            f"prefixes, ranges and matrices are of at most {_MOST_CELLS:,} cells of a column",
            place="base",
            hints=("use fewer bins, or ask for cells",),
        )
    matrix = _rounded(_SCALE * _root(_best_gram(gram))) if size > 1 else np.zeros((1, 1), dtype=np.int64)
    inverse = np.linalg.pinv(matrix, rcond=1e-9)
    return Base(size=size, queries=queries, gram=gram, matrix=matrix, inverse=inverse)


def _best_gram(gram: FloatArray) -> FloatArray:
    """Return X of the theorem, by iterating D = diag((D^(1/2) V D^(1/2))^(1/2))."""
    size = len(gram)
    project = np.eye(size) - 1 / size
    asked = project @ gram @ project
    asked += project * (_LEAST * np.trace(gram) / size)
    asked /= np.trace(asked)
    weights = np.maximum(np.diag(_root(asked)), 1e-12)
    for _ in range(_ROUNDS):
        root = np.sqrt(weights)
        inner = _root(root[:, None] * asked * root)
        found = np.maximum(np.diag(inner), 1e-12)
        done = np.abs(found / weights - 1).max() < _CLOSE
        weights = found
        if done:
            break
    return project @ (inner / root[:, None] / root) @ project


def _root(matrix: FloatArray) -> FloatArray:
    """Return the symmetric root of a positive semi-definite matrix."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    root: FloatArray = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
    return root


def _rounded(matrix: FloatArray) -> _Integers:
    """Round to whole numbers so that every row sums to zero, by largest remainders; drop empty rows."""
    whole = np.floor(matrix).astype(np.int64)
    for row, left in zip(whole, matrix - whole, strict=True):
        more = -int(row.sum())  # between 0 and the row's length: the row itself sums to zero
        row[np.argsort(-left, kind="stable")[:more]] += 1
    return whole[whole.any(axis=1)]
