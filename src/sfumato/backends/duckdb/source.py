"""Sources: tables of any origin in one DuckDB connection of our own, locked once they are in.

    a path          Parquet (also a pattern or a list of paths), CSV, a DuckDB file
    an object       an Arrow table, batch, reader or dataset, a pandas or polars DataFrame, a DuckDB relation

Parquet and DuckDB files are read in place, and read only. A CSV file is read whole when it is opened, so that
its types hold for every row and no question can stumble over a later one; so is a view of a DuckDB file
(`views`), and a Parquet file with timestamps in milliseconds, or with decimals in more bytes than their
digits need, which the engine's reader converts and may fail at. A text of a Parquet file that is not UTF-8
would let just those questions fail that come across it. So texts are looked through before a question first
reads their column (`make_texts_readable`). If there is such a text, the table is read anew: each byte that is
not UTF-8 is a question mark. Names of units are looked through when the table is opened, and refused: two
people could become one. Objects are copied: who changes one later changes another table.
Afterwards the connection has no access to files other than these, no extensions, no
replacement of names by Python variables, and its settings are locked. Its time zone is UTC on any machine.

Kinds of columns come from the schema, not from values: else one person's value would decide what can be
asked, and a refusal would tell. A private CSV file has none, so its columns are text unless declared
otherwise; what is not of the declared kind is NULL. Of public ones all values decide. Columns of other types
(lists, binary data, times of day, unsigned 128-bit numbers) are left out.
Every type that has a kind is total: no value of it makes a question fail (`column_types`, `arrow_columns`).

The version is that of the moment of opening (`Files`). A file that is read in place and is another by the
time it is asked about is refused, and one that changes while a question reads it makes that question fail:
what was paid for one version is never answered from another.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from sfumato.backends.duckdb.admission import Admission, memory_of, note_process_memory
from sfumato.backends.duckdb.backend import DuckDBBackend
from sfumato.backends.duckdb.column_types import is_rounded, readable_columns
from sfumato.backends.duckdb.dialect import DUCKDB
from sfumato.backends.duckdb.engine import Engine, with_engine
from sfumato.backends.duckdb.engine_files import (
    EngineTable,
    attached_table,
    csv_table,
    parquet_table,
    table_row,
)
from sfumato.backends.duckdb.engine_limits import within_limits
from sfumato.backends.files import Files, ending, found_files
from sfumato.backends.relations import PART, ROW, numbered_table
from sfumato.catalog.catalog import Catalog
from sfumato.catalog.identifiers import identifier
from sfumato.catalog.kind import Kind
from sfumato.catalog.resources import memory_bytes
from sfumato.catalog.table import Field, UnsupportedColumn
from sfumato.core.entropy import process_id
from sfumato.errors import EngineStopped, InvalidArgument, Unsupported

if TYPE_CHECKING:
    from sfumato.backends.duckdb.copies import Copied

__all__ = ["DuckDBTables", "open_source", "reads"]

_T = TypeVar("_T")

_SECONDS = 3600  # how long one statement may take, unless said otherwise
_CONFIGURATION: dict[str, Any] = {
    "allow_community_extensions": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "preserve_insertion_order": "false",
    "python_enable_replacements": "false",
    "temp_directory": "",
}


class DuckDBTables:
    """Open tables. All but `backend` and `cursor` are facts about them, and no values."""

    def __init__(
        self,
        connection: Any,
        objects: dict[str, Copied],
        files: dict[str, Files],
        admission: Admission,
        *,
        asked: bool,
    ) -> None:
        self._connection = connection
        self._admission = admission
        self._objects = objects
        self._files = files
        self._fields: dict[str, tuple[Field, ...]] = {}
        self._left_out: dict[str, tuple[UnsupportedColumn, ...]] = {}
        self._parquet: dict[str, EngineTable] = {}
        self._contents: dict[str, str] = {}  # of copied views: what tells their rows from others
        self._rounded = {name: held.rounded for name, held in objects.items()}
        self._unread: dict[str, frozenset[str]] = {}  # their texts that nobody looked through yet
        self._reading = threading.Lock()
        self._row_views: dict[str, str] = {}  # statements that give the rows of engine tables numbers
        self._numbered: dict[str, Any] = {}  # tables whose rows have numbers; of an object, the Arrow table
        self._made: dict[str, Any] = {}
        self._making = threading.Lock()
        self._asked = asked
        self._process = process_id()

    def __repr__(self) -> str:
        return f"<tables: {', '.join(self._fields)}>"

    def fields(self, table: str) -> tuple[Field, ...]:
        """Return the columns of a table and their kinds, as far as there is a kind for their type."""
        return self._fields[table]

    def left_out(self, table: str) -> tuple[UnsupportedColumn, ...]:
        """Return the columns of a table that cannot be asked about: no kind is known for their types."""
        return self._left_out[table]

    def version(self) -> str:
        """Return a hash that differs where the data may differ; refuse files that have changed since."""
        if not self._asked:
            raise InvalidArgument("these tables were opened for prices, not to be asked", place="tables")
        self.check()
        return hashlib.sha256("\n".join(self._states()).encode()).hexdigest()

    def parts(self, table: str, *, by_file: bool) -> tuple[str, ...]:
        """Return a hash of each file of a table, in order, or of all of it where files are not told apart.

        A hash differs where the file may differ, or any other table, or a column of any table.
        """
        if not by_file or table not in self._parquet or not self.number_rows(table):
            return (hashlib.sha256("\n".join(self._states()).encode()).hexdigest(),)
        beside = "\n".join(self._states(apart=table))
        states = self._files[table].states
        return tuple(hashlib.sha256(f"{beside}\n{state!r}".encode()).hexdigest() for state in states)

    def _states(self, apart: str | None = None) -> list[str]:
        """Return what tells each table from an earlier or later version of it; of one, its columns alone."""
        found = []
        for table in self._fields:
            schema = [(field.name, field.kind.value) for field in self._fields[table]]
            state = self._files[table].state if table in self._files else self.digest(table)
            if table in self._contents:
                state = (state, self._contents[table])
            found.append(repr((table, schema, None if table == apart else state)))
        return found

    def check(self) -> None:
        """Refuse an engine that has stopped, and files that are no longer those that were opened."""
        self._check_process()
        if not self._answers():
            raise EngineStopped
        for table, files in self._files.items():
            if not files.unchanged():
                raise InvalidArgument(
                    f"the file of table `{table}` has changed since it was opened, or is gone",
                    place=table,
                    hints=("open it again: what is paid for one version is answered from that version",),
                )

    def check_name(self, table: str, column: str) -> None:
        """Refuse a column that names people, if two of its names may be read as one."""
        if column in self._rounded.get(table, ()):
            raise InvalidArgument(
                f"`{column}` of table `{table}` names people by moments, and is read with less precision "
                "than it has",
                place=table,
                hints=("name people by a number or a text", "or by moments in microseconds"),
            )
        if column in self._unread.get(table, ()):
            broken = InvalidArgument(
                f"table `{table}` has a text in `{column}` that is not UTF-8, and names people by it",
                place=table,
                hints=("write the file anew, with its texts as UTF-8",),
            )
            cursor = self._connection.cursor()
            within_limits(lambda: cursor.execute(_whole_texts(table, [column])).fetchall(), broken)
            self._unread[table] = self._unread[table] - {column}

    @property
    def texts_unread(self) -> bool:
        """Whether some columns may hold texts that were not looked through."""
        return any(self._unread.values())

    def make_texts_readable(self, sql: str) -> None:
        """Look through the texts in columns that a statement names, each once; read what is not UTF-8 as `?`.

        A column is named where its identifier and its table's stand in the text: rather too often than not.

        Theorem: every row has the same values either way, unless it has a text that is not UTF-8, and then
        they are functions of that row. So one unit more decides how the rows of others are read, and not
        as what. Conditions are not handed to the reader then: it would compare with what the file says of
        texts, such as the smallest of many rows, and that is said of the bytes before they are replaced.
        """
        with self._reading:
            for table, columns in self._unread.items():
                named = [one for one in columns if identifier(one) in sql]
                if not named or identifier(table) not in sql:
                    continue
                if self._are_texts(table, named):
                    self._unread[table] = columns.difference(named)
                else:
                    self._replace_texts(table)
                    self._unread[table] = frozenset()

    def _are_texts(self, table: str, columns: Iterable[str]) -> bool:
        """Return whether all texts of some columns are UTF-8, as far as the engine can tell."""
        import duckdb

        try:
            with_engine(self.cursor(), lambda engine: engine.one(_whole_texts(table, columns)))
        except duckdb.Error:
            return False
        return True

    def _replace_texts(self, table: str) -> None:
        """Read a table of Parquet files anew, and what is not UTF-8 in any of its texts as question marks."""
        known = self._parquet[table]
        texts = {one.name for one in self._fields[table] if one.kind is Kind.TEXT}
        listed = ", ".join(readable_columns(known.columns, texts | known.misread)[0])
        cursor = self._connection.cursor()
        cursor.execute(
            f"CREATE OR REPLACE VIEW {identifier(table)} AS SELECT {listed} FROM {known.replacing}"
        )
        if known.row is not None:
            rows = f"SELECT {listed}, {_numbers(known)} FROM {known.replacing}"
            view = f"CREATE OR REPLACE VIEW {identifier(numbered_table(table))} AS {rows}"
            with self._making:
                self._row_views[table] = view
                if table in self._numbered:
                    cursor.execute(view)

    def once(self, key: str, make: Callable[[Engine], _T]) -> _T:
        """Return what is made of the tables under a key: made the first time, and kept.

        It may decide how a question is answered, and never with what.
        """
        with self._making:
            if key not in self._made:
                self._made[key] = with_engine(self.cursor(), make)
        return cast("_T", self._made[key])

    def number_rows(self, table: str) -> bool:
        """Give the rows of a table numbers, in a table beside it; return whether they have them."""
        taken = {one.name.lower() for one in self._fields[table]} | {one.lower() for one in self._fields}
        with self._making:
            if table not in self._numbered and not taken & {ROW, PART, numbered_table(table).lower()}:
                if table in self._objects:
                    self._numbered[table] = self._objects[table].with_rows(ROW)
                elif table in self._row_views:
                    self._connection.execute(self._row_views[table])
                    self._numbered[table] = None
        return table in self._numbered

    def _answers(self) -> bool:
        """Return whether the engine still answers: after an internal error it never does again."""
        try:
            return bool(self._connection.cursor().execute("SELECT 1").fetchall())
        except Exception:
            return False

    def _check_process(self) -> None:
        """Refuse a forked process, before anything is charged: the engine's threads are not in it."""
        if self._process != process_id():
            raise Unsupported(
                "data that was opened before a fork cannot be asked in the forked process",
                hints=("open it again there: the budget is the same, in the ledger's file",),
            )

    def identities(self, table: str) -> tuple[str, ...]:
        """Return texts that identify where a table comes from: its files, or the contents of an object.

        An object is not recognised as the file that it was read from.
        """
        if table not in self._files:
            return (f"contents {self.digest(table)}",)
        return self._files[table].identities(self._fields[table])

    def digest(self, table: str) -> str:
        """Return a hash of the contents of a table that came as an object."""
        return self._objects[table].digest

    def backend(self, catalog: Catalog, *, threads: int | None = None) -> DuckDBBackend:
        """Return what computes bounded queries from these tables."""
        return DuckDBBackend(self, catalog, threads=threads)

    def cursor(self) -> Any:
        """Return a connection of its own to the tables, for one question.

        Closing it fails if a file is another by then: what was read may be of two versions.
        """
        self._check_process()
        cursor = self._connection.cursor()
        for name, held in self._objects.items():
            cursor.register(name, held.table)
            if name in self._numbered:
                cursor.register(numbered_table(name), self._numbered[name])
        return _Cursor(cursor, self)

    def admitted(self) -> AbstractContextManager[None]:
        """Hold the memory that one question declares; wait for it while others run."""
        self._check_process()
        return self._admission.admitted()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _describe(self, name: str, left_out: tuple[UnsupportedColumn, ...]) -> None:
        """Note the columns of an object; the engine reads every value of their types."""
        cursor = self.cursor()
        described = cursor.execute(f"DESCRIBE {identifier(name)}").fetchall()
        cursor.close()
        self._note(name, ((column, of_type) for column, of_type, *_ in described), left_out)

    def _show(self, name: str, table: EngineTable) -> None:
        """Give a table of the engine's the name that it is asked under; leave out what has no kind."""
        selected = ", ".join(self._note(name, table.columns, table.left_out, table.misread))
        self._connection.execute(f"CREATE VIEW {identifier(name)} AS SELECT {selected} FROM {table.sql}")
        if table.contents:
            self._contents[name] = table.contents
        if table.row is not None:
            rows = f"SELECT {selected}, {_numbers(table)} FROM {table.sql}"
            self._row_views[name] = f"CREATE VIEW {identifier(numbered_table(name))} AS {rows}"

    def _note(
        self,
        name: str,
        described: Iterable[tuple[str, str]],
        left_out: tuple[UnsupportedColumn, ...],
        unfiltered: frozenset[str] = frozenset(),
    ) -> list[str]:
        columns = list(described)
        selected, fields, more = readable_columns(columns, unfiltered)
        rounded = frozenset(column for column, of_type in columns if is_rounded(of_type))
        self._rounded[name] = self._rounded.get(name, frozenset()) | rounded
        if not fields:
            raise InvalidArgument(f"table `{name}` has no column that can be asked about", place=name)
        self._fields[name], self._left_out[name] = tuple(fields), (*left_out, *more)
        return selected


