"""The sandbox: SQL over noisy tables, in an engine that holds nothing private and reaches nothing.

One in-memory DuckDB per process, whose file systems, extensions, external access and Python lookups are
switched off and whose configuration is then locked. A statement has a cursor of its own: the noisy tables
and public ones are temporary tables, which no other cursor sees and which end with it. What goes wrong
inside may be shown in full: there is no secret in it. Arithmetic and conversions do not go wrong (`total`):
what has no value is NULL.
"""

from __future__ import annotations

import atexit
import datetime
import functools
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import sqlglot
from sqlglot import errors, exp

from sfumato.catalog.identifiers import identifier
from sfumato.core.entropy import process_id
from sfumato.core.steps import spend
from sfumato.errors import QueryRefused
from sfumato.release.lineage import CHARACTERS, trace
from sfumato.release.total import FINITE, FINITE_MACRO, total

if TYPE_CHECKING:
    import duckdb

__all__ = ["PlainTable", "check", "query"]

_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "threads": 1,
    "temp_directory": "",
    "memory_limit": "1GB",
    "autoload_known_extensions": "false",
    "autoinstall_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",
}
_LOCKS = (
    "SET GLOBAL error_on_division_by_zero = false",  # NULL: a noisy zero must not fail what was paid for
    "SET disabled_filesystems = 'LocalFileSystem'",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)
_SECONDS = 60.0
_MOST_ROWS = 5_000_000
_STEPS_PER_NUMBER = 20  # that may not be finite: the engine plans a function for each
_TABLE_FUNCTIONS = {"generate_series", "range", "unnest"}
_REFUSED_FUNCTIONS = {
    "current_setting",
    "getenv",
    "getvariable",
    "pg_sleep",
    "query",
    "query_table",
    "sleep_ms",
}
_INTEGERS = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"}
_WIDE = {"HUGEINT", "UHUGEINT", "UBIGINT"}
_PLAINER = ("ask for the aggregates alone, and do the rest in Python: it is free",)
_SEVERAL = "More than one row returned by a subquery"
_FOR_ARROW: dict[str, Callable[[Any], Any]] = {
    "HUGEINT": Decimal,
    "DECIMAL": Decimal,
    "FLOAT": float,
    "DOUBLE": float,
}
_PLAIN = {"BOOLEAN", "BIGINT", "HUGEINT", "DOUBLE", "VARCHAR", "DATE", "TIMESTAMP"}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlainTable:
    """A table of plain values: columns with their SQL types (BIGINT, DOUBLE[], ..) and values."""

    columns: tuple[str, ...]
    types: tuple[str, ...]
    values: tuple[list[Any], ...]

    @property
    def traced(self) -> tuple[str, ...]:
        """The columns whose intervals can be followed: a report has its own inside."""
        pairs = zip(self.columns, self.types, strict=True)
        return tuple(name for name, kind in pairs if not kind.startswith("STRUCT"))

    def arrow(self) -> Any:
        """Return it as an Arrow table, with names and types kept."""
        import pyarrow as pa

        arrays = [
            pa.array([_converted(one, kind, _FOR_ARROW) for one in column], type=_arrow_type(kind, column))
            for kind, column in zip(self.types, self.values, strict=True)
        ]
        return pa.Table.from_arrays(arrays, names=list(self.columns))


def query(
    tables: Mapping[str, PlainTable],
    sql: str,
    *,
    public: Mapping[str, Any] | None = None,
    finite: bool = True,
) -> PlainTable:
    """Run one SELECT over noisy tables (and public Arrow tables) and return its rows.

    Numbers that are not finite become NULL, unless they are ends of intervals and may be infinite.

    >>> plain = PlainTable(columns=("n",), types=("BIGINT",), values=([3, 5],))
    >>> query({"released": plain}, "SELECT max(n) AS most FROM released").values
    ([5],)
    """
    import duckdb

    _allowed(sql, {name.lower() for name in (*tables, *(public or {}))})
    connection = _engine(process_id()).cursor()
    timer = threading.Timer(_SECONDS, connection.interrupt)
    try:
        for name, plain in tables.items():
            _create(connection, name, plain)
        for name, table in (public or {}).items():
            connection.register("__arriving", table)
            connection.execute(f"CREATE TEMP TABLE {identifier(name)} AS SELECT * FROM __arriving")
            connection.unregister("__arriving")
        timer.start()
        result = connection.execute(total(sql, finite=finite))
        names = [column[0] for column in result.description or ()]
        kinds = [str(column[1]) for column in result.description or ()]
        rows = result.fetchmany(_MOST_ROWS + 1)
    except duckdb.Error as error:
        raise _refusal(sql, error) from None
    finally:
        timer.cancel()
        connection.close()
    if len(rows) > _MOST_ROWS:
        raise QueryRefused(
            f"post-processing gives over {_MOST_ROWS:,} rows", code="SF404", text=sql, hints=_PLAINER
        )
    given = {kind for plain in tables.values() for kind in plain.types}
    settled = [_settled(kind, given) for kind in kinds]
    return PlainTable(
        columns=tuple(names),
        types=tuple(settled),
        values=tuple(
            [_converted(row[i], kind, _FROM_ENGINE) for row in rows] for i, kind in enumerate(settled)
        ),
    )


