"""Piecewise: a place near the number, mostly, and anywhere otherwise; `Hybrid` mixes it with `Duchi`.

The outputs are 0 .. outputs - 1. Each weighs 1, and those in a window that slides with the number weigh
`odds`. Because the outputs lie evenly about their middle, the average output is a linear function of
the window's place, exactly: on whole numbers nothing is lost to rounding but a little variance.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import exp
from typing import ClassVar

import numpy as np

from sfumato.core.arguments import Number, count, positive, probability
from sfumato.core.coins import bernoulli
from sfumato.core.exponential import log_above
from sfumato.core.search import minimum
from sfumato.core.uniform import uniform_below
from sfumato.errors import InvalidArgument
from sfumato.local.arrays import Array, Flags, Floats, Integers
from sfumato.local.means import Duchi, MeanProtocol, Sums
from sfumato.local.odds import odds_of
from sfumato.local.protocol import Columns, below
from sfumato.local.rounding import bounds_of, round_at_random

__all__ = ["Hybrid", "Piecewise", "best_for_number"]

_WINDOW = 256  # the grid's part of the variance is then below one thousandth
_MOST = 2**31  # squares of reports, and sums of their halves, then fit into 64 bits
_HALF = 31


@dataclass(frozen=True, slots=True, kw_only=True)
class Piecewise(MeanProtocol):
    """A window of outputs that starts at the number's place weighs `odds` each, all others 1.

    A phone does, with odds = a/b, N = outputs and L = window: 1. round the number to a point s of
    0 .. N - L as `round_at_random` says, with N - L cells; 2. draw u below (a - b) L + b N; 3. if
    u < (a - b) L, draw v below L and report s + v; otherwise draw v below N and report v.

    Theorem: outputs weigh 1 or odds of a total that is always N + (odds - 1) L, so that the largest
    ratio of probabilities is the odds. The average of s + v over the window, less the middle of all
    outputs, is s - (N - L)/2, and the rest of the weight averages to zero: scaled up by
    (N + (odds - 1) L)/((odds - 1) L), a report is exactly unbiased. As the outputs become finer this is
    the piecewise mechanism of Wang et al. (2019), with variance x^2/(h - 1) + (h + 3)/(3 (h - 1)^2) on
    [-1, 1], h = e^(epsilon/2), where L/N = 1/(h + 1).

    >>> protocol = Piecewise.from_epsilon(1)
    >>> protocol.outputs, protocol.window, protocol.message_bits
    (678, 256, 10)
    >>> round(protocol.variance(1, 1), 2)
    5.22
    """

    outputs: int
    window: int

    name: ClassVar[str] = "piecewise"

    def __post_init__(self) -> None:
        MeanProtocol.__post_init__(self)
        if not count(self.window, "window") < count(self.outputs, "outputs") <= _MOST:
            raise InvalidArgument(
                "the window must be shorter than the outputs, and there are at most 2^31 outputs",
                place="window",
                hints=("a window over every output says nothing about the number",),
            )

    @classmethod
    def from_epsilon(cls, epsilon: Number, *, low: Number = -1, high: Number = 1) -> Piecewise:
        """Take the window of Wang et al. (2019): a share 1/(e^(epsilon/2) + 1) of the outputs."""
        odds = odds_of(epsilon)
        return cls.of_share(1 / (exp(log_above(odds) / 2) + 1), odds=odds, low=low, high=high)

    @classmethod
    def tuned(cls, epsilon: Number, *, low: Number = -1, high: Number = 1) -> Piecewise:
        """Take the window with the least variance at the ends of the range, where it is largest.

        That of Wang et al. is near it for a small epsilon only: 5.22, 1.23, 0.241 become 5.07, 1.09, 0.162
        at epsilon 1, 2, 4 (Zhao et al. 2020 widen it likewise, to 1/(e^(epsilon/3) + 1)).
        """
        odds = odds_of(epsilon)
        share = minimum(lambda it: sum(cls.limit(float(odds), it)), 1e-6, 0.6)
        return cls.of_share(share, odds=odds, low=low, high=high)

    @classmethod
    def of_share(cls, share: float, *, odds: Fraction, low: Number, high: Number) -> Piecewise:
        """Return the protocol whose window is a `share` of its outputs, as nearly as a fine grid has it."""
        first, last = bounds_of(low, high)
        part = max(positive(share, "share"), Fraction(1, 2**31))
        return cls(low=first, high=last, odds=odds, outputs=round(_WINDOW / part), window=_WINDOW)

    @staticmethod
    def limit(odds: float, share: float) -> tuple[float, float]:
        """Return (c, k) of the variance c + k x^2 on [-1, 1] as outputs become ever finer: to choose by."""
        total, gain = 1 + (odds - 1) * share, (odds - 1) * share * (1 - share)
        return (1 + (odds - 1) * share**3) * total / (3 * gain**2), 1 / ((odds - 1) * share)

    @property
    def cells(self) -> int:
        """How far the window slides."""
        return self.outputs - self.window

    @property
    def total(self) -> Fraction:
        """The weight of all outputs together."""
        return self.outputs + (self.odds - 1) * self.window

    @property
    def scale(self) -> Fraction:
        """What one step between outputs is worth on [-1, 1]."""
        return 2 * self.total / ((self.odds - 1) * self.window * self.cells)

    @property
    def largest_report(self) -> Fraction:
        """What the last output is worth."""
        return self.scale * Fraction(self.outputs - 1, 2)

    @property
    def moments(self) -> tuple[Fraction, Fraction]:
        """The spread of all outputs and of the window, by weight; and what the window's place adds."""
        extra = (self.odds - 1) * self.window
        spread = (self.outputs * (self.outputs**2 - 1) + extra * (self.window**2 - 1)) / (12 * self.total)
        return self.scale**2 * spread, self.scale**2 * extra * Fraction(self.cells, 2) ** 2 / self.total

    @property
    def message_bits(self) -> int:
        """The bits of one output."""
        return (self.outputs - 1).bit_length()

    def randomise(self, answers: Array) -> dict[str, Array]:
        """Return one output per number."""
        starts = round_at_random(answers, self.low, self.high, self.cells)
        inside = bernoulli(1 - self.outputs / self.total, size=len(starts))
        near = starts + uniform_below(self.window, size=len(starts))
        return {"value": np.where(inside, near, uniform_below(self.outputs, size=len(starts)))}

    def valid(self, reports: Columns) -> Flags:
        """Flag the reports that are one of the outputs."""
        return below(reports["value"], self.outputs)

    def collect(self, reports: Columns) -> Integers:
        """Return how many reports there are, the sum of their distances from the middle, in half steps,
        and the sum of squares in two parts: whole multiples of 2^31, and the rest."""
        twice = 2 * reports["value"].astype(np.int64) - (self.outputs - 1)
        squares = twice * twice
        parts = (len(twice), twice.sum(), (squares >> _HALF).sum(), (squares & (2**_HALF - 1)).sum())
        return np.array(parts, dtype=np.int64)

    def sums(self, totals: Array) -> Sums:
        """Scale the totals back, exactly."""
        n, twice, upper, lower = (int(total) for total in totals)
        half = self.scale / 2
        return Sums(reports=n, total=twice * half, squares=((upper << _HALF) + lower) * half**2)

    def _tilted(self, tilts: Floats) -> tuple[Floats, Floats]:
        step = tilts * float(self.scale)
        base = float(self.outputs / self.total)
        near = (1 - base) * _tilted_run(step, self.window)
        slide = step * self.cells / 2
        return base * _tilted_run(step, self.outputs) + near * np.cosh(slide), 2 * near * np.sinh(slide)


def _tilted_run(step: Floats, length: int) -> Floats:
    """Return the average of exp(step * i) over a run of that many places about zero."""
    ratio: Floats = np.sinh(step * length / 2) / (length * np.sinh(step / 2))
    return ratio


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
        share = 1 / (exp(log_above(odds) / 2) + 1)
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
