"""Spark's dialect: ANSI SQL of Spark 4, whose meaning does not depend on what a session has set.

What it depends on is in `SETTINGS`, which a session holds fast while a statement is analysed and run.

Traps, as met in Spark 4.3:

* decimals: minus and ABS round to 34 digits, or raise; a sum or product of more than 38 digits loses digits
  behind the point (`allowPrecisionLoss`); the text of a small one has a power of ten unless ANSI is on;
  `round` of 38 nines raises; a cast to BIGINT cuts;
* `floor` and `ceil` of a double are a BIGINT, and raise beyond it; `try_cast` of 2^63 is 2^63 - 1;
* the optimiser takes a cast of a BIGINT to FLOAT and on to DOUBLE for one to DOUBLE;
* `/` of floats is a double; `/`, `%` and `div` raise at zero even for doubles; `div` of decimals is a BIGINT;
* `exp`, `ln`, `log` and `pow` are Java's, and differ from C's in the last bit: refused. So are texts of
  binary numbers, whose digits are not the shortest before Java 19;
* a list of more than ten constants in IN is a hash set, where -0.0 is not 0.0;
* `lower` and `upper` map one letter to several, by its place in the word; `trim` takes spaces alone;
* LIKE with several % is a backtracking regular expression, and so is any regular expression: a text could
  take time without end, or the whole stack. `$` matches before a last line feed, `.` does not match \\r;
* a literal has escapes by backslash, and `${..}` in a statement is replaced: odd texts are written in hex;
* a text may be invalid UTF-8, which no client reads: where tables are opened it becomes NULL;
* `date_trunc` and TIMESTAMP go through the session's time zone: moments are TIMESTAMP_NTZ, the zone is UTC;
* `"name"` is a text: names are in backticks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from sfumato.backends.dialect import Dialect, Writer
from sfumato.backends.spark.functions import FUNCTIONS
from sfumato.backends.spark.readings import read_text
from sfumato.backends.spark.totality import bound, double, exact, huge_double, rounded, rounded_whole
from sfumato.backends.spark.unit_aggregates import unit_aggregate
from sfumato.catalog.kind import MOST_DIGITS, Kind, Value
from sfumato.core.grid import Grid
from sfumato.errors import Unsupported
from sfumato.plan.numbers import as_decimal
from sfumato.plan.tree import Aggregate

__all__ = ["SETTINGS", "SPARK"]

SETTINGS = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.decimalOperations.allowPrecisionLoss": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.groupByOrdinal": "true",
    "spark.sql.orderByOrdinal": "true",
    "spark.sql.variable.substitute": "false",
    "spark.sql.analyzer.maxIterations": "10000",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
}
"""What must be set while a statement of this dialect is analysed and run.

