"""Expressions of every kind, made from a seed: texts that this system and plain DuckDB both understand.

Columns are of every type that can be opened, their values extreme ones among ordinary ones. There is no NaN,
no infinity and no negative zero among them: for those this system has rules of its own, which are tested
where they are written (`tests/backends/test_expressions.py`).
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["COLUMNS", "ROWS", "Maker", "create"]

ROWS = 24
COLUMNS: dict[str, tuple[str, tuple[str, ...]]] = {
    "i1": ("TINYINT", ("0", "1", "-1", "7", "127", "-128")),
    "i2": ("SMALLINT", ("0", "-3", "250", "32767", "-32768")),
    "i4": ("INTEGER", ("0", "2", "-7", "1000", "2147483647", "-2147483648")),
    "i8": ("BIGINT", ("0", "-1", "5", "9007199254740993", "9223372036854775807", "-9223372036854775808")),
    "h": (
        "HUGEINT",
        ("0", "3", "-4", "9007199254740993", "18446744073709551617", "99999999999999999999999999999999999999",
         "170141183460469231731687303715884105727", "-170141183460469231731687303715884105728"),
    ),
    "u1": ("UTINYINT", ("0", "9", "255")),
    "u2": ("USMALLINT", ("0", "10", "65535")),
    "u4": ("UINTEGER", ("0", "11", "4294967295")),
    "u8": ("UBIGINT", ("0", "12", "9007199254740993", "9007199254740992", "18446744073709551615")),
    "f": ("FLOAT", ("0", "0.1", "-2.5", "0.07", "16777217", "3e38", "1e-40")),
    "r": ("DOUBLE", ("0", "0.1", "-2.5", "0.07", "1e15", "9007199254740993", "1e308", "-1e-300")),
    "d1": ("DECIMAL(4,1)", ("0", "0.5", "-2.5", "99.9", "999.9", "-999.9")),
    "d2": (
        "DECIMAL(15,2)",
        ("0", "0.05", "0.06", "0.07", "0.08", "0.93", "-1.15", "2.50", "9999999999999.99"),
    ),
    "d3": ("DECIMAL(18,6)", ("0", "0.000001", "1.005000", "-3.141593", "999999999999.999999")),
    "d4": (
        "DECIMAL(38,10)",
        ("0", "0.07", "-2.5", "12345678901234567.0000000001", "9999999999999999999999999999.9999999999"),
    ),
    "d5": ("DECIMAL(38,0)", ("0", "7", "9007199254740993", "-99999999999999999999999999999999999999")),
    "day": ("DATE", ("2024-02-29", "1970-01-01", "1999-12-31", "0001-01-01", "9999-12-31")),
    "ts": (
        "TIMESTAMP",
        ("2024-02-29 12:34:56.789", "1969-12-31 23:59:59.999999", "2000-01-01", "9999-12-31 23:59:59"),
    ),
    "s": ("VARCHAR", ("", "a", "Ab c", "12", " 7 ", "1.5", "é日", "x%_y", "2024-02-29", "true", "1e3")),
    "z": ("VARCHAR", ("abc", "b", "B", "zebra", "ab")),
    "b": ("BOOLEAN", ("true", "false")),
}  # fmt: skip
"""Each column's type and values; a NULL is among the rows of every one."""

