"""Backends whose engine bounds contributions itself: statements go in, exact integers of groups come out."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt

from sfumato.analysis.bounded import BoundedQuery, Measure, MeasureKind
from sfumato.analysis.join_fanout import refuse_copies
from sfumato.analysis.shapes import scans
from sfumato.backends.arrays import array_of, arrow_array, keys_at
from sfumato.backends.exact import Exact, ExactGroups, UnitRows
from sfumato.backends.group_keys import GroupKeys, key_columns
from sfumato.backends.relations import Relations
from sfumato.backends.statements import Keys, Statements
from sfumato.backends.totals import SparseCells, empty, sum_by_group
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
_Integers = npt.NDArray[np.int64]
_WEIGHTS = 64  # that the engine itself adds up
_Read = Callable[[str], Sequence[Any]]  # runs a statement, and returns its columns: Arrow's, or tuples


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
            for text in (text for chosen in query.grouping_sets for text in written.texts(chosen)):
                _refuse_unsendable(text)
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

            def look(cursor: Any) -> tuple[ExactGroups, ...]:
                several = query.members or len(query.grouping_sets) > 1
                held = self._hold(cursor, written) if several and query.declared is None else written
                own = _Reading(
                    read=lambda text: self._columns(cursor, text),
                    later=lambda text: self._guarded(lambda cursor: self._columns(cursor, text)),
                    written=held,
                )
                return tuple(map(own.groups, query.grouping_sets))

            return Exact(self._guarded(look))
        raise EngineFailure

    def _hold(self, cursor: Any, written: Statements) -> Statements:
        """Let the engine hold what several statements of one question read, if it can."""
        return written

    def _columns(self, cursor: Any, text: str) -> Sequence[Any]:
        """Run a statement, and return its columns."""
        rows = cursor.execute(text).fetchall()
        return list(zip(*rows, strict=True)) or [()] * len(cursor.description)

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
        kinds = tuple(key.kind for key in keys if key.kind)
        values = [
            dialect.canonical(dialect.expression(key, below.names), key.kind) for key in keys if key.kind
        ]
        listed = ", ".join(f"{value} AS k{place}" for place, value in enumerate(values))
        there = " AND ".join(f"k{place} IS NOT NULL" for place in range(len(values)))
        inner = f"SELECT {listed} FROM ({below.sql}) AS r"
        rows = self._before(f"SELECT DISTINCT * FROM ({inner}) AS k WHERE {there} LIMIT {most + 1}")
        if len(rows) > most:
            return None
        columns = list(zip(*rows, strict=True)) or [()] * len(kinds)
        return tuple(GroupKeys(key_columns(columns, kinds), len(rows), kinds).keys)

    def _public(self, name: str) -> Table:
        table = self._catalog.table(name)
        if table is None or table.private:
            raise Unsupported("rows of a table that is not public")
        return table

    def _before(self, text: str) -> list[_Row]:
        """Read something public, before anything is charged: say so if it cannot be read."""
        self._tables.version()
        return self._guarded(lambda cursor: cursor.execute(text).fetchall())

    def _relations(self) -> Relations:
        return Relations(catalog=self._catalog, dialect=self.statements.dialect, stored=self._tables.stored)

    def _statements(self, query: BoundedQuery, salt: int) -> Statements:
        return self.statements.of(query, self._relations(), salt=salt)

    def _guarded(self, action: Callable[[Any], _T]) -> _T:
        """Do something with one state; an error is raised here: not even its context holds a value."""
        done: list[_T] = []
        try:
            with self._tables.reading() as cursor:
                done.append(action(cursor))
        except Exception:
            done.clear()
        if not done:
            raise EngineFailure
        return done[0]


def _refuse_unsendable(text: str) -> None:
    """Refuse a statement that cannot be sent."""
    with suppress(UnicodeEncodeError):
        text.encode()
        return
    raise Unsupported("a text that is not valid unicode")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class _Reading:
    """Reads the exact integers of a question: `read` runs a statement now, `later` one after `run`."""

    read: _Read
    later: _Read
    written: Statements

    def groups(self, chosen: tuple[int, ...]) -> ExactGroups:
        """Return the groups of a grouping set, empty ones that are declared among them."""
        query, size = self.written.values.query, len(chosen)
        kinds = tuple(self.written.values.kinds[place] for place in chosen)
        columns = self.read(self.written.totals(chosen))
        keys, numbers = key_columns(columns[:size], kinds), columns[size:]
        if size and self.written.plainly_declared and not self.written.fills:
            keys, numbers = _with_declared(keys, numbers, kinds, self._declared(chosen))
        groups = GroupKeys(keys, len(numbers[0]), kinds)
        sizes, units, *sums = numbers if self.written.tells_sizes(chosen) else (None, *numbers)
        counted = _summed(_whole(units), groups)
        measures: dict[str, Any] = {}
        for measure in query.measures:
            match measure.kind:
                case MeasureKind.MOMENT | MeasureKind.UNITS:
                    measures[measure.name] = _summed(_integers(measure, sums.pop(0)), groups)
                case MeasureKind.CELLS:
                    found = self.read(self.written.cells(measure, chosen))
                    measures[measure.name] = _cells(measure, found, groups, kinds)
                case MeasureKind.DISTINCT:
                    found = self.read(self.written.distinct(measure, chosen))
                    measures[measure.name] = _distinct(measure, found, groups, kinds)
        if query.declared is not None or not chosen:
            dense = {name: np.asarray(values) for name, values in measures.items()}
            return ExactGroups(grouping_set=chosen, keys=groups.keys, measures=dense, units=None)
        members = None
        if query.members and not query.row_unit:
            first = None if sizes is None else (groups.of_rows, _whole(sizes), _whole(units))
            members = _Members(
                groups=groups, chosen=chosen, kinds=kinds, first=first, read=self.later, written=self.written
            )
        return ExactGroups(
            grouping_set=chosen, keys=groups.keys, measures=measures, units=counted, members=members
        )

    def _declared(self, chosen: tuple[int, ...]) -> list[tuple[Value, ...]]:
        declared = self.written.values.query.declared or ()
        return list(dict.fromkeys(tuple(key[place] for place in chosen) for key in declared))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class _Members:
    """Asks the engine again for each round of a selection: who is in which groups stays there.

    The totals of a question may tell already what the first round asks: `first` has places of groups, sizes
    d, and how many units of the group are in d groups.

    Theorem: what a round learns is bounded for every state of the tables (`analysis.selection`), and what was
    found before is public by then. So rounds compose also where rows come or go between them; a group that
    was not there before is left out, and one that is gone weighs nothing.
    """

    groups: GroupKeys
    chosen: tuple[int, ...]
    kinds: tuple[Kind, ...]
    first: tuple[_Integers, _Integers, _Integers] | None
    read: _Read
    written: Statements

    def __repr__(self) -> str:
        return "<members: hidden>"

    def weights(self, found: npt.NDArray[np.bool_], weight: Callable[[int], int]) -> _Integers:
        if self.first is not None and not found.any():
            places, sizes, units = self.first
        else:
            most = min(self.written.values.query.max_groups or _WEIGHTS, _WEIGHTS)
            told = [weight(size) for size in range(1, most + 1)]
            text = self.written.members(self.chosen, self._keys(found), told)
            *keys, more, counted = self.read(text)
            sizes, units = _whole(more), _whole(counted)
            places = self.groups.places(key_columns(keys, self.kinds), len(units))
        there = places >= 0
        different, which = np.unique(sizes[there], return_inverse=True)
        weights = [weight(size) if size else 1 for size in different.tolist()]  # 0: it is weighed already
        added = np.array(weights, dtype=np.int64)[which] * units[there]
        return sum_by_group(places[there], added, len(found)).astype(np.int64)

    def units_outside(self, shown: npt.NDArray[np.bool_]) -> int:
        [counted] = self.read(self.written.units_outside(self.chosen, self._keys(shown)))
        return int(_whole(counted)[0])

    def _keys(self, flags: npt.NDArray[np.bool_]) -> Keys:
        return list(keys_at(self.groups.keys, np.flatnonzero(flags)))


def _with_declared(
    keys: tuple[Any, ...], numbers: Sequence[Any], kinds: tuple[Kind, ...], declared: Keys
) -> tuple[tuple[Any, ...], list[Any]]:
    """Return the rows of totals, and a row of zeros for each declared group: nobody may be in it."""
    import pyarrow

    more = key_columns(list(zip(*declared, strict=True)), kinds)
    zeros = np.zeros(len(declared), dtype=np.int64)
    return (
        tuple(pyarrow.chunked_array([*one.chunks, *two.chunks]) for one, two in zip(keys, more, strict=True)),
        [np.concatenate([_whole(column), zeros]) for column in numbers],
    )


def _whole(column: Any) -> npt.NDArray[Any]:
    """Return a column of whole numbers as an array; of Python's integers where they are beyond 64 bits."""
    import pyarrow

    if isinstance(column, np.ndarray):
        return column
    if isinstance(column, pyarrow.ChunkedArray):
        if pyarrow.types.is_integer(column.type):
            return array_of(column).astype(np.int64, copy=False)
        column = column.to_pylist()
    values = [int(value) for value in column]
    wide = any(abs(value) >= 2**63 for value in values)
    return np.array(values, dtype=object if wide else np.int64)


