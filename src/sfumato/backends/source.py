"""Sources: tables of any origin in one DuckDB connection of our own, locked once they are in.

    a path          Parquet (also a pattern or a list of paths), CSV, a DuckDB file
    an object       an Arrow table, a pandas or polars DataFrame

Parquet and DuckDB files are read in place, and read only. A CSV file is read whole when it is
opened, so that its types hold for every row and no question can stumble over a later one; texts of
other origin are looked through when they are opened, for one that is not UTF-8 would let just
those questions fail that come across it. Objects are copied: who changes one later changes another table.
Afterwards the connection has no access to files other than these, no extensions, no
replacement of names by Python variables, and its settings are locked.

Kinds of columns come from the schema, not from values: else one person's value would decide what can be
asked, and a refusal would tell. A private CSV file has none, so its columns are text unless declared
otherwise; what is not of the declared kind is NULL. Of public ones all values decide. Columns of other types
(lists, binary data, times of day) are left out. 64-bit unsigned, 128-bit and decimal numbers are REAL.

The version is that of the moment of opening, as all else is: of a file, its path, inode, size, times of
change and a hash of both ends; of a CSV file and of an object, a hash of all of it. A file that is read in
place and is another by the time it is asked about is refused, and one that changes while a question reads it
makes that question fail: what was paid for one version is never answered from another.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sfumato.backends.copies import Copied, arrow_of, copied, not_text
from sfumato.backends.expressions import constant
from sfumato.backends.files import Files, ending, found_files, header_of
from sfumato.catalog.identifiers import identifier
from sfumato.catalog.kind import Kind
from sfumato.catalog.table import Field
from sfumato.core.entropy import process_id
from sfumato.errors import InvalidArgument, Unsupported

__all__ = ["SECONDS", "Source", "open_tables"]

_KINDS = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT"), Kind.INTEGER),
    **dict.fromkeys(("UTINYINT", "USMALLINT", "UINTEGER"), Kind.INTEGER),
    **dict.fromkeys(("UBIGINT", "HUGEINT", "UHUGEINT", "FLOAT", "DOUBLE", "DECIMAL"), Kind.REAL),
    **dict.fromkeys(("VARCHAR", "UUID", "ENUM"), Kind.TEXT),
    "BOOLEAN": Kind.BOOLEAN,
    "DATE": Kind.DATE,
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"), Kind.TIMESTAMP),
    **dict.fromkeys(("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ", "TIMESTAMPTZ_NS"), Kind.TIMESTAMP),
}
_TYPES = {
    Kind.INTEGER: "BIGINT",
    Kind.REAL: "DOUBLE",
    Kind.TEXT: "VARCHAR",
    Kind.BOOLEAN: "BOOLEAN",
    Kind.DATE: "DATE",
    Kind.TIMESTAMP: "TIMESTAMP",
}
_CONFIGURATION = {
    "allow_community_extensions": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "preserve_insertion_order": "false",
    "python_enable_replacements": "false",
}


SECONDS = 3600
"""How long one statement may take, unless said otherwise."""


class Source:
    """Open tables. `fields` and `version` are facts about them; `cursor` is for the backend alone."""

    def __init__(self, connection: Any, objects: dict[str, Copied], files: dict[str, Files]) -> None:
        self._connection = connection
        self._objects = objects
        self._files = files
        self._fields: dict[str, tuple[Field, ...]] = {}
        self._asked = True
        self._process = process_id()

    def __repr__(self) -> str:
        return f"<tables: {', '.join(self._fields)}>"

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables."""
        return tuple(self._fields)

    def fields(self, table: str) -> tuple[Field, ...]:
        """Return the columns of a table and their kinds, as far as there is a kind for their type."""
        return self._fields[table]

    def version(self) -> str:
        """Return a hash that differs where the data may differ; refuse files that have changed since."""
        if not self._asked:
            raise InvalidArgument("these tables were opened for prices, not to be asked", place="tables")
        self.check()
        parts = []
        for table in self._fields:
            schema = [(field.name, field.kind.value) for field in self._fields[table]]
            state = self._files[table].state if table in self._files else self.digest(table)
            parts.append(repr((table, schema, state)))
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    def check(self) -> None:
        """Refuse files that are read in place and are no longer those that were opened."""
        self._check_process()
        for table, files in self._files.items():
            if not files.unchanged():
                raise InvalidArgument(
                    f"the file of table `{table}` has changed since it was opened, or is gone",
                    place=table,
                    hints=("open it again: what is paid for one version is answered from that version",),
                )

    def _check_process(self) -> None:
        """Refuse a forked process, before anything is charged: the engine's threads are not in it."""
        if self._process != process_id():
            raise Unsupported(
                "data that was opened before a fork cannot be asked in the forked process",
                hints=("open it again there: the budget is the same, in the ledger's file",),
            )

    def files(self, table: str) -> Files | None:
        """Return the files of a table; None if it came as an object."""
        return self._files.get(table)

    def digest(self, table: str) -> str:
        """Return a hash of the contents of a table that came as an object."""
        return self._objects[table].digest

    def cursor(self) -> Any:
        """Return a connection of its own to the tables, for one question.

        Closing it fails if a file is another by then: what was read may be of two versions.
        """
        self._check_process()
        cursor = self._connection.cursor()
        for name, held in self._objects.items():
            cursor.register(name, held.table)
        return _Cursor(cursor, self)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def open_tables(
    tables: Mapping[str, Any],
    *,
    threads: int | None = None,
    memory: str | None = None,
    spill: str | Path | None = None,
    seconds: float = SECONDS,
    read: bool = True,
    kinds: Mapping[str, Mapping[str, Kind]] | None = None,
) -> Source:
    """Open tables by name: paths or objects. `spill` names a directory for what exceeds the memory limit.

    With `read=False` only schemas are: texts are not looked through, and nothing may be asked. (A CSV file
    is read all the same.) `kinds` has, for each private table, the kinds of columns that are declared: in a
    CSV file all others are text. Tables that are not in it are public.

    Without `spill` nothing private is ever written to disk. No statement runs for more than `seconds`, or
    takes more than `memory`, by default four fifths of what the machine has.
    """
    import duckdb

    configuration: dict[str, Any] = {**_CONFIGURATION, "temp_directory": "" if spill is None else str(spill)}
    configuration["max_execution_time"] = max(1, round(1000 * seconds))
    if threads is not None:
        configuration["threads"] = threads
    if memory is not None:
        configuration["memory_limit"] = memory
    if not tables:
        raise InvalidArgument("there are no tables to open", place="tables")
    if len({name.lower() for name in tables}) != len(tables):
        raise InvalidArgument("two tables have one name", place="tables")
    connection = duckdb.connect(":memory:", config=configuration)
    connection.execute("SET TimeZone = 'UTC'")
    objects: dict[str, Copied] = {}
    files: dict[str, Files] = {}
    allowed: list[str] = []
    for number, (name, origin) in enumerate(tables.items()):
        if isinstance(origin, str | Path) or (
            isinstance(origin, Sequence) and origin and all(isinstance(one, str | Path) for one in origin)
        ):
            files[name] = Files.at(found_files(origin, name), name)
            allowed += _open_files(connection, name, files[name].paths, number, (kinds or {}).get(name))
        else:
            objects[name] = copied(arrow_of(origin, name), name)
    source = Source(connection, objects, files)
    source._asked = read
    cursor = source.cursor()
    for name in tables:
        source._fields[name] = _fields(cursor, name)
        if read and name in files and ending(files[name].paths[0]) == "parquet":
            _look_through(cursor, name, source._fields[name])
    for name in files:
        if not files[name].unchanged(loaded=True):
            raise InvalidArgument(
                f"the file of table `{name}` changed while it was opened", place=name, hints=("try again",)
            )
    cursor.close()
    listed = ", ".join(constant(path) for path in allowed)
    connection.execute(f"SET allowed_paths = [{listed}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return source


def _look_through(cursor: Any, name: str, fields: tuple[Field, ...]) -> None:
    """Refuse a table whose texts are not all UTF-8, when it is opened and not when it is asked about."""
    import duckdb

    texts = [identifier(field.name) for field in fields if field.kind is Kind.TEXT]
    if not texts:
        return
    # The engine checks a text when it reads it whole, which a comparison makes it do.
    read = ", ".join(f"count(CASE WHEN CAST({text} AS VARCHAR) < 'A' THEN 1 END)" for text in texts)
    try:
        cursor.execute(f"SELECT {read} FROM {identifier(name)}").fetchall()
    except duckdb.Error:  # its text may quote the data
        raise not_text(name) from None


def _open_files(
    connection: Any, name: str, paths: tuple[str, ...], number: int, kinds: Mapping[str, Kind] | None
) -> list[str]:
    """Make a table or view of files; return those that must stay readable."""
    import duckdb

    try:
        readable = _view_files(connection, name, paths, number, kinds)
    except duckdb.Error:
        readable = None
    if readable is None:  # raised here: the engine's own text may quote the data, and a context keeps it
        raise InvalidArgument(
            f"the file of table `{name}` cannot be read",
            place=name,
            hints=("is it a whole file of the format that its name says?",),
        )
    return readable


def _view_files(
    connection: Any, name: str, paths: tuple[str, ...], number: int, kinds: Mapping[str, Kind] | None
) -> list[str]:
    endings = {ending(path) for path in paths}
    listed = ", ".join(constant(path) for path in paths)
    if endings == {"parquet"}:
        connection.execute(f"CREATE VIEW {identifier(name)} AS SELECT * FROM read_parquet([{listed}])")
        return list(paths)
    if endings == {"csv"}:
        read = f"SELECT * FROM read_csv([{listed}], sample_size = -1)"
        if kinds is not None:
            names, mark = header_of(Path(paths[0]), name)
            listed_names = ", ".join(f"{constant(column)}: 'VARCHAR'" for column in names)
            typed = ", ".join(
                f"TRY_CAST({column} AS {_TYPES[kind]}) AS {column}"
                for column, kind in ((identifier(one), kinds.get(one, Kind.TEXT)) for one in names)
            )
            connection.execute(
                f"CREATE TEMP TABLE __texts AS SELECT * FROM read_csv([{listed}], auto_detect = false, "
                f"header = true, delim = {constant(mark)}, quote = '\"', escape = '\"', "
                f"columns = {{{listed_names}}})"
            )
            read = f"SELECT {typed} FROM __texts"  # in a step of its own: the reader would fail at a cast
        connection.execute(f"CREATE TABLE {identifier(name)} AS {read}")
        connection.execute("DROP TABLE IF EXISTS __texts")
        return []
    if endings == {"duckdb"} and len(paths) == 1:
        attached = f"__file{number}"
        connection.execute(f"ATTACH {listed} AS {attached} (READ_ONLY)")
        table = _table_of(connection, attached, name)
        connection.execute(
            f"CREATE VIEW {identifier(name)} AS "
            f"SELECT * FROM {attached}.{identifier(table[0])}.{identifier(table[1])}"
        )
        return []
    raise InvalidArgument(
        f"the format of the file of table `{name}` is not known",
        place=name,
        hints=("files end in .parquet, .csv or .duckdb",),
    )


def _table_of(connection: Any, attached: str, name: str) -> tuple[str, str]:
    """Return schema and name of the table of a DuckDB file: the one of that name, or the only one."""
    rows: list[tuple[str, str]] = connection.execute(
        "SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = ?", [attached]
    ).fetchall()
    same = [row for row in rows if row[1].lower() == name.lower()] or rows
    if len(same) != 1:
        raise InvalidArgument(
            f"the DuckDB file has no single table that `{name}` could mean",
            place=name,
            hints=("give the table the name that it has in the file",),
        )
    return same[0]


def _fields(cursor: Any, name: str) -> tuple[Field, ...]:
    described = cursor.execute(f"DESCRIBE {identifier(name)}").fetchall()
    found = []
    for column, of_type, *_ in described:
        kind = _KINDS.get(of_type.split("(")[0])
        if kind is not None and not of_type.endswith("]"):
            found.append(Field(name=column, kind=kind))
    return tuple(found)


class _Cursor:
    """A connection to the tables that will not be closed in peace if a file changed under it."""

    def __init__(self, cursor: Any, source: Source) -> None:
        self._cursor = cursor
        self._source = source

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cursor, name)

    def close(self) -> None:
        self._cursor.close()
        self._source.check()