_WHOLE = ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "h")
_DECIMAL = ("d1", "d2", "d2", "d3", "d4", "d5")
_BINARY = ("f", "r")
_INTEGERS = (
    "0", "1", "2", "3", "7", "10", "100", "-1", "-5", "127", "128", "250", "32768", "2147483647",
    "2147483648", "9007199254740993", "9223372036854775807", "-9223372036854775808", "18446744073709551615",
    "170141183460469231731687303715884105727",
)  # fmt: skip
_DECIMALS = (
    "0.06", "0.01", "0.07", "0.5", "0.93", "1.005", "-2.5", "0.1", "99.99", "1.0", "2.50",
    "123456789.123456789", "12345678901234567890.5", "0.0000000001",
)  # fmt: skip
_DOUBLES = ("1e3", "2.5e0", "1e-7", "-1e300", "0.07e0", "1e1")
_TEXTS = ("''", "'a'", "'ab'", "'Ab c'", "'12'", "'é'", "'%'", "' '")
_NUMBER_TEXTS = ("'0'", "'2'", "'-7'", "'127'", "'9007199254740993'")
_POINT_TEXTS = ("'0.07'", "'0.1'", "'-2.5'")
_EXPRESSIONS = (
    "'a'", "'^[a-z]+$'", "'\\d+'", "'(a|b)+'", "'[^0-9]*'", "'b{1,2}'", "'\\bab?'", "'.'", "'é|%'", "'x*'",
)  # fmt: skip
_FORMATS = (
    "'%Y-%m-%d'",
    "'%Y'",
    "'%d/%m/%y %H:%M:%S.%f'",
    "'%j %B %b %A %a %u %w %V %G %I %p %U %W %%'",
    "'%-d.%-m.'",
)
_PARTS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
_PATTERNS = ("'%a%'", "'_b'", "'%'", "'a%'", "'12'")
_DATES = ("DATE '2024-02-29'", "DATE '1970-01-01'", "DATE '1999-12-31'")
_MOMENTS = ("TIMESTAMP '2024-02-29 12:34:56'", "TIMESTAMP '1969-12-31 23:59:59'")
_TYPES = (
    "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT",
    "FLOAT", "DOUBLE", "DECIMAL", "DECIMAL(4,1)", "DECIMAL(15,2)", "DECIMAL(18,6)", "DECIMAL(38,10)",
    "DECIMAL(38,0)",
)  # fmt: skip