Values that are bound in each other are analysed one after the other, and a hundred are too many otherwise.
The last two: a date before 1582 in a file of an old Spark raises where it is read, otherwise.
"""

_TYPES = {
    Kind.INTEGER: "BIGINT",
    Kind.HUGEINT: "DECIMAL(38,0)",  # what needs 39 digits is refused before it is there
    Kind.FLOAT: "FLOAT",
    Kind.REAL: "DOUBLE",
    Kind.TEXT: "STRING",
    Kind.BOOLEAN: "BOOLEAN",
    Kind.DATE: "DATE",
    Kind.TIMESTAMP: "TIMESTAMP_NTZ",
}
_LARGEST_SINGLE = 3.4028234663852886e38
_WORD_DIGITS = 18  # wider whole numbers DuckDB rounds in two halves; decimals with a point it does not
_ODD = frozenset("'\\$\"`")


class _Spark(Dialect):
    functions = FUNCTIONS

    def sql_type(self, kind: Kind) -> str:
        return f"DECIMAL({kind.digits},{kind.scale})" if kind.digits else _TYPES[kind]

    def text(self, value: str) -> str:
        """Return a quoted text, or the bytes of one whose letters a session may read as something else."""
        if all(letter.isprintable() and letter not in _ODD for letter in value):
            return f"'{value}'"
        return f"CAST(X'{value.encode().hex()}' AS STRING)"

    def constant(self, value: Value, kind: Kind | None = None) -> str:
        if isinstance(value, int) and abs(value) >= 10**MOST_DIGITS:
            raise Unsupported("a whole number of more than 38 digits in Spark")
        return super().constant(value, kind)

    def converted(self, sql: str, source: Kind | None, kind: Kind | None) -> str:
        if kind is None or source is kind:
            return sql
        if source is None:
            return f"CAST({sql} AS {self.sql_type(kind)})"
        if source.exact and (kind.digits or kind is Kind.HUGEINT):
            own, wanted = as_decimal(source), as_decimal(kind)
            fits = own.digits - own.scale <= wanted.digits - wanted.scale
            return f"{'CAST' if fits else 'try_cast'}({sql} AS {self.sql_type(kind)})"
        return self.cast(sql, source, kind, None)

    def cast(self, sql: str, source: Kind, kind: Kind, limits: tuple[int, int] | None) -> str:
        if limits is not None:
            low, high = map(str, limits)
            whole = self.cast(sql, source, Kind.HUGEINT if source.exact else Kind.INTEGER, None)
            cut = bound((whole,), lambda x: f"CASE WHEN {x} BETWEEN {low} AND {high} THEN {x} END")
            return f"CAST({cut} AS {self.sql_type(kind)})"
        match source, kind:
            case _, _ if source is kind:
                return sql
            case Kind.BOOLEAN, _ if kind.numeric:
                return f"CAST(CAST({sql} AS INT) AS {self.sql_type(kind)})"
            case _, Kind.BOOLEAN if source.numeric:
                return f"({sql} <> 0)"
            case _, _ if source.exact and kind.exact:
                if kind.whole and source.scale:
                    sql = f"round({sql}, 0)"
                return f"try_cast({sql} AS {self.sql_type(kind)})"
            case Kind.INTEGER, Kind.REAL:
                return f"CAST({sql} AS DOUBLE)"
            case Kind.INTEGER, Kind.FLOAT:
                return f"(CAST({sql} AS FLOAT) + '0.0'::FLOAT)"  # a sum, which no cast around it passes over
            case Kind.FLOAT, Kind.REAL:
                return f"CAST({sql} AS DOUBLE)"
            case _, _ if kind.binary and (source.scale > 0 or 0 < source.digits <= _WORD_DIGITS):
                return f"CAST({sql} AS {self.sql_type(kind)})"
            case _, Kind.REAL if source is Kind.HUGEINT or source.digits:
                return huge_double(f"CAST({sql} AS DECIMAL(38,0))")
            case _, Kind.FLOAT if source is Kind.HUGEINT or source.digits:
                return self.cast(self.cast(sql, source, Kind.REAL, None), Kind.REAL, kind, None)
            case ((Kind.REAL | Kind.FLOAT), _) if kind.digits:
                return _decimal(f"CAST({sql} AS DOUBLE)", kind)
            case Kind.REAL, Kind.FLOAT:
                beyond = f"abs({{0}}) > {double(_LARGEST_SINGLE)} AND abs({{0}}) < {double(math.inf)}"
                form = f"CASE WHEN {beyond} THEN NULL ELSE CAST({{0}} AS FLOAT) END"
                return bound((sql,), form.format)
            case ((Kind.REAL | Kind.FLOAT), Kind.INTEGER):
                return rounded_whole(f"CAST({sql} AS DOUBLE)")
            case ((Kind.DATE | Kind.TIMESTAMP), (Kind.DATE | Kind.TIMESTAMP)):
                return f"CAST({sql} AS {self.sql_type(kind)})"
            case Kind.TEXT, _:
                read = read_text(sql, kind, self.text)
                return self.within_years(read, kind) if kind in (Kind.DATE, Kind.TIMESTAMP) else read
            case _, Kind.TEXT if not source.binary:
                return f"CAST({sql} AS STRING)"
        raise Unsupported(f"a conversion from {source.value} to {kind.value} in Spark")

    def normalised(self, sql: str, kind: Kind) -> str:
        of_type = self.sql_type(kind)
        match kind:
            case Kind.HUGEINT:
                raise Unsupported("a column of whole numbers of 128 bits in Spark")
            case Kind.REAL | Kind.FLOAT:
                return f"nanvl(CAST({sql} AS {of_type}), NULL::{of_type})"
            case Kind.DATE | Kind.TIMESTAMP:
                return self.within_years(f"CAST({sql} AS {of_type})", kind)
            case Kind.TEXT:
                return self.short_text(sql)
            case _:
                return f"CAST({sql} AS {of_type})"

    def within(self, sql: str, low: str, high: str) -> str:
        return bound((sql,), lambda x: f"CASE WHEN {x} BETWEEN {low} AND {high} THEN {x} END")

    def canonical(self, sql: str, kind: Kind) -> str:
        return f"({sql} + '0.0'::{self.sql_type(kind)})" if kind.binary else sql

    def bound(self, value: str, form: Callable[[str], str]) -> str:
        return bound((value,), form)

    def plain_text(self, sql: str) -> str:
        return f"CAST({sql} AS STRING) COLLATE UTF8_BINARY"

    def clamped(self, sql: str, low: str, high: str) -> str:
        return bound((sql,), lambda x: super(_Spark, self).clamped(x, low, high))

    def half_rounded(self, sql: str) -> str:
        return f"CAST(shiftright(floor({sql}) + 1L, 1) AS DOUBLE)"

    def nearest_point(self, value: str, grid: Grid, begins: Sequence[float]) -> str:
        """Correct a quotient by a comparison; NaN, in the engine's order, is above everything."""
        points = ", ".join([double(-math.inf), *(f"{one!r}D" for one in begins), "'NaN'::DOUBLE"])
        low, high = double(float(grid.low)), double(float(grid.high))
        quotient = f"({value} / {double(float(grid.step))} + 0.5D)"
        clamped = self.clamped(quotient, low, high)

        def corrected(x: str, guess: str) -> str:
            first, following = (
                f"get(array({points}), CAST({guess} - {grid.low} + {place} AS INT))" for place in (0, 1)
            )
            return f"({guess} - CAST({x} < {first} AS BIGINT) + CAST({x} >= {following} AS BIGINT))"

        return bound((value, f"floor({clamped})"), corrected)

    def quoted(self, name: str) -> str:
        return "`" + name.replace("`", "``") + "`"

    def unit_aggregate(self, aggregate: Aggregate, write: Writer) -> str:
        return unit_aggregate(aggregate, write)


def _decimal(sql: str, kind: Kind) -> str:
    """Return a double as a decimal: its product with a power of ten, rounded, and halves of that away.

    DuckDB compares that with a power of ten which is a double itself, and may be smaller than the power.
    """
    end, power = (double(float(f"1e{one}")) for one in (kind.digits, kind.scale))  # 10.0**23 is another
    tens = rounded(f"({sql} * {power})")
    whole = exact(bound((tens,), lambda x: f"CASE WHEN abs({x}) < {end} THEN {x} END"))
    text = f"concat(CAST({whole} AS STRING), 'E-{kind.scale}')" if kind.scale else whole
    return f"try_cast({text} AS DECIMAL({kind.digits},{kind.scale}))"


SPARK: Dialect = _Spark()
"""How Spark spells values and expressions.

>>> SPARK.constant("it's"), SPARK.sql_type(Kind.TIMESTAMP)
("CAST(X'69742773' AS STRING)", 'TIMESTAMP_NTZ')
"""
