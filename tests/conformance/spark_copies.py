"""Tables of a small world in Spark: the same rows, value by value."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from typing import Any

from sfumato.backends.spark.dialect import SPARK
from sfumato.backends.spark.source import SparkTables
from sfumato.catalog import Catalog, Kind

__all__ = ["copied", "written"]

_DAY = 86_400_000_000


def written(value: Any, kind: Kind) -> str:
    """Return a value as SQL; moments may be numbers, of days or microseconds, as Arrow has them."""
    of_type = SPARK.sql_type(kind)
    match value:
        case None:
            return f"CAST(NULL AS {of_type})"
        case bool():
            return str(value).upper()
        case str():
            return f"decode(X'{value.encode().hex()}', 'UTF-8')"
        case int() if kind is Kind.DATE:
            return f"date_add(DATE '1970-01-01', {value})"
        case int() if kind is Kind.TIMESTAMP:
            days, rest = divmod(value, _DAY)
            seconds, micros = divmod(rest, 1_000_000)
            moment = f"CAST(date_add(DATE '1970-01-01', {days}) AS TIMESTAMP_NTZ)"
            return f"({moment} + make_dt_interval(0, 0, 0, {seconds}.{micros:06d}))"
        case datetime.datetime():
            return f"TIMESTAMP_NTZ '{value}'"
        case datetime.date():
            return f"DATE '{value}'"
        case float() if not math.isfinite(value):
            return f"CAST('{value}' AS {of_type})"
    if isinstance(value, Decimal):
        return f"CAST('{value}' AS {of_type})"
    return f"CAST('{value!r}' AS {of_type})"


def copied(session: Any, catalog: Catalog, rows: dict[str, list[dict[str, Any]]]) -> SparkTables:
    """Make a frame of each table, and open them."""
    frames = {}
    for table in catalog.tables:
        names = ", ".join(SPARK.quoted(one.name) for one in table.fields)
        listed = ", ".join(
            "(" + ", ".join(written(row[one.name], one.kind) for one in table.fields) + ")"
            for row in rows[table.name]
        )
        nothing = ", ".join(f"CAST(NULL AS {SPARK.sql_type(one.kind)})" for one in table.fields)
        values = f"VALUES {listed or f'({nothing})'}"
        ending = "" if listed else " WHERE FALSE"
        frames[table.name] = session.sql(f"SELECT * FROM ({values}) AS v({names}){ending}")
    return SparkTables(session, frames)
