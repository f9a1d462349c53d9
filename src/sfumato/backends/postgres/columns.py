"""Columns of PostgreSQL's tables: the kind of each type, and SQL that reads all its values without failing.

A type that is not listed has no kind. Its columns are left out, and questions about them are refused by name:
`char(n)`, whose texts equal others with more spaces, `numeric` without digits, which has no end, times of
day, arrays, domains, composite types. A moment with a time zone is the moment in UTC.
"""

from __future__ import annotations

import re

from sfumato.catalog.identifiers import identifier
from sfumato.catalog.kind import MOST_DIGITS, Kind

__all__ = ["kind_of_type", "read_column"]

_KINDS = {
    **dict.fromkeys(("smallint", "integer", "bigint"), Kind.INTEGER),
    "real": Kind.FLOAT,
    "double precision": Kind.REAL,
    **dict.fromkeys(("text", "character varying", "uuid"), Kind.TEXT),
    "boolean": Kind.BOOLEAN,
    "date": Kind.DATE,
    "timestamp without time zone": Kind.TIMESTAMP,
    "timestamp with time zone": Kind.TIMESTAMP,
}
_NUMERIC = re.compile(r"numeric\((\d+),(-?\d+)\)")


def kind_of_type(of_type: str) -> Kind | None:
    """Return the kind of a type, as `format_type` writes it; None if questions cannot use it.

    >>> kind_of_type("numeric(18,3)"), kind_of_type("character varying(20)"), kind_of_type("numeric")
    (Kind('decimal(18,3)'), Kind('text'), None)
    """
    if found := _NUMERIC.fullmatch(of_type):
        digits, scale = map(int, found.groups())
        return Kind.decimal(digits, scale) if digits <= MOST_DIGITS and 0 <= scale <= digits else None
    return _KINDS.get(re.sub(r"\(\d+\)", "", of_type))


def read_column(name: str, of_type: str) -> str:
    """Return what to select of a column."""
    column = identifier(name)
    if of_type.endswith("with time zone") and of_type.startswith("timestamp"):
        return f"({column} AT TIME ZONE 'UTC') AS {column}"
    return column
