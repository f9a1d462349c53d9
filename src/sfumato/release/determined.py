"""Determined answers: a question that a released table determines is post-processing, and free.

A table of declared groups determines sums of its cells: the tables of fewer of its keys, the total, and what
is left by conditions on its keys alone. Any question about the very same groups and caps is determined, too.

Theorem: what is computed here is a function of noisy integers that were published, of the question and of
public tables; so it costs nothing (post-processing).
Theorem (what it covers): let each unit be in one cell at most, with the weight of one row. A row whose keys
are on their lists is in one cell; whether it satisfies a condition on the keys, and in which group of the
question it is, are the same for all rows of the cell. So the bounded sum of a group is the sum of those of
its cells, and its noise is the sum of their independent noises. Where units may have several rows, the one
that counts is the one that counted when the table was released. A row of which a key that is summed over
is NULL or not on its list is in no cell, and so in no sum: `Determined.left_out` names these keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sfumato.aggregates.answer import AddedNoise, Answer
from sfumato.analysis.basis import Basis, PlanHashes, shows_all
from sfumato.analysis.bounded import Bounding, Measure, MeasureKind
from sfumato.analysis.public_keys import PublicTables
from sfumato.catalog.kind import Kind
from sfumato.core.steps import spend
from sfumato.plan.conditions import conjunction, conjuncts, kept
from sfumato.plan.tree import Call, Case, Cast, ColumnRef, Expression, Listed, Literal
from sfumato.release.answers import NoisyTable
from sfumato.release.noise import NoisyGroups, key_order

__all__ = ["Derivation", "Determined", "NotDetermined", "SummedCells", "determined"]

_MOST_LAWS = 4096  # noises of one number that are added up one by one
_ONE, _ZERO = (Literal(value=value, kind=Kind.INTEGER) for value in (1, 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Determined:
    """A question's noisy table that follows from a released one."""

    table: NoisyTable
    left_out: tuple[str, ...] = ()  # keys of the released table that are summed over
    several_rows: bool = False  # a unit may have several rows, of which one counts


@dataclass(frozen=True, slots=True, kw_only=True)
class SummedCells:
    """The groups of one grouping set of a question, and the places of the cells that each is a sum of."""

    grouping_set: tuple[int, ...]
    keys: tuple[tuple[Any, ...], ...]
    places: Mapping[str, list[list[int]]]  # by measure, of each group


class NotDetermined(Exception):
    """The table does not say."""


def determined(
    name: str, bounding: Bounding, released: NoisyTable, tables: PublicTables
) -> Determined | None:
    """Return the table of a question that a released table determines, None if it does not."""
    if released.basis is None or released.selected is not None or released.others:
        return None
    try:
        hashes = PlanHashes.of(bounding.query)
        return Derivation(name, bounding, released, released.basis, hashes, tables).found()
    except NotDetermined:
        return None


