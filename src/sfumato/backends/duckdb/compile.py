"""Compiling: a bounded query becomes a few SELECTs whose text depends on the plan alone.

    rows         one row per private row: the unit, the keys k0, k1, .., and values x0, x1, ..
    dictionary   the keys that occur (or are declared), numbered in their order
    words        each row with its group's code and its integers packed below it
    grouped      where each row is a unit by itself: all there is to it is a GROUP BY
    added_up     where rows have many integers: their sums by unit and group, instead of words

Only the number of keys, which decides how many bits a code has, is ever put into a text that is
compiled later; it decides the layout of words, and never a result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from sfumato.aggregates.sample_and_aggregate import BlockStatistic
from sfumato.analysis.bounded import BoundedQuery, Measure, MeasureKind
from sfumato.backends.arrays import arrow_array
from sfumato.backends.bounding.packing import Packing, Slot
from sfumato.backends.duckdb.dialect import DUCKDB
from sfumato.backends.integers import RowInteger, Stage
from sfumato.backends.relations import Relations, Rendered
from sfumato.backends.row_values import RowValues, row_values
from sfumato.catalog.catalog import Catalog
from sfumato.catalog.kind import Kind, Value
from sfumato.plan.tree import Filter, Projection, Relation, Scan

__all__ = ["Layout", "Program", "SUMMED_ROWS", "compile_query", "hash_of", "key_table", "lay_out"]

_FINGERPRINT = 32  # bits: few units of a hundred million share so much of a hash
_LIMB = 8  # bits of an integer that lie in one word at least, however many groups there are
_SUMMED = 21  # bits of an integer that is added up as a double: over fewer than `SUMMED_ROWS` rows exactly
_NARROW = 2**31  # sums of smaller numbers over fewer than 2^32 rows fit into 64 bits
SUMMED_ROWS = 2**32
"""So many numbers of 21 bits, or fewer, add up to less than 2^53: every partial sum is exact in a double."""

_ADDED = (MeasureKind.MOMENT, MeasureKind.UNITS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How integers of rows are packed; a wide one lies in several slots, lowest bits first."""

    packing: Packing
    slots: dict[str, tuple[Slot, ...]]
    words: tuple[str, ...]  # the SQL of each word


