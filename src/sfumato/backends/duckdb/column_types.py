"""Types of the engine's columns: the kind of each, and SQL that reads every value of it without failing.

A column is read as it is, or through a conversion that has a result for every value: moments of any
resolution become TIMESTAMP, and those beyond the years 1 to 9999 become NULL *before* they are converted.
The order matters: `TRY_CAST` of a far TIMESTAMP_S or TIMESTAMP_MS is an internal error of the engine, after
which it answers nothing more. A moment with a time zone is the moment in UTC, whatever zone the machine has.
A Parquet file may hold a decimal with more digits than its type has. The engine reads it as it is, and can
fail where two decimals are compared. So such a decimal becomes NULL.

A type that is not listed here has no kind. Its columns are left out, and questions about them are refused
by name.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from decimal import Context, Decimal

from sfumato.backends.duckdb.dialect import DUCKDB
from sfumato.catalog.identifiers import identifier
from sfumato.catalog.kind import MOST_DIGITS, Kind
from sfumato.catalog.table import Field, UnsupportedColumn

__all__ = ["is_rounded", "kind_of_type", "readable_columns"]

_KINDS = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT"), Kind.INTEGER),
    **dict.fromkeys(("UTINYINT", "USMALLINT", "UINTEGER"), Kind.INTEGER),
    **dict.fromkeys(("UBIGINT", "HUGEINT"), Kind.HUGEINT),
    "FLOAT": Kind.FLOAT,
    "DOUBLE": Kind.REAL,
    **dict.fromkeys(("VARCHAR", "UUID", "ENUM"), Kind.TEXT),
    "BOOLEAN": Kind.BOOLEAN,
    "DATE": Kind.DATE,
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"), Kind.TIMESTAMP),
    **dict.fromkeys(("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ_NS"), Kind.TIMESTAMP),
}
_EXACTLY = Context(prec=MOST_DIGITS)
_YEARS = ("0001-01-01 00:00:00", "9999-12-31 23:59:59")
_NANOSECONDS = ("1677-09-22 00:00:00", "2262-04-11 00:00:00")  # whole days that 64 bits of them can name
_MOMENTS = {
    "TIMESTAMP_S": ("CAST({} AS TIMESTAMP)", _YEARS),
    "TIMESTAMP_MS": ("CAST({} AS TIMESTAMP)", (_YEARS[0], f"{_YEARS[1]}.999")),
    "TIMESTAMP_NS": ("CAST({} AS TIMESTAMP)", _NANOSECONDS),
    "TIMESTAMP WITH TIME ZONE": (
        "make_timestamp(epoch_us({}))",
        (f"{_YEARS[0]}+00", f"{_YEARS[1]}.999999+00"),
    ),
    "TIMESTAMPTZ_NS": (
        "make_timestamp(epoch_us(CAST({} AS TIMESTAMPTZ)))",
        (f"{_NANOSECONDS[0]}+00", f"{_NANOSECONDS[1]}+00"),
    ),
}


def kind_of_type(of_type: str) -> Kind | None:
    """Return the kind of a type of the engine's, None if questions cannot use it.

    >>> kind_of_type("DECIMAL(18,3)"), kind_of_type("INTEGER[]")
    (Kind('decimal(18,3)'), None)
    """
    if of_type.startswith("DECIMAL(") and of_type.endswith(")"):
        return Kind(of_type.lower())
    return None if of_type.endswith("]") else _KINDS.get(_family(of_type))


def readable_columns(
    described: Iterable[tuple[str, str]], unfiltered: Collection[str] = ()
) -> tuple[list[str], list[Field], list[UnsupportedColumn]]:
    """Return what to select of a table with these columns and types, its fields, and what is left out.

    Conditions on `unfiltered` columns are applied after the columns are read. `TRY` of a column is the
    column, and the engine hands no condition on it to the reader of a file, nor believes what the file says.
    """
    selected, fields, left_out = [], [], []
    for name, of_type in described:
        kind = kind_of_type(of_type)
        if kind is None:
            left_out.append(UnsupportedColumn(name=name, of_type=_family(of_type)))
            continue
        fields.append(Field(name=name, kind=kind))
        column = identifier(name)
        selected.append(_total(column, f"TRY({column})" if name in unfiltered else column, of_type))
    return selected, fields, left_out


def is_rounded(of_type: str) -> bool:
    """Return whether two values of a type may become one when they are read.

    >>> is_rounded("TIMESTAMP_NS"), is_rounded("TIMESTAMP")
    (True, False)
    """
    return of_type in ("TIMESTAMP_NS", "TIMESTAMPTZ_NS")


def _total(name: str, column: str, of_type: str) -> str:
    """Return a column of a type of the engine's as a value that every row has, under a name."""
    kind = kind_of_type(of_type)
    converted = "{}"
    if kind is not None and kind.digits:
        last = f"{Decimal(10**kind.digits - 1).scaleb(-kind.scale, _EXACTLY):f}"
        column = DUCKDB.within(column, f"'-{last}'::{of_type}", f"'{last}'::{of_type}")
    elif of_type in _MOMENTS:
        converted, (first, last) = _MOMENTS[of_type]
        column = DUCKDB.within(column, f"'{first}'::{of_type}", f"'{last}'::{of_type}")
    return name if column == name else f"{converted.format(column)} AS {name}"


def _family(of_type: str) -> str:
    """Return a type without what is in it: names of fields and listed values are not for messages."""
    if of_type.endswith("]"):
        return "LIST" if of_type.endswith("[]") else "ARRAY"
    return of_type.split("(")[0].strip('"')
