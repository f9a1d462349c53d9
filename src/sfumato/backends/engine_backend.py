"""Backends whose engine bounds contributions itself: statements go in, exact integers of groups come out."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt

from sfumato.analysis.bounded import BoundedQuery, Measure, MeasureKind
from sfumato.analysis.join_fanout import refuse_copies
from sfumato.analysis.shapes import scans
from sfumato.backends.arrays import arrow_array
from sfumato.backends.exact import Exact, ExactGroups, Membership, UnitRows
from sfumato.backends.relations import Relations
from sfumato.backends.statements import Keys, Statements
from sfumato.backends.totals import SparseCells, empty
from sfumato.catalog.catalog import Catalog
from sfumato.catalog.kind import Kind, Value
from sfumato.catalog.table import Table
from sfumato.errors import EngineFailure, EngineStopped, Unsupported
from sfumato.plan.tree import ColumnRef, Expression, Projection, Relation, Scan

if TYPE_CHECKING:
    from sfumato.backends.duckdb.participants import Participants
    from sfumato.backends.duckdb.period_rows import PeriodRows

__all__ = ["EngineBackend", "EngineTables"]

_T = TypeVar("_T")
_Row = tuple[Any, ...]
_Read = Callable[[str], list[_Row]]  # runs a statement, and returns its rows


class EngineTables(Protocol):
    """Open tables of an engine."""

    def stored(self, table: str) -> str:
        """Return what to read FROM for a table."""
        ...

    def version(self) -> str:
        """Return a hash that differs where the data may differ; refuse what is gone."""
        ...

    def admitted(self) -> AbstractContextManager[None]:
        """Hold what one question needs of the engine; wait for it while others run."""
        ...

    def reading(self) -> AbstractContextManager[Any]:
        """Return a cursor that reads one state of the tables."""
        ...


class EngineBackend:
    """Computes bounded queries over open tables. What goes wrong in the engine is `EngineFailure`."""

    statements: ClassVar[type[Statements]]

    def __init__(self, tables: EngineTables, catalog: Catalog) -> None:
        self._tables = tables
        self._catalog = catalog

    def check(self, query: BoundedQuery) -> None:
        """Refuse a query that this engine has no words for, and joins that make two units of a row."""
        refused: Unsupported | None = None
        try:
            written = self._statements(query, 0)
            for chosen in query.grouping_sets:  # as `run` does: what has no words is in one of its statements
                _groups(_unread, written, chosen)
        except Unsupported as error:
            refused = error
        if refused is not None:
            hint = f"{self.statements.engine} does not compute this with the meaning that it has elsewhere"
            raise Unsupported(refused.message, hints=refused.hints or (hint,))
        if query.row_unit:
            refuse_copies((query,), self._catalog, self.public_copies)

    def public_copies(self, name: str, columns: tuple[str, ...]) -> int:
        """Return how many rows of a public table have the same values, at most; without columns, all."""
        table = self._public(name)
        fields = [field for field in map(table.field, columns) if field is not None]
        if len(fields) < len(columns):
            raise Unsupported("columns that are not in the catalog")
        named = tuple(ColumnRef(name=field.name, kind=field.kind) for field in fields)
        below = self._relations().render(Scan(table=name, alias=name, columns=named))
        keys = list(below.names.values())
        there = " AND ".join(f"{key} IS NOT NULL" for key in keys)  # NULL equals nothing
        grouped = f" WHERE {there} GROUP BY {', '.join(keys)}" if keys else ""
        counts = f"SELECT count(*) AS n FROM ({below.sql}) AS r{grouped}"
        text = f"SELECT coalesce(max(n), 0) FROM ({counts}) AS c"
        [(copies,)] = self._before(text)
        return int(copies)

    def run(
        self,
        query: BoundedQuery,
        *,
        participants: Participants | None = None,
        rows: PeriodRows | None = None,
        _salt: int | None = None,
    ) -> Exact[tuple[ExactGroups, ...]]:
        """Return the exact integers of every group, one entry per grouping set."""
        if participants is not None or rows is not None:
            self.check_rows("streams over")
        with suppress(EngineStopped):  # it says that nothing was charged
            self.check(query)
            written = self._statements(query, secrets.randbits(64) if _salt is None else _salt)
            found = self._guarded(
                lambda read: tuple(_groups(read, written, chosen) for chosen in query.grouping_sets)
            )
            if not query.members:
                return Exact(found)
            return Exact(tuple(replace(one, members=self._members(one, written)) for one in found))
        raise EngineFailure

    def check_rows(self, purpose: str) -> NoReturn:
        """Refuse what needs rows: only integers of groups leave the engine."""
        raise Unsupported(
            f"{purpose} tables of {self.statements.engine}",
            hints=("only totals of groups leave the engine, and this needs rows: ask a file of the table",),
        )

    def training_rows(self, relation: Projection) -> Exact[UnitRows]:
        """Refuse to hand out rows: only integers of groups leave the engine."""
        self.check_rows("training on")

    def row_hash(self) -> str:
        """Refuse streams, which know rows by their hashes."""
        self.check_rows("streams over")

    def parts(self, name: str) -> tuple[str, ...]:
        """Refuse streams, which know the files of a table."""
        self.check_rows("streams over")

    def admitted(self) -> AbstractContextManager[None]:
        """Wait for nothing: the engine shares out its memory itself."""
        return self._tables.admitted()

    def data_version(self) -> str:
        """Return what tells this data from an earlier or later state of it: see the engine's `source`."""
        return self._tables.version()

    def check_names(self) -> None:
        """Let all names pass: texts are UTF-8, and moments have microseconds."""

    def under(self, catalog: Catalog) -> Self:
        """Return a backend over the same data under other declarations."""
        return type(self)(self._tables, catalog)

    def public_table(self, name: str) -> Any:
        """Return a public table in Arrow's form, for post-processing."""
        import pyarrow

        table = self._public(name)
        columns = tuple(ColumnRef(name=field.name, kind=field.kind) for field in table.fields)
        below = self._relations().render(Scan(table=name, alias=name, columns=columns))
        listed = ", ".join(below.names[field.name] for field in table.fields)
        rows = self._before(f"SELECT {listed} FROM ({below.sql}) AS r")
        found = list(zip(*rows, strict=True)) or [()] * len(table.fields)
        arrays = [arrow_array(one, field.kind) for one, field in zip(found, table.fields, strict=True)]
        return pyarrow.table(arrays, names=[field.name for field in table.fields])

    def public_keys(
        self, relation: Relation, keys: Sequence[Expression], most: int
    ) -> tuple[tuple[Value, ...], ...] | None:
        """Return the different values of keys over public rows in their order, without NULL.

        None: there are more than `most`.
        """
        for scan in scans(relation):
            self._public(scan.table)
        below, dialect = self._relations().render(relation), self.statements.dialect
        kinds = [key.kind for key in keys if key.kind]
        values = [
            dialect.canonical(dialect.expression(key, below.names), key.kind) for key in keys if key.kind
        ]
        listed = ", ".join(f"{value} AS k{place}" for place, value in enumerate(values))
        there = " AND ".join(f"k{place} IS NOT NULL" for place in range(len(values)))
        order = ", ".join(str(place + 1) for place in range(len(values)))
        inner = f"SELECT {listed} FROM ({below.sql}) AS r"
        text = f"SELECT DISTINCT * FROM ({inner}) AS k WHERE {there} ORDER BY {order} LIMIT {most + 1}"
        rows = self._before(text)
        return None if len(rows) > most else tuple(_key(row, kinds) for row in rows)

    def _public(self, name: str) -> Table:
        table = self._catalog.table(name)
        if table is None or table.private:
            raise Unsupported("rows of a table that is not public")
        return table

    def _before(self, text: str) -> list[_Row]:
        """Read something public, before anything is charged: say so if it cannot be read."""
        self._tables.version()
        return self._guarded(lambda read: read(text))

    def _relations(self) -> Relations:
        return Relations(catalog=self._catalog, dialect=self.statements.dialect, stored=self._tables.stored)

    def _statements(self, query: BoundedQuery, salt: int) -> Statements:
        return self.statements.of(query, self._relations(), salt=salt)

    def _members(self, groups: ExactGroups, written: Statements) -> Membership | None:
        if groups.units is None or written.values.query.row_unit:
            return None
        kinds = [written.values.kinds[place] for place in groups.grouping_set]
        return _Members(
            groups=groups,
            written=written,
            places={key: place for place, key in enumerate(groups.keys)},
            kinds=kinds,
            read=lambda text: self._guarded(lambda read: read(text)),
        )

    def _guarded(self, action: Callable[[_Read], _T]) -> _T:
        """Do something with one state; an error is raised here: not even its context holds a value."""
        done: list[_T] = []
        try:
            with self._tables.reading() as cursor:
                done.append(action(lambda text: cursor.execute(text).fetchall()))
        except Exception:
            done.clear()
        if not done:
            raise EngineFailure
        return done[0]