@dataclass(frozen=True, slots=True)
class Derivation:
    """A question, and a released table that may determine its answer."""

    name: str
    bounding: Bounding
    released: NoisyTable
    basis: Basis
    hashes: PlanHashes
    tables: PublicTables

    def found(self) -> Determined:
        """Return the table of the question."""
        more = self.further_conditions()
        if not more and self._caps == self.basis.caps and self._same_groups():
            with suppress(NotDetermined):
                return Determined(table=self._same_cells())
        self.check_one_cell()
        return self._summed(more)

    @property
    def _caps(self) -> tuple[int | None, ...]:
        query = self.bounding.query
        return query.max_groups, query.max_rows, query.max_total

    def further_conditions(self) -> list[Expression]:
        """Return the conditions of the question that the released table has not."""
        if not shows_all(self.bounding) or self.hashes.rows != self.basis.rows:
            raise NotDetermined
        hashed = {self.hashes.hash(one): one for one in self.hashes.conditions}
        if not hashed.keys() >= set(self.basis.conditions):
            raise NotDetermined  # the table is about fewer rows
        return [one for own, one in hashed.items() if own not in self.basis.conditions]

    def check_one_cell(self) -> None:
        """Refuse where a unit may be in several cells, or with several rows: sums are then of other rows."""
        if not (_one_cell(self._caps) and _one_cell(self.basis.caps)):
            raise NotDetermined

    def _same_groups(self) -> bool:
        query = self.bounding.query
        if tuple(self.hashes.hash(key) for _, key in query.keys) != self.basis.keys:
            return False
        sets = tuple(groups.grouping_set for groups in self.released.groups)
        if sets != query.grouping_sets:
            return False
        spend(len(sets) * len(query.declared or ()) // 20)
        return all(
            set(groups.keys) == {tuple(key[at] for at in groups.grouping_set) for key in query.declared or ()}
            for groups in self.released.groups
        )

    # -- the same groups, and perhaps other aggregates of the same measures ------------------------

    def _same_cells(self) -> NoisyTable:
        names = {}
        for measure in self.bounding.query.measures:
            names[measure.name], conditions = self.source(measure)
            if conditions:
                raise NotDetermined
        noises = tuple(
            replace(self.released.noise(there, place), measure=here)
            for here, there in names.items()
            for place in range(len(self.released.groups))
        )
        if not all(self._read_alike(answer, names) for answer in self.bounding.answers):
            raise NotDetermined
        return self.table(tuple(groups.renamed(names) for groups in self.released.groups), noises)

    def _read_alike(self, answer: Answer, names: Mapping[str, str]) -> bool:
        """Return whether what is known of a histogram is what an answer is read off.

        Of a tree all quantiles can be; where one was found, or one cell chosen, nothing else is known.
        """
        there = {names[name] for name in answer.measures}
        if not any(name in groups.layers for name in there for groups in self.released.groups):
            return True
        tree = all(self.released.noise(name, 0).row_rate is None for name in there)
        return any(
            one.function is answer.function and (tree or one.quantiles == answer.quantiles)
            for one in self.released.answers
            if there == set(one.measures)
        )

    def source(self, measure: Measure) -> tuple[str, list[Expression]]:
        """Return the released measure of which this one is a sum over cells, and over which: conditions."""
        conditions = conjuncts(measure.condition)
        found, wanted = {self.hashes.hash(one) for one in conditions}, self.hashes.measure(measure)
        known = [
            (len(found) - len(own), self.released.noise(name, 0).deviation, name, own)
            for name, (what, own) in self.basis.measures.items()
            if what == wanted and found >= set(own)
        ]
        if not known:
            raise NotDetermined
        *_, name, own = min(known)
        return name, [one for one in conditions if self.hashes.hash(one) not in own]

    # -- sums of cells -----------------------------------------------------------------------------

    def _summed(self, conditions: Sequence[Expression]) -> Determined:
        released = self.released
        finest, sources, sums = self.summed_cells(conditions)
        groups, noises = [], []
        for place, one in enumerate(sums):
            groups.append(_sums(one, sources, released.groups[finest].measures))
            for name, source in sources.items():
                times = max(1, *map(len, one.places[name]))
                noises.append(_noise_of_sum(released.noise(source, finest), name, place, times))
        self._check_answers(noises)
        table = self.table(tuple(groups), tuple(noises))
        return Determined(
            table=replace(table, correlated=len(set(sources.values())) < len(sources)),
            left_out=self.left_out(finest, conditions),
            several_rows=self.several_rows,
        )

    def summed_cells(
        self, conditions: Sequence[Expression]
    ) -> tuple[int, dict[str, str], tuple[SummedCells, ...]]:
        """Return the finest grouping set, the source of each measure, and the cells that are summed."""
        query, released = self.bounding.query, self.released
        finest = next(
            (
                place
                for place, groups in enumerate(released.groups)
                if len(set(groups.grouping_set)) == len(released.keys)
            ),
            None,
        )
        if finest is None or not released.keys:
            raise NotDetermined
        sources: dict[str, str] = {}
        flags: dict[str, Expression] = {}
        for measure in query.measures:
            if measure.kind not in (MeasureKind.MOMENT, MeasureKind.UNITS) or measure.clamp is not None:
                raise NotDetermined  # it does not add up
            sources[measure.name], own = self.source(measure)
            condition = conjunction([self.over_keys(one) for one in own])
            if condition is not None:
                flags[measure.name] = Case(branches=((condition, _ONE),), otherwise=_ZERO, kind=Kind.INTEGER)
        cells = self._cells(finest, [self.over_keys(one) for one in conditions], flags)
        picked = (self._picked(chosen, cells, list(sources), list(flags)) for chosen in query.grouping_sets)
        return finest, sources, tuple(picked)

    @property
    def several_rows(self) -> bool:
        """Whether a unit may have several rows, of which one counts."""
        query = self.bounding.query
        return not query.row_unit and query.max_rows is not None and self.basis.caps[0] is not None

    def left_out(self, finest: int, conditions: Sequence[Expression]) -> tuple[str, ...]:
        """Return the keys that are summed over: rows of which one is not listed are in no cell."""
        told = {self.hashes.hash(key) for _, key in self.bounding.query.keys}
        told |= set(self._listed(finest, conditions))
        pairs = zip(self.basis.names, self.basis.keys, strict=True)
        return tuple(name for name, own in pairs if own not in told)

    def _listed(self, finest: int, conditions: Sequence[Expression]) -> Iterator[str]:
        """Yield the keys that conditions say to be one of their listed values."""
        groups = self.released.groups[finest]
        for condition in conditions:
            if not isinstance(condition, Call) or condition.function not in ("=", "in"):
                continue
            key, *others = condition.arguments
            values = {one.value for one in others if isinstance(one, Literal)}
            for place, own in enumerate(self.basis.keys):
                spend(1 + len(groups.keys) // 20)
                at = groups.grouping_set.index(place)
                known = {keys[at] for keys in groups.keys}
                if own == self.hashes.hash(key) and len(values) == len(others) and values <= known:
                    yield own

    def _cells(
        self, finest: int, conditions: list[Expression], flags: Mapping[str, Expression]
    ) -> list[tuple[int, tuple[Any, ...], tuple[Any, ...]]]:
        """Return the cells that satisfy conditions: place, group of the question, and flags of measures."""
        columns, query = self._columns(), self.bounding.query
        groups = self.released.groups[finest]
        spend(len(groups.keys) * (len(columns) + len(query.keys) + len(flags) + 1) // 10)
        order = [groups.grouping_set.index(place) for place in range(len(columns))]
        listed = tuple(tuple(key[at] for at in order) for key in groups.keys)
        places = {key: place for place, key in enumerate(listed)}
        keys = [self.over_keys(key) for _, key in query.keys]
        wanted = [*columns.values(), *keys, *flags.values()]
        source = kept(Listed(columns=tuple(columns.values()), rows=listed), conditions)
        found = self.tables.public_keys(source, wanted, len(listed))
        if found is None:
            raise NotDetermined
        width, cells = len(columns), []
        for row in found:
            if row[:width] not in places:
                raise NotDetermined
            asked = row[width : width + len(keys)]
            cells.append((places[row[:width]], asked, row[width + len(keys) :]))
        return cells

    def _picked(
        self,
        chosen: tuple[int, ...],
        cells: list[tuple[int, tuple[Any, ...], tuple[Any, ...]]],
        measures: list[str],
        flagged: list[str],
    ) -> SummedCells:
        """Return which cells each group of one grouping set is a sum of."""
        query = self.bounding.query
        spend((len(query.declared or ()) + len(cells) * (1 + len(measures))) // 10)
        declared = set(query.declared or ())
        members: dict[tuple[Any, ...], list[tuple[int, tuple[Any, ...]]]] = {
            tuple(key[at] for at in chosen): [] for key in query.declared or ()
        }
        for place, asked, flags in cells:
            if asked in declared:
                members[tuple(asked[at] for at in chosen)].append((place, flags))
        if not all(members.values()):
            raise NotDetermined  # a group of which no cell was released
        keys = sorted(members, key=key_order)
        places = {}
        for name in measures:
            at = flagged.index(name) if name in flagged else None
            places[name] = [
                [place for place, flags in members[key] if at is None or flags[at]] for key in keys
            ]
        return SummedCells(grouping_set=chosen, keys=tuple(keys), places=places)

    def _columns(self) -> dict[str, ColumnRef]:
        """Return, by the hash of each key of the released table, the column that holds it."""
        if any(kind is None for _, kind in self.released.keys):
            raise NotDetermined
        pairs = zip(self.basis.keys, self.released.keys, strict=True)
        return {
            own: ColumnRef(name=f"cell.k{place}", kind=kind)
            for place, (own, (_, kind)) in enumerate(pairs)
            if kind is not None
        }

    def over_keys(self, expression: Expression) -> Expression:
        """Return an expression over the keys of the released table, if it reads nothing else."""
        if (column := self._columns().get(self.hashes.hash(expression))) is not None:
            return column
        match expression:
            case Literal():
                return expression
            case Call(arguments=arguments):
                return replace(expression, arguments=tuple(self.over_keys(one) for one in arguments))
            case Case(branches=branches, otherwise=otherwise):
                over = tuple((self.over_keys(a), self.over_keys(b)) for a, b in branches)
                return replace(expression, branches=over, otherwise=self.over_keys(otherwise))
            case Cast(operand=operand):
                return replace(expression, operand=self.over_keys(operand))
        raise NotDetermined

    def _check_answers(self, noises: Sequence[AddedNoise]) -> None:
        """Refuse an answer that is no sum of its measures where the law of their noise has no form."""
        times = {noise.measure: noise.times for noise in noises}
        for answer in self.bounding.answers:
            summed = max(times[name] for name in answer.measures)
            linear = answer.function.record.linear(answer) is not None
            if summed > 1 and not (linear and summed <= _MOST_LAWS):
                raise NotDetermined

    def table(self, groups: tuple[NoisyGroups, ...], noises: tuple[AddedNoise, ...]) -> NoisyTable:
        """Return the question's table with these numbers."""
        return NoisyTable(
            name=self.name,
            keys=tuple((name, key.kind) for name, key in self.bounding.query.keys),
            answers=self.bounding.answers,
            groups=groups,
            noises=noises,
        )


def _sums(
    cells: SummedCells, sources: Mapping[str, str], values: Mapping[str, np.ndarray[Any, Any]]
) -> NoisyGroups:
    """Return the groups of one grouping set, as sums of cells."""
    measures = {}
    for name, source in sources.items():
        numbers = values[source].tolist()
        sums = [sum(numbers[place] for place in own) for own in cells.places[name]]
        fits = all(abs(one) < 2**63 for one in sums)
        measures[name] = np.array(sums, dtype=np.int64 if fits else object)
    return NoisyGroups(grouping_set=cells.grouping_set, keys=cells.keys, measures=measures, layers={})


def _one_cell(caps: tuple[int | None, ...]) -> bool:
    """Return whether a unit is in one group at most, with the weight of one row."""
    groups, rows, total = caps
    return groups in (None, 1) and rows == 1 and total is None


def _noise_of_sum(noise: AddedNoise, name: str, place: int, times: int) -> AddedNoise:
    """Return the noise of a sum of several numbers."""
    times *= noise.times
    law = noise.law.summed(times)
    return replace(
        noise,
        measure=name,
        grouping_set=place,
        law=noise.law if law is None else law,
        times=times if law is None else 1,
    )