@dataclass(frozen=True, slots=True, kw_only=True)
class Program(RowValues):
    """The texts that answer a query, up to what its keys are."""

    plain: bool  # reading the rows again costs no more than reading the table

    def declared(self, source: str) -> str:
        """Return the dictionary of declared keys, from a table that holds them as they were declared."""
        listed = ", ".join(
            f"{DUCKDB.canonical(f'CAST({key} AS {DUCKDB.sql_type(kind)})', kind)} AS {key}"
            for key, kind in zip(self.keys, self.kinds, strict=True)
        )
        return self._numbered(f"SELECT DISTINCT {listed} FROM {source}")

    def found(self, rows: str) -> str:
        """Return the dictionary of the keys that occur."""
        return self._numbered(f"SELECT DISTINCT {', '.join(self.keys)} FROM {rows}")

    def _numbered(self, distinct: str) -> str:
        listed = ", ".join(self.keys)
        order = ", ".join(f"{key} ASC NULLS LAST" for key in self.keys)
        return (
            f"SELECT {listed}, row_number() OVER (ORDER BY {order}) - 1 AS code, hash({listed}) AS hashed "
            f"FROM ({distinct})"
        )

    def match(self, rows: str, dictionary: str) -> str:
        """Return the rows that have a key of the dictionary, beside it."""
        if not self.kinds:
            return f"(SELECT *, 0 AS code FROM {rows})"
        # NULL is a key where keys are not declared, and never one of those that are.
        same = "=" if self.query.declared is not None else "IS NOT DISTINCT FROM"
        tests = " AND ".join(f"r.{key} {same} d.{key}" for key in self.keys)
        return f"(SELECT r.*, d.code FROM {rows} AS r JOIN {dictionary} AS d ON {tests})"

    @property
    def sums_first(self) -> bool:
        """Whether the engine adds rows up by unit and group: where to pack and sort them takes longer.

        Integers that fit beside one fingerprint are sorted sooner. Rows of a join would have to be kept.
        """
        if self.unit is None or any(one.kind not in _ADDED for one in self.query.measures):
            return False
        return not self.plain or sum(_bits(one) for one in self.integers.values() if one) > _FINGERPRINT

    @property
    def reads_names(self) -> bool:
        """Whether units have names that the engine hands over, row by row, and does nothing else with."""
        return self.unit is Kind.TEXT and self.plain and not self.sums_first

    @property
    def sums_whole(self) -> bool:
        """Whether all rows are added up by group alone: where nothing but a cap on rows can leave out any.

        Then a unit with no more rows than the cap counts in full, and only the others are looked at.
        """
        query = self.query
        listed = 1 if not query.keys else None if query.declared is None else len(query.declared)
        return (
            self.sums_first
            and self.plain
            and listed is not None
            and (query.max_groups is None or query.max_groups >= listed)
            and all(one.kind is MeasureKind.MOMENT and one.clamp is None for one in query.measures)
        )

    def many_rows(self, rows: str) -> str:
        """Return the units that have more rows than count, and maybe others."""
        caps = [cap for cap in (self.query.max_rows, self.query.max_total) if cap is not None]
        least = f" HAVING count(*) > {min(caps)}" if caps else " HAVING FALSE"
        return f"SELECT __unit FROM {rows} GROUP BY __unit{least}"

    def limbs(self) -> Layout:
        """Return the parts of integers that `added_up` adds up, as slots; the words are their columns."""
        slots: dict[str, tuple[Slot, ...]] = {}
        texts: list[str] = []
        for name, integer in self.integers.items():
            if integer is None:
                continue
            bits, offset, found = _bits(integer), _offset(integer), []
            if integer.double is not None and bits <= _SUMMED:
                offset = f"(coalesce({integer.double}, 0) - {DUCKDB.constant(float(integer.low))})"
            for lower in range(0, bits, _SUMMED):
                size = min(_SUMMED, bits - lower)
                found.append(Slot(word=len(texts), shift=0, bits=size))
                texts.append(offset if bits <= _SUMMED else f"(({offset} >> {lower}) & {(1 << size) - 1})")
            slots[name] = tuple(found)
        return Layout(packing=Packing(code_bits=0, value_bits=0), slots=slots, words=tuple(texts))

    def added_up(self, rows: str, *, whole: bool = False) -> str:
        """Return the number of rows of each unit and group, and the sums s0, s1, .. of their limbs.

        `whole`: of each group, whoever is in it; the table must have fewer than `SUMMED_ROWS` rows.

        Theorem: no result depends on the order of rows. A limb is a whole number of at most 21 bits, not
        negative, so that over fewer than 2^32 rows every partial sum is a whole number below 2^53, and exact.
        A join can give one unit more rows than that: then its limbs count as zero, and each of its rows as
        the lowest value there is. That is a function of the unit's own rows, and within its bounds.
        """
        grouped = [*self.keys] if whole else ["__unit", *self.keys]
        sums = [
            f"CASE WHEN count(*) < {SUMMED_ROWS} THEN CAST(sum(CAST({limb} AS DOUBLE)) AS BIGINT) ELSE 0 END"
            f" AS s{place}"
            for place, limb in enumerate(self.limbs().words)
        ]
        listed = ", ".join([*grouped, "count(*) AS n", *sums])
        by = f"GROUP BY {', '.join(grouped)}" if grouped else "HAVING count(*) > 0"
        return f"SELECT {listed} FROM {rows} {by}"

    def grouped(self, rows: str) -> str:
        """Return the sums of measures where each row is a unit; wide sums in a lower and an upper part."""
        listed = [*self.keys, "count(*) AS units"]
        for place, measure in enumerate(self.query.measures):
            integer = self.integers.get(measure.name)
            if measure.kind is MeasureKind.CELLS or measure.kind is MeasureKind.DISTINCT or integer is None:
                continue
            value = _clamped_row(measure, integer)
            if measure.sensitivity < _NARROW:
                listed.append(f"CAST(coalesce(sum({value}), 0) AS BIGINT) AS s{place}")
                continue
            listed.append(f"CAST(coalesce(sum({value} & {_NARROW - 1}), 0) AS BIGINT) AS s{place}")
            listed.append(f"CAST(coalesce(sum({value} >> 31), 0) AS BIGINT) AS t{place}")
        grouped = f" GROUP BY {', '.join(self.keys)}" if self.keys else ""
        return f"SELECT {', '.join(listed)} FROM {rows}{grouped}"


def hash_of(column: str) -> str:
    """Return the hash of a name or value, which all its priorities come from."""
    return f"hash({column})"


def key_table(kinds: Sequence[Kind], rows: Sequence[tuple[Value, ...]]) -> Any:
    """Return listed keys as an Arrow table with the columns k0, k1, ..; it has a row for each."""
    import pyarrow

    if not kinds:
        return pyarrow.table({"nothing": pyarrow.nulls(len(rows))})
    columns = list(zip(*rows, strict=True)) or [()] * len(kinds)
    arrays = [arrow_array(values, kind) for values, kind in zip(columns, kinds, strict=True)]
    return pyarrow.table(arrays, names=[f"k{place}" for place in range(len(kinds))])


