"""Tables in PostgreSQL: the same rows, value by value, loaded by COPY."""

from __future__ import annotations

import datetime
import itertools
import math
import struct
from collections.abc import Mapping
from typing import Any

from sfumato.catalog import Catalog, Kind, Table
from sfumato.catalog.identifiers import identifier

__all__ = ["copied", "without_nul"]

_NUMBERS = itertools.count()
_TYPES = {
    Kind.INTEGER: "bigint",
    Kind.HUGEINT: "numeric(38,0)",
    Kind.FLOAT: "real",
    Kind.REAL: "double precision",
    Kind.TEXT: "text",
    Kind.BOOLEAN: "boolean",
    Kind.DATE: "date",
    Kind.TIMESTAMP: "timestamp",
}
_DAY = 86_400_000_000
_FIRST, _MICROSECOND = datetime.datetime(1970, 1, 1), datetime.timedelta(microseconds=1)
_ESCAPES = {ord("\\"): "\\\\", ord("\t"): "\\t", ord("\n"): "\\n", ord("\r"): "\\r"}
_NUMBERED = "pg_temp.numbered"
_MANY = 1000  # rows: without statistics the server joins more of them by nested loops


def without_nul(value: Any) -> Any:
    """Return a text without NUL, which PostgreSQL cannot hold; any other value as it is."""
    return value.replace("\0", "\u2400") if isinstance(value, str) else value


def _written(value: Any, kind: Kind) -> str:
    """Return a value as COPY reads it; moments as numbers, of days or microseconds, as Arrow has them."""
    match value:
        case None:
            return "\\N"
        case str():
            return value.translate(_ESCAPES)
        case datetime.datetime():
            return str((value - _FIRST) // _MICROSECOND)
        case datetime.date():
            return str((value - _FIRST.date()).days)
        case float() if kind is Kind.FLOAT and math.isfinite(value):
            try:
                value = struct.unpack("f", struct.pack("f", value))[0]
            except OverflowError:
                value = math.copysign(math.inf, value)
    return str(value)


def _moment(name: str, kind: Kind) -> str:
    """Return a number of days or microseconds as a moment; those at the ends are infinite."""
    if kind is Kind.DATE:
        end, moment = 2**31 - 1, f"DATE '1970-01-01' + {name}::int"
    else:
        end, rest = 2**63 - 1, f"(({name} % {_DAY} + {_DAY}) % {_DAY})"
        days = f"(({name} - {rest}) / {_DAY})::int"
        moment = f"(DATE '1970-01-01' + {days})::timestamp + {rest} * INTERVAL '1 us'"
    infinite = f"WHEN {end} THEN 'infinity' WHEN {-end} THEN '-infinity'"
    return f"CASE {name} {infinite} ELSE {moment} END"


def copied(connection: Any, catalog: Catalog, rows: dict[str, list[dict[str, Any]]]) -> str:
    """Copy rows of tables into a schema of their own, and return its name."""
    schema = f"World {next(_NUMBERS)}"
    connection.execute(f"CREATE SCHEMA {identifier(schema)}")
    for table in catalog.tables:
        name = f"{identifier(schema)}.{identifier(table.name)}"
        _copy(connection, name, table, rows[table.name])
        if len(rows[table.name]) > _MANY:
            connection.execute(f"ANALYZE {name}")
    return schema


def _copy(connection: Any, name: str, table: Table, rows: list[dict[str, Any]]) -> None:
    """Make a table by COPY; where it has moments, through another one, of numbers."""
    kinds = {one.name: one.kind for one in table.fields}
    types = {
        one: f"numeric({kind.digits},{kind.scale})" if kind.digits else _TYPES[kind]
        for one, kind in kinds.items()
    }
    moments = {one: kind for one, kind in kinds.items() if kind in (Kind.DATE, Kind.TIMESTAMP)}

    def made(types: Mapping[str, str]) -> str:
        return "(" + ", ".join(f"{identifier(one)} {of_type}" for one, of_type in types.items()) + ")"

    connection.execute(f"CREATE TABLE {name} {made(types)}")
    into = _NUMBERED if moments else name
    if moments:
        connection.execute(f"CREATE TEMP TABLE {into} {made({**types, **dict.fromkeys(moments, 'bigint')})}")
    with connection.cursor() as cursor, cursor.copy(f"COPY {into} FROM STDIN") as copy:
        for row in rows:
            copy.write("\t".join(_written(row[one], kind) for one, kind in kinds.items()) + "\n")
    if moments:
        listed = ", ".join(
            _moment(identifier(one), kind) if one in moments else identifier(one)
            for one, kind in kinds.items()
        )
        connection.execute(f"INSERT INTO {name} SELECT {listed} FROM {into}; DROP TABLE {into}")
