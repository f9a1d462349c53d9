"""Bases: what is asked about one column of a table, and the integers that are measured for it.

A column with n cells is divided into its sum over all cells, of which cell i has the share u_i, and what is
left, the *residual*: x = u (1^T x) + (I - u 1^T) x. A base measures the residual by a matrix B of whole
numbers with B u = 0. Tables of several columns use products of the columns' matrices (`residuals`).

    what is asked       B                                   u            why
    each cell           n I - 1 1^T                         1/n each     optimal: cells are alike
    prefixes, ranges,   K X^(1/2), rotated so that its      the null     optimal but for the rounding, whose
    a matrix            last row is zero, and rounded       vector of B  effect is in every variance told

Theorem: let B have rank n - 1 and B u = 0, 1^T u = 1. Then R = (I - u 1^T) B^+ has R B = I - u 1^T and
1^T R = 0: estimates of the sum and of the residual add up to x, and sums of the residual are zero.
Proof: B^+ B = I - u u^T / |u|^2, and (I - u 1^T)(I - u u^T / |u|^2) = I - u 1^T, for 1^T u = 1; and
1^T (I - u 1^T) = 0.

Theorem (Yuan et al. 2016; the fixed point: Denisov et al. 2022, Theorem 3.2): of all Gram matrices X with
diag(X) <= 1, the trace of V X^+ is least for X = D^(-1/2) (D^(1/2) V D^(1/2))^(1/2) D^(-1/2), where D is
diagonal with D = diag((D^(1/2) V D^(1/2))^(1/2)). With V = (I - 1 u^T) G (I - u 1^T), G the Gram matrix of
what is asked, X u = 0. For one table of one column the best u is that of the best X for G itself: every Gram
matrix is a 1 1^T + Y with Y u = 0, u = a X^-1 1, a = 1 / (1^T X^-1 1). Where tables share their sums, shares
nearer to equal ones are better: `evenness` says how near. Privacy does not rest on any of it: sensitivities
are of the rounded B itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.core.arguments import FloatArray
from sfumato.errors import InvalidArgument

__all__ = [
    "Asked",
    "Base",
    "Matrix",
    "asked_rows",
    "best_matrix",
    "cells",
    "numeric_base",
]

_Integers = npt.NDArray[np.int64]

Asked = str | tuple[tuple[float, ...], ...]
"""What is asked about a column: "cells", "prefixes", "ranges", or the rows of a matrix."""

Matrix = tuple[tuple[int, ...], ...]
"""B, a row per integer that is measured."""

_SCALE = 1 << 10  # K: entries of a matrix are whole multiples of 1/K of its column norm
_ROUNDS = 100
_CLOSE = 5e-4
_LEAST = 1e-6  # of what is asked: so much is asked of what nobody asks, so that all cells can be recovered
_MOST_CELLS = 2_000  # of a column whose matrix is searched for: the search takes the cube of it


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Base:
    """What is asked about one column of `size` cells, by `queries` linear queries, and what is measured.

    `gram` is W^T W of the matrix W of what is asked, and `matrix` is B; both are None where each cell is
    asked for.

    >>> base = cells(4)
    >>> base.sensitivity_squared, base.measure(np.array([3, 0, 0, 1]), 0).tolist()
    (12, [8, -4, -4, 0])
    """

    size: int
    queries: int
    gram: FloatArray | None = None
    matrix: _Integers | None = None
    shares: FloatArray = field(init=False, repr=False)
    """u: the share of each cell in the sum over all."""
    inverse: FloatArray | None = field(init=False, repr=False)
    """R: how the residual follows from what is measured."""
    sensitivity_squared: int = field(init=False)
    """The largest squared norm of a column of B: what one more row of one person can change."""
    residual_variance: float = field(init=False)
    """The sum of variances of what is asked, for independent noise of variance 1 on what is measured."""
    sum_variance: float = field(init=False)
    """The same for noise of variance 1 on the sum over all cells."""

    def __post_init__(self) -> None:
        size = self.size
        if size < 1:
            raise InvalidArgument("a column has one cell at least", place="size")
        shares: FloatArray = np.full(size, 1 / size)
        inverse: FloatArray | None = None
        sensitivity, residual, total = size * (size - 1), (size - 1) / size**2, 1 / size
        if self.gram is not None and self.matrix is not None:
            if self.matrix.shape != (size - 1, size) or self.gram.shape != (size, size):
                raise InvalidArgument("a residual matrix has a row less than cells", place="matrix")
            shares = np.linalg.svd(self.matrix.astype(np.float64))[2][-1]
            shares = shares / shares.sum()
            inverse = (np.eye(size) - shares[:, None]) @ np.linalg.pinv(self.matrix.astype(np.float64))
            sensitivity = int((self.matrix**2).sum(axis=0).max(initial=0))
            residual = float(((self.gram @ inverse) * inverse).sum())  # the trace of W R (W R)^T
            total = float(shares @ self.gram @ shares)
        for name, value in (
            ("shares", shares),
            ("inverse", inverse),
            ("sensitivity_squared", sensitivity),
            ("residual_variance", residual),
            ("sum_variance", total),
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
    def cell_largest(self) -> FloatArray:
        """The largest weight that an integer which is measured has in each cell's residual."""
        if self.inverse is None:
            return np.full(self.size, max(1, self.size - 1) / self.size**2)
        found: FloatArray = np.abs(self.inverse).max(axis=1, initial=0.0)
        return found

    def cell_weights(self, at: int) -> tuple[FloatArray, npt.NDArray[np.int64]]:
        """Return the different weights of integers in a cell's residual, and how often each occurs."""
        return _cell_weights(self, 0 if self.inverse is None else at)

    @property
    def largest(self) -> int:
        """A bound of how many times a count an integer that is measured, or a step of its sum, can be."""
        return 2 * self.size if self.matrix is None else int(np.abs(self.matrix).max(initial=1))

    def measure(self, counts: npt.NDArray[Any], axis: int) -> npt.NDArray[Any]:
        """Multiply integers along an axis by B, exactly."""
        if self.matrix is None:
            product: npt.NDArray[Any] = self.size * counts - counts.sum(axis=axis, keepdims=True)
            return product
        return _along(self.matrix.astype(counts.dtype), counts, axis)

    def recover(self, measured: npt.NDArray[Any], axis: int) -> FloatArray:
        """Multiply by R: the estimate of the residual, which sums to zero."""
        if self.inverse is None:
            centred: FloatArray = (measured - measured.mean(axis=axis, keepdims=True)) / self.size
            return centred
        return _along(self.inverse, measured, axis)

    def weigh(self, query: FloatArray, axis: int) -> FloatArray:
        """Multiply by the transposed R: how much of each measured integer is in a query."""
        return self.recover(query, axis) if self.inverse is None else _along(self.inverse.T, query, axis)


