"""Measures over units: what is kept of each unit and group, added up over parts of the units.

Rows, or what the engine has added up of them, are read by one statement, whatever their number. Where there
are too many to work on all of them at once would take too much memory, units are worked on in parts, by a
hash. How many parts there are changes nothing in the totals, and is seen by no one outside this process.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.analysis.bounded import Measure, MeasureKind
from sfumato.backends.arrays import array_of
from sfumato.backends.bounding.block_values import BlockRows
from sfumato.backends.bounding.contributions import bound_contributions
from sfumato.backends.bounding.entries import Entries, bound_entries
from sfumato.backends.bounding.group_totals import GroupingSet, GroupTotals, contribution, distinct_by_group
from sfumato.backends.bounding.one_group import count_light_rows
from sfumato.backends.bounding.packing import Kept, PackedChoice, PackedRows, Run, Slot
from sfumato.backends.bounding.priorities import different_pairs, mixed, starts_of
from sfumato.backends.bounding.row_weights import RowWeights
from sfumato.backends.duckdb.compile import Layout, Program, hash_of, lay_out
from sfumato.backends.duckdb.engine import Engine
from sfumato.backends.duckdb.totality import NAN
from sfumato.backends.duckdb.unit_numbers import UnitNumbers
from sfumato.backends.exact import Members
from sfumato.backends.row_values import presence
from sfumato.backends.totals import SparseCells, empty, sum_by_group
from sfumato.catalog.kind import Kind

__all__ = ["ROWS_AT_ONCE", "count_units"]

ROWS_AT_ONCE = 1 << 25
"""Rows that are worked on at a time; about 100 bytes each, beside 16 or so for every row that was read."""

_Array = npt.NDArray[Any]
_Integers = npt.NDArray[np.int64]
_Words = npt.NDArray[np.uint64]

_NOBODY = np.zeros(0, dtype=np.int32)


def count_units(
    engine: Engine,
    program: Program,
    rows: str,
    matched: str,
    key_hashes: _Words,
    sets: tuple[GroupingSet, ...],
    *,
    salt: int,
    threads: int,
    hashed: bool,
    numbers: UnitNumbers | None = None,
    whole: str | None = None,
) -> list[GroupTotals]:
    """Return the totals of each grouping set; `matched` are the rows with the code of their group.

    `hashed` says that `__unit` is the hash of the unit's name, and that hashes tell units apart.
    With `numbers` it is the number of the row, and they say whose it is. Otherwise units with names are
    numbered here. A unit's priorities come from its hash either way. With `whole`, the sums of all rows by
    group, `rows` are those of the units alone that may not count in full.
    """
    query = program.query
    layout = program.limbs() if program.sums_first else lay_out(program, len(key_hashes))
    distinct = [measure for measure in query.measures if measure.kind is MeasureKind.DISTINCT]
    cells = [measure for measure in query.measures if measure.kind is MeasureKind.CELLS]
    runners = {measure.name for measure in cells}
    sums = tuple(slot for name, slots in layout.slots.items() if name not in runners for slot in slots)
    runs = tuple(
        Run(slot=layout.slots[measure.name][0], width=len(measure.edges) - 1, weight=measure.weight)
        for measure in cells
    )
    names, hashes = [], []
    adding = _Adding(program=program, layout=layout, sets=sets)
    with ExitStack() as stack:
        unit, unit_hashes = "__unit", None
        if numbers is not None:
            unit_hashes = numbers.hashes
        elif program.unit is not Kind.INTEGER and not hashed:
            unit = "n_unit"
            matched, unit_hashes, _ = stack.enter_context(_numbered(engine, "__unit", unit, rows, matched))
        for place, measure in enumerate(distinct):
            column, name = program.distinct[measure.name], f"n_{place}"
            numbered = _numbered(engine, column, name, rows, matched, integers=bool(measure.factors))
            matched, own, adding.addends[measure.name] = stack.enter_context(numbered)
            names.append(f"coalesce({name}, -1)")
            hashes.append(own)
        choice = PackedChoice(
            max_groups=query.max_groups,
            max_rows=query.max_rows,
            max_total=query.max_total,
            salt=salt,
            key_hashes=key_hashes,
            sums=sums,
            runs=runs,
            distinct=tuple(measure.max_values for measure in distinct),
            value_hashes=tuple(hashes),
            only_cells=len(cells) == len(query.measures)
            and not query.members
            and (query.declared is not None or not query.keys),
        )
        if program.sums_first:
            read = ", ".join(["code", "n", *(f"s{place}" for place in range(len(layout.words)))])
            if whole is not None:
                codes, many, *added = map(array_of, engine.table(f"SELECT {read} FROM {whole}").columns)
                adding.add_rows(codes, many, {slot: added[slot.word] for slot in sums})
            listed = f"{unit}, {read}"
            for units, codes, many, *added in _in_parts(engine.table(f"SELECT {listed} FROM {matched}")):
                found = Entries(
                    units=units,
                    codes=codes,
                    rows=many,
                    sums={slot: added[slot.word] for slot in sums},
                    unit_hashes=unit_hashes,
                )
                if whole is not None:
                    adding.add_rows(codes, many, found.sums, sign=-1)
                adding.add([bound_entries(found, choice)])
            return adding.totals()
        listed = ", ".join([unit, *layout.words, *names])
        table = engine.table(f"SELECT {listed} FROM {matched}")
        parts = _in_parts(table, numbers)
        if numbers is not None and choice.only_cells and 0 < len(table) <= ROWS_AT_ONCE:
            caps = [cap for cap in (query.max_rows, query.max_total) if cap is not None]
            heavy = numbers.heavy_rows(min(caps, default=len(numbers.of_rows)))
            counted = count_light_rows(_batches(table), heavy, layout.packing, choice)
            if counted is not None:
                adding.add([counted[0]])
                parts = iter([[_signed(column) for column in _owned(counted[1], numbers)]])
        for columns in parts:
            last = 1 + len(layout.words)
            given = PackedRows(
                units=columns[0],
                words=tuple(word.view(np.uint64) for word in columns[1:last]),
                values=tuple(columns[last:]),
                unit_hashes=unit_hashes,
            )
            del columns
            adding.add(bound_contributions(given, layout.packing, choice, threads=threads))
        totals = adding.totals()
        for measure in query.measures:
            if measure.kind is MeasureKind.BLOCKS:
                values = ", ".join(f"coalesce({one}, {NAN})" for one in program.blocks[measure.name])
                columns = _owned(engine.columns(f"SELECT {unit}, code, {values} FROM {matched}"), numbers)
                divided = BlockRows.kept(
                    measure, _signed(columns[0]), columns[1], columns[2:], unit_hashes, choice
                )
                for one, total in zip(sets, totals, strict=True):
                    total.measures[measure.name] = divided.totals(one)
    return totals


def _in_parts(table: Any, numbers: UnitNumbers | None = None) -> Iterator[list[_Integers]]:
    """Yield the columns of rows, the unit first: all at once, or some units at a time."""
    parts = max(1, -(-len(table) // ROWS_AT_ONCE))
    if parts == 1:
        yield [_signed(column) for column in _owned(list(map(array_of, table.columns)), numbers)]
        return
    batches = [_owned(columns, numbers) for columns in _batches(table)]
    for part in range(parts):
        chosen = []
        for batch in batches:
            owners = mixed(_signed(batch[0]).view(np.uint64)) % np.uint64(parts)
            places = np.flatnonzero(owners == np.uint64(part))
            chosen.append([_signed(column[places]) for column in batch])
        yield [np.concatenate(columns) for columns in zip(*chosen, strict=True)]


def _batches(table: Any) -> Iterator[list[_Array]]:
    return ([np.from_dlpack(column) for column in batch.columns] for batch in table.to_batches())


def _owned(columns: list[_Array], numbers: UnitNumbers | None) -> list[_Array]:
    """Return columns with the unit first; with `numbers`, the number of the row stands there before."""
    return columns if numbers is None else numbers.given(columns)


def _signed(column: _Array) -> _Integers:
    """Return a column as 64-bit integers; the bits of a hash are taken as they are."""
    return column.view(np.int64) if column.dtype == np.uint64 else column.astype(np.int64, copy=False)


@contextmanager
def _numbered(
    engine: Engine, value: str, name: str, rows: str, matched: str, *, integers: bool = False
) -> Iterator[tuple[str, _Words, _Integers | None]]:
    """Number the values that rows have: yield rows with the number, under a name, and the hashes by number.

    Values that are `integers` are yielded as well, by number.
    """
    there = f"SELECT DISTINCT {value} AS value FROM {rows} WHERE {value} IS NOT NULL"
    number = f"row_number() OVER (ORDER BY value) - 1 AS {name}"
    with engine.named(f"SELECT value, {number}, {hash_of('value')} AS hashed FROM ({there})") as numbers:
        listed = "hashed, value" if integers else "hashed"
        hashes, *own = engine.columns(f"SELECT {listed} FROM {numbers} ORDER BY {name}")
        join = f"LEFT JOIN {numbers} AS v ON {value} = v.value"
        with_number = f"(SELECT m.*, v.{name} FROM {matched} AS m {join})"
        yield with_number, hashes.astype(np.uint64, copy=False), own[0] if own else None


@dataclass(kw_only=True, slots=True, eq=False)
class _Adding:
    """The totals so far."""

    program: Program
    layout: Layout
    sets: tuple[GroupingSet, ...]
    addends: dict[str, _Integers | None] = field(default_factory=dict)  # DISTINCT: what values stand for
    _totals: list[GroupTotals] = field(default_factory=list)
    # Of CELLS: places and what is added there; of DISTINCT: groups and values.
    _found: dict[tuple[int, str], list[tuple[_Integers, _Array]]] = field(default_factory=dict)
    _members: dict[int, list[Members]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for place, one in enumerate(self.sets):
            measures = {measure.name: empty(measure, one.size) for measure in self.program.query.measures}
            self._totals.append(GroupTotals(units=np.zeros(one.size, dtype=np.int64), measures=measures))
            self._found |= {(place, name): [] for name in measures}

    def add(self, parts: list[Kept]) -> None:
        """Add what was kept of some units."""
        query = self.program.query
        for kept in parts:
            everyone = np.ones(len(kept.code), dtype=np.bool_)
            weights = RowWeights.of(kept.unit, kept.rows, most=query.max_rows, total=query.max_total)
            for place, (one, total) in enumerate(zip(self.sets, self._totals, strict=True)):
                total.units += _units(kept, one, everyone)
                if query.members and one.chosen:
                    self._members.setdefault(place, []).append(_members(kept, one))
            for measure in query.measures:
                self._add(measure, kept, weights)
        for measure in query.measures:  # cells are summed now: of all parts they would take much memory
            for place, one in enumerate(self.sets):
                found = self._found[place, measure.name]
                if measure.kind is MeasureKind.CELLS and found:
                    found[:] = [SparseCells.summed(measure, one.size, found).parts]

    def add_rows(
        self, codes: _Integers, rows: _Integers, sums: dict[Slot, _Integers], *, sign: int = 1
    ) -> None:
        """Add to each MOMENT rows that count in full, or take them away: their numbers and sums by group."""
        in_full = RowWeights(top=rows, bottom=rows)
        for measure in self.program.query.measures:
            added = self._moment(measure, rows, sums, in_full)
            for one, total in zip(self.sets, self._totals, strict=True):
                by_group = sum_by_group(one.parents[codes], added, one.size)
                total.measures[measure.name] = total.measures[measure.name] + sign * by_group

    def _moment(
        self, measure: Measure, rows: _Integers, sums: dict[Slot, _Integers], weights: RowWeights
    ) -> _Array:
        slots = self.layout.slots.get(measure.name, ())
        below = accumulate((slot.bits for slot in slots), initial=0)  # each limb of an integer
        limbs = zip(below, (sums[slot] for slot in slots), strict=False)
        return contribution(measure, self.program.integers[measure.name], rows, limbs, weights)

    def _add(self, measure: Measure, kept: Kept, weights: RowWeights) -> None:
        name = measure.name
        slots = self.layout.slots.get(name, ())
        match measure.kind:
            case MeasureKind.MOMENT:
                added = self._moment(measure, kept.rows, kept.sums, weights)
                if measure.skips_absent:
                    (seen,) = self.layout.slots[presence(name)]
                    added = np.where(kept.sums[seen] > 0, added, 0)
                for one, total in zip(self.sets, self._totals, strict=True):
                    sums = sum_by_group(one.parents[kept.code], added, one.size)
                    total.measures[name] = total.measures[name] + sums
            case MeasureKind.UNITS:
                there = kept.sums[slots[0]] > 0 if slots else np.ones(len(kept.code), dtype=np.bool_)
                for one, total in zip(self.sets, self._totals, strict=True):
                    total.measures[name] = total.measures[name] + _units(kept, one, there)
            case MeasureKind.CELLS:
                width = len(measure.edges) - 1
                places, values = kept.runs[slots[0]]
                for place, one in enumerate(self.sets):
                    cells = one.parents[places // width] * width + places % width
                    self._found[place, name].append((cells, values))
            case MeasureKind.DISTINCT:
                entry, value = kept.values[list(self.program.distinct).index(name)]
                for place, one in enumerate(self.sets):
                    self._found[place, name].append((one.parents[kept.code[entry]], value))

    def totals(self) -> list[GroupTotals]:
        """Return the totals; distinct values are counted now that all are known."""
        for place, (one, total) in enumerate(zip(self.sets, self._totals, strict=True)):
            for measure in self.program.query.measures:
                found = self._found[place, measure.name]
                if measure.kind is MeasureKind.CELLS:
                    total.measures[measure.name] = SparseCells.summed(measure, one.size, found)
                elif found:
                    groups, values = (np.concatenate(columns) for columns in zip(*found, strict=True))
                    addends = self.addends[measure.name]
                    total.measures[measure.name] = distinct_by_group(
                        measure, groups, values, one.size, addends
                    )
            if self.program.query.members:
                parts = self._members.pop(place, [])
                total.members = Members(
                    groups=np.concatenate([part.groups for part in parts] or [_NOBODY]),
                    sizes=np.concatenate([part.sizes for part in parts] or [_NOBODY]),
                )
        return self._totals


def _units(kept: Kept, one: GroupingSet, there: npt.NDArray[np.bool_]) -> _Integers:
    """Count units once in each group of a set."""
    groups = one.parents[kept.code[there]]
    if len(one.parents) != one.size:  # several of a unit's groups can be one here
        groups = np.unique(kept.unit[there] * one.size + groups) % one.size
    return np.bincount(groups, minlength=one.size)


def _members(kept: Kept, one: GroupingSet) -> Members:
    """Return the groups of a set that each unit is in; groups are fewer than 2^32 by their codes' bits."""
    unit, groups = kept.unit, one.parents[kept.code]
    if len(one.parents) != one.size:  # several of a unit's groups can be one here
        unit, groups = different_pairs(unit, groups)
    starts = starts_of(unit) if len(unit) else _NOBODY
    narrow = np.int32 if one.size < 2**31 else np.int64
    return Members(groups=groups.astype(narrow), sizes=np.diff(starts, append=len(unit)).astype(np.int32))
