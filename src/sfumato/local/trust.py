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
from sfumato.session import Budget, Database, Question, connect

__all__ = ["MODELS", "MeanAsked", "Model", "SharesAsked", "TrustQuestion", "Way"]

Model = Literal["central", "shuffled", "local"]
MODELS: tuple[Model, ...] = get_args(Model)
"""From the most trust to none."""


_PLENTY = 20  # times the deviation of a count's noise, from where a ratio's error is nearly linear in it
_BUDGET = 10**12  # of nobody: it is thrown away with the table


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """How a question is answered in one model: by a question to the engine, or by a protocol."""

    asked: TrustQuestion
    question: Question | None = None
    protocol: Protocol | None = None

    @property
    def predicted(self) -> float | None:
        """The mean squared error by formula; None where the people are too few for it."""
        if self.protocol is not None:
            return self.asked.local_error(self.protocol)
        assert self.question is not None
        return self.asked.central_error(self.question)

    def squared_errors(self, repetitions: int) -> Floats:
        """Answer `times` times; return the squared error, averaged over the answers."""
        found = np.array([self._answer() for _ in range(repetitions)])
        squares: Floats = np.mean((found - self.asked.truth) ** 2, axis=1)
        return squares

    def _answer(self) -> Floats:
        if self.protocol is not None:
            return self.asked.estimate(self.protocol)
        assert self.question is not None
        return self.asked.read(self.question)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrustQuestion(ABC):
    """A question about people, and its answers in every model; `values` has one entry per person."""

    values: Array

    sql: ClassVar[str]
    part: ClassVar[Fraction] = Fraction(1)
    """The part of epsilon with which the engine is asked, where one person's value is replaced by another."""

    @property
    @abstractmethod
    def domain(self) -> Any:
        """What a value can be, as a column's declaration."""

    @property
    @abstractmethod
    def truth(self) -> Floats:
        """What is to be estimated: of these very people, so that who they are adds no error."""

    @property
    @abstractmethod
    def spread(self) -> float:
        """The variance of one person's value around the truth, on average over answers."""

    # -- a trusted collector -----------------------------------------------------------------

    def open(self) -> Database:
        """Open the people in this system, every row a unit, with a budget that is thrown away."""
        import pyarrow as pa

        return connect(
            pa.table({"value": self.values}),
            name="people",
            unit=None,
            columns={"value": self.domain},
            budget=Budget(epsilon=_BUDGET, rule="pure"),
        )

    def question(self, database: Database, epsilon: Number) -> Question:
        """Return the question that costs epsilon when one person's value is replaced by another."""
        return database.sql(self.sql, epsilon=budget_quantity(epsilon, "epsilon") * self.part)

    @abstractmethod
    def read(self, question: Question) -> Floats:
        """Release an answer, and read it."""

    @abstractmethod
    def central_error(self, question: Question) -> float | None:
        """Return the mean squared error that the noise of the question makes, None if that is not known."""

    # -- reports ---------------------------------------------------------------------------------

    @abstractmethod
    def protocols(self, epsilon: float, of_response: float) -> Iterator[Protocol]:
        """Yield protocols of an epsilon; k-ary response may have another, for it shuffles better."""

    @abstractmethod
    def estimate(self, protocol: Protocol) -> Floats:
        """Let everybody report, and estimate."""

    @abstractmethod
    def local_error(self, protocol: Protocol) -> float:
        """Return the mean squared error of the estimate from everybody's reports, exactly."""

    def ways(self, epsilon: Number, delta: Number, database: Database) -> dict[Model, Way]:
        """Return how the question is answered in each model with the same promise."""
        own = float(budget_quantity(epsilon, "epsilon"))
        n = len(self.values)
        each = [local_epsilon(epsilon, n, delta, response=response) for response in (False, True)]
        shuffled, local = (
            min(self.protocols(*epsilons), key=self.local_error) for epsilons in (each, (own, own))
        )
        return {
            "central": Way(asked=self, question=self.question(database, epsilon)),
            "shuffled": Way(asked=self, protocol=shuffled),
            "local": Way(asked=self, protocol=local),
        }


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
    def domain(self) -> Any:
        """A number between its bounds."""
        return between(self.low, self.high)

    @property
    def truth(self) -> Floats:
        """The average."""
        return np.array([self.values.mean()])

    @property
    def spread(self) -> float:
        """The variance of a value."""
        return float(self.values.var())

    def read(self, question: Question) -> Floats:
        """Release; a count that noise made zero leaves the middle of the range as the best guess."""
        [mean] = question.release().column("mean")
        return np.array([float(self.low + self.high) / 2 if mean is None else float(mean)])

    def central_error(self, question: Question) -> float | None:
        """Return E[(dS - m dN)^2] / n^2, with m the average's distance from the middle of the range.

        Assumes: the noise dN of the count is small beside n. Below 20 deviations nothing is said.
        """
        priced = question.priced()
        [answer], cost = priced.boundings[0].answers, priced.costs[0]
        n = len(self.values)
        rows, total = (cost.noise(one).law.exact_variance for one in answer.measures)
        if n < _PLENTY * rows**0.5:
            return None
        m = float(self.truth[0]) - answer.centre
        return (float(answer.scale) ** 2 * total + m**2 * rows) / n**2

    def protocols(self, epsilon: float, of_response: float) -> Iterator[Protocol]:
        """Yield the protocol of least worst case."""
        yield best_for_number(epsilon, low=self.low, high=self.high)

    def estimate(self, protocol: Protocol) -> Floats:
        """Let everybody report their number."""
        assert isinstance(protocol, MeanProtocol)
        return np.array([protocol.mean(protocol.collect(protocol.randomise(self.values))).value])

    def local_error(self, protocol: Protocol) -> float:
        """Return the average of `MeanProtocol.variance` over the people, over n."""
        assert isinstance(protocol, MeanProtocol)
        half, (a, b) = float(self.high - self.low) / 2, (float(each) for each in protocol.moments)
        unit = (self.values - float(self.low)) / half - 1
        into = (unit + 1) * protocol.cells / 2 % 1
        second = a + b * (unit**2 + into * (1 - into) * (2 / protocol.cells) ** 2)
        return float(np.mean(second - unit**2)) * half**2 / len(self.values)


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
    def domain(self) -> Any:
        """One of the answers."""
        return one_of(*range(self.size))

    @property
    def truth(self) -> Floats:
        """The shares."""
        shares: Floats = np.bincount(self.values, minlength=self.size) / len(self.values)
        return shares

    @property
    def spread(self) -> float:
        """The variance of being one of those who gave an answer, on average."""
        return float(np.mean(self.truth * (1 - self.truth)))

    def read(self, question: Question) -> Floats:
        """Release, and divide by the number of people."""
        release = question.release()
        counts = dict(zip(release.column("value"), release.column("n"), strict=True))
        return np.array([counts[place] for place in range(self.size)]) / len(self.values)

    def central_error(self, question: Question) -> float:
        """Return the variance of a count's noise, over n^2: exact."""
        [noise] = question.priced().costs[0].noises
        return noise.law.exact_variance / len(self.values) ** 2

    def protocols(self, epsilon: float, of_response: float) -> Iterator[Protocol]:
        """Yield k-ary response, which is best for few answers, and subset selection, for many."""
        yield KaryResponse.from_epsilon(of_response, size=self.size)
        if self.size > 2:
            yield SubsetSelection.from_epsilon(epsilon, size=self.size)

    def estimate(self, protocol: Protocol) -> Floats:
        """Let everybody report their answer."""
        assert isinstance(protocol, FrequencyProtocol)
        totals = protocol.collect(protocol.randomise(self.values))
        return protocol.shares(totals, len(self.values)).values

    def local_error(self, protocol: Protocol) -> float:
        """Return the average variance over answers.

        It is a linear function of the share, so that the average over answers is that of the share 1/k.
        """
        assert isinstance(protocol, FrequencyProtocol)
        return protocol.variance(Fraction(1, self.size), len(self.values))
