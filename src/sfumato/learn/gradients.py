"""Gradients in whole numbers, of which one unit moves at most `SENSITIVITY`, whatever the parameters are.

The gradient of a linear model is a sum over rows of residual times features. The residual of each row is
scaled down until its product with the features has at most the norm `clip`; a unit with n rows counts each
of them 1/n. Residuals are then rounded toward zero, to whole numbers R, and features are whole numbers X.

Theorem: one unit that is added or removed changes the sum by an integer matrix of Euclidean norm at most
SENSITIVITY = LIMIT * STEPS, whatever the parameters and whoever else is there.
Proof: (1) What a unit adds is a function of its own rows and of the parameters. Margins X W and sums X' R
are of whole numbers whose partial sums are below 2^53 in every order, so doubles hold them exactly, however
a library of linear algebra divides the work; all between them is done number by number, by tables and by
operations that IEEE 754 rounds correctly. (2) Let x = |X| / STEPS be the norm of a row's features and r that
of its residual. R is computed as the residual times LIMIT / clip * min(1, clip / (r x)) / n, a hair less
(`HAIR`, which is more than a few roundings of 2^-53 each, and one for each class, can take away), and
rounded toward zero. So |R| |X| <= LIMIT * STEPS / n, and the n rows of the unit add up to matrices R' X of
norm at most LIMIT * STEPS together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.core.arguments import FloatArray

__all__ = [
    "EncodedRows",
    "FARTHEST",
    "HAIR",
    "LIMIT",
    "MOST_SPREADS",
    "ROWS_AT_ONCE",
    "Residuals",
    "SENSITIVITY",
    "STEPS",
    "Steps",
    "clipped_sum",
    "logistic_residuals",
    "on_grid",
    "probabilities",
    "softmax_residuals",
    "squared_residuals",
]

STEPS = 1 << 11
"""How many steps of a feature make 1."""

LIMIT = 1 << 25
"""The largest whole number of a residual."""

SENSITIVITY = LIMIT * STEPS
"""By how much, in Euclidean norm, one unit moves the whole numbers of a clipped sum."""

FARTHEST = 2.0**30
"""The largest parameter."""

MOST_SPREADS = 8
"""Features, and labels that are numbers, are clamped to so many times their spread: 2^14 steps."""

ROWS_AT_ONCE = 1 << 13
"""So many rows, 2^25 of a residual and 2^14 of a feature make at most 2^52."""

HAIR = 1 - 2.0**-40
"""What a bound is multiplied by before it is rounded: more than a few roundings of 2^-53 can take away."""

_GRID = float(1 << 20)  # parameters are whole steps of 1/_GRID
_WIDEST = float(
    2**53 // (MOST_SPREADS * STEPS)
)  # so many steps of all parameters of a class together, at most
_FINE = 1 << 10  # steps of the table of exponentials
_FAR = 30  # beyond it an exponential counts as that of -30

_EXPONENTIALS: FloatArray = np.exp(-np.arange(_FAR * _FINE + 1) / _FINE)
_EXPONENTIALS.flags.writeable = False

Steps = npt.NDArray[np.int16]
"""Features in steps, of which MOST_SPREADS * STEPS at most."""

Residuals = Callable[[FloatArray, FloatArray], FloatArray]
"""Residuals from margins (a row for each row, a column for each class) and labels, number by number."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class EncodedRows:
    """Private rows in whole numbers: features with a constant 1 as the last, labels, and shares of units."""

    features: Steps
    norms: FloatArray  # of the features of each row
    labels: FloatArray
    shares: FloatArray  # one over the number of rows of the row's unit

    def __repr__(self) -> str:
        return "<encoded rows: hidden>"

    @staticmethod
    def of(features: Steps, labels: FloatArray, sizes: npt.NDArray[np.int64]) -> EncodedRows:
        """Return rows with a constant feature, of units with so many rows each, beside each other."""
        constant = np.full((len(features), 1), STEPS, dtype=np.int16)
        squares = np.full(len(features), STEPS * STEPS)
        for column in features.T:
            squares += np.square(column, dtype=np.int64)
        return EncodedRows(
            features=np.concatenate([features, constant], axis=1),
            norms=np.sqrt(squares) / STEPS,
            labels=labels,
            shares=np.repeat(1.0 / sizes, sizes),
        )


