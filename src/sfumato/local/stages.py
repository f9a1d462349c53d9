"""Two stages: a report that is kept for life, and a fresh coin over it on every day it is sent.

Whoever answers the same question daily with fresh coins is found out by averaging. A report that is made
once and kept (the permanent stage) bounds what all days together say. Sent as it is, it would be a name
tag: the same odd report, day after day. So what is sent is a fresh randomisation of it (the instant
stage), after Erlingsson, Pihur and Korolova (2014).
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from sfumato.core.arguments import Number, count, probability
from sfumato.core.exponential import log_above
from sfumato.errors import InvalidArgument
from sfumato.local.arrays import Array
from sfumato.local.ballots import UnaryEncoding
from sfumato.local.bits import coin_bits
from sfumato.local.odds import check_odds, odds_of
from sfumato.local.protocol import Columns, DerivedProtocol, FrequencyProtocol
from sfumato.local.response import KaryResponse

__all__ = ["TwoStage", "TwoStageResponse", "TwoStageUnary"]

_BITS = 32


class TwoStage(DerivedProtocol):
    """A kept report supports its answer with chance p1, another with q1; a fresh one follows it with p2, q2.

    One day's report by itself is that of an ordinary protocol, `single`: p = p1 p2 + (1 - p1) q2 and
    q = q1 p2 + (1 - q1) q2, so that shares are estimated from one day's reports as ever, with both
    stages undone: p - q = (p1 - q1)(p2 - q2).
    """

    @property
    @abstractmethod
    def first(self) -> FrequencyProtocol:
        """The protocol that a kept report follows."""

    @property
    @abstractmethod
    def _second(self) -> FrequencyProtocol:
        """The protocol that a fresh report follows, about the kept one or each of its bits."""

    @property
    @abstractmethod
    def instant_ratio(self) -> Fraction:
        """The largest ratio of a fresh report's probabilities under two kept ones."""

    @property
    def stages(self) -> tuple[Fraction, Fraction, Fraction, Fraction]:
        """The chances p1, q1, p2, q2."""
        return self.first.p, self.first.q, self._second.p, self._second.q

    @abstractmethod
    def send(self, kept: Columns) -> dict[str, Array]:
        """Return a fresh report for every kept one."""

    def keep(self, answers: Array) -> dict[str, Array]:
        """Return the reports that are to be kept."""
        return self.first.randomise(answers)

    @property
    def lifetime_ratio(self) -> Fraction:
        """The exact e^epsilon of a kept report, which no number of days passes."""
        return self.first.max_ratio

    @property
    def max_ratio(self) -> Fraction:
        """The exact e^epsilon of a single day's report."""
        return self.single.max_ratio

    @property
    def lifetime(self) -> float:
        """The epsilon of all reports ever made of an answer that stays. Rounds: up."""
        return log_above(self.lifetime_ratio)

    @property
    def p(self) -> Fraction:
        """The chance that a day's report supports its sender's answer."""
        p1, _, p2, q2 = self.stages
        return p1 * p2 + (1 - p1) * q2

    @property
    def q(self) -> Fraction:
        """The chance that it supports any other one."""
        _, q1, p2, q2 = self.stages
        return q1 * p2 + (1 - q1) * q2

    def mean_variance(self, frequency: Number, n: int, days: int) -> float:
        """Return the variance of the mean of `days` days' estimates, for n people whose answers stay.

        Theorem: given the kept report, days are independent coins of chance p2 or q2. Their noise is
        averaged away, and that of the kept reports stays: (p2 - q2)^2 p1 (1 - p1), or q1 (1 - q1).
        """
        f, over = probability(frequency, "frequency"), count(days, "days")
        p1, q1, p2, q2 = self.stages

        def spread(first: Fraction) -> Fraction:
            fresh = first * p2 * (1 - p2) + (1 - first) * q2 * (1 - q2)
            return (p2 - q2) ** 2 * first * (1 - first) + fresh / over

        return float((f * spread(p1) + (1 - f) * spread(q1)) / (count(n, "n") * (self.p - self.q) ** 2))

    def randomise(self, answers: Array) -> dict[str, Array]:
        """Return the reports of one day, from reports that are kept by nobody."""
        return self.send(self.keep(answers))


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoStageResponse(TwoStage):
    """K-ary response to k-ary response: `permanent` odds once, `instant` odds every day.

    A phone does, once:
    1. draws a k-ary response of the permanent odds to its answer, and keeps it;
    and every day:
    2. draws a k-ary response of the instant odds to what it kept, and sends it.

    Theorem: with odds r and s the chain is a k-ary response of odds (r s + k - 1)/(r + s + k - 2): the truth
    is told by two truths or by a lie taken back, any lie by a truth and a lie in either order or by two lies.
    After d days, c_y of them with answer y, a report sequence has the probability
    (r - 1) s^c_x + sum_y s^c_y, up to a factor, so that the ratio of two answers is largest when all d days
    told one of them: the same formula with s^d in place of s. It grows to r.

    >>> two = TwoStageResponse(size=2, permanent=Fraction(3), instant=Fraction(3))
    >>> two.max_ratio, two.lifetime_ratio
    (Fraction(5, 3), Fraction(3, 1))
    """

    size: int
    permanent: Fraction
    instant: Fraction

    name: ClassVar[str] = "two-stage-response"

    def __post_init__(self) -> None:
        count(self.size, "size")
        for name in ("permanent", "instant"):
            check_odds(getattr(self, name), place=name)

    @classmethod
    def from_epsilon(cls, epsilon: Number, *, first: Number, size: int) -> TwoStageResponse:
        """All reports ever made of one answer give away at most `epsilon`, and one alone at most `first`."""
        whole, once = _two_odds(epsilon, first)
        others = count(size, "size") - 1
        instant = (once * (whole + others - 1) - others) / (whole - once)
        return cls(size=size, permanent=whole, instant=_short(instant))

    @property
    def single(self) -> KaryResponse:
        """The k-ary response that one day's report is."""
        r, s = self.permanent, self.instant
        return KaryResponse(size=self.size, odds=(r * s + self.size - 1) / (r + s + self.size - 2))

    @property
    def first(self) -> KaryResponse:
        """The k-ary response of the permanent odds."""
        return KaryResponse(size=self.size, odds=self.permanent)

    @property
    def _second(self) -> KaryResponse:
        return KaryResponse(size=self.size, odds=self.instant)

    @property
    def instant_ratio(self) -> Fraction:
        """The instant odds."""
        return self._second.max_ratio

    def send(self, kept: Columns) -> dict[str, Array]:
        """Return k-ary responses of the instant odds."""
        return self._second.randomise(kept["value"])


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoStageUnary(TwoStage):
    """A kept bit for every answer, set with chance `own` or `other`; a fresh one over each, every day.

    A phone does, once:
    1. draws a unary encoding of its answer with chances `own` and `other`, and keeps its bits;
    and every day, for each answer of the survey in turn:
    2. takes a/b = `if_set` where the kept bit is 1, and `if_unset` where it is 0;
    3. draws an integer below b, and sets the answer's bit if it is below a.

    Theorem: every bit is a chain of two coins, so that one day's report is a unary encoding with chances
    p and q. Two answers differ in two bits, and in each the likelihood is monotone in how many days it was
    sent as 1: the ratio after d days is largest when one was always set and the other never.

    >>> two = TwoStageUnary.from_epsilon(2, first=1, size=100)
    >>> round(two.epsilon, 6), round(two.lifetime, 6), float(two.p)
    (1.0, 2.0, 0.5)
    """

    size: int
    own: Fraction
    other: Fraction
    if_set: Fraction
    if_unset: Fraction

    name: ClassVar[str] = "two-stage-unary"

    def __post_init__(self) -> None:
        _ = self.first  # reads what both have in common
        for name in ("if_set", "if_unset"):
            object.__setattr__(self, name, probability(getattr(self, name), name))
        if not 0 < self.if_unset < self.if_set < 1:
            raise InvalidArgument(
                "a kept bit must be likelier to be sent as it is than as it is not, and none certain",
                place="if_set",
                hints=("build it with from_epsilon",),
            )

    @classmethod
    def from_epsilon(cls, epsilon: Number, *, first: Number, size: int) -> TwoStageUnary:
        """All reports ever made of one answer give away at most `epsilon`, and one alone at most `first`.

        The kept bits are the optimised encoding, the fresh coins treat 0 and 1 alike: one day's report is
        then the optimised encoding of `first`, with its variance (Arcolezi et al. 2022 call it L-OSUE).
        """
        whole, once = _two_odds(epsilon, first)
        other, single = 1 / (whole + 1), 1 / (once + 1)
        chance = Fraction(int((1 - other - single) / (1 - 2 * other) * 4**_BITS), 4**_BITS)
        return cls(size=size, own=Fraction(1, 2), other=other, if_set=chance, if_unset=1 - chance)

    @property
    def single(self) -> UnaryEncoding:
        """The unary encoding that one day's report is."""
        return UnaryEncoding(size=self.size, own=self.p, other=self.q)

    @property
    def first(self) -> UnaryEncoding:
        """The unary encoding that is kept."""
        return UnaryEncoding(size=self.size, own=self.own, other=self.other)

    @property
    def _second(self) -> UnaryEncoding:
        return UnaryEncoding(size=self.size, own=self.if_set, other=self.if_unset)

    @property
    def instant_ratio(self) -> Fraction:
        """Two kept reports may differ in every bit, so this is large."""
        each: Fraction = max(self.if_set / self.if_unset, (1 - self.if_unset) / (1 - self.if_set))
        return each**self.size

    def send(self, kept: Columns) -> dict[str, Array]:
        """Return a fresh bit for each."""
        bits = kept["bits"]
        heads = coin_bits(self.if_set, len(bits), self.size)
        tails = coin_bits(self.if_unset, len(bits), self.size)
        return {"bits": (bits & heads) | (~bits & tails)}


def _two_odds(epsilon: Number, first: Number) -> tuple[Fraction, Fraction]:
    """Read the odds of a lifetime and of one day, which must be lower."""
    whole, once = odds_of(epsilon), odds_of(first)
    if once >= whole:
        raise InvalidArgument(
            "first must be below epsilon",
            place="first",
            hints=("one day says less than all; half of epsilon is a usual choice",),
        )
    return whole, once


def _short(odds: Fraction) -> Fraction:
    """Round odds down to few digits, so that they are quick to draw with and short to publish."""
    short = Fraction(int(odds * 2**_BITS), 2**_BITS)
    if short <= 1:
        raise InvalidArgument(
            "first is too small to leave any information in a report",
            place="first",
            hints=("an epsilon between 0.1 and 5 is usual",),
        )
    return short
