"""PostgreSQL's dialect. Texts are compared in the collation "C", code point by code point."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from sfumato.backends.dialect import Dialect, Writer
from sfumato.backends.postgres.functions import FUNCTIONS
from sfumato.backends.postgres.readings import read_text
from sfumato.backends.postgres.totality import (
    bound,
    double,
    exact,
    finite,
    fitted,
    huge_double,
    product,
    rounded_single,
    within_range,
)
from sfumato.backends.postgres.unit_aggregates import unit_aggregate
from sfumato.catalog.kind import Kind
from sfumato.core.grid import Grid
from sfumato.errors import Unsupported
from sfumato.plan.numbers import as_decimal
from sfumato.plan.tree import Aggregate

__all__ = ["POSTGRES"]

_TYPES = {
    Kind.INTEGER: "bigint",
    Kind.HUGEINT: "numeric",
    Kind.FLOAT: "real",
    Kind.REAL: "double precision",
    Kind.TEXT: "text",
    Kind.BOOLEAN: "boolean",
    Kind.DATE: "date",
    Kind.TIMESTAMP: "timestamp",
}
_LARGEST_SINGLE = 3.4028234663852886e38
_WORD_DIGITS = 18  # wider whole numbers DuckDB rounds in two halves; decimals with a point it does not


class _Postgres(Dialect):
    functions = FUNCTIONS

    def sql_type(self, kind: Kind) -> str:
        return f"numeric({kind.digits},{kind.scale})" if kind.digits else _TYPES[kind]

    def text(self, value: str) -> str:
        if "\0" in value:
            raise Unsupported("a text with the character NUL, which PostgreSQL cannot hold,")
        return "('" + value.replace("'", "''") + '\'::text COLLATE "C")'

    def converted(self, sql: str, source: Kind | None, kind: Kind | None) -> str:
        if kind is None or source is kind:
            return sql
        if source is None:
            return f"CAST({sql} AS {self.sql_type(kind)})"
        if source.exact and kind.digits:
            own = as_decimal(source)
            if own.digits - own.scale <= kind.digits - kind.scale and source is not Kind.HUGEINT:
                return f"CAST({sql} AS {self.sql_type(kind)})"
            return fitted(f"CAST({sql} AS numeric)", kind)
        return self.cast(sql, source, kind, None)

    def cast(self, sql: str, source: Kind, kind: Kind, limits: tuple[int, int] | None) -> str:
        if limits is not None:
            whole = sql if source is kind else self.cast(sql, source, kind, None)
            return f"CAST({within_range(f'CAST({whole} AS numeric)', *limits)} AS {self.sql_type(kind)})"
        match source, kind:
            case Kind.TEXT, _:
                value = read_text(sql, kind)
                return self.within_years(value, kind) if kind in (Kind.DATE, Kind.TIMESTAMP) else value
            case Kind.BOOLEAN, _ if kind.numeric:
                return f"CAST(CAST({sql} AS integer) AS {self.sql_type(kind)})"
            case _, Kind.BOOLEAN if source.numeric:
                return f"({sql} <> 0)"
            case _, _ if source.exact and kind.exact:
                return fitted(f"CAST({sql} AS numeric)", kind)
            case Kind.INTEGER, (Kind.REAL | Kind.FLOAT):
                return f"CAST({sql} AS {self.sql_type(kind)})"
            case Kind.FLOAT, Kind.REAL:
                return f"CAST({sql} AS double precision)"
            case _, _ if kind.binary and (source.scale > 0 or 0 < source.digits <= _WORD_DIGITS):
                return f"CAST({sql} AS {self.sql_type(kind)})"
            case _, Kind.REAL if source is Kind.HUGEINT or source.digits:
                return huge_double(f"CAST({sql} AS numeric)")
            case _, Kind.FLOAT if source is Kind.HUGEINT or source.digits:
                return self.cast(self.cast(sql, source, Kind.REAL, None), Kind.REAL, kind, None)
            case ((Kind.REAL | Kind.FLOAT), Kind.HUGEINT):
                return fitted(exact(f"round({finite(f'CAST({sql} AS double precision)')})"), kind)
            case ((Kind.REAL | Kind.FLOAT), _) if kind.digits:
                return _decimal(f"CAST({sql} AS double precision)", kind)
            case Kind.REAL, Kind.FLOAT:
                return rounded_single(sql, _LARGEST_SINGLE)
            case ((Kind.REAL | Kind.FLOAT), Kind.INTEGER):
                below, above = double(math.nextafter(-(2.0**63), -math.inf)), double(2.0**63)
                rounded = f"round(CAST({sql} AS double precision))"  # halves to even
                cut = f"nullif(nullif(least(greatest({rounded}, {below}), {above}), {below}), {above})"
                return f"CAST({cut} AS bigint)"
            case ((Kind.DATE | Kind.TIMESTAMP), (Kind.DATE | Kind.TIMESTAMP)):
                return f"CAST({sql} AS {self.sql_type(kind)})"
            case _, Kind.TEXT:
                return f'({_number_text(sql) if source.binary else f"CAST({sql} AS text)"} COLLATE "C")'
        raise Unsupported(f"a conversion from {source.value} to {kind.value} in PostgreSQL")

    def normalised(self, sql: str, kind: Kind) -> str:
        match kind:
            case Kind.REAL | Kind.FLOAT:
                return f"nullif(CAST({sql} AS {self.sql_type(kind)}), 'NaN'::{self.sql_type(kind)})"
            case Kind.DATE | Kind.TIMESTAMP:
                return self.within_years(sql, kind)
            case Kind.TEXT:
                return self.short_text(sql)
            case _ if kind.digits:
                return f"nullif(CAST({sql} AS {self.sql_type(kind)}), 'NaN'::numeric)"
            case _:
                return f"CAST({sql} AS {self.sql_type(kind)})"

    def within(self, sql: str, low: str, high: str) -> str:
        return bound((sql,), lambda x: f"CASE WHEN {x} BETWEEN {low} AND {high} THEN {x} END")

    def canonical(self, sql: str, kind: Kind) -> str:
        return f"({sql} + '0'::{self.sql_type(kind)})" if kind.binary else sql

    def bound(self, value: str, form: Callable[[str], str]) -> str:
        return bound((value,), form)

    def plain_text(self, sql: str) -> str:
        return f'CAST({sql} AS text) COLLATE "C"'

    def clamped(self, sql: str, low: str, high: str) -> str:
        return bound((sql,), lambda x: super(_Postgres, self).clamped(x, low, high))

    def scaled(self, value: str, exponent: int) -> str:
        """Return a binary number times a power of two: its limits are powers of two themselves, and exact."""
        if not exponent:
            return value
        return bound((value,), lambda x: (_scaled_up if exponent > 0 else _scaled_down)(x, exponent))

    def nearest_point(self, value: str, grid: Grid, begins: Sequence[float]) -> str:
        if not begins:
            return f"CASE WHEN {value} IS NOT NULL THEN '{grid.low}'::bigint END"
        points = ", ".join(map(repr, begins))
        return f"(width_bucket({value}, '{{{points}}}'::double precision[]) + '{grid.low}'::bigint)"

    def rows(self, select: str) -> str:
        return f"({select}) AS r"

    def unit_aggregate(self, aggregate: Aggregate, write: Writer) -> str:
        return unit_aggregate(aggregate, write)


def _decimal(sql: str, kind: Kind) -> str:
    """Return a double as a decimal: its product with a power of ten, rounded, and halves of that away."""
    tens = product(sql, double(10.0**kind.scale))
    whole = bound(
        (tens,), lambda x: f"(trunc({x}) + CASE WHEN abs({x} - trunc({x})) >= 0.5 THEN sign({x}) ELSE 0 END)"
    )
    return fitted(f"{exact(whole)} * '1e-{kind.scale}'::numeric", kind)


def _scaled_up(x: str, exponent: int) -> str:
    """x * 2^e overflows from 2^(1024 - e) on."""
    end, plain = math.ldexp(1.0, 1023 - exponent), f"({x} * {double(math.ldexp(1.0, exponent))})"
    largest = math.nextafter(2 * end, 0.0)
    return (
        f"CASE WHEN {x} > {double(largest)} THEN 'Infinity'::double precision"
        f" WHEN {x} < {double(-largest)} THEN '-Infinity'::double precision ELSE {plain} END"
    )


def _scaled_down(x: str, exponent: int) -> str:
    """x * 2^e is zero up to 2^(-1075 - e)."""
    smallest = math.ldexp(1.0, max(-1074, -1075 - exponent))
    plain = f"({x} * {double(math.ldexp(1.0, exponent))})"
    return f"CASE WHEN abs({x}) <= {double(smallest)} THEN {double(0.0)} ELSE {plain} END"


def _number_text(sql: str) -> str:
    """Return a binary number as DuckDB writes it: the shortest digits that tell it, a power from 1e16 on.

    The engine has powers sooner. Its digits are the same where `extra_float_digits` is above zero.
    """

    def form(x: str) -> str:
        digits = f"CAST(CAST(CAST({x} AS text) AS numeric) AS text)"
        pointed = bound((digits,), lambda d: f"({d} || CASE WHEN strpos({d}, '.') > 0 THEN '' ELSE '.0' END)")
        return (
            f"CASE WHEN {x} = 'Infinity'::double precision THEN 'inf'"
            f" WHEN {x} = '-Infinity'::double precision THEN '-inf' WHEN {x} = 0 THEN '0.0'"
            f" WHEN abs({x}) >= {double(1e16)} THEN CAST({x} AS text)"
            f" WHEN abs({x}) < {double(1e-4)} THEN CAST({x} AS text) ELSE {pointed} END"
        )

    return bound((sql,), form)


POSTGRES: Dialect = _Postgres()
"""How PostgreSQL spells values and expressions.

>>> POSTGRES.constant("it's")
'(\\'it\\'\\'s\\'::text COLLATE "C")'
"""
