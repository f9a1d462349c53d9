"""DuckDB's dialect: conversions can be tried, and operations with binary numbers never fail."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from sfumato.backends.dialect import OPEN_ZONE, Dialect, Writer
from sfumato.backends.duckdb.functions import FUNCTIONS
from sfumato.backends.duckdb.totality import NAN, bound, not_equal
from sfumato.backends.duckdb.unit_aggregates import unit_aggregate
from sfumato.catalog.kind import Kind
from sfumato.core.grid import Grid
from sfumato.plan.numbers import as_decimal
from sfumato.plan.tree import Aggregate

__all__ = ["DUCKDB"]

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
_NARROW = {
    (-(2**7), 2**7 - 1): "TINYINT",
    (-(2**15), 2**15 - 1): "SMALLINT",
    (-(2**31), 2**31 - 1): "INTEGER",
    (0, 2**8 - 1): "UTINYINT",
    (0, 2**16 - 1): "USMALLINT",
    (0, 2**32 - 1): "UINTEGER",
    (0, 2**64 - 1): "UBIGINT",
}


class _DuckDB(Dialect):
    functions = FUNCTIONS
    size_of_text = "strlen"

    def sql_type(self, kind: Kind) -> str:
        return f"DECIMAL({kind.digits},{kind.scale})" if kind.digits else _TYPES[kind]

    def text(self, value: str) -> str:
        """Return a quoted text; NUL, which SQL text cannot hold, is spelled `chr(0)`."""
        parts = ("'" + part.replace("'", "''") + "'" for part in value.split("\0"))
        joined = " || chr(0) || ".join(parts)
        return f"({joined})" if "\0" in value else joined

    def converted(self, sql: str, source: Kind | None, kind: Kind | None) -> str:
        if kind is None or source is kind:
            return sql
        fits = True
        if kind.digits:
            own = as_decimal(source) if source is not None and source.exact else None
            before = kind.digits - kind.scale
            fits = own is not None and own.digits - own.scale <= before and source is not Kind.HUGEINT
        return f"{'CAST' if fits else 'TRY_CAST'}({sql} AS {self.sql_type(kind)})"

    def cast(self, sql: str, source: Kind, kind: Kind, limits: tuple[int, int] | None) -> str:
        if limits is not None:
            return f"CAST(TRY_CAST({sql} AS {_NARROW[limits]}) AS {self.sql_type(kind)})"
        if source is Kind.TEXT and kind in (Kind.DATE, Kind.TIMESTAMP):
            return self.within_years(self.read_text(sql, kind), kind)
        cast = f"TRY_CAST({sql} AS {self.sql_type(kind)})"
        return not_equal(cast, NAN) if kind.binary else cast

    def read_text(self, sql: str, kind: Kind) -> str:
        """Return what a text says, NULL where it says nothing of a kind (see `OPEN_ZONE`)."""
        if kind in (Kind.DATE, Kind.TIMESTAMP):
            sql = f"regexp_replace({sql}, '(?s)^.*{OPEN_ZONE}', '?')"
        return f"TRY_CAST({sql} AS {self.sql_type(kind)})"

    def normalised(self, sql: str, kind: Kind) -> str:
        match kind:
            case Kind.REAL | Kind.FLOAT:
                return f"nullif(CAST({sql} AS {self.sql_type(kind)}), {NAN})"
            case Kind.DATE | Kind.TIMESTAMP:
                return self.within_years(sql, kind)
            case Kind.TEXT:
                return self.short_text(sql)
            case _:
                return f"CAST({sql} AS {self.sql_type(kind)})"

    def within(self, sql: str, low: str, high: str) -> str:
        """The bounds are tested and applied: a far value must not be there at all.

        Where the engine takes a function for one that cannot fail, it computes with all values of a column's
        dictionary, also with those of rows that a filter or a CASE set aside. To write a far timestamp as
        text is such a function, and fails.
        """
        between = f"CASE WHEN {{0}} BETWEEN {low} AND {high} THEN least(greatest({{0}}, {low}), {high}) END"
        return bound(sql, between.format)

    def nearest_point(self, value: str, grid: Grid, begins: Sequence[float]) -> str:
        """Correct a quotient by a comparison; NaN, in the engine's order, is above everything."""
        points = ", ".join([*map(self.constant, (-math.inf, *begins)), NAN])
        low, high = self.constant(float(grid.low)), self.constant(float(grid.high))
        quotient = f"({value} / {self.constant(float(grid.step))} + 0.5)"
        guess = f"CAST(floor({self.clamped(quotient, low, high)}) AS BIGINT)"
        first, following = (f"list_extract([{points}], {guess} - {grid.low} + {place})" for place in (1, 2))
        return f"({guess} - CAST({value} < {first} AS BIGINT) + CAST({value} >= {following} AS BIGINT))"

    def bound(self, value: str, form: Callable[[str], str]) -> str:
        return bound(value, form)

    def plain_text(self, sql: str) -> str:
        return f'CAST({sql} AS VARCHAR) COLLATE "binary"'

    def unit_aggregate(self, aggregate: Aggregate, write: Writer) -> str:
        return unit_aggregate(aggregate, write)


DUCKDB = _DuckDB()
"""How DuckDB spells values and expressions.

>>> DUCKDB.sql_type(Kind.decimal(15, 2))
'DECIMAL(15,2)'
>>> DUCKDB.constant("it's"), DUCKDB.constant(2, Kind.REAL)
("'it''s'", "'2.0'::DOUBLE")
>>> from decimal import Decimal
>>> DUCKDB.constant(Decimal("0.5"), Kind.decimal(15, 2))
"CAST('0.5'::DECIMAL(2,1) AS DECIMAL(15,2))"
"""
