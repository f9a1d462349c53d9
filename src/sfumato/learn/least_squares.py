"""Least squares from noisy second moments: one noisy matrix, and intervals of the coefficients.

Each row is a vector v of scaled features, the constant 1 and the scaled label. The matrix is the sum of v v',
each row with a weight: at most one over the square of its norm, and one over the number of its unit's rows.

Theorem: one unit that is added or removed changes the integers of `second_moments` by a vector of Euclidean
norm at most 5 LIMIT STEPS^2. Proof: v is V / STEPS for whole numbers V, and the weight W a whole number, at
most LIMIT STEPS^2 / |V|^2 over the number of the unit's rows (rounded toward zero, from a hair less). So the
rows of a unit add up to a matrix of Frobenius norm at most LIMIT STEPS^2. Its entries on the diagonal are
multiplied by 5, those above it by 7, and those below are left out; 7^2 < 2 * 5^2, so that the norm of what is
left is at most 5 times that of the matrix. All sums are of
64-bit integers that do not overflow: of at most 2^13 rows of at most 2^47 each.

Theorem (intervals): let A w = b be the equations of the exact matrix, and A^, b^ the noisy ones. Then
A^ w - b^ is a sum of independent noises with the coefficients w and -1, each of at most a deviation s:
sub-Gaussian of parameter s |(w, 1)| (Canonne, Kamath, Steinke 2020). So with probability 1 - miss all entries
of it are at most z s |(w, 1)|, z = sqrt(2 log(2 p / miss)), and w lies within H z s |(w, 1)| of the solution
w^ of the noisy equations, where H are the sums of the absolute values of the rows of the inverse of A^. That
bounds |(w, 1)| itself, if |H| z s < 1; else nothing is known.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sfumato.core.arguments import FloatArray
from sfumato.learn.gradients import HAIR, LIMIT, MOST_SPREADS, ROWS_AT_ONCE, STEPS, EncodedRows

__all__ = ["LEVEL", "SECOND_MOMENTS_SQUARED", "Solution", "second_moments", "solved"]

SECOND_MOMENTS_SQUARED = (5 * LIMIT * STEPS**2) ** 2
"""The square of how far one unit moves `second_moments`."""

LEVEL = 0.95
"""With this probability the intervals of all coefficients hold at once."""


def second_moments(
    rows: EncodedRows, typical: float, weights: FloatArray | None = None
) -> npt.NDArray[np.int64]:
    """Return the matrix over rows in whole numbers, its diagonal times 5 and what is above it times 7.

    Rows of a squared norm above the `typical` one, which is public, count less.
    """
    width = rows.features.shape[1] + 1
    total = np.zeros((width, width), dtype=object)  # no sum wraps around
    for start in range(0, len(rows.features), ROWS_AT_ONCE):
        some = slice(start, start + ROWS_AT_ONCE)
        labels = np.rint(np.clip(rows.labels[some], -MOST_SPREADS, MOST_SPREADS) * STEPS)
        whole = np.concatenate([rows.features[some], labels[:, None].astype(np.int16)], axis=1).astype(
            np.int64
        )
        squares = np.square(whole).sum(axis=1) / STEPS**2
        wanted = (1.0 if weights is None else weights[some]) / typical
        shares = _bounded(wanted, squares) * rows.shares[some]
        total += ((whole * np.trunc(shares).astype(np.int64)[:, None]).T @ whole).astype(object)
    factors = np.where(np.eye(width, dtype=np.bool_), 5, 7)
    return (total * factors)[np.triu_indices(width)]


def _bounded(wanted: float | FloatArray, squares: FloatArray) -> FloatArray:
    """Return the weights of rows, times LIMIT: those that are wanted, or one over their squared norms."""
    return np.asarray(LIMIT * HAIR * np.minimum(wanted, 1.0 / squares))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Solution:
    """Parameters of scaled features and of the constant 1, and how far off they may be; inf: by anything."""

    parameters: FloatArray
    half_widths: FloatArray


def solved(noisy: npt.NDArray[np.int64], width: int, deviation: float) -> Solution:
    """Return the solution of noisy equations of so many parameters; `deviation` is that of their noise."""
    size = width + 1
    upper = np.zeros((size, size))
    upper[np.triu_indices(size)] = noisy.astype(np.float64)
    matrix = np.triu(upper, 1) / 7
    matrix = matrix + matrix.T + np.diag(np.diag(upper) / 5)
    own, right, noise = matrix[:-1, :-1], matrix[:-1, -1], deviation / 5
    least = float(np.linalg.eigvalsh(own)[0])
    if least > 0:
        inverse = np.linalg.inv(own)
        parameters, sums = inverse @ right, np.abs(inverse).sum(axis=1)
        reach = sums * noise * math.sqrt(2 * math.log(2 * width / (1 - LEVEL)))
        size_of, part = float(np.linalg.norm(parameters)), float(np.linalg.norm(reach))
        if part < 1:
            root = math.sqrt((size_of * part) ** 2 + (1 - part**2) * (1 + size_of**2))
            return Solution(
                parameters=parameters[:, None], half_widths=reach * (size_of * part + root) / (1 - part**2)
            )
    shrunk = own + (noise * math.sqrt(width) + max(0.0, -least)) * np.eye(width)
    return Solution(
        parameters=np.asarray(np.linalg.solve(shrunk, right), dtype=np.float64)[:, None],
        half_widths=np.full(width, math.inf),
    )
