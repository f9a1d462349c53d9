"""Whole sets of answers in one report: where each person may hold several of them.

`SetSelection` draws a few answers that meet the person's set more often than they should; `UnarySets`
randomises a bit for every answer; `SeveralAnswers` reports about one of the own answers, by padding and
sampling. `best_for_several` says which is better where.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from sfumato.core.arguments import Number, count
from sfumato.core.coins import bernoulli
from sfumato.core.search import minimum
from sfumato.errors import InvalidArgument
from sfumato.local.answers import AnswerSets, Sets, uniform_each
from sfumato.local.arrays import Array
from sfumato.local.ballots import ChosenBallot, CoinBallot, SubsetSelection, UnaryEncoding
from sfumato.local.bits import bytes_for, coin_bits, put_bits, uniform_subsets
from sfumato.local.odds import check_odds, odds_of
from sfumato.local.protocol import DerivedProtocol, FrequencyProtocol
from sfumato.local.response import KaryResponse
from sfumato.local.stages import TwoStage

__all__ = ["SetSelection", "SeveralAnswers", "UnarySets", "best_for_several"]


def _most_of(most: int, size: int) -> int:
    """Read how many of `size` answers a person may hold."""
    if count(most, "most") > count(size, "size", most=2**62):
        raise InvalidArgument(
            "most must be at most the number of answers", place="most", hints=(f"give {size} or less",)
        )
    return most


@dataclass(frozen=True, slots=True, kw_only=True)
class SetSelection(ChosenBallot):
    """A set of `chosen` places weighs `odds` if it meets the person's own set, else 1; it is drawn by weight.

    There are size + most places: the answers, and dummies that fill up smaller sets. Of whoever holds more
    than `most` answers, a uniformly random part of that number counts; what is cut is lost to the
    estimates, which then say how many people *reported about* an answer.

    A phone does:
    1. lists its answers (of more than `most`, as many in random order), and then dummies from
       size + (how many answers) on, `most` places in all;
    2. for r = most, ..., 1, with the next place of the list: draws a coin of chance c(r); heads, the
       report begins with that place, and step 2 ends; tails, the place is struck out;
    3. draws integers below size + most, and adds each that was not met in step 2 and is not there
       already, until there are `chosen` places;
    4. sets their bits.

    Theorem: all sets that meet the own one are equally likely, so are all others, and the ratio between the
    two kinds is the odds (Wang et al. 2018, PrivSet). Given that places were struck out, r own ones and
    `size` others are left, of which a uniform set misses the own ones with a chance of
    miss(r) = (size + 1 - chosen) ... (size + r - chosen) / ((size + 1) ... (size + r)); it holds
    the next one with a chance of chosen / (size + r), which the odds make
    c(r) = odds chosen / ((size + r) (odds (1 - miss(r)) + miss(r))), the r-th of `chances()`.

    With most = 1 this is subset selection with one dummy; with chosen = 1, k-ary response to a random one
    of the own places. The variance grows as most, not as its square, where epsilon is small.

    >>> protocol = SetSelection.from_epsilon(1, size=1000, most=5)
    >>> protocol.chosen, round(protocol.variance(0, 1), 1)
    (52, 20.5)
    """

    size: int
    most: int
    odds: Fraction
    chosen: int

    name: ClassVar[str] = "set"

    def __post_init__(self) -> None:
        _most_of(self.most, self.size)
        check_odds(self.odds, "a set that is met must be likelier than one that is not")
        self._check_chosen()

    @classmethod
    def from_epsilon(cls, epsilon: Number, *, size: int, most: int) -> SetSelection:
        """Return the protocol of least variance, on average over the answers, when everyone holds `most`."""
        odds = odds_of(epsilon)
        limit = (count(size, "size", most=2**62) + 1) // 2
        steps = np.arange(1, _most_of(most, size) + 1)

        def spread(chosen: float) -> float:
            # In floats: it decides how good the estimate is, and nothing else.
            e, share, held = float(odds), chosen / (size + most), most / size
            miss = float(np.exp(np.log1p(-chosen / (size + steps)).sum()))
            other = float(np.exp(np.log1p(-(chosen - 1) / (size - 1 + steps)).sum()))
            weight = e * (1 - miss) + miss
            p, q = share * e / weight, share * (e * (1 - other) + other) / weight
            gap = (e - 1) * share * other / weight
            return (held * p * (1 - p) + (1 - held) * q * (1 - q)) / gap**2

        near = int(minimum(spread, 1.0, float(limit), tolerance=0.25)) if limit > 1 else 1
        chosen = min(range(max(1, near - 2), min(limit, near + 3) + 1), key=spread)
        return cls(size=size, most=most, odds=odds, chosen=chosen)

    def chances(self) -> list[Fraction]:
        """Return the chances of step 2, with 1, ..., most own places that are not struck out."""
        miss, found = Fraction(1), []
        for r in range(1, self.most + 1):
            miss *= Fraction(self.size + r - self.chosen, self.size + r)
            found.append(self.odds * self.chosen / ((self.size + r) * (self.odds * (1 - miss) + miss)))
        return found

    @property
    def max_ratio(self) -> Fraction:
        """The exact e^epsilon: some report meets one set of answers, and misses another."""
        return self.odds

    @property
    def p(self) -> Fraction:
        """The chance that an answer of the own set is chosen."""
        return self.chances()[-1]

    @property
    def q(self) -> Fraction:
        """The chance that another one is: with it in the report, the own ones are met or missed."""
        miss = Fraction(1)
        for r in range(1, self.most + 1):
            miss *= Fraction(self.size + r - self.chosen, self.size + r - 1)
        return self.p * (self.odds * (1 - miss) + miss) / self.odds

    @property
    def message_bits(self) -> int:
        """A bit per answer and dummy."""
        return self.size + self.most

    def randomise(self, answers: Sets) -> dict[str, Array]:
        """Return one report per person."""
        own = AnswerSets.read(answers, size=self.size).at_most(self.most).padded(self.most, size=self.size)
        rows = np.arange(len(own))
        met = np.full(len(own), -1, dtype=np.int64)
        struck = np.zeros((len(own), bytes_for(self.message_bits)), dtype=np.uint8)
        for step, chance in enumerate(reversed(self.chances())):
            put_bits(struck, rows, own[rows, step], np.ones(len(rows), dtype=np.bool_))
            heads = bernoulli(chance, size=len(rows))
            met[rows[heads]] = own[rows[heads], step]
            rows = rows[~heads]
        hit = np.flatnonzero(met >= 0)
        packed = uniform_subsets(struck, self.message_bits, self.chosen - (met >= 0).astype(np.int64))
        put_bits(packed, hit, met[hit], np.ones(len(hit), dtype=np.bool_))
        return {"bits": packed}


@dataclass(frozen=True, slots=True, kw_only=True)
class UnarySets(CoinBallot):
    """A bit for every answer: set with chance `own` where the person holds it, else with chance `other`.

    Of whoever holds more than `most` answers, a uniformly random part of that number counts.

    A phone does, for each answer of the survey in turn:
    1. take own = a/b where it holds the answer, and other = a/b where it does not;
    2. draw an integer below b;
    3. set the answer's bit if it is below a.

    Theorem: an answer that only the first of two sets holds changes a report's probability by a factor of
    at most own / other, one that only the second holds by (1 - other) / (1 - own). Either set holds at most
    `most`, and together they hold at most `size`, answers that the other lacks: the largest ratio takes as
    many as it can of the dearer kind, the rest of the other, and is reached.

    The variance grows as the square of `most`. It wins with few answers and a large epsilon, and where
    most people hold most answers.

    >>> UnarySets(size=9, most=2, own=Fraction(2, 3), other=Fraction(1, 3)).max_ratio
    Fraction(16, 1)
    """

    size: int
    most: int
    own: Fraction
    other: Fraction

    name: ClassVar[str] = "unary_set"

    def __post_init__(self) -> None:
        _most_of(self.most, self.size)
        self._check_chances()

    def _held(self) -> int:
        return self.most

    @classmethod
    def from_epsilon(
        cls, epsilon: Number, *, size: int, most: int, symmetric: bool | None = None
    ) -> UnarySets:
        """Return the symmetric or the optimised encoding; unless said, the one of less variance.

        Theorem: sets differ in at most min(2 most, size) bits, and each costs the symmetric encoding
        the same; an exchange of one answer for another costs the optimised one, and there are `most`.
        Rounds: down.
        """
        _most_of(most, size)
        if symmetric is None:
            both = [cls.from_epsilon(epsilon, size=size, most=most, symmetric=kind) for kind in (True, False)]
            share = Fraction(int(most), int(size))  # integers of numpy overflow in a fraction
            return min(both, key=lambda kind: kind.variance(share, 1))
        if symmetric:
            root = odds_of(epsilon, min(2 * most, size))
            return cls(size=size, most=most, own=root / (root + 1), other=1 / (root + 1))
        part = odds_of(epsilon, most)
        return cls(size=size, most=most, own=Fraction(1, 2), other=1 / (part + 1))

    @property
    def max_ratio(self) -> Fraction:
        """The exact e^epsilon of one report."""
        gained, lost = self.own / self.other, (1 - self.other) / (1 - self.own)
        rest = min(self.most, self.size - self.most)
        return Fraction(max(gained, lost) ** self.most * min(gained, lost) ** rest)

    def randomise(self, answers: Sets) -> dict[str, Array]:
        """Return one report per person."""
        sets = AnswerSets.read(answers, size=self.size).at_most(self.most)
        packed = coin_bits(self.other, len(sets.lengths), self.size)
        heads = bernoulli(self.own, size=len(sets.values))
        put_bits(packed, sets.owners, sets.values, heads)
        return {"bits": packed}


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

    >>> from sfumato.local import KaryResponse
    >>> protocol = SeveralAnswers(size=10, most=2, inner=KaryResponse.from_epsilon(1, size=12))
    >>> round(protocol.epsilon, 6)
    0.620115
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
        if self.inner.size != self.size + _most_of(self.most, self.size):
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
        return cls(size=size, most=most, inner=inner(epsilon, size=size + _most_of(most, size)))

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
