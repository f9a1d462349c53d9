"""Statements: a bounded query becomes statements in which an engine itself bounds contributions.

    rows       one row per private row: the unit, the keys k0, k1, .., and values x0, x1, ..; of declared keys
               those rows alone that have one
    entries    one row per unit and group: how many rows, and the exact sums of their integers
    kept       the entries of those groups of each unit that count, by priority
    weights    kept entries, each with the unit's weight there: top / bottom

What they mean is written here, once. An engine says how it spells a priority and integers that do not
overflow, and may give another form to a step that it would compute slowly: of units whose rows all count in
full it may make one entry, where nothing but sums of rows is asked. A text depends on the plan, and on
the salt. Where each row is a unit by itself, there is no column for the unit: each row is an entry.

Theorem: which groups of a unit are kept is a function of the unit's own rows, of public caps and of the salt:
a priority is the engine's hash of the salt, the unit and the key, ties go by the order of keys; what an
engine chooses by instead has a proof of its own (`spark.group_masks`). No result depends on the order of rows
or on how the engine divides its work.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

from sfumato.analysis.bounded import BoundedQuery, Measure, MeasureKind
from sfumato.backends.dialect import Dialect
from sfumato.backends.integers import RowInteger, Stage
from sfumato.backends.relations import Relations
from sfumato.backends.row_values import RowValues, presence, row_values
from sfumato.catalog.kind import Kind, Value
from sfumato.errors import Unsupported

__all__ = ["Keys", "Statements"]

_PLAIN = {Kind.TEXT: str, Kind.INTEGER: int, Kind.BOOLEAN: bool}

Keys = Sequence[tuple[Value, ...]]
"""Values of the keys of a grouping set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statements(ABC):
    """Writes the statements of a query."""

    values: RowValues
    salt: int  # of 64 bits, signed
    held: str | None = None  # where the engine holds `kept` for several statements, of undeclared keys
    dialect: ClassVar[Dialect]
    engine: ClassVar[str]  # what users call it
    fills: ClassVar[bool] = True  # whether totals hold plainly declared groups that nobody is in

    @classmethod
    def of(cls, query: BoundedQuery, relations: Relations, *, salt: int) -> Self:
        """Return the statements of a query over relations; what the engine has no words for is refused."""
        values = row_values(query, relations.render(query.source), cls.dialect, cls._no_blocks)
        return cls(values=values, salt=(salt + 2**63) % 2**64 - 2**63)

    @classmethod
    def _no_blocks(cls, measure: Measure, stage: Stage) -> tuple[str, ...]:
        raise Unsupported(f"statistics of blocks of units in {cls.engine}")

    # -- the words of an engine

    @abstractmethod
    def _priority(self, *more: str) -> str:
        """Return the hash of the salt, the unit, the keys and more columns."""

    @abstractmethod
    def _row_sum(self, integer: RowInteger) -> str:
        """Return the exact sum of the integers of rows."""

    @abstractmethod
    def _wide(self, sql: str) -> str:
        """Return a whole number in the engine's widest type."""

    @abstractmethod
    def _number(self, sql: str, measure: Measure) -> str:
        """Return a whole number in a type that holds what a unit adds to a measure, before its weight."""

    @abstractmethod
    def _share(self, total: str, measure: Measure) -> str:
        """Return trunc(total * top / bottom), in numbers that do not overflow."""

    @abstractmethod
    def _unit_sum(self, sql: str, measure: Measure) -> str:
        """Return the exact sum of what units add to a measure."""

    def _chosen_rows(self) -> str:
        """Return what is read of `matched`: all, unless groups are chosen before their rows are added up."""
        return "SELECT * FROM matched"

    def _once(self, rows: str) -> str:
        """Return what to read FROM so that values of rows are computed once, before they are grouped."""
        return rows

    # -- what all engines compute

    @property
    def plainly_declared(self) -> bool:
        """Whether keys are declared, in a form in which equal keys are written alike, and are shown so."""
        declared = self.values.query.declared
        types = [_PLAIN.get(kind) for kind in self.values.kinds]
        return bool(declared) and all(list(map(type, row)) == types for row in declared or ())

    @property
    def _by_row(self) -> bool:
        return self.values.unit is None

    @property
    def _unit_and_keys(self) -> list[str]:
        """The columns that tell entries apart; rows that are units have keys alone."""
        return [*([] if self._by_row else ["__unit"]), *self.values.keys]

    @property
    def _entry(self) -> list[str]:
        """The columns by which rows become entries; an engine may add some that follow from these."""
        return self._unit_and_keys

    def _rows(self) -> list[str]:
        """Return the texts of `rows`, and of what they are made of."""
        return [*self._matched(), f"rows AS ({self._chosen_rows()})"]

    def _matched(self) -> list[str]:
        """Return the texts of `matched`, all rows of groups that may count, and of what they are made of."""
        values = self.values
        given = f"given AS ({values.rows})"
        if values.query.declared is None or not values.kinds:
            return [given, "matched AS (SELECT * FROM given)"]
        same = " AND ".join(f"g.{key} = d.{key}" for key in values.keys)
        matched = f"matched AS (SELECT g.* FROM given AS g JOIN declared AS d ON {same})"
        return [given, f"declared AS ({self._declared()})", matched]

    def _with_kept(self) -> str:
        """Return the beginning of statements that read `kept`.

        Where the engine holds it, there is none: below a WITH, Spark does not know again what it holds.
        """
        return "" if self.held is not None else f"WITH {', '.join([*self._rows(), *self._kept_texts()])} "

    def _kept_texts(self) -> list[str]:
        """Return the texts of `kept` over `rows`; none where the engine holds it."""
        if self.held is not None:
            return []
        kept = "SELECT * FROM entries" if self._by_row else self._first_groups("SELECT * FROM entries")
        return [f"entries AS ({self._entries()})", f"kept AS ({kept})"]

    def kept(self) -> str:
        """Return the statement of `kept` itself, for an engine that holds it for several statements."""
        listed = ", ".join([*self._unit_and_keys, "n", *self._summed()])
        return f"{self._with_kept()}SELECT {listed} FROM kept"

    @property
    def _kept_name(self) -> str:
        """What to read FROM for `kept`."""
        return self.held or "kept"

    def _entries(self) -> str:
        integers = self._summed()
        if self._by_row:
            listed = [*self._entry, "1 AS n", *(f"{one.sql} AS {name}" for name, one in integers.items())]
            return f"SELECT {', '.join(listed)} FROM rows"
        sums = [f"{self._row_sum(one)} AS {name}" for name, one in integers.items()]
        listed = [*self._entry, "count(*) AS n", *sums]
        return f"SELECT {', '.join(listed)} FROM {self._once('rows')} GROUP BY {', '.join(self._entry)}"

    def _weights(self) -> str:
        """Return kept entries, each with the unit's weight there."""
        query = self.values.query
        if self._by_row:  # it is in one group, with all its weight
            return f"SELECT *, n AS top, n AS bottom FROM {self._kept_name}"
        most = "n" if query.max_rows is None else f"least(n, {query.max_rows})"
        capped = f"SELECT *, {most} AS top, n AS bottom FROM {self._kept_name}"
        if query.max_total is None:
            return capped
        total = query.max_total
        whole = f"SELECT *, sum(top) OVER (PARTITION BY __unit) AS whole FROM ({capped}) AS w"
        names = ", ".join([*self._unit_and_keys, "n", *self._summed()])
        top, bottom = (
            f"CASE WHEN whole > {total} THEN {self._wide(name)} * {by} ELSE {name} END AS {name}"
            for name, by in (("top", total), ("bottom", "whole"))
        )
        return f"SELECT {names}, {top}, {bottom} FROM ({whole}) AS w"

    def _summed(self) -> dict[str, RowInteger]:
        """Return the integers that are added up for each unit and group, by the names of their sums."""
        cells = {one.name for one in self.values.query.measures if one.kind is MeasureKind.CELLS}
        return {
            f"s{place}": integer
            for place, (name, integer) in enumerate(self.values.integers.items())
            if integer is not None and name not in cells
        }

    def _declared(self) -> str:
        values = self.values
        rows = list(dict.fromkeys(values.query.declared or ()))
        none = tuple(None for _ in values.kinds)
        listed = self._listed(rows or [none], range(len(values.kinds)))
        once = "" if self.plainly_declared else "DISTINCT "
        return f"SELECT {once}* FROM ({listed}) AS d{'' if rows else ' WHERE FALSE'}"

    def _listed(self, rows: Keys, chosen: Sequence[int]) -> str:
        """Return keys that are known as rows."""
        dialect, kinds = self.dialect, [self.values.kinds[place] for place in chosen]
        written = ", ".join(f"({', '.join(map(dialect.constant, row, kinds))})" for row in rows)
        keys = [f"k{place}" for place in chosen]
        same = ", ".join(
            f"{dialect.canonical(key, kind)} AS {key}" for key, kind in zip(keys, kinds, strict=True)
        )
        return f"SELECT {same} FROM (VALUES {written}) AS v({', '.join(keys)})"

    def _order(self) -> list[str]:
        return [f"{key} ASC NULLS LAST" for key in self.values.keys]

    def _grouped(self, chosen: tuple[int, ...]) -> tuple[list[str], str]:
        keys = [f"k{place}" for place in chosen]
        return keys, f" GROUP BY {', '.join(keys)}" if keys else ""

    def texts(self, chosen: tuple[int, ...]) -> Iterator[str]:
        """Return the statements of all integers of a grouping set."""
        yield self.totals(chosen)
        for measure in self.values.query.measures:
            if measure.kind is MeasureKind.CELLS:
                yield self.cells(measure, chosen)
            elif measure.kind is MeasureKind.DISTINCT:
                yield self.distinct(measure, chosen)

    def tells_sizes(self, chosen: tuple[int, ...]) -> bool:
        """Return whether totals are told apart by d: in how many groups their units are."""
        query = self.values.query
        undeclared = query.declared is None and bool(chosen)
        return query.members and undeclared and not self._by_row and self._finest(chosen)

    def totals(self, chosen: tuple[int, ...]) -> str:
        """Return the statement of a grouping set's totals: keys, units, and the sum of each measure.

        Measures are the MOMENT and UNITS ones, in their order. Declared groups are all there, unless the
        engine leaves it to the reader to add empty ones. Where it `tells_sizes`, a group has a row for each d
        of its units, and d is before the number of units; that of declared groups is not asked for, and means
        nothing.
        """
        keys, by = self._grouped(chosen)
        declared = self.values.query.declared is not None and bool(keys)
        if declared and not any(map(self._adds, self.values.query.measures)):
            return f"SELECT DISTINCT {', '.join(keys)}, 0 FROM ({self._declared()}) AS d"
        units = "count(*)" if self._finest(chosen) else "count(DISTINCT __unit)"
        sums = [self._sum(measure, units) for measure in self.values.query.measures if self._adds(measure)]
        named = [f"{sql} AS m{place}" for place, sql in enumerate(sums)]
        if self.values.query.declared is not None:
            units = "count(*)"
        beginning, weights = self._with_kept(), f"({self._weights()}) AS w"
        if self.tells_sizes(chosen):
            sized = f"SELECT *, count(*) OVER (PARTITION BY __unit) AS d FROM {weights}"
            listed = ", ".join([*keys, "d", f"{units} AS units", *named])
            return f"{beginning}SELECT {listed} FROM ({sized}) AS k{by}, d"
        listed = ", ".join([*keys, f"{units} AS units", *named])
        found = f"SELECT {listed} FROM {weights}{by}"
        if not declared or (self.plainly_declared and not self.fills):
            return f"{beginning}{found}"
        listed = ", ".join(
            [*keys, "coalesce(units, 0)", *(f"coalesce(m{place}, 0)" for place in range(len(sums)))]
        )
        listing = f"SELECT DISTINCT {', '.join(keys)} FROM declared"
        using = f"({listing}) AS d LEFT JOIN ({found}) AS f USING ({', '.join(keys)})"
        return f"{beginning}SELECT {listed} FROM {using}"

    def cells(self, measure: Measure, chosen: tuple[int, ...]) -> str:
        """Return the statement of a histogram: keys, the number of the cell, what is in it."""
        keys, _ = self._grouped(chosen)
        integer = self.values.integers[measure.name]
        assert integer is not None
        weighed = not self._by_row and self.values.query.max_total is not None
        texts = [*self._rows(), *(self._kept_texts() if weighed else ())]
        total = f"{self._number('c', measure)} * {measure.weight}"
        share = self._unit_sum(self._weighed(total, measure), measure)
        listed, own = ", ".join([*keys, "cell - 1"]), self._cell_counts(integer)
        counted = f"SELECT {listed}, {share} FROM ({own}) AS c WHERE cell > 0 GROUP BY {listed}"
        return f"WITH {', '.join(texts)} {counted}"

    def _cell_counts(self, integer: RowInteger) -> str:
        """Return how many rows of units and groups are in each cell, with the unit's weight: top / bottom."""
        entry, query = ", ".join(self._entry), self.values.query
        if self._by_row:
            listed = ", ".join([*self._entry, f"{integer.sql} AS cell", "1 AS c", "1 AS top", "1 AS bottom"])
            return f"SELECT {listed} FROM rows"
        counted = (
            f"SELECT {entry}, {integer.sql} AS cell, count(*) AS c FROM rows GROUP BY {entry}, {integer.sql}"
        )
        if query.max_total is not None:
            alike = (f"c.{key} IS NOT DISTINCT FROM e.{key}" for key in self.values.keys)
            same = " AND ".join(["c.__unit = e.__unit", *alike])
            return f"SELECT e.*, c.cell, c.c FROM ({self._weights()}) AS e JOIN ({counted}) AS c ON {same}"
        top = "bottom" if query.max_rows is None else f"least(bottom, {query.max_rows})"
        whole = f"CAST(sum(c) OVER (PARTITION BY {entry}) AS bigint)"
        own = self._first_groups(f"SELECT *, {whole} AS bottom FROM ({counted}) AS c")
        return f"SELECT *, {top} AS top FROM ({own}) AS c"

    def _first_groups(self, rows: str) -> str:
        """Return rows of the groups of each unit that count, from one or several for each group."""
        most = self.values.query.max_groups
        if most is None:
            return rows
        order = ", ".join([self._priority(), *self._order()])
        place = f"dense_rank() OVER (PARTITION BY __unit ORDER BY {order})"
        return f"SELECT * FROM (SELECT *, {place} AS place FROM ({rows}) AS g) AS p WHERE place <= {most}"

    def distinct(self, measure: Measure, chosen: tuple[int, ...]) -> str:
        """Return the statement of distinct values: keys, and their number or their sum."""
        keys, by = self._grouped(chosen)
        listed = ", ".join([*keys, self._different(measure)])
        return (
            f"WITH {', '.join(self._rows())} SELECT {listed} FROM ({self._numbered_values(measure)}) AS v"
            f" WHERE number <= {measure.max_values}{by}"
        )

    def _different(self, measure: Measure) -> str:
        """Return how many different values there are, or their sum."""
        return (
            f"coalesce(sum(DISTINCT {self._wide('value')}), 0)"
            if measure.factors
            else "count(DISTINCT value)"
        )

    def _numbered_values(self, measure: Measure) -> str:
        """Return the values of units in groups, each with its number by priority."""
        value, entry = self.values.distinct[measure.name], ", ".join(self._entry)
        if self._by_row:
            listed = ", ".join([*self._entry, f"{value} AS value", "1 AS number"])
            return f"SELECT {listed} FROM rows"
        # A group counts where its values are all NULL, too.
        pairs = self._first_groups(f"SELECT DISTINCT {entry}, {value} AS value FROM rows")
        order = f"{self._priority('value')}, value"
        number = f"row_number() OVER (PARTITION BY {entry} ORDER BY {order})"
        return f"SELECT *, {number} AS number FROM ({pairs}) AS m WHERE value IS NOT NULL"

    def members(self, chosen: tuple[int, ...], found: Keys, weights: Sequence[int]) -> str:
        """Return the statement of what units weigh in each group: keys, 0, and the sum of their weights.

        A unit that is in d groups has the d-th of these weights. One of those that are in more groups than
        there are weights is counted: keys, d, and how many there are. Groups that were found are left out, of
        those that are counted and of d.
        """
        keys, own = ", ".join(f"k{place}" for place in chosen), self._outside(chosen, found)
        counted = f"SELECT {keys}, count(*) OVER (PARTITION BY __unit) AS d FROM ({own}) AS o"
        more = f"CASE WHEN d > {len(weights)} THEN d ELSE 0 END"
        told = " ".join(
            f"WHEN {d} THEN {self.dialect.constant(one)}" for d, one in enumerate(weights, start=1)
        )
        weight = f"CASE d {told} ELSE {self.dialect.constant(1)} END"
        return (
            f"{self._with_kept()}SELECT {keys}, {more} AS more, sum({weight}) FROM ({counted}) AS c"
            f" GROUP BY {keys}, {more}"
        )

    def units_outside(self, chosen: tuple[int, ...], shown: Keys) -> str:
        """Return the statement of how many units are kept in some group that is not shown."""
        own = self._outside(chosen, shown)
        return f"{self._with_kept()}SELECT count(DISTINCT __unit) FROM ({own}) AS o"

    def _outside(self, chosen: tuple[int, ...], without: Keys) -> str:
        """Return who is kept where, each once, but for some groups."""
        keys = [f"k{place}" for place in chosen]
        once = "" if self._finest(chosen) else "DISTINCT "
        own = f"SELECT {once}__unit, {', '.join(keys)} FROM {self._kept_name}"
        tests = []  # one for each set of keys that are NULL: engines join by equality alone in good time
        for absent in dict.fromkeys(tuple(value is None for value in row) for row in without):
            rows = [row for row in without if tuple(value is None for value in row) == absent]
            same = " AND ".join(
                f"o.{key} IS NULL" if gone else f"f.{key} = o.{key}"
                for key, gone in zip(keys, absent, strict=True)
            )
            tests.append(f"NOT EXISTS (SELECT 1 FROM ({self._listed(rows, chosen)}) AS f WHERE {same})")
        return f"SELECT * FROM ({own}) AS o WHERE {' AND '.join(tests)}" if tests else own

    def _finest(self, chosen: tuple[int, ...]) -> bool:
        """Return whether a unit has one entry in each group of a grouping set."""
        return self._by_row or len(set(chosen)) == len(self.values.kinds)

    @staticmethod
    def _adds(measure: Measure) -> bool:
        return measure.kind in (MeasureKind.MOMENT, MeasureKind.UNITS)

    def _sum(self, measure: Measure, units: str) -> str:
        names = list(self.values.integers)
        integer = self.values.integers[measure.name]
        place = names.index(measure.name)
        if measure.kind is MeasureKind.UNITS:
            there = "" if integer is None else f" FILTER (WHERE s{place} > 0)"
            return f"{units}{there}"
        total = "n"
        if integer is not None:
            total = f"coalesce(s{place}, 0)"
            scale = self._number(f"'{integer.scale}'", measure)
            total = total if integer.scale == 1 else f"({total} * {scale})"
        if measure.clamp is None:
            return f"coalesce({self._unit_sum(self._weighed(total, measure), measure)}, 0)"
        low, high = (self._number(f"'{end}'", measure) for end in measure.clamp)
        clamped = f"least(greatest({total}, {low}), {high})"
        if measure.skips_absent:
            seen = names.index(presence(measure.name))
            clamped = f"CASE WHEN coalesce(s{seen}, 0) > 0 THEN {clamped} ELSE 0 END"
        return f"coalesce({self._unit_sum(clamped, measure)}, 0)"

    def _weighed(self, total: str, measure: Measure) -> str:
        return f"CASE WHEN top = bottom THEN {total} ELSE {self._share(total, measure)} END"