def open_source(
    tables: Mapping[str, Any],
    *,
    threads: int | None = None,
    memory: str | None = None,
    question_memory: str | None = None,
    seconds: float = _SECONDS,
    read: bool = True,
    kinds: Mapping[str, Mapping[str, Kind]] | None = None,
) -> DuckDBTables:
    """Open tables by name; what the options mean is said by `backends.registry`."""
    given = {"threads": threads, "memory_limit": memory, "max_execution_time": max(1, round(1000 * seconds))}
    configuration = _CONFIGURATION | {name: value for name, value in given.items() if value is not None}
    question = None if question_memory is None else memory_bytes(question_memory, "question_memory")

    def opened() -> DuckDBTables:
        return _opened(tables, configuration, question, seconds, kinds or {}, read=read)

    return within_limits(opened)


def _opened(
    tables: Mapping[str, Any],
    configuration: dict[str, Any],
    question: int | None,
    seconds: float,
    kinds: Mapping[str, Mapping[str, Kind]],
    *,
    read: bool,
) -> DuckDBTables:
    """Open tables in a connection of their own; `question` is the memory that a question declares."""
    import duckdb

    with ExitStack() as refused:
        connection = refused.enter_context(duckdb.connect(":memory:", config=configuration))
        connection.execute("SET GLOBAL TimeZone = 'UTC'")  # not of this connection alone: cursors have it too
        objects: dict[str, Copied] = {}
        files: dict[str, Files] = {}
        known: dict[str, EngineTable] = {}
        for number, (name, origin) in enumerate(tables.items()):
            declared = kinds.get(name)
            if not _is_path(origin):
                from sfumato.backends.duckdb.copies import copied

                objects[name] = copied(origin, name)
                continue
            whole = read or declared is None  # of a private CSV file, to look at prices, the header alone
            files[name] = Files.at(found_files(origin, name), name, whole=whole)
            known[name] = _open_files(connection, name, files[name].paths, number, declared, read=read)
            if known[name].view and read:
                known[name] = _copied_view(connection, name, known[name], number)
            if known[name].whole and whole:
                from sfumato.backends.duckdb.copies import copied_files

                objects[name] = copied_files(name, files[name].paths, known[name].columns)
        limit = memory_of(connection)
        if "memory_limit" not in configuration:
            note_process_memory(limit)
        admission = Admission(limit, question=question, wait=seconds)
        source = DuckDBTables(connection, objects, files, admission, asked=read)
        for name in tables:
            if name in objects:
                source._describe(name, objects[name].left_out)
            else:
                source._show(name, known[name])
                if read and ending(files[name].paths[0]) != "csv":
                    _read_whole(connection, name, known[name])
            if name not in objects and ending(files[name].paths[0]) == "parquet":
                source._parquet[name] = known[name]
                texts = (field.name for field in source._fields[name] if field.kind is Kind.TEXT)
                source._unread[name] = frozenset(texts)
        for name in files:
            if not files[name].unchanged(loaded=True):
                raise InvalidArgument(
                    f"the file of table `{name}` changed while it was opened",
                    place=name,
                    hints=("try again",),
                )
        # A pattern is allowed beside the path that it matches: the engine asks for both.
        allowed = {path for name, table in known.items() for path in (*table.paths, *files[name].paths)}
        listed = ", ".join(map(DUCKDB.constant, sorted(allowed)))
        connection.execute(f"SET allowed_paths = [{listed}]")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        refused.pop_all()
    return source


