"""Answers: from noisy integers to the numbers that were asked for, and their intervals.

Everything here is post-processing: it sees noisy integers, public parameters of their noise, and
how each aggregate is answered from them (`aggregates.answer`). An interval covers the *bounded*
statistic, after clamping and capping, with the stated probability, each by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.aggregates.answer import AddedNoise, Answer, NoisyColumn, NoisyMeasure
from sfumato.aggregates.ratios import fieller
from sfumato.analysis.bounded import Bounding
from sfumato.analysis.pricing import Cost
from sfumato.analysis.remainder_group import LABEL
from sfumato.analysis.selection import Selection
from sfumato.catalog.kind import Kind
from sfumato.core.noise_sums import miss
from sfumato.release.noise import NoisyGroups

__all__ = ["NoisyTable", "Origin", "tabulate"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """A result column is `expression`, SQL over x, of a column of a noisy table, or of two: column / over."""

    column: str
    expression: str = '"x"'
    over: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NoisyTable:
    """The noisy answer of one private question: key columns, then one column per aggregate.

    Grouping sets follow one another; keys that are not in a set are NULL in its rows. With
    `non_negative`, counts and sums are moved into the range that public facts leave them (a count
    is not below zero), and so are their intervals; they are then no longer unbiased.
    """

    name: str
    keys: tuple[tuple[str, Kind | None], ...]
    answers: tuple[Answer, ...]
    groups: tuple[NoisyGroups, ...]
    noises: tuple[AddedNoise, ...]
    non_negative: bool = False
    threshold: int | None = None  # groups were selected: shown if their noisy number of units is this or more
    others: bool = False  # the last row is everything else
    spread: tuple[int, int] | None = None  # by weights: or (of units in so many groups each, this or more)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of all columns."""
        return (*(name for name, _ in self.keys), *(answer.name for answer in self.answers))

    @property
    def sets(self) -> list[int]:
        """The place of each row's grouping set."""
        return [place for place, groups in enumerate(self.groups) for _ in groups.keys]

    def key(self, place: int) -> list[Any]:
        """Return the values of one key column."""
        values = [
            keys[groups.grouping_set.index(place)] if place in groups.grouping_set else None
            for groups in self.groups
            for keys in groups.keys
        ]
        if self.others and self.keys[place][1] is Kind.TEXT:
            values[-1] = LABEL
        return values

    def aggregate(self, answer: Answer, level: float | None = 0.95) -> NoisyColumn:
        """Return one aggregate's values and intervals of a level; None: values alone, ends mean nothing."""
        parts = [self._answer(answer, place, level) for place in range(len(self.groups))]
        return NoisyColumn(
            values=[value for part in parts for value in part.values],
            low=[value for part in parts for value in part.low],
            high=[value for part in parts for value in part.high],
        )

    def ratio(self, first: Answer, second: Answer, level: float) -> NoisyColumn | None:
        """Return the ratio of two counts or sums, which may share noise; None if one of them is neither.

        Fieller's interval, as for the mean; without ends where the second is not clear of its noise.
        """
        upper, lower = first.function.record.linear(first), second.function.record.linear(second)
        if upper is None or lower is None:
            return None
        parts = []
        for place, groups in enumerate(self.groups):
            names = list(dict.fromkeys([*upper, *lower]))
            one, far = np.ones(len(groups.keys)), np.full(len(groups.keys), np.inf)
            sums = {name: np.asarray(groups.measures[name], dtype=np.float64) for name in names}
            top = sum((float(weight) * sums[name] for name, weight in upper.items()), 0 * one)
            bottom = sum((float(weight) * sums[name] for name, weight in lower.items()), 0 * one)
            low, high = fieller(
                top,
                bottom,
                laws=[self.noise(name, place).law for name in names],
                weights=[
                    (float(upper.get(name, 0)) * one, -float(lower.get(name, 0)) * one) for name in names
                ],
                low=-far,
                high=far,
                chance=miss(level),
            )
            parts.append((low.tolist(), high.tolist()))
        return NoisyColumn(
            values=[],
            low=[end for low, _ in parts for end in low],
            high=[end for _, high in parts for end in high],
        )

    def noise(self, measure: str, place: int) -> AddedNoise:
        """Return the noise of a measure in a grouping set."""
        return next(each for each in self.noises if (each.measure, each.grouping_set) == (measure, place))

    def _answer(self, answer: Answer, place: int, level: float | None) -> NoisyColumn:
        groups = self.groups[place]
        noisy = [
            NoisyMeasure(
                noise=self.noise(name, place),
                sums=groups.measures.get(name),
                layers=groups.layers.get(name, ()),
            )
            for name in answer.measures
        ]
        return answer.function.record.answered(answer, noisy, level, non_negative=self.non_negative)


def tabulate(
    name: str,
    noisy: tuple[NoisyGroups, ...],
    bounding: Bounding,
    cost: Cost,
    *,
    non_negative: bool = False,
) -> NoisyTable:
    """Return the noisy table of a question, with all that its intervals need."""
    strictest = max(cost.selections, key=Selection.needed, default=None)
    return NoisyTable(
        name=name,
        keys=tuple((key, expression.kind) for key, expression in bounding.query.keys),
        answers=bounding.answers,
        groups=noisy,
        noises=tuple(noise.added for noise in (*cost.noises, *cost.others)),
        others=bounding.others,
        non_negative=non_negative,
        threshold=None if strictest is None else strictest.needed(),
        spread=None
        if strictest is None or not strictest.rounds
        else (strictest.most, strictest.needed(strictest.most)),
    )
