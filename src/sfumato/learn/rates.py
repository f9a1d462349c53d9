"""Rates: one noisy count over another, with an interval that allows for the noise of both.

Theorem (Fieller 1954, for noise that is known): let X = x + E and Y = y + F, where E and F are independent,
and p = x / (x + y). Then (1 - p) X - p Y = (1 - p) E - p F, whatever x and y are. So the p in [0, 1] with
|(1 - p) X - p Y| <= q(p) cover the rate as often as that noise stays within q(p).

Theorem: let Z have P(Z = i) proportional to exp(-i^2 / (2 s^2)) over the integers, s >= 2, and let G be
normal of deviation s. As exp(-t^2 / (2 s^2)) falls on both sides of zero, its sum over i >= k is at most its
integral from k - 1 on and at least that from k on, for k >= 1; and the two totals differ by a relative
2 e^(-2 pi^2 s^2) < 1e-33 (Poisson). So P(Z >= k) <= P(G + 1 >= k) for all k and, by symmetry,
P(Z <= -k) <= P(G - 1 <= -k), up to that. A sum of m such Z is one of deviation s sqrt(m), to a relative
m 1e-16 (`GaussianNoise.summed`). A `CellSum` is such a sum or a mean of two, whose weights add up to one:
its noise is within 1 of a normal law of its variance. So |(1 - p) E - p F| exceeds z D(p) + 1 no more often
than a normal law exceeds z deviations, where D(p)^2 = (1 - p)^2 Var E + p^2 Var F. Both variances are s^2 / 2
at least, thus D(p) >= s / 2: q(p) = (z + 2 / s) D(p) covers, and p is found by a quadratic equation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sfumato.core.normal import tail_quantile
from sfumato.release.display import NO_INFORMATION

__all__ = ["CellSum", "ConfidenceLimits", "Rate", "rate_of"]

_OUTWARD = 1e-12  # what the arithmetic of floats may be off by, and far more


class ConfidenceLimits(NamedTuple):
    """What a number lies between, with the probability that was asked for."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class CellSum:
    """A sum of noisy cells, in steps of the grid; `cells` is its variance in that of one cell.

    >>> CellSum(30, 3).averaged(CellSum(34, 1))
    CellSum(value=33.0, cells=0.75)
    """

    value: float
    cells: float

    def averaged(self, other: CellSum) -> CellSum:
        """Return the mean of two counts of the same thing that has the least variance."""
        both = self.cells + other.cells
        mean = (self.value * other.cells + other.value * self.cells) / both
        return CellSum(mean, self.cells * other.cells / both)


@dataclass(frozen=True, slots=True)
class Rate:
    """A share of noisy counts, and what it lies between; the whole of 0 to 1 says nothing.

    >>> Rate(0.9, 0.85, 0.95).said()
    '90.0% (85.0 to 95.0)'
    >>> Rate(0.4, 0.0, 1.0).said()
    'no information at this budget'
    """

    value: float
    low: float
    high: float

    @property
    def informative(self) -> bool:
        """Whether anything is known of it."""
        return self.low > 0.0 or self.high < 1.0

    def said(self) -> str:
        """Return the rate with its interval, as text."""
        if not self.informative:
            return NO_INFORMATION
        return f"{self.value:.1%} ({100 * self.low:.1f} to {100 * self.high:.1f})"

    def minus(self, other: Rate) -> ConfidenceLimits:
        """Return what the difference lies between, if both rates lie in their intervals."""
        return ConfidenceLimits(self.low - other.high, self.high - other.low)


def rate_of(part: CellSum, rest: CellSum, *, deviation: float, miss: float) -> Rate:
    """Return part / (part + rest) with an interval that misses the exact one with probability `miss` or less.

    `deviation` is that of the noise on one cell, and at least 2. Theorem: see the module.

    >>> rate = rate_of(CellSum(900, 1), CellSum(100, 1), deviation=5, miss=0.05)
    >>> round(rate.value, 2), rate.low < 0.9 < rate.high
    (0.9, True)
    """
    x, y, total = part.value, rest.value, part.value + rest.value
    z = float(tail_quantile(np.array([math.log(miss / 2)]))[0]) + 2 / deviation
    wide = (z * deviation) ** 2 * (1 + _OUTWARD)
    # (x - p total)^2 <= wide ((1 - p)^2 part.cells + p^2 rest.cells)
    a = total * total - wide * (part.cells + rest.cells)
    b = x * total - wide * part.cells
    c = x * x - wide * part.cells
    # b^2 - a c, without cancellation
    square = wide * (part.cells * y * y + rest.cells * x * x - wide * part.cells * rest.cells)
    ends = [end for end in (0.0, 1.0) if a * end * end - 2 * b * end + c <= 0]
    if square >= 0 and a != 0:
        roots = [(b + sign * math.sqrt(square)) / a for sign in (-1, 1)]
        ends += [root for root in roots if 0.0 <= root <= 1.0]
    if not ends or total < 0:  # the noise is outside of what is allowed for: saying nothing is never wrong
        ends = [0.0, 1.0]
    low, high = max(0.0, min(ends) - _OUTWARD), min(1.0, max(ends) + _OUTWARD)
    value = min(high, max(low, x / total)) if total > 0 else (low + high) / 2
    return Rate(value, low, high)
