"""Several answers by padding and sampling: report about one of your own, with any protocol for one answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from sfumato.core.arguments import Number
from sfumato.errors import InvalidArgument
from sfumato.local.answers import AnswerSets, Sets, uniform_each
from sfumato.local.arrays import Array
from sfumato.local.ballots import SubsetSelection, UnaryEncoding
from sfumato.local.protocol import DerivedProtocol, FrequencyProtocol
from sfumato.local.response import KaryResponse
from sfumato.local.sets import SetSelection, UnarySets, most_of
from sfumato.local.stages import TwoStage

__all__ = ["SeveralAnswers", "best_for_several"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeveralAnswers(DerivedProtocol):
    """Fill the own set up to `most` with dummies, pick one of them, and report it with an inner protocol.

    A phone does:
    1. draws an integer j below `most`, or below the number of its answers if they are more;
    2. takes the j-th of its answers if there is one, else dummy size + j;
    3. does what the inner protocol, over size + most answers, does with that.

    Theorem: a held answer is picked with a chance of 1 / most, so that a report supports it with a chance
    of q + (p - q) / most of the inner protocol's p and q, and any other with q: this is a pure protocol
    again, whose estimates are `most` times those of the inner one (Qin et al. 2016; Wang, Li and Jha
    2018), and everything that holds for those holds here, limits included. Whoever holds more than `most`
    is heard about a uniformly random one: the estimate for an answer falls short by the sum of 1 - most / s
    over those who hold it among s > most answers, as a share of all people.

    Its variance is most^2 times the inner one, more than that of `SetSelection`; what speaks for it is that
    a report is as short as the inner one.
    """

    size: int
    most: int
    inner: FrequencyProtocol

    name: ClassVar[str] = "several"

    def __post_init__(self) -> None:
        if isinstance(self.inner, (SeveralAnswers, SetSelection, UnarySets, TwoStage)):
            raise InvalidArgument(
                "the inner protocol must be one for a single answer that is sent as it is drawn",
                place="inner",
                hints=("such as subset, or hashing",),
            )
        if self.inner.size != self.size + most_of(self.most, self.size):
            raise InvalidArgument(
                "the inner protocol must be over size + most answers",
                place="inner",
                hints=("the last ones are dummies; from_epsilon builds it",),
            )

    @classmethod
    def from_epsilon(
        cls,
        epsilon: Number,
        *,
        size: int,
        most: int,
        inner: Callable[..., FrequencyProtocol] = SubsetSelection.from_epsilon,
    ) -> SeveralAnswers:
        """Return the protocol around `inner(epsilon, size=...)`, the `from_epsilon` of one for one answer."""
        return cls(size=size, most=most, inner=inner(epsilon, size=size + most_of(most, size)))

    @property
    def single(self) -> FrequencyProtocol:
        """The inner protocol, over the answers and dummies."""
        return self.inner

    @property
    def max_ratio(self) -> Fraction:
        """The exact e^epsilon where the inner reports are understood, else the inner one, which bounds it.

        Theorem: a report that supports t of the own places, but none of another's, is as many times
        likelier as the average of its `most` places says: (t odds + most - t) / most. One of unary
        encoding may support all of them, one of k-ary response a single one.
        """
        match self.inner:
            case KaryResponse():
                together = 1
            case SubsetSelection(chosen=chosen):
                together = min(chosen, self.most)
            case _:
                together = self.most
        return 1 + (self.inner.max_ratio - 1) * together / self.most

    @property
    def p(self) -> Fraction:
        """The chance that a report supports an answer that its sender holds."""
        return self.inner.q + (self.inner.p - self.inner.q) / self.most

    @property
    def q(self) -> Fraction:
        """The chance that it supports any other one."""
        return self.inner.q

    def parameters(self) -> dict[str, int | str]:
        """Return how many answers there are and one may hold, the inner protocol's name and parameters."""
        inner = {f"inner_{name}": value for name, value in self.inner.parameters().items()}
        return {"size": self.size, "most": self.most, "inner": self.inner.name, **inner}

    def randomise(self, answers: Sets) -> dict[str, Array]:
        """Return one report per person."""
        sets = AnswerSets.read(answers, size=self.size)
        slots = uniform_each(np.maximum(sets.lengths, self.most))
        picked = self.size + slots
        held = np.flatnonzero(slots < sets.lengths)
        picked[held] = sets.values[sets.offsets[held] + slots[held]]
        return self.inner.randomise(picked)


def best_for_several(epsilon: Number, *, size: int, most: int) -> FrequencyProtocol:
    """Return the protocol of least variance, on average over the answers, when everyone holds `most`.

    The variance is linear in an answer's share, and these are `most` in all: it is that of an answer of
    share most / size. How many people answer divides all variances alike. Reports are about a bit per
    answer; where that is too long, see `SeveralAnswers`.

    >>> best_for_several(1, size=1000, most=5).name, best_for_several(6, size=3, most=3).name
    ('set', 'unary_set')
    """
    candidates: tuple[FrequencyProtocol, ...] = (
        SetSelection.from_epsilon(epsilon, size=size, most=most),
        UnarySets.from_epsilon(epsilon, size=size, most=most),
        SeveralAnswers.from_epsilon(epsilon, size=size, most=most),
        SeveralAnswers.from_epsilon(epsilon, size=size, most=most, inner=UnaryEncoding.from_epsilon),
    )
    return min(candidates, key=lambda protocol: protocol.variance(Fraction(most, size), 1))
