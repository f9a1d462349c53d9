"""Backends whose engine bounds contributions itself: statements go in, exact integers of groups come out."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Protocol, Self, TypeVar

from sfumato.analysis.bounded import BoundedQuery
from sfumato.analysis.join_fanout import refuse_copies
from sfumato.analysis.shapes import scans
from sfumato.backends.arrays import arrow_array
from sfumato.backends.exact import Exact, ExactGroups, UnitRows
from sfumato.backends.group_keys import GroupKeys, key_columns
from sfumato.backends.group_reader import GroupReader
from sfumato.backends.relations import Relations
from sfumato.backends.statements import Statements
from sfumato.catalog.catalog import Catalog
from sfumato.catalog.kind import Value
from sfumato.catalog.table import Table
from sfumato.errors import EngineFailure, EngineStopped, Unsupported
from sfumato.plan.tree import ColumnRef, Expression, Projection, Relation, Scan

if TYPE_CHECKING:
    from sfumato.backends.duckdb.participants import Participants
    from sfumato.backends.duckdb.period_rows import PeriodRows

__all__ = ["EngineBackend", "EngineTables"]

_T = TypeVar("_T")
_Row = tuple[Any, ...]


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
                self.check_statement(text)
        except Unsupported as error:
            refused = error
        if refused is not None:
            hint = f"{self.statements.engine} does not compute this with the meaning that it has elsewhere"
            raise Unsupported(refused.message, hints=refused.hints or (hint,))
        if query.row_unit:
            refuse_copies((query,), self._catalog, self.public_copies)

    def check_statement(self, text: str) -> None:
        """Refuse a statement that cannot be sent."""
        with suppress(UnicodeEncodeError):
            text.encode()
            return
        raise Unsupported("a text that is not valid unicode")

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
                own = GroupReader(
                    read=lambda text: self._columns(cursor, text),
                    later=lambda text, convert: self._guarded(lambda own: convert(self._columns(own, text))),
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
        """Hold what one question needs of the engine."""
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