def _integers(measure: Measure, column: Any) -> npt.NDArray[Any]:
    """Return a column as the integers of a measure, whose type is a fact of public bounds."""
    return _whole(column).astype(empty(measure, 0).dtype, copy=False)


def _summed(values: npt.NDArray[Any], groups: GroupKeys) -> npt.NDArray[Any]:
    return sum_by_group(groups.of_rows, values, len(groups)).astype(values.dtype, copy=False)


def _distinct(
    measure: Measure, columns: Sequence[Any], groups: GroupKeys, kinds: tuple[Kind, ...]
) -> npt.NDArray[Any]:
    *keys, numbers = columns
    values = _integers(measure, numbers)
    places = groups.places(key_columns(keys, kinds), len(values))
    found, there = empty(measure, len(groups)), places >= 0
    found[places[there]] = values[there]
    return found


def _cells(
    measure: Measure, columns: Sequence[Any], groups: GroupKeys, kinds: tuple[Kind, ...]
) -> SparseCells:
    *keys, numbers, added = columns
    values = _integers(measure, added)
    places = groups.places(key_columns(keys, kinds), len(values))
    there = (places >= 0) & (values != 0)
    width = len(measure.edges) - 1
    at, values = (places * width + _whole(numbers))[there], values[there]
    order = np.argsort(at)
    return SparseCells(len(groups), width, at[order], values[order])
