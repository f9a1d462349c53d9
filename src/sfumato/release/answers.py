"""Answers: from noisy integers to the numbers that were asked for, and their intervals.

Everything here is post-processing: it sees noisy integers, public parameters of their noise, and
how each aggregate is answered from them (`aggregates.answer`). An interval covers the *bounded*
statistic, after clamping and capping, with the stated probability, each by itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.aggregates import moments
from sfumato.aggregates.answer import Answer
from sfumato.aggregates.dates import dates
from sfumato.aggregates.quantile_estimate import located
from sfumato.aggregates.quantiles import quantiles
from sfumato.aggregates.ratios import fieller
from sfumato.aggregates.registry import Function
from sfumato.aggregates.trees import Tree
from sfumato.analysis.bounded import Bounding
from sfumato.analysis.pricing import Cost
from sfumato.analysis.remainder_group import LABEL
from sfumato.analysis.selection import Selection
from sfumato.catalog.kind import Kind
from sfumato.core.noise_law import NoiseLaw
from sfumato.core.noise_sums import miss
from sfumato.errors import Unsupported
from sfumato.release.noise import NoisyGroups

__all__ = ["Added", "NoisyColumn", "NoisyTable", "tabulate"]

_COUNTS = (Function.COUNT_ROWS, Function.COUNT, Function.COUNT_DISTINCT, Function.COUNT_UNITS)
_RATIOS = {
    Function.AVG: moments.mean,
    Function.VAR_POP: moments.variance,
    Function.VAR_SAMP: moments.variance,
    Function.STDDEV_POP: moments.variance,
    Function.STDDEV_SAMP: moments.variance,
    Function.COVAR_POP: moments.covariance,
    Function.COVAR_SAMP: moments.covariance,
    Function.CORR: moments.correlation,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """The noise that one measure got in one grouping set."""

    measure: str
    grouping_set: int
    law: NoiseLaw
    levels: int = 1
    branching: int = 2
    quantile: Fraction | None = None  # one quantile was found: this one,
    row_rate: Fraction | None = None  # by a choice of this rate,
    anchor: NoiseLaw | None = None  # and the excess at its place has this noise


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NoisyColumn:
    """Values of one column, and the ends of their intervals; keys have none."""

    values: list[Any]
    low: list[Any]
    high: list[Any]


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
    noises: tuple[Added, ...]
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
        upper, lower = _linear(first), _linear(second)
        if upper is None or lower is None:
            return None
        parts = []
        for place, groups in enumerate(self.groups):
            names = list(dict.fromkeys([*upper, *lower]))
            one, far = np.ones(len(groups.keys)), np.full(len(groups.keys), np.inf)
            sums = {name: np.asarray(groups.measures[name], dtype=np.float64) for name in names}
            top = sum((weight * sums[name] for name, weight in upper.items()), 0 * one)
            bottom = sum((weight * sums[name] for name, weight in lower.items()), 0 * one)
            low, high = fieller(
                top,
                bottom,
                laws=[self.noise(name, place).law for name in names],
                weights=[(upper.get(name, 0.0) * one, -lower.get(name, 0.0) * one) for name in names],
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

    def noise(self, measure: str, place: int) -> Added:
        """Return the noise of a measure in a grouping set."""
        return next(each for each in self.noises if (each.measure, each.grouping_set) == (measure, place))

    def _answer(self, answer: Answer, place: int, level: float | None) -> NoisyColumn:
        groups, chance = self.groups[place], 0.0 if level is None else miss(level)
        added = [self.noise(measure, place) for measure in answer.measures]
        laws = [each.law for each in added]
        clip = self.non_negative
        match answer.function:
            case Function.HISTOGRAM:
                layers = groups.layers[answer.measures[0]]
                return _histogram(answer, layers, laws[0], level, clip)
            case Function.QUANTILE | Function.MIN | Function.MAX:
                layers = groups.layers[answer.measures[0]]
                quantile, rate = added[0].quantile, added[0].row_rate
                if quantile is None or rate is None:
                    found = quantiles(answer, layers, _tree(answer, added[0]), laws[0], chance)
                else:
                    found = [located(answer, layers, quantile, rate, added[0].anchor, laws[0], chance)]
                    found *= len(answer.quantiles)
                each = [_column(answer, estimate) for estimate in found]
                return _lists(each, len(groups.keys)) if answer.several else each[0]
        noisy = [groups.measures[measure] for measure in answer.measures]
        if answer.function in _RATIOS:
            return _column(answer, _RATIOS[answer.function](answer, noisy, laws, chance))
        if answer.function not in (*_COUNTS, Function.SUM):
            raise Unsupported(f"no answer is known for {answer.function.value}")
        if len(noisy) == 2:
            width = Fraction(0 if level is None else moments.half_width(answer, laws, chance))
            count, total = Fraction(answer.centre) * answer.weight, answer.scale
            sums = [n * count + s * total for n, s in zip(noisy[0].tolist(), noisy[1].tolist(), strict=True)]
            return _scaled(answer, sums, Fraction(1), width, clip)
        unit = answer.scale if answer.function is Function.SUM else answer.weight
        return _scaled(answer, noisy[0].tolist(), unit, _half_width(laws[0], level), clip)


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
        noises=tuple(
            Added(
                measure=noise.measure,
                grouping_set=noise.grouping_set,
                law=noise.law,
                levels=noise.levels,
                branching=noise.branching,
                quantile=None if noise.finding is None else noise.finding.quantile,
                row_rate=None if noise.finding is None else noise.finding.row_rate,
                anchor=None if noise.finding is None else noise.finding.anchor,
            )
            for noise in (*cost.noises, *cost.others)
        ),
        others=bounding.others,
        non_negative=non_negative,
        threshold=None if strictest is None else strictest.needed(),
        spread=None
        if strictest is None or not strictest.rounds
        else (strictest.most, strictest.needed(strictest.most)),
    )


def _linear(answer: Answer) -> dict[str, float] | None:
    """Return how much of each measure a count or a sum is, None for what is neither."""
    if answer.function in _COUNTS:
        return {answer.measures[0]: float(answer.weight)}
    if answer.function is not Function.SUM:
        return None
    *count, total = answer.measures
    return {**{name: answer.centre * float(answer.weight) for name in count}, total: float(answer.scale)}


def _tree(answer: Answer, added: Added) -> Tree:
    return Tree(
        cells=len(answer.edges) - 1 if answer.edges else len(answer.labels),
        levels=added.levels,
        branching=added.branching,
        variance=float(added.law.variance),
    )


def _scaled(
    answer: Answer, noisy: Sequence[int | Fraction], unit: Fraction, width: int | Fraction, clip: bool
) -> NoisyColumn:
    """Return exact numbers times a unit; ends of whole numbers are whole, and rounded outward."""
    n, d = unit.numerator, unit.denominator

    def real(value: int | Fraction) -> float:
        try:
            return float(value * n / d)  # one rounding, to the nearest float
        except OverflowError:
            return math.inf if value > 0 else -math.inf

    if answer.integer:
        values: list[Any] = [(2 * value * n + d) // (2 * d) for value in noisy]
        low: list[Any] = [(value - width) * n // d for value in noisy]
        high: list[Any] = [-(-(value + width) * n // d) for value in noisy]
    else:
        values = [real(value) for value in noisy]
        low, high = [real(value - width) for value in noisy], [real(value + width) for value in noisy]
    if clip:
        values, low, high = (_clipped(each, answer) for each in (values, low, high))
    return NoisyColumn(values=values, low=low, high=high)


def _half_width(law: NoiseLaw, level: float | None) -> int:
    return 0 if level is None else law.half_width(level)


def _clipped(values: list[Any], answer: Answer) -> list[Any]:
    least = answer.lower if answer.function is Function.SUM else max(0.0, answer.lower or 0.0)
    if least is not None:
        values = [max(value, math.ceil(least) if answer.integer else least) for value in values]
    if answer.upper is not None:
        most = answer.upper
        values = [min(value, math.floor(most) if answer.integer else most) for value in values]
    return values


def _histogram(
    answer: Answer,
    layers: tuple[npt.NDArray[Any], ...],
    law: NoiseLaw,
    level: float | None,
    clip: bool,
) -> NoisyColumn:
    """Return a list of counts per group; from one layer the noisy integers themselves."""
    if len(layers) != 1:
        raise Unsupported("a histogram whose cells are in several layers")
    width = _half_width(law, level)
    rows = [_scaled(answer, row, answer.weight, width, clip) for row in layers[0].tolist()]
    return NoisyColumn(
        values=[row.values for row in rows], low=[row.low for row in rows], high=[row.high for row in rows]
    )


def _column(answer: Answer, estimate: moments.Estimate) -> NoisyColumn:
    """Return Python numbers, None for NaN."""
    low, high = estimate.low.tolist(), estimate.high.tolist()
    values = [None if math.isnan(value) else value for value in estimate.values.tolist()]
    if answer.epoch is not None:
        return NoisyColumn(
            values=dates(answer.epoch, values),
            low=dates(answer.epoch, low),
            high=dates(answer.epoch, high, up=True),
        )
    if not answer.integer:
        return NoisyColumn(values=values, low=low, high=high)
    return NoisyColumn(
        values=[None if value is None else round(value) for value in values],
        low=[math.floor(value) if math.isfinite(value) else value for value in low],
        high=[math.ceil(value) if math.isfinite(value) else value for value in high],
    )


def _lists(columns: list[NoisyColumn], groups: int) -> NoisyColumn:
    return NoisyColumn(
        values=[[column.values[group] for column in columns] for group in range(groups)],
        low=[[column.low[group] for column in columns] for group in range(groups)],
        high=[[column.high[group] for column in columns] for group in range(groups)],
    )