def compile_query(
    query: BoundedQuery,
    catalog: Catalog,
    *,
    row_numbers: bool = False,
    stand_in: tuple[Relation, Rendered] | None = None,
) -> Program:
    """Return the texts of a query; with `row_numbers`, `__unit` is the number of a row, not a name.

    A `stand_in` is read instead of one of the relations.
    """
    below = Relations(catalog=catalog, dialect=DUCKDB, row_numbers=row_numbers, stand_in=stand_in).render(
        query.source
    )
    values = row_values(query, below, DUCKDB, _block_columns)
    given = {one.name: getattr(values, one.name) for one in fields(values)}
    return Program(**given, plain=_plain(query.source, catalog))


def lay_out(program: Program, groups: int) -> Layout:
    """Pack the integers of rows beside codes of groups; histograms have a word each.

    Any number of groups works: how many there are is private. Where they leave no room beside a
    fingerprint, less than a fingerprint is left for the unit, and units are numbered, some at a time.
    """
    code_bits = max(0, groups - 1).bit_length()
    room = 64 - _FINGERPRINT - code_bits
    cells = {measure.name for measure in program.query.measures if measure.kind is MeasureKind.CELLS}
    needed = max((_bits(one) for name, one in program.integers.items() if one and name in cells), default=1)
    if room < needed:
        room = max(needed, _LIMB)
    filled: list[int] = []
    pieces: list[list[str]] = []
    slots: dict[str, tuple[Slot, ...]] = {}
    # Histograms first: each needs a word whose order is that of its cells.
    for name, integer in sorted(program.integers.items(), key=lambda item: item[0] not in cells):
        if integer is None:
            continue
        bits, offset = _bits(integer), _offset(integer)
        if name in cells:
            slots[name] = (Slot(word=len(filled), shift=0, bits=bits),)
            filled.append(room)  # no other integer may lie below it
            pieces.append([offset])
            continue
        found = []
        for lower in range(0, bits, room):
            size = min(room, bits - lower)
            word = next((place for place, used in enumerate(filled) if used + size <= room), len(filled))
            if word == len(filled):
                filled.append(0)
                pieces.append([])
            limb = offset if bits <= room else f"(({offset} >> {lower}) & {(1 << size) - 1})"
            pieces[word].append(f"{limb} * {1 << filled[word]}" if filled[word] else limb)
            found.append(Slot(word=word, shift=filled[word], bits=size))
            filled[word] += size
        slots[name] = tuple(found)
    value_bits = max((slot.shift + slot.bits for some in slots.values() for slot in some), default=0)
    code = f"code * {1 << value_bits}" if value_bits else "code"
    texts = tuple(" + ".join([code, *some]) for some in pieces) or (code,)
    return Layout(packing=Packing(code_bits=code_bits, value_bits=value_bits), slots=slots, words=texts)


def _bits(integer: RowInteger) -> int:
    return (integer.high - integer.low).bit_length()


def _offset(integer: RowInteger) -> str:
    """Return how far an integer is above its lowest value."""
    lowest = f" - {DUCKDB.constant(integer.low)}" if integer.low else ""
    return f"(coalesce({integer.sql}, 0){lowest})"


def _clamped_row(measure: Measure, integer: RowInteger) -> str:
    constant = DUCKDB.constant
    value = f"({integer.sql})" if integer.scale == 1 else f"({integer.sql}) * {constant(integer.scale)}"
    if measure.clamp is None:
        return f"({value})"
    low, high = measure.clamp
    clamped = f"least(greatest(coalesce({value}, 0), {constant(low)}), {constant(high)})"
    return f"CASE WHEN {value} IS NOT NULL THEN {clamped} END" if measure.skips_absent else clamped


def _block_columns(measure: Measure, stage: Stage) -> tuple[str, ...]:
    """Return the arguments of a statistic, each a DOUBLE; what is only compared is as good as its hash."""
    assert measure.blocks is not None
    columns = []
    for argument in measure.blocks.arguments:
        if measure.blocks.statistic is BlockStatistic.ENTROPY and argument.kind is not None:
            value = DUCKDB.canonical(stage.write(argument), argument.kind)
            value = f"CASE WHEN ({value}) IS NOT NULL THEN CAST({hash_of(value)} AS DOUBLE) END"
        else:
            value = stage.write(argument, Kind.REAL)
        if measure.condition is not None:
            value = f"CASE WHEN {stage.write(measure.condition)} THEN {value} END"
        columns.append(stage(value))
    return tuple(columns)


def _plain(relation: Relation, catalog: Catalog) -> bool:
    match relation:
        case Scan(table=name):
            table = catalog.table(name)
            return table is not None and (table.unit is None or not table.unit.path)
        case Filter(source=source) | Projection(source=source):
            return _plain(source, catalog)
    return False
