"""Unary encoding: a bit for every answer, each of which is randomised on its own."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from sfumato.core.arguments import Number, count, probability
from sfumato.core.coins import bernoulli
from sfumato.errors import InvalidArgument
from sfumato.local.bits import bytes_for, coin_bits, count_bits, ones, put_bits, well_formed
from sfumato.local.odds import odds_of, root_of
from sfumato.local.protocol import Columns, FieldKind, FrequencyProtocol

__all__ = ["UnaryEncoding", "usual_ones"]

_UNUSUAL = math.log(2e12)  # each of the two limits is passed with a chance of at most 1e-12 / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class UnaryEncoding(FrequencyProtocol):
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
    fields: ClassVar[dict[str, FieldKind]] = {"bits": "bits"}

    def __post_init__(self) -> None:
        count(self.size, "size")
        object.__setattr__(self, "own", probability(self.own, "own"))
        object.__setattr__(self, "other", probability(self.other, "other"))
        if not 0 < self.other < self.own < 1:
            raise InvalidArgument(
                "the bit of the true answer must be likelier to be set than others, and none certain",
                place="own",
                hints=("build it with from_epsilon", "an epsilon below 1e-9 leaves no information"),
            )

    @classmethod
    def from_epsilon(cls, epsilon: Number, *, size: int, symmetric: bool = False) -> UnaryEncoding:
        """Return the optimised encoding; the symmetric one treats zeros and ones alike.

        Rounds: down. Where symmetric, h / (h + 1) for a rational h just below the root of the odds.
        """
        odds = odds_of(epsilon)
        if symmetric:
            root = root_of(odds)
            return cls(size=size, own=root / (root + 1), other=1 / (root + 1))
        return cls(size=size, own=Fraction(1, 2), other=1 / (odds + 1))

    @property
    def max_ratio(self) -> Fraction:
        """The exact e^epsilon: of one answer alone, nothing can be told apart."""
        if self.size == 1:
            return Fraction(1)
        return self.own * (1 - self.other) / (self.other * (1 - self.own))

    @property
    def p(self) -> Fraction:
        """The chance that the bit of the true answer is set."""
        return self.own

    @property
    def q(self) -> Fraction:
        """The chance that the bit of any other answer is set."""
        return self.other

    @property
    def message_bits(self) -> int:
        """A bit per answer."""
        return self.size

    def octets(self, field: str) -> int:
        """Return the bytes of a report."""
        return bytes_for(self.message_bits)

    def parameters(self) -> dict[str, int | str]:
        """Return the number of answers and the two chances."""
        return {"size": self.size, "own": str(self.own), "other": str(self.other)}

    def randomise(self, answers: npt.NDArray[Any]) -> dict[str, npt.NDArray[Any]]:
        """Return one report per answer."""
        given = self._answers(answers)
        packed = coin_bits(self.other, len(given), self.size)
        put_bits(packed, np.arange(len(given)), given, bernoulli(self.own, size=len(given)))
        return {"bits": packed}

    def valid(self, reports: Columns) -> npt.NDArray[np.bool_]:
        """Flag the reports with the right number of bytes, empty padding and a usual number of ones.

        A report with every bit set would count for every answer. An honest one is lost with a chance
        of at most 1e-12, whatever its answer, which moves an estimate by at most 1e-12 / (p - q). With
        few answers every number of ones is usual: all of them set is refused once other^(size - 1) is
        below 5e-13 (from 23 answers on at epsilon 1).
        """
        flags = well_formed(reports["bits"], self.size)
        if flags.any():
            low, high = usual_ones(self.size, self.other)
            found = ones(reports["bits"])
            flags &= (low <= found) & (found <= high)
        return flags

    def collect(self, reports: Columns) -> npt.NDArray[np.int64]:
        """Count the reports in which each bit is set."""
        return count_bits(reports["bits"], self.size)

    def supports(self, totals: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """A report supports every answer whose bit is set."""
        return totals


def usual_ones(size: int, other: Fraction, most: int = 1) -> tuple[int, int]:
    """Return how few and how many ones an honest report of at most `most` answers has but for 1e-12.

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
