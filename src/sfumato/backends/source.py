"""Sources: tables of any origin in one DuckDB connection of our own, locked once they are in.

    a path          Parquet (also a pattern or a list of paths), CSV, a DuckDB file
    an object       an Arrow table, a pandas or polars DataFrame

Parquet and DuckDB files are read in place, and read only. A CSV file is read whole when it is
opened, so that its types hold for every row and no question can stumble over a later one; texts of
other origin are looked through when they are opened, for one that is not UTF-8 would let just
those questions fail that come across it.
Afterwards the connection has no access to files other than these, no extensions, no
replacement of names by Python variables, and its settings are locked.

Kinds of columns come from the schema, not from values. Columns of other types (lists, binary
data, times of day) are left out. 64-bit unsigned, 128-bit and decimal numbers are REAL.

The version of the data tells whether it may have changed: path, size and time of modification of
files, which reads no value; a hash of the contents of objects, whose only version that is.
"""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sfumato.backends.expressions import constant, identifier
from sfumato.catalog.kind import Kind
from sfumato.catalog.table import Field
from sfumato.errors import InvalidArgument

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

    def __init__(
        self, connection: Any, objects: dict[str, Any], fields: dict[str, tuple[Field, ...]]
    ) -> None:
        self._connection = connection
        self._objects = objects
        self._fields = fields
        self._files: dict[str, tuple[str, ...]] = {}
        self._digests: dict[str, str] = {}

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
        """Return a hash that differs where the data may differ."""
        parts = []
        for table in self._fields:
            schema = [(field.name, field.kind.value) for field in self._fields[table]]
            parts.append(repr((table, schema, self._state(table))))
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    def paths(self, table: str) -> tuple[str, ...]:
        """Return the files of a table; none if it came as an object."""
        return self._files.get(table, ())

    def digest(self, table: str) -> str:
        """Return a hash of the contents of a table that came as an object."""
        if table not in self._digests:
            self._digests[table] = _digest(self._objects[table])
        return self._digests[table]

    def _state(self, table: str) -> object:
        if table in self._files:
            try:
                states = [(path, os.stat(path)) for path in self._files[table]]
            except OSError:
                raise InvalidArgument(f"the file of table `{table}` is gone", place=table) from None
            return [(path, state.st_size, state.st_mtime_ns) for path, state in states]
        return self.digest(table)

    def cursor(self) -> Any:
        """Return a connection of its own to the tables, for one question."""
        cursor = self._connection.cursor()
        for name, held in self._objects.items():
            cursor.register(name, held)
        return cursor

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
) -> Source:
    """Open tables by name: paths or objects. `spill` names a directory for what exceeds the memory limit.

    With `read=False` only schemas are: texts are not looked through, and nothing may be asked.

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
    objects: dict[str, Any] = {}
    files: dict[str, tuple[str, ...]] = {}
    allowed: list[str] = []
    for number, (name, origin) in enumerate(tables.items()):
        if isinstance(origin, str | Path) or (
            isinstance(origin, Sequence) and origin and all(isinstance(one, str | Path) for one in origin)
        ):
            files[name] = _paths(origin, name)
            allowed += _open_files(connection, name, files[name], number)
        else:
            objects[name] = _valid(_arrow(origin, name), name)
    source = Source(connection, objects, {})
    source._files = files
    cursor = source.cursor()
    for name in tables:
        source._fields[name] = _fields(cursor, name)
        if read and name in files and _ending(files[name][0]) == "parquet":
            _look_through(cursor, name, source._fields[name])
    cursor.close()
    listed = ", ".join(constant(path) for path in allowed)
    connection.execute(f"SET allowed_paths = [{listed}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return source


def _valid(table: Any, name: str) -> Any:
    import pyarrow

    try:
        table.validate(full=True)
    except pyarrow.ArrowInvalid:  # its text may quote the data
        raise _not_text(name) from None
    return table


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
        raise _not_text(name) from None


def _not_text(name: str) -> InvalidArgument:
    return InvalidArgument(
        f"table `{name}` has a text that is not UTF-8",
        place=name,
        hints=("write it anew as UTF-8, or leave the column out",),
    )


def _paths(origin: str | Path | Sequence[str | Path], name: str) -> tuple[str, ...]:
    named = [origin] if isinstance(origin, str | Path) else list(origin)
    found: list[str] = []
    for one in named:
        text = os.path.abspath(os.path.expanduser(one))
        matches = [text] if os.path.isfile(text) else sorted(glob.glob(text, recursive=True))
        found += [path for path in matches if os.path.isfile(path)]
    if not found:
        raise InvalidArgument(
            f"there is no file for table `{name}`",
            place=", ".join(map(str, named)),
            hints=("paths are relative to the project file, or to where you are",),
        )
    return tuple(found)


def _open_files(connection: Any, name: str, paths: tuple[str, ...], number: int) -> list[str]:
    """Make a table or view of files; return those that must stay readable."""
    import duckdb

    try:
        readable = _view_files(connection, name, paths, number)
    except duckdb.Error:
        readable = None
    if readable is None:  # raised here: the engine's own text may quote the data, and a context keeps it
        raise InvalidArgument(
            f"the file of table `{name}` cannot be read",
            place=name,
            hints=("is it a whole file of the format that its name says?",),
        )
    return readable


def _view_files(connection: Any, name: str, paths: tuple[str, ...], number: int) -> list[str]:
    endings = {_ending(path) for path in paths}
    listed = ", ".join(constant(path) for path in paths)
    if endings == {"parquet"}:
        connection.execute(f"CREATE VIEW {identifier(name)} AS SELECT * FROM read_parquet([{listed}])")
        return list(paths)
    if endings == {"csv"}:
        connection.execute(
            f"CREATE TABLE {identifier(name)} AS SELECT * FROM read_csv([{listed}], sample_size = -1)"
        )
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


def _ending(path: str) -> str:
    name = os.path.basename(path).lower()
    for known, endings in {
        "parquet": (".parquet", ".pq"),
        "csv": (".csv", ".tsv", ".csv.gz", ".tsv.gz"),
        "duckdb": (".duckdb", ".ddb", ".db"),
    }.items():
        if name.endswith(endings):
            return known
    return name.rsplit(".", 1)[-1]


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


def _arrow(origin: Any, name: str) -> Any:
    """Return an object as an Arrow table."""
    import pyarrow

    if isinstance(origin, pyarrow.Table):
        return origin
    if isinstance(origin, pyarrow.RecordBatch):
        return pyarrow.Table.from_batches([origin])
    module = type(origin).__module__.split(".")[0]
    if module in ("pandas", "polars"):
        return _framed(origin, name, module)
    raise InvalidArgument(
        f"table `{name}` is neither a path nor a table",
        place=name,
        hints=("give a path, an Arrow table, or a pandas or polars DataFrame",),
    )


def _framed(frame: Any, name: str, module: str) -> Any:
    import pyarrow

    try:
        if module == "pandas":
            made = pyarrow.Table.from_pandas(frame, preserve_index=False)
        else:
            made = (frame.collect() if hasattr(frame, "collect") else frame).to_arrow()
    except (pyarrow.ArrowException, TypeError, ValueError):
        made = None
    if made is None:  # raised here: their texts may quote the data, and a context keeps them
        raise InvalidArgument(
            f"table `{name}` has a column whose values are of different types",
            place=name,
            hints=("give every column one type",),
        )
    return made


def _fields(cursor: Any, name: str) -> tuple[Field, ...]:
    described = cursor.execute(f"DESCRIBE {identifier(name)}").fetchall()
    found = []
    for column, of_type, *_ in described:
        kind = _KINDS.get(of_type.split("(")[0])
        if kind is not None and not of_type.endswith("]"):
            found.append(Field(name=column, kind=kind))
    return tuple(found)


class _Hash:
    """A file to write to, of which only a hash is kept."""

    closed = False

    def __init__(self) -> None:
        self.hash = hashlib.sha256()

    def write(self, data: Any) -> int:
        self.hash.update(data)
        return len(data)

    def flush(self) -> None:
        pass

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def close(self) -> None:
        pass


def _digest(table: Any) -> str:
    import pyarrow

    sink = _Hash()
    combined = table.combine_chunks()
    with pyarrow.ipc.new_stream(pyarrow.PythonFile(sink, mode="w"), combined.schema) as writer:
        writer.write_table(combined)
    return sink.hash.hexdigest()
