"""Unary encoding: one bit for every answer, each randomised on its own."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from sfumato.core.arguments import Number, count
from sfumato.core.coins import bernoulli
from sfumato.local.arrays import Array
from sfumato.local.ballots import CoinBallot
from sfumato.local.bits import coin_bits, put_bits
from sfumato.local.odds import odds_of, root_of

__all__ = ["UnaryEncoding"]


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

    def randomise(self, answers: Array) -> dict[str, Array]:
        """Return one report per answer."""
        given = self._answers(answers)
        packed = coin_bits(self.other, len(given), self.size)
        put_bits(packed, np.arange(len(given)), given, bernoulli(self.own, size=len(given)))
        return {"bits": packed}
