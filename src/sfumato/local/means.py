"""Means: every person holds one number in a declared range, and the average is estimated.

The range is mapped to [-1, 1]. A phone rounds its number at random to a neighbour on a public grid of
cells + 1 points, which has no bias, and randomises that point; each report stands for an estimate of the
number, and the reports' average is unbiased, exactly. Three protocols, by what a report says:

    Duchi       one of the two ends               best below epsilon 0.61
    Piecewise   a place near the number, mostly   best where epsilon is large
    Hybrid      one or the other, by a public coin; `best_for_number` chooses
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from sfumato.core.arguments import Number, count, exact
from sfumato.core.coins import bernoulli
from sfumato.core.mechanism import confidence
from sfumato.core.proportion import clopper_pearson
from sfumato.core.scientific import scientific
from sfumato.errors import InvalidArgument
from sfumato.local.arrays import Array, Flags, Floats, Integers
from sfumato.local.odds import check_odds, odds_of
from sfumato.local.protocol import Columns, Protocol, below
from sfumato.local.rounding import bounds_of, round_at_random

__all__ = ["Duchi", "Mean", "MeanProtocol", "Sums"]

_PLENTY = 50  # reports for every squared deviation of noise that one report can be away from the average
_TILTS = np.geomspace(1e-6, 50.0, 800)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean:
    """What reports say about the average, in the units of the declared range.

    `value` is unbiased: noise may push it out of the range. Limits lie in the range.
    """

    value: float
    low: float
    high: float
    deviation: float
    reports: int
    level: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """Totals as exact numbers: how many reports, and their estimates' sum and sum of squares on [-1, 1]."""

    reports: int
    total: Fraction
    squares: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanProtocol(Protocol):
    """A protocol whose report y estimates a number x of [-1, 1]: E[y] = x exactly.

    At a grid point, E[y^2] = A + B x^2 (`moments`), so that all of them share variances and limits.
    """

    low: Fraction
    high: Fraction
    odds: Fraction

    def __post_init__(self) -> None:
        bounds_of(self.low, self.high)
        check_odds(self.odds)

    @property
    def max_ratio(self) -> Fraction:
        """The exact e^epsilon: a report weighs between 1 and `odds`, of a total that is always the same."""
        return self.odds

    @property
    @abstractmethod
    def cells(self) -> int:
        """How many cells the grid between the ends of the range has."""

    @property
    @abstractmethod
    def moments(self) -> tuple[Fraction, Fraction]:
        """A and B of E[y^2] = A + B x^2, where x is a grid point."""

    @property
    @abstractmethod
    def largest_report(self) -> Fraction:
        """The largest |y| of a report."""

    @abstractmethod
    def sums(self, totals: Array) -> Sums:
        """Return what the totals add up to, exactly."""

    @abstractmethod
    def _tilted(self, tilts: Floats) -> tuple[Floats, Floats]:
        """Return the half-sum and the difference of E[exp(tilt y)] at the two ends of the range."""

    # -- how far off ---------------------------------------------------------------------

    @property
    def worst_variance(self) -> float:
        """The variance of one report, on [-1, 1], whatever the number. Rounds: up, by the grid's part.

        Rounding at random adds at most a quarter of a cell's square to x^2 where that counts.
        """
        a, b = self.moments
        return float(a + max(b - 1, Fraction(0)) + b / self.cells**2)

    def variance(self, x: Number, n: int) -> float:
        """Return the variance of the mean of n people who all hold x, in the units of the range.

        Theorem: exact, the rounding to the grid included: it moves x^2 by r(1 - r) squared cells, where
        r is how far into its cell x lies.
        """
        number = exact(x, "x")
        if not self.low <= number <= self.high:
            raise InvalidArgument("x must lie in the declared range", place="x")
        half, (a, b) = (self.high - self.low) / 2, self.moments
        unit = (number - self.low) / half - 1
        r = (unit + 1) * self.cells / 2 % 1
        second = a + b * (unit**2 + r * (1 - r) * Fraction(2, self.cells) ** 2)
        return float((second - unit**2) * half**2 / count(n, "n"))

    @property
    def enough(self) -> int:
        """How many reports make their sum nearly normal, whatever the numbers; public, like all here."""
        a, b = self.moments
        least = min(a, a + b - 1)
        return math.ceil(_PLENTY * (self.largest_report + 1) ** 2 / least)

    # -- from reports to the population -------------------------------------------------

    def mean(self, totals: Array, level: float = 0.95) -> Mean:
        """Return the estimated average with its limits. Without reports nothing is known.

        The limits are for the average of a random sample's population; a fixed group's own average is
        covered too, because it varies less.
        """
        miss = float(1 - confidence(level))
        sums = self.sums(totals)
        low, high = float(self.low), float(self.high)
        if sums.reports == 0:
            return Mean(value=math.nan, low=low, high=high, deviation=math.nan, reports=0, level=level)
        half = (self.high - self.low) / 2
        middle = self.low + half
        spread = self._deviation(sums)
        limits = (float(middle + half * Fraction(it)) for it in self._limits(sums, totals, spread, miss))
        first, last = (min(max(limit, low), high) for limit in limits)
        return Mean(
            value=float(middle + half * sums.total / sums.reports),
            low=first,
            high=last,
            deviation=spread * float(half),
            reports=sums.reports,
            level=level,
        )

    def _deviation(self, sums: Sums) -> float:
        """Estimate the deviation of the average, on [-1, 1], from the reports.

        Never below what the noise alone makes, which is known; one report shows no spread, and is given
        the largest that a population can have.
        """
        n, (a, b) = sums.reports, self.moments
        if n == 1:
            return math.sqrt(a + b)
        seen = (sums.squares - sums.total**2 / n) / (n - 1)
        return math.sqrt(max(seen, min(a, a + b - 1)) / n)

    def _limits(self, sums: Sums, totals: Array, spread: float, miss: float) -> tuple[float, float]:
        """Return limits of the average on [-1, 1], each wrong with probability at most miss / 2.

        Theorem: for every t > 0, E[exp(t y)] is convex in x, so that no population of average m has
        a larger one than one that sits at the two ends; by Chernoff (1952) the sum of n reports exceeds
        (n ln E + ln(2/miss)) / t with probability at most miss/2, and every m for which the sum
        would do so, at some t, is refused. The refusals at all t are one event, that the sum is beyond
        one bound that depends on m: trying many t costs nothing. That holds at every n, and is
        about 2.7 deviations wide at 95%.
        Assumes: from `enough` reports on, that Student's law is near enough: a bound on the reports
        over the least deviation of noise is then below root(n/50).
        """
        n, average = sums.reports, float(sums.total / sums.reports)
        if n >= self.enough:
            stdtrit = scientific("special").stdtrit
            width = float(stdtrit(n - 1, 1 - miss / 2)) * spread
            return average - width, average + width
        tilts = _TILTS / float(self.largest_report)
        halves, gaps = self._tilted(tilts)
        slack = math.log(2 / miss) / n
        low, high = (
            float(np.max(2 * (np.expm1(tilts * side - slack) - (halves - 1)) / gaps))
            for side in (average, -average)
        )
        return low, -high


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
