"""Duchi: one bit says which end of the range the number was rounded to, and is flipped at times."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from sfumato.core.arguments import Number
from sfumato.core.coins import bernoulli
from sfumato.core.proportion import clopper_pearson
from sfumato.local.arrays import Array, Flags, Floats, Integers
from sfumato.local.means import MeanProtocol, Sums
from sfumato.local.odds import odds_of
from sfumato.local.protocol import Columns, below
from sfumato.local.rounding import bounds_of, round_at_random

__all__ = ["Duchi"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Duchi(MeanProtocol):
    """One bit: the number, rounded at random to an end of its range, told truly with weight `odds` to 1.

    A phone does, with odds = a/b: 1. round the number to 0 (low) or 1 (high) as `round_at_random` says,
    with one cell; 2. draw u below a + b; 3. report the bit if u < a, otherwise 1 - bit.

    Theorem: the probability of a report is a linear function of the number that lies between
    1 and odds of odds + 1: their ratio is at most the odds, and is the odds at the two ends. A report is
    worth +-(odds + 1)/(odds - 1), which is unbiased, with variance ((odds + 1)/(odds - 1))^2 - x^2 on
    [-1, 1] (Duchi, Jordan and Wainwright 2018).

    >>> Duchi(low=Fraction(0), high=Fraction(10), odds=Fraction(3)).variance(5, 1)  # 25 * (4/2)^2
    100.0
    """

    low: Fraction
    high: Fraction
    odds: Fraction

    name: ClassVar[str] = "duchi"

    @classmethod
    def from_epsilon(cls, epsilon: Number, *, low: Number = -1, high: Number = 1) -> Duchi:
        """Tell the bit truly as often as epsilon allows."""
        first, last = bounds_of(low, high)
        return cls(low=first, high=last, odds=odds_of(epsilon))

    @property
    def cells(self) -> int:
        """The two ends are the whole grid."""
        return 1

    @property
    def largest_report(self) -> Fraction:
        """What a report is worth, up to its sign."""
        return (self.odds + 1) / (self.odds - 1)

    @property
    def moments(self) -> tuple[Fraction, Fraction]:
        """The square of a report is always the same."""
        return self.largest_report**2, Fraction(0)

    @property
    def message_bits(self) -> int:
        """One."""
        return 1

    def randomise(self, answers: Array) -> dict[str, Array]:
        """Return one bit per number."""
        ends = round_at_random(answers, self.low, self.high, 1)
        lies = bernoulli(1 / (self.odds + 1), size=len(ends))
        return {"value": ends ^ lies}

    def valid(self, reports: Columns) -> Flags:
        """Flag the reports that are a bit."""
        return below(reports["value"], 2)

    def collect(self, reports: Columns) -> Integers:
        """Count the reports of either end: low, high."""
        return np.bincount(reports["value"], minlength=2).astype(np.int64)

    def sums(self, totals: Array) -> Sums:
        """Every report is worth the same, up to its sign."""
        lows, highs = (int(total) for total in totals)
        n = lows + highs
        return Sums(reports=n, total=(highs - lows) * self.largest_report, squares=n * self.largest_report**2)

    def _deviation(self, sums: Sums) -> float:
        """The variance depends on the average alone, which is estimated."""
        average = min(abs(sums.total / sums.reports), Fraction(1))
        return math.sqrt((self.largest_report**2 - average**2) / sums.reports)

    def _limits(self, sums: Sums, totals: Array, spread: float, miss: float) -> tuple[float, float]:
        """Return the limits of Clopper and Pearson (1934) for the chance of a high report, at every n.

        Theorem: the reports of a random sample are coins of one bias; those of a fixed group vary less
        (Hoeffding 1956).
        """
        (low,), (high,) = clopper_pearson(int(totals[1]), sums.reports, miss / 2)
        reach = float(self.largest_report)
        return float(2 * low - 1) * reach, float(2 * high - 1) * reach

    def _tilted(self, tilts: Floats) -> tuple[Floats, Floats]:
        exponents = tilts * float(self.largest_report)
        return np.cosh(exponents), 2 * np.sinh(exponents) / float(self.largest_report)