def _unread(text: str) -> list[_Row]:
    """Read nothing of a statement; refuse one that cannot be sent."""
    with suppress(UnicodeEncodeError):
        text.encode()
        return []
    raise Unsupported("a text that is not valid unicode")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class _Members:
    """Asks the engine again for each round of a selection: who is in which groups stays there.

    Theorem: what a round learns is bounded for every state of the tables (`analysis.selection`), and what was
    found before is public by then. So rounds compose also where rows come or go between them; a group that
    was not there before is left out, and one that is gone weighs nothing.
    """

    groups: ExactGroups
    written: Statements
    places: Mapping[tuple[Value, ...], int]
    kinds: list[Kind]
    read: _Read

    def __repr__(self) -> str:
        return "<members: hidden>"

    def weights(self, found: npt.NDArray[np.bool_], weight: Callable[[int], int]) -> npt.NDArray[np.int64]:
        total = np.zeros(len(found), dtype=np.int64)
        for *key, number, units in self.read(self.written.members(*self._without(found))):
            place = self.places.get(_key(tuple(key), self.kinds))
            if place is not None:
                total[place] += weight(number) * units
        return total

    def units_outside(self, shown: npt.NDArray[np.bool_]) -> int:
        [(units,)] = self.read(self.written.units_outside(*self._without(shown)))
        return int(units)

    def _without(self, flags: npt.NDArray[np.bool_]) -> tuple[tuple[int, ...], Keys]:
        return self.groups.grouping_set, [self.groups.keys[place] for place in np.flatnonzero(flags).tolist()]