@lru_cache(maxsize=4096)
def _cell_weights(base: Base, at: int) -> tuple[FloatArray, npt.NDArray[np.int64]]:
    cell = np.zeros(base.size)
    cell[at] = 1
    return np.unique(base.weigh(cell, 0), return_counts=True)


def _along(matrix: npt.NDArray[Any], values: npt.NDArray[Any], axis: int) -> npt.NDArray[Any]:
    product: npt.NDArray[Any] = np.moveaxis(np.tensordot(matrix, values, axes=(1, axis)), 0, axis)
    return product


def cells(size: int) -> Base:
    """Ask for each cell."""
    return Base(size=size, queries=size)


def asked_rows(asked: Any) -> tuple[tuple[float, ...], ...]:
    """Return a matrix of linear queries as rows of numbers; refuse what is none."""
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
    return tuple(map(tuple, matrix.tolist()))


@lru_cache(maxsize=256)
def numeric_base(asked: Asked, size: int, matrix: Matrix) -> Base:
    """Return the base that measures by a matrix, for prefixes, ranges or linear queries."""
    gram, queries = _gram(asked, size)
    return Base(
        size=size, queries=queries, gram=gram, matrix=np.array(matrix, dtype=np.int64).reshape(-1, size)
    )


def _gram(asked: Asked, size: int) -> tuple[FloatArray, int]:
    """Return W^T W of what is asked, and how many queries W has."""
    places = np.arange(size)
    last = size - np.maximum.outer(places, places).astype(np.float64)
    if asked == "prefixes":
        return last, size
    if asked == "ranges":
        return (np.minimum.outer(places, places) + 1.0) * last, size * (size + 1) // 2
    rows = np.array(asked, dtype=np.float64)
    return rows.T @ rows, len(rows)


@lru_cache(maxsize=256)
def best_matrix(asked: Asked, size: int, evenness: float = 0.5) -> Matrix:
    """Return B for what is asked; `evenness`: 0 has the shares that are best for one table, 1 equal ones."""
    if size > _MOST_CELLS:
        raise InvalidArgument(
            f"prefixes, ranges and matrices are of at most {_MOST_CELLS:,} cells of a column",
            place="base",
            hints=("use fewer bins, or ask for cells",),
        )
    gram, _ = _gram(asked, size)
    gram = gram / np.trace(gram) + np.eye(size) * (_LEAST / size)
    shares = np.full(size, 1 / size)
    if evenness < 1:
        best = np.linalg.solve(_best_gram(gram), np.ones(size))
        shares = evenness * shares + (1 - evenness) * best / best.sum()
    project = np.eye(size) - shares[:, None]
    root = _root(_best_gram(project.T @ gram @ project))
    # A reflection takes the shares to the last axis: the last row of the root becomes zero, its Gram stays.
    direction = shares / np.linalg.norm(shares)
    direction[-1] += 1.0 if direction[-1] >= 0 else -1.0
    turned = root - np.outer(2 / (direction @ direction) * direction, direction @ root)
    return tuple(map(tuple, np.rint(_SCALE * turned[:-1]).astype(np.int64).tolist()))


def _best_gram(asked: FloatArray) -> FloatArray:
    """Return X of the theorem, by iterating D = diag((D^(1/2) V D^(1/2))^(1/2))."""
    weights = np.maximum(np.diag(_root(asked)), 1e-12)
    for _ in range(_ROUNDS):
        root = np.sqrt(weights)
        inner = _root(root[:, None] * asked * root)
        found = np.maximum(np.diag(inner), 1e-12)
        if np.abs(found / weights - 1).max() < _CLOSE:
            break
        weights = found**2 / weights  # twice the step, for the map about halves what is missing
    return inner / root[:, None] / root


def _root(matrix: FloatArray) -> FloatArray:
    """Return the symmetric root of a positive semi-definite matrix."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    root: FloatArray = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
    return root
