"""The DuckDB backend: runs compiled queries, and lets nothing out but exact values that cannot be printed."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from sfumato.analysis.bounded import BoundedQuery
from sfumato.analysis.join_fanout import refuse_copies
from sfumato.analysis.shapes import scans
from sfumato.backends.arrays import Keys, array_of, python_values
from sfumato.backends.bounding.group_totals import GroupingSet, GroupTotals
from sfumato.backends.duckdb.by_row import count_rows
from sfumato.backends.duckdb.by_unit import count_units
from sfumato.backends.duckdb.compile import SUMMED_ROWS, Program, compile_query, hash_of, key_table
from sfumato.backends.duckdb.dialect import DUCKDB
from sfumato.backends.duckdb.engine import Engine, with_engine
from sfumato.backends.duckdb.participants import Participants
from sfumato.backends.duckdb.period_rows import PROBE, PeriodRows
from sfumato.backends.duckdb.totality import NAN
from sfumato.backends.duckdb.unit_numbers import UnitNumbers, number_units
from sfumato.backends.exact import Exact, ExactGroups, Members, UnitRows
from sfumato.backends.relations import Relations, Rendered
from sfumato.backends.totals import SparseCells
from sfumato.catalog.catalog import Catalog
from sfumato.catalog.identifiers import identifier
from sfumato.catalog.kind import Kind, Value
from sfumato.catalog.table import Field, Table
from sfumato.errors import EngineFailure, Unsupported
from sfumato.plan.tree import (
    ColumnRef,
    Expression,
    Listed,
    Node,
    Projection,
    PublicChoice,
    Relation,
    Scan,
    Union,
    parts,
    relations,
)

if TYPE_CHECKING:
    from sfumato.backends.duckdb.source import DuckDBTables

__all__ = ["DuckDBBackend"]

_T = TypeVar("_T")

_FEW = 1 << 20  # units that are kept by themselves
_COMPILED, _FEW_KEYS = 32, 10_000  # queries whose texts are kept, and declared keys of each of them


class DuckDBBackend:
    """Computes bounded queries over open tables.

    Whatever goes wrong in the engine becomes `EngineFailure`, which always says the same; Ctrl-C stops it.
    """

    def __init__(self, source: DuckDBTables, catalog: Catalog, *, threads: int | None = None) -> None:
        self._source = source
        self._catalog = catalog
        self._threads = threads
        self._compiled: tuple[tuple[BoundedQuery, Program], ...] = ()  # the last few, by identity

    def run(
        self,
        query: BoundedQuery,
        *,
        participants: Participants | None = None,
        rows: PeriodRows | None = None,
        _salt: int | None = None,
    ) -> Exact[tuple[ExactGroups, ...]]:
        """Return the exact integers of every group, one entry per grouping set.

        Of a period of a stream, `participants` and `rows` choose whose rows count, and which ones.
        """
        program = self._program(query)
        if program.unit is None and not (participants is None and rows is None):
            raise Unsupported("periods where each row is a unit by itself")
        self._one_row_each(query)
        salt = secrets.randbits(64) if _salt is None else _salt

        def look() -> tuple[ExactGroups, ...]:
            used = _used(query) if rows is not None or self._source.texts_unread else None
            if used is not None and rows is not None and rows.row_id is not None:
                used.add(rows.row_id.name)
            self._make_texts_readable(query.source, used)
            known = self._known(program, names=participants is not None or rows is not None)
            numbered = known.numbers is not None

            def count(engine: Engine) -> tuple[ExactGroups, ...]:
                with ExitStack() as stack:
                    counting = None
                    if rows is not None:
                        below = self._read(rows.relation, used)
                        newer = self._read(rows.relation, used, rows.parts)
                        counting = (rows.relation, stack.enter_context(rows.counting(engine, below, newer)))
                    text = program
                    if numbered or counting is not None:
                        text = compile_query(query, self._catalog, row_numbers=numbered, stand_in=counting)
                    return _groups(engine, text, salt, self._threads, known, participants)

            return with_engine(self._source.cursor(), count)

        return Exact(self._guarded(look))

    def check_rows(self, purpose: str) -> None:
        """Let everything pass: rows are read here."""

    def training_rows(self, relation: Projection) -> Exact[UnitRows]:
        """Return the rows of a relation of numbers, a unit's own beside each other.

        A function of the rows of one unit is then a function of what that unit has in the tables, and of
        nothing else: see `plan.unit_safety`. The names of units decide the order, and nothing else.
        """
        below = Relations(catalog=self._catalog, dialect=DUCKDB).render(relation)
        if below.unit is None and not below.by_row:
            raise Unsupported("training on rows without a unit")
        numbers = [f"coalesce(CAST({name} AS DOUBLE), {NAN})" for name in below.names.values()]
        ranks = ["dense_rank() OVER (ORDER BY __unit)"] if below.unit else []
        listed = (f"{sql} AS c{place}" for place, sql in enumerate([*ranks, *numbers]))
        text = f"SELECT {', '.join(listed)} FROM ({below.sql}){' ORDER BY c0' if ranks else ''}"

        def look() -> UnitRows:
            self._make_texts_readable(relation, _named(relation))
            found = with_engine(self._source.cursor(), lambda engine: engine.columns(text))
            size = len(found[0])
            starts = np.flatnonzero(np.diff(found.pop(0), prepend=0)) if ranks else np.arange(size)
            return UnitRows(
                columns={
                    name: values.astype(np.float64, copy=False)
                    for name, values in zip(below.names, found, strict=True)
                },
                sizes=np.diff(starts, append=size),
            )

        return Exact(self._guarded(look))

    def row_hash(self) -> str:
        """Return what tells the hashes of rows from those of another version of the engine."""
        return str(self._guarded(lambda: self._source.once(PROBE, lambda engine: engine.one(PROBE))))

    def parts(self, name: str) -> tuple[str, ...]:
        """Return a hash of each file of a table, where each row is made of one row of one file; else one.

        A hash differs where the file may differ, or any other table, or a column of any table.
        """
        table = self._catalog.table(name)
        by_file = (
            table is not None and table.partition is None and not (table.unit is not None and table.unit.path)
        )
        return self._source.parts(name, by_file=by_file)

    def _read(
        self, relation: Relation, used: set[str] | None, parts: tuple[int, ...] | None = None
    ) -> Rendered:
        """Return a relation with the columns that a question reads, or its rows in some files of a table."""
        below = Relations(catalog=self._catalog, dialect=DUCKDB, parts=parts).render(relation)
        names = {name: column for name, column in below.names.items() if used is None or name in used}
        return replace(below, names=names)

    def admitted(self) -> AbstractContextManager[None]:
        """Hold the memory that one question declares; wait for it while others run."""
        return self._source.admitted()

    def data_version(self) -> str:
        """Return what tells this data from an earlier or later state of it."""
        return self._source.version()

    def public_table(self, name: str) -> Any:
        """Return a public table in Arrow's form, for post-processing."""
        table = self._public(name)
        rendered = self._rows(table, table.fields)
        listed = (f"{rendered.names[field.name]} AS {identifier(field.name)}" for field in table.fields)
        text = f"SELECT {', '.join(listed)} FROM ({rendered.sql})"
        return self._before(text, lambda engine: engine.table(text))

    def under(self, catalog: Catalog) -> DuckDBBackend:
        """Return a backend over the same data under other declarations."""
        return DuckDBBackend(self._source, catalog, threads=self._threads)

    def public_keys(
        self, relation: Relation, keys: Sequence[Expression], most: int
    ) -> tuple[tuple[Value, ...], ...] | None:
        """Return the different values of keys over public rows in their order, without NULL.

        None: there are more than `most`.
        """
        for scan in scans(relation):
            self._public(scan.table)

        def read(engine: Engine) -> Any:
            with ExitStack() as stack:

                def give(listed: Listed) -> str:
                    kinds = [column.kind for column in listed.columns]
                    return stack.enter_context(engine.given(key_table(kinds, listed.rows)))

                below = Relations(catalog=self._catalog, dialect=DUCKDB, given=give).render(relation)
                values = [
                    DUCKDB.canonical(DUCKDB.expression(key, below.names), key.kind)
                    for key in keys
                    if key.kind
                ]
                listed = ", ".join(f"{value} AS k{place}" for place, value in enumerate(values))
                there = " AND ".join(f"k{place} IS NOT NULL" for place in range(len(values)))
                text = f"SELECT DISTINCT * FROM (SELECT {listed} FROM ({below.sql})) WHERE {there}"
                return engine.table(f"{text} ORDER BY ALL LIMIT {most + 1}")

        named = Relations(catalog=self._catalog, dialect=DUCKDB, given=lambda _: "listed").render(relation)
        found = self._before(named.sql, read)
        if len(found) > most:
            return None
        columns = [python_values(one, key.kind) for one, key in zip(found.columns, keys, strict=True)]
        return tuple(zip(*columns, strict=True))

    def public_copies(self, name: str, columns: tuple[str, ...]) -> int:
        """Return how many rows of a public table have the same values, at most; without columns, all."""
        table = self._public(name)
        fields = [field for field in map(table.field, columns) if field is not None]
        if len(fields) < len(columns):
            raise Unsupported("columns that are not in the catalog")
        rendered = self._rows(table, fields)
        names = list(rendered.names.values())
        there = " AND ".join(f"{one} IS NOT NULL" for one in names)  # NULL equals nothing
        grouped = f" WHERE {there} GROUP BY {', '.join(names)}" if names else ""
        text = f"SELECT coalesce(max(n), 0) FROM (SELECT count(*) AS n FROM ({rendered.sql}){grouped})"
        return int(self._before(text, lambda engine: engine.one(text)))

    def check(self, query: BoundedQuery) -> None:
        """Refuse a query that this engine has no words for. Reads nothing."""
        program = self._program(query)
        self._one_row_each(query)
        if query.declared is not None and program.kinds:
            key_table(program.kinds, query.declared)

    def _program(self, query: BoundedQuery) -> Program:
        """Return the texts of a query: it is compiled once, to be checked, and run later."""
        for compiled, program in self._compiled:
            if compiled is query:
                return program
        program = compile_query(query, self._catalog)
        if len(query.declared or ()) <= _FEW_KEYS:
            self._compiled = ((query, program), *self._compiled[: _COMPILED - 1])
        return program

    def check_names(self) -> None:
        """Refuse names of units, and keys on the way to them, of which two are read as one.

        These are texts that are not UTF-8, and moments in nanoseconds: people would become one.
        """
        for table in self._catalog.tables:
            if table.unit is None or table.unit.column is None:
                continue
            at, found = table.name, []
            for link in table.unit.path:
                found += [(at, link.column), (link.table, link.key)]
                at = link.table
            for name, column in (*found, (at, table.unit.column)):
                with self._source.admitted():
                    self._source.check_name(name, column)

    def _make_texts_readable(self, relation: Relation, used: set[str] | None) -> None:
        """Let no text that is not UTF-8 make a query fail: see `DuckDBTables`."""
        if not self._source.texts_unread:
            return
        writer, named = Relations(catalog=self._catalog, dialect=DUCKDB), []
        for scan in scans(relation):
            columns = tuple(one for one in scan.columns if used is None or one.name in used)
            named.append(writer.render(replace(scan, columns=columns)).sql)
        self._source.make_texts_readable(" ".join(named))

    def _few_rows(self, query: BoundedQuery) -> bool:
        """Return whether sums over all rows of a query's table are exact."""
        [scan] = scans(query.source)
        text = f"SELECT count(*) < {SUMMED_ROWS} FROM {identifier(scan.table)}"
        return bool(self._source.once(text, lambda engine: engine.one(text)))

    def _known(self, program: Program, *, names: bool) -> _Known:
        """Return what is known of the units of a query's tables, or find it out; `names` have to be read.

        It may decide how a question is answered, and never with what.
        """
        query = program.query
        if program.unit is None:
            return _Known()
        numbers = self._numbers(query) if program.reads_names and not names else None
        hashed = program.unit is Kind.TEXT and numbers is None and self._told_apart(query)
        whole = program.sums_whole and self._few_rows(query)
        heavy = self._heavy(program, hashed) if whole else None
        return _Known(numbers=numbers, hashed=hashed, whole=whole, heavy=heavy)

    def _numbers(self, query: BoundedQuery) -> UnitNumbers | None:
        """Return the number of the unit of each row of a query's only table."""
        [scan] = scans(query.source)
        table = self._catalog.table(scan.table)
        if table is None or table.partition is not None or not self._source.number_rows(scan.table):
            return None
        units = Relations(catalog=self._catalog, dialect=DUCKDB).units_by_row(scan.table)
        return self._source.once(units, lambda engine: number_units(engine, units))

    def _heavy(self, program: Program, hashed: bool) -> Any | None:
        """Return the units that have more rows in a query's only table than count; None: they are not few.

        A unit has no more rows after a filter than before it.
        """
        [scan] = scans(program.query.source)
        rows = Relations(catalog=self._catalog, dialect=DUCKDB).render(replace(scan, columns=())).sql
        text = f"{program.many_rows(f'({_unit_hashes(rows) if hashed else rows})')} LIMIT {_FEW + 1}"
        found = self._source.once(text, lambda engine: engine.table(text))
        return found if len(found) <= _FEW else None

    def _told_apart(self, query: BoundedQuery) -> bool:
        """Return whether hashes tell all units of a query's tables apart; then they may stand for units."""
        writer, units = Relations(catalog=self._catalog, dialect=DUCKDB), []
        for scan in scans(query.source):
            rendered = writer.render(replace(scan, columns=()))
            if rendered.unit is not None:
                units.append(f"SELECT CAST(__unit AS VARCHAR) AS who FROM ({rendered.sql})")
        who = f"SELECT DISTINCT who FROM ({' UNION ALL '.join(units)})"
        text = f"SELECT count(*) = count(DISTINCT {hash_of('who')}) FROM ({who})"
        return self._source.once(text, lambda engine: bool(engine.one(text)))

    def _one_row_each(self, query: BoundedQuery) -> None:
        """Refuse joins that would make several rows of one unit, each counted as a unit."""
        if query.row_unit:
            refuse_copies((query,), self._catalog, self.public_copies)

    def _public(self, name: str) -> Table:
        table = self._catalog.table(name)
        if table is None or table.private:
            raise Unsupported("rows of a table that is not public")
        return table

    def _rows(self, table: Table, fields: Sequence[Field]) -> Rendered:
        columns = tuple(ColumnRef(name=field.name, kind=field.kind) for field in fields)
        scan = Scan(table=table.name, alias=table.name, columns=columns)
        return Relations(catalog=self._catalog, dialect=DUCKDB).render(scan)

    def _before(self, sql: str, action: Callable[[Engine], _T]) -> _T:
        """Read something public that SQL names, before anything is charged: say so if it cannot be read."""
        self._source.check()

        def read() -> _T:
            self._source.make_texts_readable(sql)
            return with_engine(self._source.cursor(), action)

        return self._guarded(read)

    def _guarded(self, action: Callable[[], _T]) -> _T:
        done: list[_T] = []
        with self._source.admitted():
            try:
                done.append(action())
            except Exception:  # also a refusal, if it depends on what was found
                done.clear()
        if not done:  # raised here, so that not even the context of the exception holds a value
            raise EngineFailure
        return done[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """What is known of the units of a table: see `count_units`."""

    numbers: UnitNumbers | None = None
    hashed: bool = False
    whole: bool = False  # all rows may be added up by group alone
    heavy: Any | None = None  # an Arrow table of units that may have more rows than count; no other has


def _used(query: BoundedQuery) -> set[str] | None:
    """Return the columns that a query names; None: it may read others, by their places."""
    nodes: list[Node] = [key for _, key in query.keys]
    for measure in query.measures:
        nodes += [factor.expression for factor in measure.factors]
        nodes += [one for one in (measure.condition, measure.value) if one is not None]
        nodes += () if measure.blocks is None else measure.blocks.arguments
    return _named(query.source, nodes)


def _named(relation: Relation, more: Sequence[Node] = ()) -> set[str] | None:
    """Return the columns that a relation and expressions name; None: it may read others, by their places."""
    if any(isinstance(one, Union | PublicChoice) for one in relations(relation)):
        return None
    nodes, found = [relation, *more], set()
    while nodes:
        node = nodes.pop()
        nodes += parts(node)
        if isinstance(node, ColumnRef):
            found.add(node.name)
    return found


def _groups(
    engine: Engine,
    program: Program,
    salt: int,
    threads: int | None,
    known: _Known,
    participants: Participants | None,
) -> tuple[ExactGroups, ...]:
    query = program.query
    with ExitStack() as stack:
        text = program.rows
        if participants is not None:
            text = stack.enter_context(participants.admitted(engine, text))
        if known.hashed:
            text = _unit_hashes(text)
        kept = not program.plain and not program.sums_first
        rows = stack.enter_context(engine.named(text, kept=kept))
        # Where sums come first, there are fewer groups than rows to match.
        summed = rows
        if program.unit is None:
            summed = stack.enter_context(engine.named(program.grouped(rows)))
        whole = None
        if known.whole:
            whole = stack.enter_context(engine.named(program.added_up(rows, whole=True)))
            some = rows
            if known.heavy is not None:
                given = stack.enter_context(engine.given(known.heavy))
                heavy = stack.enter_context(engine.named(f"SELECT * FROM {given}"))
                some = f"(SELECT * FROM {rows} WHERE __unit IN (SELECT __unit FROM {heavy}))"
            many = stack.enter_context(engine.named(program.many_rows(some)))
            rows = f"(SELECT * FROM {rows} WHERE __unit IN (SELECT __unit FROM {many}))"
        if program.sums_first:
            summed = rows = stack.enter_context(engine.named(program.added_up(rows)))
        codes, columns, key_hashes = "", (), np.zeros(1, dtype=np.uint64)
        if program.kinds:
            if query.declared is None:
                dictionary = program.found(summed)
            else:
                declared = engine.given(key_table(program.kinds, query.declared))
                dictionary = program.declared(stack.enter_context(declared))
            codes = stack.enter_context(engine.named(dictionary))
            table = engine.table(f"SELECT {', '.join(program.keys)}, hashed FROM {codes} ORDER BY code")
            columns = tuple(column.combine_chunks() for column in table.columns[:-1])
            key_hashes = array_of(table.columns[-1]).astype(np.uint64, copy=False)
        sets = tuple(
            _grouping_set(engine, chosen, columns, len(key_hashes)) for chosen in query.grouping_sets
        )
        matched = program.match(rows, codes)
        if program.unit is None:
            totals = count_rows(engine, program, program.match(summed, codes), matched, sets)
        else:
            workers = threads or int(engine.one("SELECT current_setting('threads')"))
            totals = count_units(
                engine,
                program,
                rows,
                matched,
                key_hashes,
                sets,
                salt=salt,
                threads=workers,
                hashed=known.hashed,
                numbers=known.numbers,
                whole=None if whole is None else program.match(whole, codes),
            )
    return tuple(
        _exact(query, columns, program.kinds, one, total) for one, total in zip(sets, totals, strict=True)
    )


def _unit_hashes(rows: str) -> str:
    """Return rows with the hash of the unit's name where the name was."""
    return f"SELECT * REPLACE ({hash_of('__unit')} AS __unit) FROM ({rows})"


def _grouping_set(
    engine: Engine, chosen: tuple[int, ...], columns: tuple[Any, ...], size: int
) -> GroupingSet:
    """Return which group of a set each of the finest groups belongs to, in the order of the keys."""
    everything = np.arange(size)
    if not chosen:
        return GroupingSet(
            chosen=chosen, parents=np.zeros(size, dtype=np.int64), firsts=np.zeros(1, dtype=np.int64)
        )
    if not size or chosen == tuple(range(len(columns))):
        return GroupingSet(chosen=chosen, parents=everything, firsts=everything)
    import pyarrow

    names = [f"k{place}" for place in chosen]
    table = pyarrow.table([columns[place] for place in chosen], names=names)
    order = ", ".join(f"{name} ASC NULLS LAST" for name in names)
    with engine.given(table.append_column("place", pyarrow.array(everything))) as given:
        (parents,) = engine.columns(
            f"SELECT dense_rank() OVER (ORDER BY {order}) - 1 FROM {given} ORDER BY place"
        )
    parents = parents.astype(np.int64)
    _, firsts = np.unique(parents, return_index=True)
    return GroupingSet(chosen=chosen, parents=parents, firsts=firsts)


def _exact(
    query: BoundedQuery,
    columns: tuple[Any, ...],
    kinds: tuple[Kind, ...],
    one: GroupingSet,
    totals: GroupTotals,
) -> ExactGroups:
    taken = tuple(columns[key] for key in one.chosen)
    keys = Keys(taken, one.firsts, tuple(kinds[key] for key in one.chosen))
    if query.declared is not None or not one.chosen:
        measures = {name: np.asarray(values) for name, values in totals.measures.items()}
        return ExactGroups(grouping_set=one.chosen, keys=keys, measures=measures, units=None)
    there = np.flatnonzero(totals.units > 0)  # a key that no kept unit has must not be there at all
    return ExactGroups(
        grouping_set=one.chosen,
        keys=keys[there],
        measures={
            name: values.among(there) if isinstance(values, SparseCells) else values[there]
            for name, values in totals.measures.items()
        },
        units=totals.units[there],
        members=None if totals.members is None else _renumbered(totals.members, there, one.size),
    )


def _renumbered(members: Members, there: Any, size: int) -> Members:
    """Number groups by their places among those that are there; every group of a unit is."""
    if len(there) == size:
        return members
    places = np.zeros(size, dtype=members.groups.dtype)
    places[there] = np.arange(len(there), dtype=members.groups.dtype)
    return Members(groups=places[members.groups], sizes=members.sizes)