def on_grid(parameters: FloatArray) -> FloatArray:
    """Return parameters, a row for each feature and a column for each class, on the grid of exact margins.

    Public: they are scaled down where they are so large that margins would not be exact.
    """
    found = np.trunc(np.clip(np.nan_to_num(parameters, nan=0.0), -FARTHEST, FARTHEST) * _GRID)
    widest = np.abs(found).sum(axis=0).max(initial=0.0)
    if widest >= _WIDEST / 2:
        found = np.trunc(found * (_WIDEST / 2 / widest))
    return np.asarray(found / _GRID)


def clipped_sum(
    rows: EncodedRows,
    parameters: FloatArray,
    residuals: Residuals,
    clip: float,
    weights: FloatArray | None = None,
) -> npt.NDArray[Any]:
    """Return the sum of clipped gradients in whole numbers: a unit of `clip` / SENSITIVITY each.

    The clip is `moderate`: a residual that is so small that its square is lost becomes 0 whole steps.
    `weights` of rows are functions of each row alone; they count before gradients are clipped.
    """
    steps = on_grid(parameters) * _GRID
    total = np.zeros(steps.shape, dtype=object)  # no sum wraps around
    for start in range(0, len(rows.features), ROWS_AT_ONCE):
        some = slice(start, start + ROWS_AT_ONCE)
        whole = rows.features[some].astype(np.float64)
        margins = _product(whole, steps) / (_GRID * STEPS)
        found = residuals(margins, rows.labels[some])
        if weights is not None:
            found = found * weights[some, None]
        scales = _scales(found, rows.norms[some], clip) * rows.shares[some]
        integers = np.trunc(found * scales[:, None])
        total += _product(whole.T, integers).astype(np.int64).astype(object)
    return total


def _product(one: FloatArray, other: FloatArray) -> FloatArray:
    """Return the product of matrices of whole numbers, which is exact.

    That with a single column is too short for several threads, which on a busy machine wait for each other.
    """
    return np.einsum("ij,jk->ik", one, other) if other.shape[1] == 1 else one @ other


def _scales(residuals: FloatArray, norms: FloatArray, clip: float) -> FloatArray:
    """Return by what each row's residual is multiplied, its unit's share aside."""
    squares = np.zeros(len(residuals))
    for column in residuals.T:
        squares += column * column
    sizes = np.sqrt(squares) * norms
    return np.asarray(LIMIT * HAIR / np.maximum(sizes, clip))


def probabilities(margins: FloatArray) -> FloatArray:
    """Return the probability of each class; of one column of margins, that of the second of two classes."""
    if margins.shape[1] == 1:
        small = _exponential(-np.abs(margins))
        return np.where(margins < 0, small, 1.0) / (1.0 + small)
    powers = _exponential(margins - margins.max(axis=1, keepdims=True))
    total = np.zeros(len(margins))
    for column in powers.T:  # in the order of classes, for every row
        total += column
    return np.asarray(powers / total[:, None])


def logistic_residuals(margins: FloatArray, labels: FloatArray) -> FloatArray:
    """Return the probability of the second class, less 1 where it is the label."""
    return probabilities(margins) - labels[:, None]


def softmax_residuals(margins: FloatArray, labels: FloatArray) -> FloatArray:
    """Return the probability of each class, less 1 where it is the label."""
    right = labels[:, None] == np.arange(margins.shape[1])
    return np.asarray(probabilities(margins) - right)


def squared_residuals(margins: FloatArray, labels: FloatArray) -> FloatArray:
    """Return what a prediction is above the label."""
    return margins - labels[:, None]


def _exponential(exponents: FloatArray) -> FloatArray:
    """Return about e^x of x <= 0, from a table: the same for equal x, wherever they stand in an array."""
    places = np.rint(np.clip(np.nan_to_num(exponents, nan=-_FAR), -_FAR, 0) * -_FINE).astype(np.int64)
    return np.asarray(_EXPONENTIALS[places])
