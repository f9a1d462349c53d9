"""Shared measurements: what several questions have in common is measured once, for all of them.

Each question is bounded and priced by itself, so that it is answered exactly as if it were asked alone.
Questions over the same rows, groups and caps then become one query: a measure that several of them ask
for (the same count in ten questions) is computed once and gets noise once, the least that any of them
needs, and keys are selected once.

Theorem (privacy): the event of a noise covers one measure over all groups that a unit is kept in, whatever
else is measured (`analysis.pricing`). So any choice of one noise per measure, and of one selection per
grouping set, costs at most the sum of the chosen events. Every chosen event is one of those that the
questions would cost alone, so together they cost at most what they cost one by one.
Theorem (answers): each question is answered from the noisy integers of its own measures, of which the
law is known, as it would be alone. The noise that a measure gets is the one of the least 95% half-width.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from sfumato.analysis.bounded import Bounding, Measure
from sfumato.analysis.pricing import Cost, Noise
from sfumato.catalog.canonical import fingerprint
from sfumato.core.steps import spend

__all__ = ["SharedQuery", "SharedUse", "share"]

_LEVEL = 0.95
_STEPS_PER_MEASURE = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedUse:
    """A query of a question that is answered from a shared one: what its measures are called there."""

    place: int  # among the queries that were given to `share`
    measures: Mapping[str, str]

    def cost(self, shared: Cost) -> Cost:
        """Return the noise of the query's own measures, under their own names."""
        spend(len(shared.noises) // 20)
        names = {there: here for here, there in self.measures.items()}
        noises = tuple(
            replace(noise, measure=names[noise.measure]) for noise in shared.noises if noise.measure in names
        )
        return replace(shared, noises=noises)


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedQuery:
    """One query that answers those of several questions."""

    bounding: Bounding
    cost: Cost
    uses: tuple[SharedUse, ...]


def share(asked: Sequence[tuple[Bounding, Cost]]) -> tuple[SharedQuery, ...]:
    """Return the queries that answer all of these; what they have in common is in one of them."""
    together: dict[object, list[int]] = {}
    for place, (bounding, cost) in enumerate(asked):
        together.setdefault(_rows_and_groups(bounding, cost, place), []).append(place)
    return tuple(_shared({place: asked[place] for place in places}) for places in together.values())


def _rows_and_groups(bounding: Bounding, cost: Cost, place: int) -> object:
    """Return what must be equal for two queries to be one: all but the measures.

    Keys are selected alike: by a number that is shown, by one that is not, or by weights. A remainder group
    depends on the groups that are shown, and one measure decides which group is chosen, so such questions
    stay by themselves.
    """
    if bounding.others or bounding.query.choice is not None:
        return place
    query = bounding.query
    rows = fingerprint(query=replace(query, measures=(), declared=None))
    selected = tuple((one.measure is None, one.row, bool(one.rounds)) for one in cost.selections)
    return rows, query.declared, bounding.select_keys, bounding.min_units, selected


def _shared(asked: Mapping[int, tuple[Bounding, Cost]]) -> SharedQuery:
    names: dict[str, str] = {}  # by what a measure is, what it is called
    measures: dict[str, Measure] = {}
    noises: dict[tuple[str, int], Noise] = {}
    uses = []
    for place, (bounding, cost) in asked.items():
        spend(_STEPS_PER_MEASURE * (1 + len(bounding.query.measures)) + len(cost.noises))
        noisy: dict[str, list[Noise]] = {}
        for noise in cost.noises:
            noisy.setdefault(noise.measure, []).append(noise)
        own = {}
        for measure in bounding.query.measures:
            found = noisy.get(measure.name, [])
            name = names.setdefault(_kind(measure, found), f"m{len(names)}")
            own[measure.name] = name
            measures.setdefault(name, replace(measure, name=name))
            for noise in found:
                at, here = (name, noise.grouping_set), replace(noise, measure=name)
                noises[at] = min(noises.get(at, here), here, key=_width)
        uses.append(SharedUse(place=place, measures=own))
    selections = []
    [(first, _), *_] = asked.values()
    for grouping_set in range(len(first.query.grouping_sets)):
        choices = [
            replace(one, measure=None if one.measure is None else use.measures[one.measure])
            for use in uses
            if (one := asked[use.place][1].selection(grouping_set)) is not None
        ]
        if choices:
            best = min(choices, key=lambda one: one.law.half_width(_LEVEL))
            selections.append(best)
            if best.measure is not None:  # its noisy value decides: it must be of the law of the selection
                deciding = _deciding(best.measure, grouping_set, best.law, asked, uses)
                noises[best.measure, grouping_set] = deciding
    keys = sum((one.delta for one in selections), Fraction(0))
    costs = [cost for _, cost in asked.values()]
    return SharedQuery(
        bounding=replace(first, query=replace(first.query, measures=tuple(measures.values())), answers=()),
        cost=replace(
            costs[0],
            noises=tuple(noises.values()),
            selections=tuple(selections),
            delta=costs[0].delta - costs[0].keys_delta + keys,
            keys_delta=keys,
            keys_limit=max(cost.keys_limit for cost in costs),
        ),
        uses=tuple(uses),
    )


def _deciding(
    name: str, at: int, law: object, asked: Mapping[int, tuple[Bounding, Cost]], uses: Sequence[SharedUse]
) -> Noise:
    """Return the noise of a measure that one of the questions has under this law."""
    return next(
        replace(noise, measure=name)
        for use in uses
        for noise in asked[use.place][1].noises
        if use.measures[noise.measure] == name and (noise.grouping_set, noise.law) == (at, law)
    )


def _kind(measure: Measure, noises: Sequence[Noise]) -> str:
    """Return what a measure is: its integers, and how noise is laid over them in each grouping set."""
    found = [None if one.finding is None else (one.finding.quantile, one.finding.intervals) for one in noises]
    shapes = [(one.levels, one.branching, one.choice is not None) for one in noises]
    return fingerprint(measure=replace(measure, name=""), found=found, shapes=shapes)


def _width(noise: Noise) -> tuple[int, Fraction]:
    return noise.law.half_width(_LEVEL), noise.law.variance