def create(name: str, columns: dict[str, tuple[str, tuple[str, ...]]] = COLUMNS) -> str:
    """Return the statement that makes the table of all columns."""
    listed = []
    for place, (column, (of_type, values)) in enumerate(columns.items()):
        cells = []
        for row in range(ROWS):
            at = (row * (2 * place + 1) + row // len(values) + place) % (len(values) + 1)
            cells.append("NULL" if at == len(values) else f"'{values[at]}'")
        listed.append(f"CAST(unnest([{', '.join(cells)}]) AS {of_type}) AS {column}")
    who = f"unnest(range({ROWS})) AS person"
    return f"CREATE TABLE {name} AS SELECT {who}, {', '.join(listed)}"


@dataclass(slots=True)
class Maker:
    """Makes texts of expressions; the same seed makes the same ones."""

    chance: random.Random

    def any(self, depth: int) -> str:
        """Return an expression of any kind."""
        made = self._of([self.number, self.number, self.number, self.condition, self.text, self.time])
        return made(depth)

    def _of(self, options: Any) -> Any:
        return self.chance.choice(options)

    def number(self, depth: int) -> str:
        """Return a number of some type."""
        if depth <= 0:
            kinds = (_WHOLE, _DECIMAL, _DECIMAL, _BINARY, _INTEGERS, _DECIMALS, _DECIMALS, _DOUBLES)
            return self._of(self._of(kinds))
        return self._of(self._numbers())(depth - 1)

    def _numbers(self) -> list[Callable[[int], str]]:
        one, of = self.number, self._of
        return [
            lambda d: f"«{of(('LOG', 'LOG10', 'LOG2'))}({one(d)})»",
            lambda d: f"SIGN({one(d)})",
            lambda d: f"TRUNC({one(0)})",
            lambda d: f"TRUNC({one(0)}, {of((-2, -1, 1, 2, 5))})",
            lambda d: f"TRUNC({of(_WHOLE)}, {of((-18, -9, -3, -1))})",
            lambda d: f"«LOG({of(('2', '10', '0.5', '1', one(0)))}, {one(d)})»",
            lambda d: f"PI() * {of(_DOUBLES)}",
            lambda d: f"{of(('POSITION({} IN {})', 'STRPOS({1}, {0})')).format(of(_TEXTS), self.text(d))}",
            lambda d: f"EPOCH({self.time(0)})",
            lambda d: f"SECOND({of(('ts', *_MOMENTS))})",
            lambda d: f"(day - {of(_DATES)})",
            lambda d: f"«({one(d)} {of('+-*')} {one(d)})»",
            lambda d: f"«({one(d)} {of('+-*')} {one(0)})»",
            lambda d: f"«({one(0)} {of('+-*')} {one(d)})»",
            lambda d: f"«({one(d)} / {one(0)})»",
            lambda d: f"«({one(d)} % {one(0)})»",
            lambda d: f"({of(_WHOLE)} // {of((*_WHOLE, *_INTEGERS))})",
            lambda d: f"(-{of((*_WHOLE, *_DECIMAL, *_BINARY))})",
            lambda d: f"«{of(('ABS', 'ROUND', 'FLOOR', 'CEIL', 'SQRT', 'LN', 'EXP'))}({one(d)})»",
            lambda d: f"ROUND({one(d)}, {of((-1, 0, 1, 2, 5, 12))})",
            lambda d: f"ROUND({of(_WHOLE)}, {of((-40, -19, -3, -2))})",
            lambda d: f"«POWER({one(0)}, {of((0, 1, 2, 3, -1, '0.5'))})»",
            lambda d: f"{of(('LEAST', 'GREATEST', 'COALESCE'))}({one(d)}, {one(0)}, {one(0)})",
            lambda d: f"NULLIF({one(d)}, {one(0)})",
            lambda d: f"CASE WHEN {self.condition(d)} THEN {one(d)} ELSE {one(0)} END",
            lambda d: f"CASE {one(0)} WHEN {one(0)} THEN {one(0)} END",
            lambda d: f"{of(('CAST', 'TRY_CAST'))}({one(d)} AS {of(_TYPES)})",
            lambda d: f"TRY_CAST({self.text(0)} AS {of(_TYPES)})",
            lambda d: f"CAST({self.condition(0)} AS {of(('INTEGER', 'DOUBLE', 'DECIMAL(4,1)'))})",
            lambda d: f"LENGTH({self.text(d)})",
            lambda d: f"{of(('YEAR', 'MONTH', 'DAY', 'HOUR', 'QUARTER', 'WEEK', 'ISODOW'))}({self.time(0)})",
            lambda d: f"DATE_DIFF('{of(_PARTS)}', {self.time(0)}, {self.time(0)})",
        ]

    def condition(self, depth: int) -> str:
        """Return a condition."""
        if depth <= 0:
            return self._of(("b", "b", "TRUE", "NOT b", "i4 > 1", "d2 = 0.07", "s IS NULL"))
        return self._of(self._conditions())(depth - 1)

    def _conditions(self) -> list[Callable[[int], str]]:
        one, of = self.number, self._of
        compared = ("=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM")
        return [
            lambda d: f"({one(d)} {of(compared)} {one(d)})",
            lambda d: f"({one(0)} {of(compared)} {one(d)})",
            lambda d: f"({one(d)} BETWEEN {one(0)} AND {one(d)})",
            lambda d: (
                f"({of(_DECIMAL)} BETWEEN {of(_DECIMALS)} - {of(_DECIMALS)} AND {of(_DECIMALS)} + 0.01)"
            ),
            lambda d: f"({one(d)} IN ({one_of(of)}, {one_of(of)}, {one_of(of)}))",
            lambda d: f"({one(d)} IS NULL)",
            lambda d: f"({self.condition(d)} {of(('AND', 'OR'))} {self.condition(d)})",
            lambda d: f"(NOT {self.condition(d)})",
            lambda d: f"({self.condition(d)} IS {of(('TRUE', 'FALSE', 'NOT TRUE', 'NULL'))})",
            lambda d: f"({self.text(d)} {of(compared)} {self.text(0)})",
            lambda d: f"({self.text(0)} LIKE {of(_PATTERNS)})",
            lambda d: f"{of(('CONTAINS', 'STARTS_WITH', 'ENDS_WITH'))}({self.text(d)}, {of(_TEXTS)})",
            lambda d: f"({self.time(0)} {of(compared)} {self.time(0)})",
            lambda d: f"({of(('day', 'ts'))} >= '{of(('2000-01-01', '1969-12-31'))}')",
            lambda d: f"CAST({one(d)} AS BOOLEAN)",
            lambda d: f"REGEXP_MATCHES({self.text(d)}, {of(_EXPRESSIONS)})",
            lambda d: f"REGEXP_MATCHES({self.text(0)}, {of(_EXPRESSIONS)}, 'i')",
            lambda d: f"REGEXP_FULL_MATCH({self.text(d)}, {of(_EXPRESSIONS)})",
            lambda d: f"({self.text(0)} ~ {of(_EXPRESSIONS)})",
            lambda d: f"(b {of(('=', '<>', '<', '>='))} {of(('0', '1', '2', 'i4'))})",
            lambda d: f"({of(_WHOLE)} = {of(('TRUE', 'b'))})",
            lambda d: f"({of(_WHOLE)} {of(compared)} {of(_NUMBER_TEXTS)})",
            lambda d: f"(i4 IN ({of(_NUMBER_TEXTS)}, {of(_NUMBER_TEXTS)}))",
            lambda d: f"({of(('d2', 'd3', 'f', 'r'))} {of(compared)} {of((*_NUMBER_TEXTS, *_POINT_TEXTS))})",
            lambda d: f"(NOT {of(_WHOLE)} {of(('AND', 'OR'))} {self.condition(d)})",
        ]

    def text(self, depth: int) -> str:
        """Return a text."""
        if depth <= 0:
            return self._of(("s", "z", self._of(_TEXTS)))
        return self._of(self._texts())(depth - 1)

    def _texts(self) -> list[Callable[[int], str]]:
        one, of = self.text, self._of
        places = (1, 2, 3, 0, -1, -2)
        return [
            lambda d: f"{of(('LOWER', 'UPPER', 'TRIM', 'LTRIM', 'RTRIM'))}({one(d)})",
            lambda d: f"SUBSTR({one(d)}, {of(places)}, {of((0, 1, 2, 5))})",
            lambda d: f"{of(('LEFT', 'RIGHT'))}({one(d)}, {of(places)})",
            lambda d: f"({one(d)} || {one(0)})",
            lambda d: f"CONCAT({one(d)}, {one(0)}, {one(0)})",
            lambda d: f"REPLACE({one(d)}, {of(_TEXTS)}, {of(_TEXTS)})",
            lambda d: f"COALESCE({one(d)}, {one(0)})",
            lambda d: f"CAST({self.number(d)} AS VARCHAR)",
            lambda d: f"CAST({of(('b', 'day', 'ts'))} AS VARCHAR)",
            lambda d: f"CASE WHEN {self.condition(d)} THEN {one(0)} ELSE {one(0)} END",
            lambda d: f"SPLIT_PART({one(d)}, {of(_TEXTS)}, {of((1, 2, 0, -1, 9))})",
            lambda d: f"{of(('LPAD', 'RPAD'))}({one(d)}, {of((0, 1, 4, 9))}, {of(_TEXTS[1:])})",
            lambda d: f"CONCAT_WS({one(0)}, {one(d)}, {one(0)})",
            lambda d: f"REGEXP_EXTRACT({one(d)}, {of(_EXPRESSIONS)})",
            lambda d: f"REGEXP_EXTRACT({one(d)}, '(.)([a-z0-9]?)', {of((0, 1, 2))})",
            lambda d: f"REGEXP_REPLACE({one(d)}, {of(_EXPRESSIONS)}, {of(_TEXTS)})",
            lambda d: f"REGEXP_REPLACE({one(d)}, {of(_EXPRESSIONS)}, {of(_TEXTS)}, '{of(('g', 'gi'))}')",
            lambda d: f"STRFTIME({self.time(d)}, {of(_FORMATS)})",
            lambda d: f"{of(('MONTHNAME', 'DAYNAME'))}({self.time(d)})",
        ]

    def time(self, depth: int) -> str:
        """Return a date or a timestamp."""
        if depth <= 0:
            return self._of(("day", "ts", self._of(_DATES), self._of(_MOMENTS)))
        return self._of(self._times())(depth - 1)

    def _times(self) -> list[Callable[[int], str]]:
        of = self._of
        part = ("year", "quarter", "month", "week", "day")
        return [
            lambda d: f"DATE_TRUNC('{of(part)}', {of(('day', 'ts'))})",
            lambda d: f"CAST({of(('day', 'ts', 's'))} AS {of(('DATE', 'TIMESTAMP'))})",
            lambda d: f"COALESCE(day, {of(_DATES)})",
            lambda d: f"GREATEST(ts, {of(_MOMENTS)})",
            lambda d: f"CASE WHEN {self.condition(d)} THEN day END",
            lambda d: f"LAST_DAY({of(('day', 'ts'))})",
            lambda d: (
                f"‹{of(('day', 'ts', *_DATES, *_MOMENTS))} {of('+-')} INTERVAL {of((1, 90))} {of(_PARTS)}›"
            ),
            lambda d: f"‹DATE_ADD({of(('day', 'ts'))}, INTERVAL '{of((-1, 2))} {of(_PARTS)}s')›",
            lambda d: f"‹(day {of('+-')} {of((0, 1, 1000))})›",
            lambda d: f"TRY_STRPTIME({self.text(0)}, {of(_FORMATS[:2])})",
        ]


def one_of(of: Callable[[tuple[str, ...]], str]) -> str:
    """Return a constant for a list of them."""
    return of((of(_INTEGERS), of(_DECIMALS), of(_DOUBLES)))
