"""Ballots: reports with one bit for every answer; a bit is one where the answer is ticked.

`UnaryEncoding` randomises every bit on its own; `SubsetSelection` ticks some answers at once, among which the
true one is likelier than any other.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from sfumato.core.arguments import Number, count, probability
from sfumato.core.coins import bernoulli
from sfumato.errors import InvalidArgument
from sfumato.local.arrays import Array, Flags, Integers
from sfumato.local.bits import bytes_for, coin_bits, count_bits, ones, put_bits, uniform_subsets, well_formed
from sfumato.local.odds import odds_of
from sfumato.local.protocol import Columns, FieldKind, FrequencyProtocol, OddsProtocol

__all__ = ["Ballot", "ChosenBallot", "CoinBallot", "SubsetSelection", "UnaryEncoding", "usual_ones"]

_UNUSUAL = math.log(2e12)  # each of the two limits is passed with a chance of at most 1e-12 / 2


class Ballot(FrequencyProtocol):
    """A report supports every answer whose box is ticked."""

    fields: ClassVar[dict[str, FieldKind]] = {"bits": "bits"}

    @property
    def message_bits(self) -> int:
        """A bit per answer."""
        return self.size

    def octets(self, field: str) -> int:
        """Return the bytes of a report."""
        return bytes_for(self.message_bits)

    def collect(self, reports: Columns) -> Integers:
        """Count the reports in which each box is ticked."""
        return count_bits(reports["bits"], self.message_bits)[: self.size]


class CoinBallot(Ballot):
    """Every box is ticked by a coin of its own: with chance `own` where the answer is held, else `other`."""

    own: Fraction
    other: Fraction

    def _held(self) -> int:
        """Return how many answers a person holds at most."""
        return 1

    def _check_chances(self) -> None:
        object.__setattr__(self, "own", probability(self.own, "own"))
        object.__setattr__(self, "other", probability(self.other, "other"))
        if not 0 < self.other < self.own < 1:
            raise InvalidArgument(
                "the bit of a held answer must be likelier to be set than others, and none certain",
                place="own",
                hints=("build it with from_epsilon", "an epsilon below 1e-9 leaves no information"),
            )

    @property
    def p(self) -> Fraction:
        """The chance that the box of a held answer is ticked."""
        return self.own

    @property
    def q(self) -> Fraction:
        """The chance that the box of any other answer is ticked."""
        return self.other

    def valid(self, reports: Columns) -> Flags:
        """Flag the reports with the right number of bytes, empty padding and a usual number of ticks.

        A report with every box ticked would count for every answer. An honest one is lost with a chance
        of at most 1e-12, whatever its answers, which moves an estimate by at most 1e-12 / (p - q). With
        few answers every number of ticks is usual: of one answer each, all of them ticked is refused once
        other^(size - 1) is below 5e-13 (from 23 answers on at epsilon 1).
        """
        flags = well_formed(reports["bits"], self.size)
        if flags.any():
            low, high = usual_ones(self.size, self.other, self._held())
            found = ones(reports["bits"])
            flags &= (low <= found) & (found <= high)
        return flags


class ChosenBallot(Ballot):
    """Exactly `chosen` boxes are ticked."""

    chosen: int

    def _check_chosen(self) -> None:
        if 2 * count(self.chosen, "chosen") > self.size + 1:
            raise InvalidArgument(
                "chosen must be at most half of the answers",
                place="chosen",
                hints=("more of them say less about those that are held; let from_epsilon choose",),
            )

    def valid(self, reports: Columns) -> Flags:
        """Flag the reports with the right number of bytes, empty padding and exactly `chosen` ticks."""
        flags = well_formed(reports["bits"], self.message_bits)
        return flags & (ones(reports["bits"]) == self.chosen) if flags.any() else flags


def usual_ones(size: int, other: Fraction, most: int = 1) -> tuple[int, int]:
    """Return how few and how many boxes an honest report of at most `most` answers ticks, but for 1e-12.

    Theorem: at least size - most of the bits have chance `other`, and all have at least that (fewer
    ones are then even less likely). A binomial number reaches a share x of n with a chance of at most
    exp(-n KL(x, other)) (Chernoff 1952), on either side.
    """
    chance = float(other)

    def unusual(hits: int, trials: int) -> bool:
        return trials > 0 and trials * _divergence(hits / trials, chance) >= _UNUSUAL

    last = math.floor(chance * size)
    low = last + 1 - bisect_left(range(last + 1), True, key=lambda less: unusual(last - less, size))
    coins = size - most
    start = math.ceil(chance * coins)
    high = start + bisect_left(range(start, coins + 1), True, key=lambda hits: unusual(hits, coins))
    return low, most - 1 + high


def _divergence(x: float, y: float) -> float:
    """Return the relative entropy of two coins."""
    heads = x * math.log(x / y) if x > 0 else 0.0
    return heads + ((1 - x) * math.log((1 - x) / (1 - y)) if x < 1 else 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnaryEncoding(CoinBallot):
    """The bit of the true answer is set with chance `own`, the bit of any other answer with chance `other`.

    A phone does, for each answer of the survey in turn:
    1. take own = a/b where the answer is its own, and other = a/b where it is not;
    2. draw an integer below b;
    3. set the answer's bit if it is below a.

    Theorem: two answers differ in two bits, so that the largest ratio of a report's probabilities is
    own (1 - other) / (other (1 - own)), and exactly that. The symmetric choice own = 1 - other is that of
    Erlingsson, Pihur and Korolova (2014); own = 1/2 has the least variance for answers that few people
    give (Wang, Blocki, Li and Jha 2017).

    >>> UnaryEncoding(size=4, own=Fraction(1, 2), other=Fraction(1, 4)).max_ratio  # epsilon is ln 3
    Fraction(3, 1)
    """

    size: int
    own: Fraction
    other: Fraction

    name: ClassVar[str] = "unary"

    def __post_init__(self) -> None:
        count(self.size, "size")
        self._check_chances()

    @classmethod
    def from_epsilon(cls, epsilon: Number, *, size: int, symmetric: bool = False) -> UnaryEncoding:
        """Return the optimised encoding; the symmetric one treats zeros and ones alike.

        Rounds: down. Where symmetric, h / (h + 1) for a rational h just below the root of the odds.
        """
        if symmetric:
            root = odds_of(epsilon, 2)
            return cls(size=size, own=root / (root + 1), other=1 / (root + 1))
        return cls(size=size, own=Fraction(1, 2), other=1 / (odds_of(epsilon) + 1))

    @property
    def max_ratio(self) -> Fraction:
        """The exact e^epsilon: of one answer alone, nothing can be told apart."""
        if self.size == 1:
            return Fraction(1)
        return self.own * (1 - self.other) / (self.other * (1 - self.own))

    def randomise(self, answers: Array) -> dict[str, Array]:
        """Return one report per answer."""
        given = self._answers(answers)
        packed = coin_bits(self.other, len(given), self.size)
        put_bits(packed, np.arange(len(given)), given, bernoulli(self.own, size=len(given)))
        return {"bits": packed}


@dataclass(frozen=True, slots=True, kw_only=True)
class SubsetSelection(ChosenBallot, OddsProtocol):
    """A set of `chosen` answers weighs `odds` if the true one is among them, else 1; it is drawn by weight.

    A phone does, with odds = a/b:
    1. draw an integer below chosen * a + (size - chosen) * b;
    2. if it is below chosen * a, start the report with its own answer;
    3. draw integers below size, and add each that is neither its own answer nor there already, until
       there are `chosen` answers;
    4. set their bits.

    Theorem: sets with the true answer and sets without it are equally likely among themselves, and the
    ratio between the two kinds is the odds. With `chosen` near size / (odds + 1) the error of all shares
    together is, with many reports, the least that any protocol has (Ye and Barg 2018).

    >>> SubsetSelection.from_epsilon(1, size=1024).chosen
    275
    """

    size: int
    odds: Fraction
    chosen: int

    name: ClassVar[str] = "subset"

    def __post_init__(self) -> None:
        OddsProtocol.__post_init__(self)
        self._check_chosen()

    @classmethod
    def from_epsilon(cls, epsilon: Number, *, size: int) -> SubsetSelection:
        """Return the protocol of least variance for an answer that nobody gave, compared exactly."""
        odds = odds_of(epsilon)
        floor = int(count(size, "size") / (odds + 1))
        choices = {max(1, floor), floor + 1}
        return min(
            (cls(size=size, odds=odds, chosen=w) for w in sorted(choices) if 2 * w <= size + 1),
            key=lambda protocol: protocol._spread,
        )

    @property
    def _spread(self) -> Fraction:
        """The exact variance of one report's estimate of a share that is zero."""
        return self.q * (1 - self.q) / (self.p - self.q) ** 2

    @property
    def p(self) -> Fraction:
        """The chance that the true answer is among the chosen ones."""
        return self.chosen * self.odds / (self.chosen * self.odds + self.size - self.chosen)

    @property
    def q(self) -> Fraction:
        """The chance that any other answer is: `chosen` less p are shared among the others."""
        return (self.chosen - self.p) / (self.size - 1) if self.size > 1 else Fraction(0)

    def randomise(self, answers: Array) -> dict[str, Array]:
        """Return one report per answer."""
        given = self._answers(answers)
        rows = np.arange(len(given))
        inside = bernoulli(self.p, size=len(given))
        own = np.zeros((len(given), bytes_for(self.size)), dtype=np.uint8)
        put_bits(own, rows, given, np.ones(len(given), dtype=np.bool_))
        packed = uniform_subsets(own, self.size, self.chosen - inside.astype(np.int64))
        put_bits(packed, rows, given, inside)
        return {"bits": packed}
