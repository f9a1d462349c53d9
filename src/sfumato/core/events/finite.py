"""Events of finitely many outcomes: any pair of laws, and randomized response."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.core.arguments import Cost, FloatArray, budget_quantity, checked_order, count, probability
from sfumato.core.events.base import Direction, Event
from sfumato.core.events.claims import group_of_claim
from sfumato.core.events.pair import PairTable, pair_table
from sfumato.core.search import round_up
from sfumato.errors import InvalidArgument

__all__ = ["FinitePair", "RandomizedResponse"]


class _OfTable(Event):
    """An event that a table of finitely many outcomes prices, one for each direction."""

    __slots__ = ()

    @abstractmethod
    def _table(self, direction: Direction) -> PairTable: ...

    def tails(self, levels: FloatArray, direction: Direction) -> tuple[FloatArray, FloatArray]:
        """Return the tails of the loss, from exact cumulative sums."""
        return self._table(direction).tails(levels)

    def support(self, direction: Direction) -> tuple[float, float]:
        return self._table(direction).support()

    @property
    def symmetric(self) -> bool:
        """Whether exchanging the laws changes nothing but the order of the outcomes."""
        return self._table(Direction.REMOVE).symmetric

    def epsilon(self) -> float:
        """Return the logarithm of the largest ratio of probabilities, found exactly. Rounds: up."""
        return self._table(Direction.REMOVE).epsilon()

    def rho(self) -> Cost:
        """Return the smallest rho over all orders, both directions. Theorem: `PairTable.rho`. Rounds: up."""
        return min(max(self._table(direction).rho() for direction in self.directions), Event.rho(self))

    def mu(self) -> Cost:
        """Return the smallest mu. Theorem: `PairTable.mu`; one direction decides both. Rounds: up."""
        return min(self._table(Direction.REMOVE).mu(), Event.mu(self))

    def renyi(self, order: float) -> float:
        """Return the Renyi divergence by its definition, in both directions. Rounds: up."""
        excess = np.array([checked_order(order) - 1])
        largest = max(float(self._table(direction).cumulant(excess)[0]) for direction in self.directions)
        return min(round_up(largest / float(excess[0])), self.epsilon())

    def delta(self, epsilon: float) -> float:
        """Return the hockey-stick divergence, computed exactly. Rounds: up, to the next float."""
        level = budget_quantity(epsilon, "epsilon", zero=True)
        return max(self._table(direction).delta(level) for direction in self.directions)

    def group(self, size: int) -> Event:
        """Cover `size` people by the pure claim. Theorem: as `Pure.group`."""
        return group_of_claim(self, size)


@dataclass(frozen=True, slots=True, kw_only=True)
class FinitePair(_OfTable):
    """Two laws on the same finitely many outcomes: with the person, and without.

    >>> FinitePair(with_person=(0.75, 0.25), without=(0.25, 0.75)).epsilon() == math.log(3)
    True
    """

    with_person: tuple[Fraction, ...]
    without: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "with_person", _law(self.with_person, "with_person"))
        object.__setattr__(self, "without", _law(self.without, "without"))
        if len(self.with_person) != len(self.without):
            raise InvalidArgument("both laws must have the same number of outcomes", place="without")

    def _table(self, direction: Direction) -> PairTable:
        if direction is Direction.REMOVE:
            return pair_table(self.with_person, self.without)
        return pair_table(self.without, self.with_person)


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomizedResponse(_OfTable):
    """Reports the true answer with probability `truth`, each other one equally often.

    Theorem: epsilon is |ln(truth (choices-1) / (1-truth))|, inf if a report can prove or rule out an
    answer (Warner 1965; Kairouz, Oh, Viswanath 2016 for many choices); attained.

    >>> coin_toss = RandomizedResponse(truth=Fraction(3, 4), choices=2)
    >>> coin_toss.epsilon() == math.log(3)
    True
    """

    truth: Fraction
    choices: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "truth", probability(self.truth, "truth"))
        object.__setattr__(self, "choices", count(self.choices, "choices", least=2))

    def rho(self) -> Cost:
        """Return the smallest rho.

        Theorem: epsilon tanh(epsilon/2) for two choices (`conversions.rho_of_pure`); for up to six, if
        the truth is the likeliest report, the Kullback-Leibler divergence (Harrison and Manurangsi
        2025), which is what the search over orders of `PairTable.rho` finds; for more, or for a truth
        that is rarer than a lie, it finds the larger true value. Rounds: up.
        """
        return Event.rho(self) if self.choices == 2 else _OfTable.rho(self)

    def mu(self) -> Cost:
        """Return the smallest mu, |quantile(truth) - quantile(lie)|. Theorem: `PairTable.mu`. Rounds: up."""
        return Event.mu(self) if self.choices == 2 else _OfTable.mu(self)

    def _table(self, direction: Direction) -> PairTable:
        # Two people with different answers; a third answer is as likely from either.
        lie = (1 - self.truth) / (self.choices - 1)
        rest = 1 - self.truth - lie
        return pair_table((self.truth, lie, rest), (lie, self.truth, rest))


def _law(values: Any, name: str) -> tuple[Fraction, ...]:
    """Read a probability law: a sequence of exact probabilities that sum to one."""
    if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
        raise InvalidArgument(f"{name} must be a sequence of probabilities", place=name)
    law = tuple(probability(value, name) for value in values)
    common = math.lcm(*(value.denominator for value in law))
    if sum(value.numerator * (common // value.denominator) for value in law) != common:
        raise InvalidArgument(
            f"the probabilities of {name} must sum to one exactly",
            place=name,
            hints=("write them as Fractions: floats such as 0.1 are not what they print as",),
        )
    return law
