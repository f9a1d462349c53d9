"""Tables of a small world in PostgreSQL: the same rows, value by value."""

from __future__ import annotations

import datetime
import itertools
import math
import struct
from decimal import Decimal
from typing import Any

from sfumato.catalog import Catalog, Kind
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


def without_nul(value: Any) -> Any:
    """Return a text without NUL, which PostgreSQL cannot hold; any other value as it is."""
    return value.replace("\0", "\u2400") if isinstance(value, str) else value


def _written(value: Any, kind: Kind) -> str:
    """Return a value as SQL; moments may be numbers, of days or microseconds, as Arrow has them."""
    of_type = f"numeric({kind.digits},{kind.scale})" if kind.digits else _TYPES[kind]
    match value:
        case None:
            return "NULL"
        case int() if kind in (Kind.DATE, Kind.TIMESTAMP):
            end = 2**31 - 1 if kind is Kind.DATE else 2**63 - 1
            if abs(value) == end:
                return f"'{'-' if value < 0 else ''}infinity'::{of_type}"
            days, rest = (value, 0) if kind is Kind.DATE else divmod(value, _DAY)
            moment = f"DATE '1970-01-01' + {days}"
            return f"({moment})" if kind is Kind.DATE else f"(({moment})::timestamp + INTERVAL '{rest} us')"
        case float() if kind is Kind.FLOAT and math.isfinite(value):
            try:
                value = struct.unpack("f", struct.pack("f", value))[0]
            except OverflowError:
                value = math.copysign(math.inf, value)
    if isinstance(value, datetime.date | Decimal):
        return f"'{value}'::{of_type}"
    return "'" + str(value).replace("'", "''") + f"'::{of_type}"


def copied(connection: Any, catalog: Catalog, rows: dict[str, list[dict[str, Any]]]) -> str:
    """Copy rows of tables into a schema of their own, and return its name."""
    schema = f"World {next(_NUMBERS)}"
    connection.execute(f"CREATE SCHEMA {identifier(schema)}")
    for table in catalog.tables:
        columns = ", ".join(
            f"{identifier(one.name)} "
            + (f"numeric({one.kind.digits},{one.kind.scale})" if one.kind.digits else _TYPES[one.kind])
            for one in table.fields
        )
        name = f"{identifier(schema)}.{identifier(table.name)}"
        connection.execute(f"CREATE TABLE {name} ({columns})")
        listed = ", ".join(
            "(" + ", ".join(_written(row[one.name], one.kind) for one in table.fields) + ")"
            for row in rows[table.name]
        )
        if listed:
            connection.execute(f"INSERT INTO {name} VALUES {listed}")
    return schema
