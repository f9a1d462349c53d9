"""Subset selection: report some answers at once, among which the true one is likelier than any other."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from sfumato.core.arguments import Number, count
from sfumato.core.coins import bernoulli
from sfumato.local.arrays import Array
from sfumato.local.ballots import ChosenBallot
from sfumato.local.bits import bytes_for, put_bits, uniform_subsets
from sfumato.local.odds import odds_of
from sfumato.local.protocol import OddsProtocol

__all__ = ["SubsetSelection"]


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
