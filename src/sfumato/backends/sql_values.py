"""Values in DuckDB's SQL: the type of each kind, constants, and columns of tables as values.

Constants are quoted here and nowhere else; NUL, which SQL text cannot hold, is spelled `chr(0)`.
"""

from __future__ import annotations

import datetime
import math
from decimal import Decimal

from sfumato.catalog.kind import Kind, Value, kind_of
from sfumato.errors import Unsupported
from sfumato.plan.numbers import as_decimal

__all__ = [
    "NAN",
    "canonical",
    "constant",
    "converted",
    "finite",
    "normalised",
    "plain_text",
    "sql_type",
    "within",
    "within_years",
]

NAN = "'nan'::DOUBLE"
"""Not a number, which the engine holds for larger than every other."""

_TYPES = {
    Kind.INTEGER: "BIGINT",
    Kind.HUGEINT: "HUGEINT",
    Kind.FLOAT: "FLOAT",
    Kind.REAL: "DOUBLE",
    Kind.TEXT: "VARCHAR",
    Kind.BOOLEAN: "BOOLEAN",
    Kind.DATE: "DATE",
    Kind.TIMESTAMP: "TIMESTAMP",
}


def sql_type(kind: Kind) -> str:
    """Return the one SQL type that values of a kind have.

    >>> sql_type(Kind.decimal(15, 2))
    'DECIMAL(15,2)'
    """
    return f"DECIMAL({kind.digits},{kind.scale})" if kind.digits else _TYPES[kind]


def constant(value: Value, kind: Kind | None = None) -> str:
    """Return a constant, of the type of `kind` if one is given.

    >>> constant("it's"), constant(2, Kind.REAL)
    ("'it''s'", "'2.0'::DOUBLE")
    >>> constant(Decimal("0.5"), Kind.decimal(15, 2))
    "CAST('0.5'::DECIMAL(2,1) AS DECIMAL(15,2))"
    """
    match value:
        case None:
            return "NULL" if kind is None else f"NULL::{sql_type(kind)}"
        case bool():
            return "TRUE" if value else "FALSE"
        case int() if -(2**63) <= value < 2**63 and kind is Kind.REAL:
            return constant(float(value))
        case int() | Decimal():
            own = kind_of(value)
            if own is None or not own.exact:
                return constant(_as_float(value), Kind.REAL)
            text = f"{value:f}" if isinstance(value, Decimal) else str(value)
            return converted(f"'{text}'::{sql_type(own)}", own, kind or own)
        case float() if kind is not None and kind is not Kind.REAL:
            return converted(constant(value), Kind.REAL, kind)
        case float():
            return "NULL::DOUBLE" if math.isnan(value) else f"'{value!r}'::DOUBLE"
        case str():
            if any("\ud800" <= letter <= "\udfff" for letter in value):
                raise Unsupported("a text that is not valid unicode")
            parts = ("'" + part.replace("'", "''") + "'" for part in value.split("\0"))
            joined = " || chr(0) || ".join(parts)
            return f"({joined})" if "\0" in value else joined
        case datetime.datetime():
            if value.tzinfo is not None:
                raise Unsupported("a timestamp with a time zone")
            return f"'{value.isoformat(sep=' ')}'::TIMESTAMP"
        case datetime.date():
            return f"'{value.isoformat()}'::DATE"


def _as_float(value: int | Decimal) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def converted(sql: str, source: Kind | None, kind: Kind | None) -> str:
    """Return a value as one of a kind that holds it; where a decimal is too narrow, NULL. None: as it is."""
    if kind is None or source is kind:
        return sql
    fits = True
    if kind.digits:
        own = as_decimal(source) if source is not None and source.exact else None
        before = kind.digits - kind.scale
        fits = own is not None and own.digits - own.scale <= before and source is not Kind.HUGEINT
    return f"{'CAST' if fits else 'TRY_CAST'}({sql} AS {sql_type(kind)})"


def normalised(sql: str, kind: Kind) -> str:
    """Return a raw column as a value of its kind: the one place where NaN and far dates become NULL."""
    match kind:
        case Kind.REAL | Kind.FLOAT:
            return f"nullif(CAST({sql} AS {sql_type(kind)}), {NAN})"
        case Kind.DATE | Kind.TIMESTAMP:
            return within_years(sql, kind)
        case Kind.TEXT:
            return plain_text(sql)
        case _:
            return f"CAST({sql} AS {sql_type(kind)})"


def within(sql: str, low: str, high: str) -> str:
    """Return a value if it is between two bounds, and NULL otherwise: nothing of another value is left.

    The bounds are tested and applied. Where the engine takes a function for one that cannot fail, it computes
    with all values of a column's dictionary, also with those of rows that a filter or a CASE set aside. To
    write a far timestamp as text is such a function, and fails: a far value must not be there at all.
    """
    return f"CASE WHEN {sql} BETWEEN {low} AND {high} THEN least(greatest({sql}, {low}), {high}) END"


def within_years(sql: str, kind: Kind) -> str:
    """Return a date or timestamp of the years 1 to 9999, and NULL for another."""
    last = "9999-12-31" if kind is Kind.DATE else "9999-12-31 23:59:59.999999"
    return within(sql, f"'0001-01-01'::{sql_type(kind)}", f"'{last}'::{sql_type(kind)}")


def finite(sql: str) -> str:
    """Return a binary number, NULL where it is infinite or NaN."""
    return f"nullif(nullif(nullif({sql}, {NAN}), 'inf'::DOUBLE), '-inf'::DOUBLE)"


def canonical(sql: str, kind: Kind) -> str:
    """Return a value in the form that all its equals share: what is shown, hashed or written as text.

    Binary numbers alone have equals that differ, the two zeros; NaN is NULL, and texts are plain.
    """
    return f"({sql} + 0.0)" if kind.binary else sql


def plain_text(sql: str) -> str:
    """Return a raw column as a text that equals no text but itself."""
    return f'CAST({sql} AS VARCHAR) COLLATE "binary"'