def reads(origin: Any) -> bool:
    """Return whether this engine reads an origin: a path, or an object that holds a table."""
    return _is_path(origin) or _is_object(origin)


def _is_path(origin: Any) -> bool:
    """Return whether an origin is a path, or a list of paths."""
    listed = origin if isinstance(origin, list | tuple) else [origin]
    return bool(listed) and all(isinstance(one, str | Path) for one in listed)


def _is_object(origin: Any) -> bool:
    """Return whether an origin is an object that holds a table; tells without importing its library."""
    module, name = type(origin).__module__.split(".")[0], type(origin).__name__
    if module in ("pandas", "polars"):
        return name != "Series"
    if module in ("duckdb", "_duckdb"):
        return name == "DuckDBPyRelation"
    return module == "pyarrow" and name.endswith(("Table", "RecordBatch", "RecordBatchReader", "Dataset"))


def _open_files(
    connection: Any,
    name: str,
    paths: tuple[str, ...],
    number: int,
    kinds: Mapping[str, Kind] | None,
    *,
    read: bool,
) -> EngineTable:
    """Return the table that files hold, as the engine reads them."""
    endings = {ending(path) for path in paths}
    if len(endings) > 1 or endings - {"parquet", "csv", "duckdb"} or ("duckdb" in endings and len(paths) > 1):
        raise InvalidArgument(
            f"the format of the file of table `{name}` is not known",
            place=name,
            hints=("files end in .parquet, .csv or .duckdb, all of them alike; a DuckDB file stands alone",),
        )
    hints = ["is it open for writing, in a program or in this one? close it there"]
    unreadable = _unreadable(name, *(hints if endings == {"duckdb"} else ()))

    def opened() -> EngineTable:
        if endings == {"parquet"}:
            return parquet_table(connection, name, paths)
        if endings == {"csv"}:
            return csv_table(connection, name, paths, number, kinds, read=read)
        return attached_table(connection, name, paths[0], number, private=read and kinds is not None)

    return within_limits(opened, unreadable)


