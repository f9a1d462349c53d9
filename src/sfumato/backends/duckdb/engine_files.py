"""Files as the engine reads them: exactly the named ones, exactly their own columns.

The engine takes a path for a pattern (`v[1].csv` would be `v1.csv`) and folders for columns (`pid=5/` would
be a column). So paths are quoted, and folders mean nothing. Types are compared before anything is read: the
engine takes those of the first file and converts the values of the others, and a conversion that fails for
one person's value would make just those questions fail that come across it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from sfumato.backends.duckdb.column_types import kind_of_type
from sfumato.backends.duckdb.dialect import DUCKDB
from sfumato.backends.duckdb.views import check_view
from sfumato.backends.files import headers_of, refuse_drift
from sfumato.catalog.identifiers import identifier
from sfumato.catalog.kind import Kind
from sfumato.catalog.table import UnsupportedColumn
from sfumato.errors import InvalidArgument

__all__ = ["EngineTable", "attached_table", "csv_table", "parquet_table", "quoted_path", "table_row"]

_DECIMALS = ((4, 2), (9, 4), (18, 8), (38, 16))  # up to how many digits the engine holds in how many bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineTable:
    """A table in the engine: what stands after FROM, its columns and their types, and who must stay readable.

    `row` is the SQL of a number, 0, 1, .., that each row has for itself; None: rows have no such number.
    `whole` says that the engine's reader can fail at a value: then the files are read by other means. `view`
    says that it is computed as it is read: then it is copied when it is opened. `contents` tells the rows of
    the copy from others: a public view of one file may have other rows at each opening (a sample, a clock).
    """

    sql: str
    columns: tuple[tuple[str, str], ...]
    paths: tuple[str, ...] = ()
    left_out: tuple[UnsupportedColumn, ...] = ()
    row: str | None = None
    whole: bool = False
    view: bool = False
    contents: str = ""
    replacing: str = ""  # of Parquet files: what reads bytes that are not UTF-8 as question marks
    misread: frozenset[str] = frozenset()  # columns that the engine's reader would filter wrongly


def quoted_path(path: str) -> str:
    """Return the pattern that matches one path, and nothing else.

    >>> quoted_path("/data/v[1].csv")
    '/data/v[[]1].csv'
    """
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in path)


# -- Parquet --------------------------------------------------------------------------------


def parquet_table(connection: Any, name: str, paths: tuple[str, ...]) -> EngineTable:
    """Return the table that Parquet files hold together; refuse files whose columns or types differ."""
    first: dict[str, tuple[str, bool]] = {}
    wide = False
    for place, path in enumerate(paths):
        schema = _parquet_schema(connection, name, path)
        found = _parquet_columns(connection, path, schema)
        wide = wide or any(_is_wide_decimal(one, found) for one in schema)
        first = first or found
        refuse_drift(name, place, _described(first), _described(found))
    quoted = tuple(map(quoted_path, paths))
    listed = ", ".join(map(DUCKDB.constant, quoted))
    # What a file says of the numbers in it leaves out NaN: the engine must not take it for all there is.
    reader = f"read_parquet([{listed}], hive_partitioning = false, union_by_name = false, can_have_nan = true"
    return EngineTable(
        sql=f"{reader})",
        replacing=f"{reader}, utf8_validation = 'replace')",
        misread=frozenset().union(*(_misread_columns(connection, path) for path in quoted)),
        columns=tuple((column, of_type) for column, (of_type, _) in first.items()),
        paths=quoted,
        row=_parquet_row(connection, quoted, first),
        whole=wide or any(coarse for _, coarse in first.values()),
    )


def _parquet_row(connection: Any, quoted: tuple[str, ...], columns: Iterable[str]) -> str | None:
    """Return the number of a row over all files; the engine has names of its own for what it is made of."""
    if {"file_row_number", "file_index"} & {column.lower() for column in columns}:
        return None
    if len(quoted) == 1:
        return "file_row_number"
    sizes = [
        connection.execute(f"SELECT num_rows FROM parquet_file_metadata({path})").fetchone()[0]
        for path in map(DUCKDB.constant, quoted)
    ]
    return f"file_row_number + {list(accumulate(sizes[:-1], initial=0))}[CAST(file_index AS BIGINT) + 1]"


def _misread_columns(connection: Any, quoted: str) -> frozenset[str]:
    """Return the columns of a file in which the engine's reader would skip rows that a condition holds for.

    These are texts that have NULLs, and are not all written by way of a dictionary. Where all other texts of
    some rows are one, and a condition holds for NULL, the reader (DuckDB 2.0) takes all of these rows for
    NULL. They are also columns with statistics of the first form of the format alone, `min` and `max`. Their
    writers ordered texts, decimals and unsigned numbers in other ways than the reader, so that one person's
    `é` hides all rows beside it. So it would depend on other people's rows what a row says. Where the engine
    fails to tell, at a far moment for example, it is all columns.
    """
    import duckdb

    file = DUCKDB.constant(quoted)
    try:
        found = connection.execute(
            f"SELECT DISTINCT path_in_schema FROM parquet_metadata({file})"
            " WHERE (type = 'BYTE_ARRAY' AND coalesce(stats_null_count, 1) > 0"
            " AND NOT coalesce(contains(encodings, 'DICTIONARY'), FALSE))"
            " OR (coalesce(stats_min, stats_max) IS NOT NULL"
            " AND coalesce(stats_min_value, stats_max_value) IS NULL)"
        ).fetchall()
    except duckdb.Error:
        found = connection.execute(f"SELECT name FROM parquet_schema({file})").fetchall()
    return frozenset(column for (column,) in found)


def _parquet_schema(connection: Any, name: str, path: str) -> list[Any]:
    """Return what one file says of its columns, without what they hold; refuse two of one name."""
    found = connection.execute(
        "SELECT name, num_children, type, converted_type, logical_type, type_length"
        f" FROM parquet_schema({DUCKDB.constant(quoted_path(path))})"
    ).fetchall()
    own = list(_children(found))
    if len({str(column).lower() for column, *_ in own}) != len(own):
        raise InvalidArgument(f"the file of table `{name}` has two columns of one name", place=name)
    return own


def _parquet_columns(connection: Any, path: str, schema: list[Any]) -> dict[str, tuple[str, bool]]:
    """Return the columns of one file: their types, and whether they hold moments that are not read safely.

    The engine converts milliseconds to microseconds as it reads, and fails where that overflows. Microseconds
    are read as they are, nanoseconds have a type of their own, and 96 bits are cut.
    """
    described = connection.execute(
        f"DESCRIBE SELECT * FROM read_parquet([{DUCKDB.constant(quoted_path(path))}],"
        " hive_partitioning = false)"
    ).fetchall()
    safe = {
        column
        for column, _, stored, converted, logical, _ in schema
        if stored == "INT96"
        or converted == "TIMESTAMP_MICROS"
        or any(unit in str(logical) for unit in ("MicroSeconds()", "NanoSeconds()"))
    }
    return {
        column: (of_type, of_type.startswith("TIMESTAMP") and column not in safe)
        for column, of_type, *_ in described
    }


def _described(columns: Mapping[str, tuple[str, bool]]) -> dict[str, str]:
    return {
        one: f"{of_type} in milliseconds" if coarse else of_type for one, (of_type, coarse) in columns.items()
    }


def _is_wide_decimal(stored: Any, columns: Mapping[str, tuple[str, bool]]) -> bool:
    """Return whether a column is a decimal in more bytes than the engine's integer for its digits has.

    The engine's reader fails at a value that this integer cannot hold.
    """
    column, _, of_type, _, _, length = stored
    kind = kind_of_type(columns[column][0]) if column in columns else None
    if kind is None or not kind.digits or of_type not in ("BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"):
        return False
    held = next(size for digits, size in _DECIMALS if kind.digits <= digits)
    return of_type == "BYTE_ARRAY" or int(length) > held


def _children(schema: list[Any]) -> Any:
    """Yield the columns of a schema that is listed in depth: the root, then each column and what it holds."""
    below = 0
    for row in schema[1:]:
        if not below:
            yield row
        below = max(0, below - 1) + (row[1] or 0)


# -- CSV ------------------------------------------------------------------------------------


def csv_table(
    connection: Any,
    name: str,
    paths: tuple[str, ...],
    number: int,
    kinds: Mapping[str, Kind] | None,
    *,
    read: bool,
) -> EngineTable:
    """Read CSV files into a table of the engine's. Columns are matched by the header that every file has.

    `kinds` are the declared kinds of a private table: all else is text, and what is not of its kind is
    NULL. Of a public table (None) all values decide. Without `read` a private table has no rows: of its
    files the headers alone are looked at.
    """
    headers = headers_of(paths, name)
    table = f"__csv{number}"
    if kinds is None:
        _load_public(connection, table, paths, headers)
    else:
        loaded = list(zip(paths, headers, strict=True)) if read else []
        _load_private(connection, table, headers[0][0], loaded, kinds)
    described = connection.execute(f"DESCRIBE {table}").fetchall()
    index = headers[0][0][0] == ""  # of a data frame: it has no name, and is left out
    columns = tuple((column, of_type) for column, of_type, *_ in described)
    return EngineTable(sql=table, columns=columns[index:], row=table_row(column for column, _ in columns))


def _load_private(
    connection: Any,
    table: str,
    columns: tuple[str, ...],
    files: list[tuple[str, tuple[tuple[str, ...], str]]],
    kinds: Mapping[str, Kind],
) -> None:
    names = tuple(map(_written, columns))
    texts = ", ".join(f"{identifier(column)} VARCHAR" for column in names)
    connection.execute(f"CREATE TEMP TABLE __texts ({texts})")
    for path, (own, mark) in files:
        listed = ", ".join(f"{DUCKDB.constant(_written(column))}: 'VARCHAR'" for column in own)
        divided = DUCKDB.constant(mark)
        connection.execute(
            f"INSERT INTO __texts BY NAME SELECT * FROM read_csv({DUCKDB.constant(quoted_path(path))}, "
            f"auto_detect = false, header = true, delim = {divided}, quote = '\"', escape = '\"', "
            f"columns = {{{listed}}}, hive_partitioning = false)"
        )
    typed = ", ".join(
        f"{DUCKDB.read_text(column, kind)} AS {column}"
        for column, kind in ((identifier(one), kinds.get(one, Kind.TEXT)) for one in names)
    )  # in a step of its own: the reader would fail at a cast
    connection.execute(f"CREATE TABLE {table} AS SELECT {typed} FROM __texts")
    connection.execute("DROP TABLE __texts")


def _written(column: str) -> str:
    """Return the name that a column is read under; the one without a name needs one."""
    return column or "__index"


def _load_public(
    connection: Any, table: str, paths: tuple[str, ...], headers: list[tuple[tuple[str, ...], str]]
) -> None:
    marks = {mark for _, mark in headers}
    divided = f", delim = {DUCKDB.constant(marks.pop())}" if len(marks) == 1 else ""
    listed = ", ".join(DUCKDB.constant(quoted_path(path)) for path in paths)
    connection.execute(
        f"CREATE TABLE {table} AS SELECT * FROM read_csv([{listed}], header = true, sample_size = -1, "
        f"union_by_name = true, hive_partitioning = false{divided})"
    )


# -- DuckDB ---------------------------------------------------------------------------------


def attached_table(connection: Any, name: str, path: str, number: int, *, private: bool) -> EngineTable:
    """Return the table or view of a DuckDB file that has this name, or the only table in the file."""
    attached = f"__file{number}"
    connection.execute(f"ATTACH {DUCKDB.constant(path)} AS {attached} (READ_ONLY)")
    schema, table, view = _table_of(connection, attached, name)
    if view:
        check_view(connection, attached, schema, table, private=private)
    columns = connection.execute(
        "SELECT column_name, data_type, is_generated FROM duckdb_columns() "
        "WHERE database_name = ? AND schema_name = ? AND table_name = ? ORDER BY column_index",
        [attached, schema, table],
    ).fetchall()
    return EngineTable(
        sql=f"{attached}.{identifier(schema)}.{identifier(table)}",
        columns=tuple((column, of_type) for column, of_type, generated in columns if not generated),
        left_out=tuple(  # computed anew at every reading, by an expression that may fail at a value
            UnsupportedColumn(name=column, of_type="generated")
            for column, _, generated in columns
            if generated
        ),
        row=None if view else table_row(column for column, *_ in columns),
        view=view,
    )


def table_row(columns: Iterable[str]) -> str | None:
    """Return the number of a row of a table of the engine's; a column of that name would stand in its place.

    >>> table_row(["person", "age"]), table_row(["RowID"])
    ('rowid', None)
    """
    return None if "rowid" in {column.lower() for column in columns} else "rowid"


def _table_of(connection: Any, attached: str, name: str) -> tuple[str, str, bool]:
    """Return schema and name of the table of a DuckDB file: the one of that name, or the only one.

    A view of that name counts where there is no table of that name; the last value says so.
    """
    tables: list[tuple[str, str]] = connection.execute(
        "SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = ?", [attached]
    ).fetchall()
    views: list[tuple[str, str]] = connection.execute(
        "SELECT schema_name, view_name FROM duckdb_views() WHERE database_name = ? AND NOT internal",
        [attached],
    ).fetchall()
    schema, _, own = name.lower().rpartition(".")

    def called(listed: list[tuple[str, str]]) -> list[tuple[str, str]]:
        return [row for row in listed if row[1].lower() == name.lower()] or [
            row for row in listed if (row[0].lower(), row[1].lower()) == (schema, own)
        ]

    same = called(tables)
    if not same and len(seen := called(views)) == 1:
        return (*seen[0], True)
    found = same or tables
    if len(found) != 1:
        what = "holds no table" if not tables else f"has {len(found)} tables that `{name}` could mean"
        raise InvalidArgument(
            f"the DuckDB file of table `{name}` {what}",
            place=name,
            hints=("give the table the name that it has in the file",) if tables else (),
        )
    return (*found[0], False)
