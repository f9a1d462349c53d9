"""Errors of a series: how far running totals, windows and differences of a stream's values may be off.

The values of two periods share noise, so their errors are correlated: the error of a difference is not the
sum of the errors of its parts, and is often much smaller.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

import numpy as np

from sfumato.core.arguments import FloatArray

__all__ = ["Inverse", "deviation", "period_deviations", "total_deviations"]

_MANY = 8_192  # periods from which a convolution by Fourier transforms is faster


class Inverse(Protocol):
    """Whatever knows the first column of C^-1."""

    def inverse(self, periods: int) -> FloatArray:
        """Return the first column of C^-1, for as many periods."""
        ...


def total_deviations(
    factorisation: Inverse, periods: int, missing: Collection[int] = frozenset()
) -> FloatArray:
    """Return the standard deviation of each running total, where z has deviation 1.

    Periods that are `missing`, by their numbers from 1, are in no total.

    >>> from sfumato.continual.factorisation import square_root
    >>> total_deviations(square_root(365), 365)[[0, 364]].round(3).tolist()
    [1.0, 1.716]
    """
    inverse, carried, found = factorisation.inverse(periods), np.zeros(periods), np.zeros(periods)
    if not missing:
        return np.sqrt(np.cumsum(np.cumsum(inverse) ** 2))
    for last in range(periods):
        if last + 1 not in missing:
            carried[: last + 1] += inverse[last::-1]  # what the noise z of each period does to the total
        found[last] = np.linalg.norm(carried[: last + 1])
    return found


def period_deviations(factorisation: Inverse, periods: int) -> FloatArray:
    """Return the standard deviation of each period by itself, where z has deviation 1.

    >>> from sfumato.continual.factorisation import square_root
    >>> period_deviations(square_root(365), 365)[[0, 364]].round(3).tolist()
    [1.0, 1.128]
    """
    return np.sqrt(np.cumsum(factorisation.inverse(periods) ** 2))


def deviation(factorisation: Inverse, weights: FloatArray) -> float:
    """Return the deviation of a weighted sum of the periods' values, where z has deviation 1.

    Weights of 1 up to t make a running total; those of a window make its sum; 1 and -1 make a difference.

    >>> from sfumato.continual.factorisation import square_root
    >>> day = np.eye(28)
    >>> round(deviation(square_root(28), day[27] - day[26]), 3), round(deviation(square_root(28), day[27]), 3)
    (1.843, 1.128)
    """
    inverse, newest_first = factorisation.inverse(len(weights)), np.asarray(weights, dtype=float)[::-1]
    if len(weights) <= _MANY:
        carried = np.convolve(inverse, newest_first)  # by period of z, the last one first
    else:
        size = 2 * len(weights)
        carried = np.fft.irfft(np.fft.rfft(inverse, size) * np.fft.rfft(newest_first, size), size)
    return float(np.linalg.norm(carried[: len(weights)]))