def _read_whole(connection: Any, name: str, table: EngineTable) -> None:
    """Read every value of a table that stays in its file.

    Theorem: of a table that is open no part of its file decides whether a question fails. Assumes: the file
    is what it was, which each question checks, and a reader decodes the same bytes in the same way each time.
    Proof: every value of every column enters a hash, without a condition, so that no block of rows is passed
    over. What cannot be decoded is refused here, whatever anybody asks later.
    """
    read = ", ".join(readable_columns(table.columns)[0])
    hashed = f"SELECT bit_xor(hash(COLUMNS(*))) FROM (SELECT {read} FROM {table.replacing or table.sql})"
    within_limits(lambda: connection.execute(hashed).fetchall(), _unreadable(name))


def _unreadable(name: str, *hints: str) -> InvalidArgument:
    return InvalidArgument(
        f"the file of table `{name}` cannot be read",
        place=name,
        hints=("is it a whole file of the format that its name says?", *hints),
    )


def _copied_view(connection: Any, name: str, view: EngineTable, number: int) -> EngineTable:
    """Return the rows of a view as they are now, in a table of the engine's."""
    uncomputed = InvalidArgument(
        f"the view `{name}` cannot be computed",
        place=name,
        hints=("something in it fails at a value: make a table of it, and see at which",),
    )
    table = f"__view{number}"

    def copied() -> EngineTable:
        connection.execute(f"CREATE TABLE {table} AS SELECT * FROM {view.sql}")
        rows = f"SELECT count(*), sum(hash(rows)), bit_xor(hash(rows)) FROM {table} AS rows"
        contents = repr(connection.execute(rows).fetchone())
        row = table_row(column for column, _ in view.columns)
        return replace(view, sql=table, row=row, view=False, contents=contents)

    return within_limits(copied, uncomputed)


def _numbers(table: EngineTable) -> str:
    """Return the number of a row, and that of the file that it is in."""
    return f"{table.row} AS {ROW}, {'file_index' if table.replacing else '0'} AS {PART}"


def _whole_texts(table: str, columns: Iterable[str]) -> str:
    """Return a SELECT that fails if a text in some columns is not UTF-8.

    The engine checks a text when it reads it whole, which a comparison makes it do.
    """
    texts = map(identifier, sorted(columns))
    read = ", ".join(f"count(CASE WHEN CAST({text} AS VARCHAR) < 'A' THEN 1 END)" for text in texts)
    return f"SELECT {read} FROM {identifier(table)}"


class _Cursor:
    """A connection to the tables that will not be closed in peace if a file changed under it."""

    def __init__(self, cursor: Any, source: DuckDBTables) -> None:
        self._cursor = cursor
        self._source = source

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cursor, name)

    def close(self) -> None:
        self._cursor.close()
        self._source.check()
