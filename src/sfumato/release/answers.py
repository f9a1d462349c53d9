"""Answers: from noisy integers to the numbers that were asked for, and their intervals.

Everything here is post-processing: it sees noisy integers, public parameters of their noise, and
how each aggregate is answered from them (`aggregates.answer`). An interval covers the *bounded*
statistic, after clamping and capping, with the stated probability, each by itself.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.aggregates.answer import AddedNoise, Answer, NoisyColumn, NoisyMeasure
from sfumato.aggregates.columns import dates
from sfumato.aggregates.ratios import fieller
from sfumato.analysis.basis import Basis, basis_of
from sfumato.analysis.bounded import Bounding
from sfumato.analysis.pricing import Cost
from sfumato.analysis.remainder_group import LABEL
from sfumato.analysis.selection import Selection
from sfumato.catalog.kind import Kind
from sfumato.core.noise_sums import miss
from sfumato.plan.options import DEFAULT_OPTIONS, Options
from sfumato.release.noise import NoisyGroups

__all__ = [
    "NoisyTable",
    "Origin",
    "helpful_factor",
    "informative",
    "rows_flagged",
    "says_nothing",
    "tabulate",
]

_FACTORS = (2, 3, 5, 10, 20, 30, 50, 100)
_MOST_ROWS = 10_000  # of a table for which help is looked for, again and again
_SLACK = 1e-9  # of the range: ends are moved by rounding


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """A result column is `expression`, SQL over x, of a column of a noisy table, or of two: column / over.

    With `item`, each row shows one item of a list: `Release.items` says which.
    """

    column: str
    expression: str = '"x"'
    over: str | None = None
    item: bool = False


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
    selected: str | None = None  # groups were selected: what was asked of their noisy numbers, in words
    others: bool = False  # the last row is everything else
    unknown: tuple[str, ...] = ()  # aggregates whose bounds could not be found: NULL
    correlated: bool = False  # numbers of one row are sums of some of the same noisy ones
    basis: Basis | None = None  # what it was measured from, where no group can be missing
    _places: dict[tuple[str, int], AddedNoise] = field(default_factory=dict, init=False, repr=False)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of all columns."""
        return (*(name for name, _ in self.keys), *(answer.name for answer in self.answers))

    @property
    def consistent(self) -> bool:
        """Whether the answers of all grouping sets were made to add up."""
        return any(groups.fitted is not None for groups in self.groups)

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
        if answer.name in self.unknown:
            nothing: list[Any] = [None for _ in self.sets]
            return NoisyColumn(values=nothing, low=nothing, high=nothing)
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
        if upper is None or lower is None or self.consistent or self.correlated:
            return None  # estimates that add up are correlated, and so are sums of the same cells
        parts = []
        for place, groups in enumerate(self.groups):
            names = list(dict.fromkeys([*upper, *lower]))
            each = [name for name in names for _ in range(self.noise(name, place).times)]
            one, far = np.ones(len(groups.keys)), np.full(len(groups.keys), np.inf)
            sums = {name: np.asarray(groups.measures[name], dtype=np.float64) for name in names}
            top = sum((float(weight) * sums[name] for name, weight in upper.items()), 0 * one)
            bottom = sum((float(weight) * sums[name] for name, weight in lower.items()), 0 * one)
            low, high = fieller(
                top,
                bottom,
                laws=[self.noise(name, place).law for name in each],
                weights=[
                    (float(upper.get(name, 0)) * one, -float(lower.get(name, 0)) * one) for name in each
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
        if not self._places:
            self._places.update({(one.measure, one.grouping_set): one for one in reversed(self.noises)})
        return self._places[measure, place]

    def shown_as(self, options: Options) -> NoisyTable:
        """Return the same noisy numbers, to be shown as a question says: that costs nothing."""
        return replace(self, non_negative=options.non_negative)

    def _answer(self, answer: Answer, place: int, level: float | None) -> NoisyColumn:
        groups = self.groups[place]
        noisy = [
            NoisyMeasure(
                noise=self.noise(name, place),
                fitted=None if groups.fitted is None else groups.fitted[name],
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
    options: Options = DEFAULT_OPTIONS,
    unknown: tuple[str, ...] = (),
) -> NoisyTable:
    """Return the noisy table of a question, with all that its intervals need, shown as options say."""
    strictest = max(cost.selections, key=Selection.needed, default=None)
    return NoisyTable(
        name=name,
        keys=tuple((key, expression.kind) for key, expression in bounding.query.keys),
        answers=bounding.answers,
        groups=noisy,
        noises=tuple(noise.added for noise in (*cost.noises, *cost.others)),
        others=bounding.others,
        unknown=unknown,
        selected=None if strictest is None else strictest.condition,
        basis=None if unknown else basis_of(bounding),
    ).shown_as(options)


# -- which answers say nothing, because their intervals cover all that the answers could be --------------


def says_nothing(
    table: NoisyTable, answer: Answer, column: NoisyColumn, *, share: float = 1.0
) -> list[bool | list[bool]]:
    """Return for each row whether its interval is at least `share` of all that the answer could be.

    It is so for no answer without a public range, such as a count, and for a quantile around which nothing
    was measured, since that was asked for. A list of quantiles has a list of flags.
    """
    ends = _range(table, answer)
    return [
        [_wide(a, b, ends, share) for a, b in zip(low, high, strict=True)]
        if isinstance(low, list)
        else _wide(low, high, ends, share)
        for low, high in zip(column.low, column.high, strict=True)
    ]


def rows_flagged(flags: Sequence[Any]) -> list[int]:
    """Return the rows that are flagged, in some item if they have several.

    >>> rows_flagged([True, False, [False, True], None])
    [0, 2]
    """
    return [row for row, flag in enumerate(flags) if (any(flag) if isinstance(flag, list) else flag)]


def informative(value: Any, nothing: Any) -> Any:
    """Return a value, or None where it is flagged; of a list item by item.

    >>> informative([1.5, 2.5], [False, True])
    [1.5, None]
    """
    if isinstance(value, list) and isinstance(nothing, list):
        return [informative(item, flag) for item, flag in zip(value, nothing, strict=True)]
    return None if nothing is True else value


def helpful_factor(
    table: NoisyTable, answer: Answer, rows: Sequence[int], level: float
) -> tuple[int, int] | None:
    """Return about how many times the epsilon would help, and in how many of these rows it would.

    It helps where an interval becomes at most half as wide as all that the answer could be. The noisy
    integers stay, and the noise around them shrinks: so the same question would be answered with more
    epsilon, if these integers were exact. None: not even a hundred times the epsilon would help.
    """
    best: tuple[int, int] | None = None
    for factor in _FACTORS if len(table.sets) <= _MOST_ROWS else ():
        sharper = replace(table, noises=tuple(_sharper(noise, factor) for noise in table.noises))
        flags = says_nothing(sharper, answer, sharper.aggregate(answer, level), share=0.5)
        helped = len(rows) - len(rows_flagged([flags[row] for row in rows]))
        if helped > (0 if best is None else best[1]):
            best = factor, helped
        if helped == len(rows):
            break
    return best


def _range(table: NoisyTable, answer: Answer) -> tuple[Any, Any] | None:
    """Return between which ends an answer lies for public reasons, None if they are not known."""
    if answer.function.record.ranks:
        [name] = answer.measures
        found = table.noise(name, 0).quantile is not None
        if found and all(len(groups.layers[name]) == 1 for groups in table.groups):
            return None
        ends = (answer.edges[0], answer.edges[-2 if answer.points else -1])
    elif answer.lower is not None and answer.upper is not None:
        ends = (answer.lower, answer.upper)
    else:
        return None
    if ends[0] >= ends[1]:
        return None
    if answer.epoch is not None:
        return dates(answer.epoch, ends[:1])[0], dates(answer.epoch, ends[1:])[0]
    return ends


def _wide(low: Any, high: Any, ends: tuple[Any, Any] | None, share: float) -> bool:
    if low is None or high is None:
        return False
    if ends is None:
        numbers = not isinstance(low, datetime.date)
        return numbers and math.isinf(low) and math.isinf(high)
    return bool((high - low) / (ends[1] - ends[0]) >= share * (1 - _SLACK))


def _sharper(noise: AddedNoise, factor: int) -> AddedNoise:
    rate, anchor = noise.row_rate, noise.anchor
    return replace(
        noise,
        law=noise.law.scaled(Fraction(1, factor)),
        row_rate=None if rate is None else rate * factor,
        anchor=None if anchor is None else anchor.scaled(Fraction(1, factor)),
    )
