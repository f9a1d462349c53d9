"""Columns of Spark's frames: the kind of each type, and SQL that reads all its values without failing.

A type that is not listed has no kind. Its columns are left out, and questions about them are refused by name:
`char(n)`, whose texts equal others with more spaces, texts with a collation, intervals, times of day,
arrays, maps, structs, binary data. A TIMESTAMP is the moment in UTC. A text that is not UTF-8 is NULL: made
valid, two names could become one. A decimal with more digits than its type, which files can hold, is NULL.
"""

from __future__ import annotations

import re

from sfumato.backends.spark.dialect import SPARK
from sfumato.catalog.kind import Kind

__all__ = ["kind_of_type", "read_column"]

_KINDS = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), Kind.INTEGER),
    "float": Kind.FLOAT,
    "double": Kind.REAL,
    "string": Kind.TEXT,
    "boolean": Kind.BOOLEAN,
    "date": Kind.DATE,
    "timestamp": Kind.TIMESTAMP,
    "timestamp_ntz": Kind.TIMESTAMP,
}
_DECIMAL = re.compile(r"decimal\((\d+),(-?\d+)\)")
_UNCHECKED = 18  # digits of a decimal that Spark reads as 64 bits, whatever they are
_VARCHAR = re.compile(r"varchar\(\d+\)")


def kind_of_type(of_type: str) -> Kind | None:
    """Return the kind of a type, as Spark writes it; None if questions cannot use it.

    >>> kind_of_type("decimal(18,3)"), kind_of_type("varchar(20)"), kind_of_type("char(20)")
    (Kind('decimal(18,3)'), Kind('text'), None)
    """
    if found := _DECIMAL.fullmatch(of_type):
        digits, scale = map(int, found.groups())
        return Kind.decimal(digits, scale) if 0 <= scale <= digits else None
    return Kind.TEXT if _VARCHAR.fullmatch(of_type) else _KINDS.get(of_type)


def read_column(name: str, of_type: str) -> str:
    """Return what to select of a column."""
    column = SPARK.quoted(name)
    kind = kind_of_type(of_type)
    match kind:
        case Kind.INTEGER if of_type != "bigint":
            return f"CAST({column} AS BIGINT) AS {column}"
        case Kind.TEXT:
            return f"try_validate_utf8({column}) AS {column}"
        case Kind.TIMESTAMP if of_type == "timestamp":
            return f"CAST({column} AS TIMESTAMP_NTZ) AS {column}"
    if kind is not None and 0 < kind.digits <= _UNCHECKED:
        most = f"{'9' * kind.digits}E-{kind.scale}BD"
        return f"CASE WHEN {column} BETWEEN -{most} AND {most} THEN {column} END AS {column}"
    return column