class _HiddenKeys(list[tuple[Value, ...]]):
    """Keys that are private until they are selected, also where a crash reporter shows variables."""

    def __repr__(self) -> str:
        return "<keys: hidden>"


def _groups(read: _Read, written: Statements, chosen: tuple[int, ...]) -> ExactGroups:
    query, kinds = written.values.query, [written.values.kinds[place] for place in chosen]
    size = len(chosen)
    rows = read(written.totals(chosen))
    if size and written.plainly_declared and not written.fills:
        rows = _filled(rows, written, chosen)
    if size and not written.sorts:
        rows.sort(key=lambda row: [(value is None, value) for value in row[:size]])
    keys = [_key(row[:size], kinds) for row in rows]
    places = {key: place for place, key in enumerate(keys)}
    measures: dict[str, Any] = {}
    added = [one for one in query.measures if one.kind in (MeasureKind.MOMENT, MeasureKind.UNITS)]
    for place, measure in enumerate(added):
        measures[measure.name] = _integers(measure, [row[size + 1 + place] for row in rows])
    for measure in query.measures:
        if measure.kind is MeasureKind.CELLS:
            found = read(written.cells(measure, chosen))
            measures[measure.name] = _cells(measure, found, places, kinds, size)
        elif measure.kind is MeasureKind.DISTINCT:
            by_key = {
                _key(row[:size], kinds): row[size] or 0 for row in read(written.distinct(measure, chosen))
            }
            measures[measure.name] = _integers(measure, [by_key.get(key, 0) for key in keys])
    measures = {one.name: measures[one.name] for one in query.measures}
    if query.declared is not None or not chosen:
        dense = {name: np.asarray(values) for name, values in measures.items()}
        return ExactGroups(grouping_set=chosen, keys=keys, measures=dense, units=None)
    units = np.array([row[size] for row in rows], dtype=np.int64)
    return ExactGroups(grouping_set=chosen, keys=_HiddenKeys(keys), measures=measures, units=units)


def _filled(rows: list[_Row], written: Statements, chosen: tuple[int, ...]) -> list[_Row]:
    """Return the totals of a grouping set, and zeros for declared groups that nobody is in."""
    query = written.values.query
    added = [one for one in query.measures if one.kind in (MeasureKind.MOMENT, MeasureKind.UNITS)]
    empty_groups = {
        tuple(key[place] for place in chosen): (0,) * (1 + len(added)) for key in query.declared or ()
    }
    found = {row[: len(chosen)]: row[len(chosen) :] for row in rows}
    return [(*key, *values) for key, values in {**empty_groups, **found}.items()]


def _key(row: _Row, kinds: list[Kind]) -> tuple[Value, ...]:
    if Kind.HUGEINT not in kinds:
        return row
    return tuple(
        int(value) if kind is Kind.HUGEINT and value is not None else value
        for value, kind in zip(row, kinds, strict=True)
    )


def _integers(measure: Measure, values: list[Any]) -> npt.NDArray[Any]:
    found = empty(measure, len(values))
    found[:] = [int(value) for value in values]
    return found


def _cells(
    measure: Measure, rows: list[_Row], places: dict[Any, int], kinds: list[Kind], size: int
) -> SparseCells:
    width = len(measure.edges) - 1
    at = [places[_key(row[:size], kinds)] * width + int(row[size]) for row in rows]
    order = np.argsort(np.array(at, dtype=np.int64))
    values = _integers(measure, [row[size + 1] for row in rows])
    held = np.flatnonzero(values[order])
    return SparseCells(len(places), width, np.array(at, dtype=np.int64)[order][held], values[order][held])
