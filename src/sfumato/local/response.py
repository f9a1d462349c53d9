"""K-ary response: tell the truth with the most likely chance, any other answer equally often.

With two answers this is Warner's coin (1965): `KaryResponse.coin_toss()`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from sfumato.core.arguments import Number
from sfumato.core.response import RandomizedResponseMechanism
from sfumato.local.arrays import Array, Flags, Integers
from sfumato.local.odds import odds_of
from sfumato.local.protocol import Columns, OddsProtocol, below

__all__ = ["KaryResponse"]


@dataclass(frozen=True, slots=True, kw_only=True)
class KaryResponse(OddsProtocol):
    """The true answer weighs `odds`, each other one 1; a report is drawn by weight.

    Theorem: the probability of a report is odds or 1 of odds + size - 1, whatever the answer: the
    largest ratio is the odds (Kairouz, Oh and Viswanath 2016).

    >>> KaryResponse.coin_toss().max_ratio  # epsilon is exactly ln 3
    Fraction(3, 1)
    """

    size: int
    odds: Fraction

    name: ClassVar[str] = "response"

    @classmethod
    def from_epsilon(cls, epsilon: Number, *, size: int) -> KaryResponse:
        """Tell the truth as often as epsilon allows."""
        return cls(size=size, odds=odds_of(epsilon))

    @classmethod
    def coin_toss(cls) -> KaryResponse:
        """Heads: tell the truth. Tails: toss again, and report heads as yes. Exactly ln 3."""
        return cls(size=2, odds=Fraction(3))

    @property
    def p(self) -> Fraction:
        """The chance of the truth."""
        return self.odds / (self.odds + self.size - 1)

    @property
    def q(self) -> Fraction:
        """The chance of each lie."""
        return 1 / (self.odds + self.size - 1) if self.size > 1 else Fraction(0)

    @property
    def message_bits(self) -> int:
        """The bits of one answer."""
        return (self.size - 1).bit_length()

    def randomise(self, answers: Array) -> dict[str, Array]:
        """Return one report per answer."""
        given = self._answers(answers)
        if self.size == 1:
            return {"value": given}
        return {"value": RandomizedResponseMechanism(self.p, choices=self.size).release(given)}

    def valid(self, reports: Columns) -> Flags:
        """Flag the reports that are one of the answers."""
        return below(reports["value"], self.size)

    def collect(self, reports: Columns) -> Integers:
        """Count reports by answer."""
        return np.bincount(reports["value"], minlength=self.size).astype(np.int64)