@functools.cache
def _engine(process: int) -> duckdb.DuckDBPyConnection:
    """Return the engine of this process; one that was opened before a fork is another's."""
    import duckdb

    engine = duckdb.connect(":memory:", config=_CONFIG)
    for statement in (FINITE_MACRO, *_LOCKS):
        engine.execute(statement)
    atexit.register(_engine.cache_clear)  # PyTorch keeps modules; DuckDB lists what is open at the very end
    return engine


def check(
    tables: Mapping[str, PlainTable],
    sql: str,
    *,
    public: Mapping[str, Any] | None = None,
    samples: Callable[[], Sequence[Mapping[str, PlainTable]]] | None = None,
) -> None:
    """Refuse a statement that cannot run, before anything is spent: run it over empty tables.

    `samples` makes tables with all rows there will be, and other numbers in each: a subquery that gives
    several rows where one value must stand, in every one of them, will do so again.
    """
    spend(4 * len(sql) // CHARACTERS)
    _allowed(sql, {name.lower() for name in (*tables, *(public or {}))})
    followed = trace(sql, {name: plain.traced for name, plain in tables.items()})
    if followed is not None and followed.plain:
        return  # columns by their names: nothing that could go wrong
    spend(_STEPS_PER_NUMBER * total(sql).count(FINITE.upper()))
    empty = {name: replace(plain, values=tuple([] for _ in plain.columns)) for name, plain in tables.items()}
    slices = {name: table.slice(0, 0) for name, table in (public or {}).items()}
    query(empty, sql, public=slices)
    if samples is None or not _has_scalar_subquery(sql):
        return
    several: QueryRefused | None = None
    for sample in samples():
        try:
            query(sample, sql, public=public)
            return
        except QueryRefused as refusal:
            if _SEVERAL not in refusal.message:
                return
            several = several or refusal
    if several is not None:
        raise several


def _has_scalar_subquery(sql: str) -> bool:
    [statement] = _read(sql)
    found = statement.find_all(exp.Subquery)
    return any(not isinstance(node.parent, (exp.From, exp.Join, exp.SetOperation)) for node in found)


def _create(connection: duckdb.DuckDBPyConnection, name: str, plain: PlainTable) -> None:
    """Create a base table, whose rowid is then the number of the row."""
    columns = ", ".join(
        f"unnest(${i}::{kind}[]) AS {identifier(column)}"
        for i, (column, kind) in enumerate(zip(plain.columns, plain.types, strict=True), start=1)
    )
    values = [
        [float(value) for value in column] if kind == "DOUBLE" and None not in column else column
        for kind, column in zip(plain.types, plain.values, strict=True)
    ]
    connection.execute(f"CREATE TEMP TABLE {identifier(name)} AS SELECT {columns}", values)


@functools.lru_cache(maxsize=2)  # a statement is looked at several times, one after the other
def _read(sql: str) -> tuple[Any, ...]:
    """Return the statements of a text, which nobody changes."""
    return tuple(sqlglot.parse(sql, read="duckdb"))


def _allowed(sql: str, names: set[str]) -> None:
    """Refuse what is not one SELECT over the given tables; locks would stop it too, this says why."""

    def refused(message: str, code: str, *hints: str) -> QueryRefused:
        return QueryRefused(f"post-processing {message}", code=code, text=sql, hints=hints or _PLAINER)

    try:
        statements = _read(sql)
    except errors.SqlglotError as error:
        reason, *_ = str(error).split("\n")
        raise refused(f"cannot be read: {reason}", "SF401") from None
    statement = statements[0] if len(statements) == 1 else None
    if not isinstance(statement, exp.Query):
        raise refused("is one SELECT", "SF407")
    known = names | {cte.alias_or_name.lower() for cte in statement.find_all(exp.CTE)}
    for table in statement.find_all(exp.Table):
        if isinstance(table.this, exp.Func):
            if (called := _called(table.this)) not in _TABLE_FUNCTIONS:
                hint = "it sees the noisy tables, and nothing else"
                raise refused(f"cannot read from {called}()", "SF403", hint)
        elif table.name.lower() not in known or table.args.get("db") is not None:
            raise refused(f"has no table `{table.name}`", "SF402", f"it has {', '.join(sorted(names))}")
    for function in statement.find_all(exp.Func):
        if (called := _called(function)) in _REFUSED_FUNCTIONS:
            raise refused(f"cannot call {called}()", "SF403")


def _called(function: Any) -> str:
    name = function.name if isinstance(function, exp.Anonymous) else function.sql_name()
    return {"explode": "unnest"}.get(str(name).lower(), str(name).lower())


def _refusal(sql: str, error: Exception) -> QueryRefused:
    import duckdb

    message = "failed: " + str(error).strip().partition("\n")[0]
    code, hints = "SF404", _PLAINER
    match error:
        case duckdb.InterruptException():
            message = f"took over {_SECONDS:g} s"
        case duckdb.ParserException():
            code = "SF401"
        case duckdb.CatalogException() | duckdb.BinderException():
            code = "SF402"
    if _SEVERAL in message:
        hints = ("take one of its rows: an aggregate, or ORDER BY and LIMIT 1",)
    return QueryRefused(f"post-processing {message}", code=code, text=sql, hints=hints)


# -- types ----------------------------------------------------------------------------------


def _settled(kind: str, given: set[str]) -> str:
    """Return the type that a column of the engine's type is kept as; texts, where there is no better.

    Keys stay decimals; decimals that arithmetic made of noisy numbers are DOUBLE.
    """
    if kind.endswith("[]"):
        return f"{_settled(kind[:-2], given)}[]"
    if kind in given and not kind.startswith("STRUCT"):
        return kind
    if kind in _INTEGERS:
        return "BIGINT"
    if kind in _WIDE:
        return "HUGEINT"
    if kind == "FLOAT" or kind.startswith("DECIMAL"):
        return "DOUBLE"
    return kind if kind in _PLAIN else "VARCHAR"


def _text(value: Any) -> str:
    """Return a value as text; a report as JSON."""
    if isinstance(value, dict):
        return json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)
    return str(value)


