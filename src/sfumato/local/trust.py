"""One question under three kinds of trust, each answered the way it really is.

    central    a trusted collector holds everybody's value and publishes through this system's engine
    shuffled   everybody randomises; a trusted shuffler mixes the reports, so that each may say more
    local      everybody randomises, and nobody is trusted

All three keep the same promise: whoever sees what is published cannot tell, beyond epsilon, which value one
of the people had; that somebody took part is no secret in any of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from sfumato.catalog import between, one_of
from sfumato.core.arguments import Number, budget_quantity
from sfumato.local.arrays import Array, Floats
from sfumato.local.ballots import SubsetSelection
from sfumato.local.means import MeanProtocol
from sfumato.local.piecewise import best_for_number
from sfumato.local.protocol import FrequencyProtocol, Protocol
from sfumato.local.response import KaryResponse
from sfumato.local.shuffling import local_epsilon
from sfumato.session import Budget, Database, SqlQuestion, connect

__all__ = ["MODELS", "MeanAsked", "Model", "SharesAsked", "TrustQuestion", "Way"]

Model = Literal["central", "shuffled", "local"]
MODELS: tuple[Model, ...] = get_args(Model)
"""From the most trust to none."""


_PLENTY = 20  # times the deviation of a count's noise, from where a ratio's error is nearly linear in it
_BUDGET = 10**12  # of nobody: it is thrown away with the table


Way = SqlQuestion | Protocol
"""How a question is answered in one model: by a question to the engine, or by a protocol."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrustQuestion(ABC):
    """A question about people, and its answers in every model; `values` has one entry per person."""

    values: Array

    sql: ClassVar[str]
    part: ClassVar[Fraction] = Fraction(1)
    """The part of epsilon with which the engine is asked, where one person's value is replaced by another."""

    @property
    @abstractmethod
    def truth(self) -> Floats:
        """What is to be estimated: of these very people, so that who they are adds no error."""

    @property
    @abstractmethod
    def spread(self) -> float:
        """The variance of one person's value around the truth, on average over answers."""

    @abstractmethod
    def answer(self, way: Way) -> Floats:
        """Answer once: release what the engine says, or let everybody report."""

    @abstractmethod
    def error(self, way: Way) -> float | None:
        """Return the mean squared error by formula; None where the people are too few for it."""

    @abstractmethod
    def _domain(self) -> Any:
        """Return what a value can be, as a column's declaration."""

    @abstractmethod
    def _protocols(self, epsilon: float, of_response: float) -> Iterator[Protocol]:
        """Yield protocols of an epsilon; k-ary response may have another, for it shuffles better."""

    def squared_errors(self, way: Way, repetitions: int) -> Floats:
        """Answer again and again; return the squared errors, each averaged over the answers."""
        found = np.array([self.answer(way) for _ in range(repetitions)])
        squares: Floats = np.mean((found - self.truth) ** 2, axis=1)
        return squares

    def open(self) -> Database:
        """Open the people in this system, every row a unit, with a budget that is thrown away."""
        import pyarrow as pa

        return connect(
            pa.table({"value": self.values}),
            name="people",
            unit=None,
            columns={"value": self._domain()},
            budget=Budget(epsilon=_BUDGET, rule="pure"),
        )

    def question(self, database: Database, epsilon: Number) -> SqlQuestion:
        """Return the question that costs epsilon when one person's value is replaced by another."""
        return database.sql(self.sql, epsilon=budget_quantity(epsilon, "epsilon") * self.part)

    def ways(self, epsilon: Number, delta: Number, database: Database) -> dict[Model, Way]:
        """Return how the question is answered in each model with the same promise."""
        own = float(budget_quantity(epsilon, "epsilon"))
        n = len(self.values)
        each = [local_epsilon(epsilon, n, delta, response=response) for response in (False, True)]
        shuffled, local = (
            min(self._protocols(*epsilons), key=lambda protocol: self.error(protocol) or 0.0)
            for epsilons in (each, (own, own))
        )
        return {"central": self.question(database, epsilon), "shuffled": shuffled, "local": local}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MeanAsked(TrustQuestion):
    """The average of a number between bounds.

    Theorem: the engine's average is private against adding or removing a person, with half of
    epsilon for the count and half for the sum around the middle of the range. Replacing a value leaves
    the count alone and moves the sum by at most twice as much: that costs epsilon as well.
    """

    low: Fraction
    high: Fraction

    sql: ClassVar[str] = "SELECT AVG(value) AS mean FROM people"

    @property
    def truth(self) -> Floats:
        """The average."""
        return np.array([self.values.mean()])

    @property
    def spread(self) -> float:
        """The variance of a value."""
        return float(self.values.var())

    def answer(self, way: Way) -> Floats:
        """Answer once; a count that noise made zero leaves the middle of the range as the best guess."""
        if isinstance(way, MeanProtocol):
            return np.array([way.mean(way.collect(way.randomise(self.values))).value])
        assert isinstance(way, SqlQuestion)
        [mean] = way.release().column("mean")
        return np.array([float(self.low + self.high) / 2 if mean is None else float(mean)])

    def error(self, way: Way) -> float | None:
        """Return the mean squared error: of reports, the people's average `MeanProtocol.variance` over n.

        Of the engine, E[(dS - m dN)^2] / n^2, with m the average's distance from the middle of the range.
        Assumes: the noise dN of the count is small beside n. Below 20 deviations nothing is said.
        """
        n = len(self.values)
        if isinstance(way, MeanProtocol):
            half, (a, b) = float(self.high - self.low) / 2, (float(each) for each in way.moments)
            unit = (self.values - float(self.low)) / half - 1
            into = (unit + 1) * way.cells / 2 % 1
            second = a + b * (unit**2 + into * (1 - into) * (2 / way.cells) ** 2)
            return float(np.mean(second - unit**2)) * half**2 / n
        assert isinstance(way, SqlQuestion)
        priced = way.priced()
        [answer], cost = priced.boundings[0].answers, priced.costs[0]
        rows, total = (cost.noise(one).law.exact_variance for one in answer.measures)
        if n < _PLENTY * rows**0.5:
            return None
        m = float(self.truth[0]) - answer.centre
        return (float(answer.scale) ** 2 * total + m**2 * rows) / n**2

    def _domain(self) -> Any:
        return between(self.low, self.high)

    def _protocols(self, epsilon: float, of_response: float) -> Iterator[Protocol]:
        yield best_for_number(epsilon, low=self.low, high=self.high)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SharesAsked(TrustQuestion):
    """The shares of all of `size` answers, each given as its place.

    The engine counts each answer; the number of people is public here, as it is in a survey. To replace
    an answer is to remove one person and to add another, so it is asked with half of epsilon.
    """

    size: int

    sql: ClassVar[str] = "SELECT value, COUNT(*) AS n FROM people GROUP BY value"
    part: ClassVar[Fraction] = Fraction(1, 2)

    @property
    def truth(self) -> Floats:
        """The shares."""
        shares: Floats = np.bincount(self.values, minlength=self.size) / len(self.values)
        return shares

    @property
    def spread(self) -> float:
        """The variance of being one of those who gave an answer, on average."""
        return float(np.mean(self.truth * (1 - self.truth)))

    def answer(self, way: Way) -> Floats:
        """Answer once; the engine's counts are divided by the number of people."""
        if isinstance(way, FrequencyProtocol):
            totals = way.collect(way.randomise(self.values))
            return way.shares(totals, len(self.values)).values
        assert isinstance(way, SqlQuestion)
        release = way.release()
        counts = dict(zip(release.column("value"), release.column("n"), strict=True))
        return np.array([counts[place] for place in range(self.size)]) / len(self.values)

    def error(self, way: Way) -> float:
        """Return the average variance over answers, exactly: of reports, or of a count's noise over n^2.

        That of reports is a linear function of the share, so that its average is that of the share 1/k.
        """
        if isinstance(way, FrequencyProtocol):
            return way.variance(Fraction(1, self.size), len(self.values))
        assert isinstance(way, SqlQuestion)
        [noise] = way.priced().costs[0].noises
        return noise.law.exact_variance / len(self.values) ** 2

    def _domain(self) -> Any:
        return one_of(*range(self.size))

    def _protocols(self, epsilon: float, of_response: float) -> Iterator[Protocol]:
        # K-ary response is best for few answers, subset selection for many.
        yield KaryResponse.from_epsilon(of_response, size=self.size)
        if self.size > 2:
            yield SubsetSelection.from_epsilon(epsilon, size=self.size)
