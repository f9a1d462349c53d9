"""Hybrid: a public coin sends each report one of two ways; together they vary less than either."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import exp
from typing import ClassVar

import numpy as np

from sfumato.core.arguments import Number, probability
from sfumato.core.coins import bernoulli
from sfumato.core.search import minimum
from sfumato.local.arrays import Array, Flags, Floats, Integers
from sfumato.local.means import Duchi, MeanProtocol, Sums
from sfumato.local.odds import epsilon_of, odds_of
from sfumato.local.piecewise import Piecewise
from sfumato.local.protocol import Columns, below

__all__ = ["Hybrid", "best_for_number"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hybrid(MeanProtocol):
    """With a public `chance` a report of `Piecewise`, otherwise one of `Duchi`, of the same odds.

    A phone does, with chance = c/d and N = outputs: 1. draw u below d; 2. if u < c, report what
    `Piecewise` does, 0 .. N - 1; 3. otherwise report N plus the bit of `Duchi`.

    Theorem: the coin does not look at the number, so that the largest ratio is that of either way, the
    odds. One variance falls with x^2 and the other rises: the chance at which these cancel gives the least
    worst case, and where Duchi's is smaller even at zero (epsilon below 0.61) the chance is zero
    (Wang et al. 2019).

    >>> round(Hybrid.from_epsilon(1).worst_variance, 2), round(Hybrid.tuned(4).worst_variance, 3)
    (4.29, 0.156)
    """

    low: Fraction
    high: Fraction
    odds: Fraction
    outputs: int
    window: int
    chance: Fraction

    name: ClassVar[str] = "hybrid"

    def __post_init__(self) -> None:
        probability(self.chance, "chance")
        self.piecewise.__post_init__()

    @classmethod
    def from_epsilon(cls, epsilon: Number, *, low: Number = -1, high: Number = 1) -> Hybrid:
        """Take the window of Wang et al. (2019), and the chance that suits it."""
        odds = odds_of(epsilon)
        share = 1 / (exp(epsilon_of(odds) / 2) + 1)
        return cls._balanced(Piecewise.of_share(share, odds=odds, low=low, high=high))

    @classmethod
    def tuned(cls, epsilon: Number, *, low: Number = -1, high: Number = 1) -> Hybrid:
        """Take the window, and the chance that suits it, with the least worst case.

        At epsilon 1, 2, 4 that is 4.27, 0.982, 0.156, where the published window gives 4.29, 1.04, 0.219.
        """
        odds = odds_of(epsilon)
        e = float(odds)
        duchi = ((e + 1) / (e - 1)) ** 2

        def worst(share: float) -> float:
            constant, rise = Piecewise.limit(e, share)
            return (constant + rise * duchi) / (1 + rise)  # at the chance 1/(1 + rise)

        share = minimum(worst, 1e-6, 0.6)
        return cls._balanced(Piecewise.of_share(share, odds=odds, low=low, high=high))

    @classmethod
    def _balanced(cls, part: Piecewise) -> Hybrid:
        constant, square = part.moments
        duchi = Duchi(low=part.low, high=part.high, odds=part.odds)
        # Duchi's variance falls by x^2, the other rises by (square - 1) x^2: 1/square of the latter.
        chance = Fraction(int(2**32 / square), 2**32) if constant < duchi.largest_report**2 else Fraction(0)
        return cls(
            low=part.low, high=part.high, odds=part.odds, outputs=part.outputs, window=part.window,
            chance=chance,
        )  # fmt: skip

    @property
    def piecewise(self) -> Piecewise:
        """The one way."""
        return Piecewise(
            low=self.low, high=self.high, odds=self.odds, outputs=self.outputs, window=self.window
        )

    @property
    def duchi(self) -> Duchi:
        """The other way."""
        return Duchi(low=self.low, high=self.high, odds=self.odds)

    @property
    def cells(self) -> int:
        """The grid of the piecewise way; the other has no variance of rounding."""
        return self.piecewise.cells

    @property
    def largest_report(self) -> Fraction:
        """The larger one."""
        near = self.piecewise.largest_report if self.chance else Fraction(0)
        return max(near, self.duchi.largest_report)

    @property
    def moments(self) -> tuple[Fraction, Fraction]:
        """Those of both ways, by chance."""
        (a, b), (constant, _) = self.piecewise.moments, self.duchi.moments
        return self.chance * a + (1 - self.chance) * constant, self.chance * b

    @property
    def message_bits(self) -> int:
        """The bits of one output of either way."""
        return (self.outputs + 1).bit_length() if self.chance else 1

    def randomise(self, answers: Array) -> dict[str, Array]:
        """Return one report per number."""
        given = np.asarray(answers)
        told = self.outputs + self.duchi.randomise(given)["value"]
        near = bernoulli(self.chance, size=len(told))
        told[near] = self.piecewise.randomise(given[near])["value"]
        return {"value": told}

    def valid(self, reports: Columns) -> Flags:
        """Flag the reports that are an output of either way."""
        value = reports["value"]
        least = 0 if self.chance else self.outputs
        return below(value, self.outputs + (2 if self.chance < 1 else 0)) & (value >= least)

    def collect(self, reports: Columns) -> Integers:
        """Return the totals of the one way, then those of the other."""
        value = reports["value"]
        near = value < self.outputs
        return np.concatenate([
            self.piecewise.collect({"value": value[near]}),
            self.duchi.collect({"value": value[~near] - self.outputs}),
        ])  # fmt: skip

    def sums(self, totals: Array) -> Sums:
        """Add up both ways: each report is unbiased by itself."""
        near, ends = self.piecewise.sums(totals[:4]), self.duchi.sums(totals[4:])
        return Sums(
            reports=near.reports + ends.reports,
            total=near.total + ends.total,
            squares=near.squares + ends.squares,
        )

    def _tilted(self, tilts: Floats) -> tuple[Floats, Floats]:
        chance = float(self.chance)
        ways = zip(self.piecewise._tilted(tilts), self.duchi._tilted(tilts), strict=True)
        halves, gaps = (chance * near + (1 - chance) * ends for near, ends in ways)
        return halves, gaps


def best_for_number(epsilon: Number, *, low: Number = -1, high: Number = 1) -> Duchi | Hybrid | Piecewise:
    """Return the protocol here with the least worst-case variance; of equals the simplest.

    >>> best_for_number(0.5).name, best_for_number(2).name
    ('duchi', 'hybrid')
    """
    simple = Duchi.from_epsilon(epsilon, low=low, high=high)
    others = (make(epsilon, low=low, high=high) for make in (Piecewise.tuned, Hybrid.tuned))
    return min((simple, *others), key=lambda it: it.worst_variance)