_FROM_ENGINE: dict[str, Callable[[Any], Any]] = {"DOUBLE": float, "VARCHAR": _text}


def _converted(value: Any, kind: str, types: Mapping[str, Callable[[Any], Any]]) -> Any:
    """Convert a value of a type, or each item of a list, to what `types` says; NULL stays NULL."""
    if value is None:
        return None
    if kind.endswith("[]"):
        return [_converted(item, kind[:-2], types) for item in value]
    wanted = types.get(kind.partition("(")[0])
    return value if wanted is None else wanted(value)


def _arrow_type(kind: str, values: Sequence[Any] = ()) -> Any:
    import pyarrow as pa

    if kind.endswith("[]"):
        return pa.list_(_arrow_type(kind[:-2]))
    aware = any(isinstance(value, datetime.datetime) and value.tzinfo is not None for value in values)
    long = any(isinstance(value, int) and abs(value) >= 10**38 for value in values)
    if kind.startswith("DECIMAL("):
        digits, scale = kind.removeprefix("DECIMAL(").rstrip(")").split(",")
        return pa.decimal128(int(digits), int(scale))
    return {
        "BOOLEAN": pa.bool_(),
        "BIGINT": pa.int64(),
        "HUGEINT": pa.decimal256(39, 0) if long else pa.decimal128(38, 0),
        "FLOAT": pa.float32(),
        "DOUBLE": pa.float64(),
        "VARCHAR": pa.string(),
        "DATE": pa.date32(),
        "TIMESTAMP": pa.timestamp("us", tz="UTC" if aware else None),
    }[kind]
