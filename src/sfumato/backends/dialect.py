"""Dialects: how an engine spells values and expressions, whose meaning is one for all engines.

The rules, the same for every row and every engine:

* a value has the one SQL type of its kind;
* arithmetic is exact for whole numbers and decimals. What does not fit into 64 or 128 bits, or 38 digits, is
  NULL;
* a binary result that is not finite is NULL: overflow, division by zero, the root or
  logarithm of what has none, infinity minus infinity. NaN is NULL wherever it comes from;
* a conversion that is impossible is NULL; dates and timestamps outside the years 1 to 9999 are NULL, and
  so is a text whose zone ends in a colon (`OPEN_ZONE`);
* positions in texts count code points; one that does not fit into 32 bits is NULL;
* a text of a column is NULL if it has more than 1,048,576 bytes of UTF-8 (`LONGEST_TEXT`), and a row whose
  unit is such a text belongs to nobody. Engines compress a text of a gigabyte to a megabyte, and most of
  their functions fail at it;
* regular expressions are RE2's, which reads a text in linear time; where none matches, '' is extracted;
* zero is written without a sign. Engines hold 0.0 and -0.0 for equal, so which of a person's zeros MIN, MAX,
  DISTINCT or GROUP BY keeps is up to the order of rows; nothing that is asked can tell which it was;
* texts are compared code point by code point, whatever collation a column was given. Under another one two
  spellings are one group, and which of them stands for it (and is shown, and hashed) would be up to one row;
* `||`, `concat`, `concat_ws` and `replace` cut what they make to 65,536 code points; `replace` and
  `regexp_replace` of all matches read no more of their text than can become that. Else a short question
  could make one row too large for any memory.

Theorem: no text of one row has more than 2^20 code points and what constants add, at any place of an
expression. Proof: columns have no more. Functions that put texts together take 16 at a time, and cut the
result; `replace` by a longer text and `regexp_replace` of all matches cut before; every other function
gives as many code points as it takes, fewer, or a constant more.

No row can ever make an expression fail. What an engine has no words for with this meaning is `Unsupported`.
"""

from __future__ import annotations

import datetime
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import ClassVar

from sfumato.catalog.identifiers import identifier
from sfumato.catalog.kind import Kind, Value, kind_of
from sfumato.core.grid import Grid
from sfumato.errors import Unsupported
from sfumato.plan.tree import Aggregate, Call, Case, Cast, ColumnRef, Expression, Literal

__all__ = ["Arguments", "Dialect", "LONGEST_TERM", "LONGEST_TEXT", "OPEN_ZONE", "Renderer", "Writer"]

OPEN_ZONE = "[0-9.][+-][0-9:]*:$"
"""The end of a text that is no moment: behind it DuckDB 2.0 reads on past the end of the text.

What is there in memory may be another person's, and a row's value must not depend on other rows.
"""

Arguments = tuple[Expression, ...]
"""What a function is called with."""

LONGEST_TEXT = 2**20
"""Bytes of a column's text in UTF-8; a longer one is NULL."""

LONGEST_TERM = 20_000
"""Characters of an expression that is written several times: nested ones would double and double."""


class Dialect(ABC):
    """How one engine spells values, the functions of the allow-list, and aggregates of one unit's rows."""

    functions: Mapping[str, Renderer]
    """How each function is written; a test holds this against the allow-list itself."""
    size_of_text: ClassVar[str] = "octet_length"
    """What the engine calls the number of bytes of a text; it must not read the text."""

    # -- values

    @abstractmethod
    def sql_type(self, kind: Kind) -> str:
        """Return the one SQL type that values of a kind have."""

    @abstractmethod
    def text(self, value: str) -> str:
        """Return a constant text."""

    @abstractmethod
    def converted(self, sql: str, source: Kind | None, kind: Kind | None) -> str:
        """Return a value as one of a kind that holds it, or is a decimal: NULL if too narrow. None: as is."""

    @abstractmethod
    def cast(self, sql: str, source: Kind, kind: Kind, limits: tuple[int, int] | None) -> str:
        """Return a value converted to another kind, or cut to `limits`; NULL where that is impossible."""

    @abstractmethod
    def normalised(self, sql: str, kind: Kind) -> str:
        """Return a raw column as a value of its kind: the one place where NaN and far dates become NULL."""

    @abstractmethod
    def bound(self, value: str, form: Callable[[str], str]) -> str:
        """Return a form that may mention a value several times; the engine's plan has it once.

        An engine copies more than is written: DuckDB the arguments of its macros, DuckDB and PostgreSQL the
        value that BETWEEN tests. Copies in copies double at each level, and a plan is made after the charge.
        """

    @abstractmethod
    def plain_text(self, sql: str) -> str:
        """Return a raw column as a text that equals no text but itself."""

    def short_text(self, sql: str) -> str:
        """Return a raw column as a plain text, NULL if it is longer than `LONGEST_TEXT`."""
        size = f"{self.size_of_text}(CAST({sql} AS {self.sql_type(Kind.TEXT)}))"
        return self.plain_text(f"CASE WHEN {size} <= {LONGEST_TEXT} THEN {sql} END")

    @abstractmethod
    def unit_aggregate(self, aggregate: Aggregate, write: Writer) -> str:
        """Return an aggregate of one unit's rows: a function of those rows, whatever their order."""

    # -- integers of rows: see `integers`

    def scaled(self, value: str, exponent: int) -> str:
        """Return a binary number times a power of two; what does not fit is infinite, or zero."""
        return f"{value} * {self.constant(math.ldexp(1.0, exponent))}"

    def clamped(self, sql: str, low: str, high: str) -> str:
        """Clamp, and leave NULL as it is: `least` and `greatest` would skip it."""
        return f"CASE WHEN {sql} < {low} THEN {low} WHEN {sql} > {high} THEN {high} ELSE {sql} END"

    def half_rounded(self, sql: str) -> str:
        """Return half of a binary number as the nearest whole one, halves upward; it is below 2^53."""
        return f"floor((floor({sql}) + 1) * 0.5)"

    @abstractmethod
    def nearest_point(self, value: str, grid: Grid, begins: Sequence[float]) -> str:
        """Return the point of a grid nearest to a binary number; point low + 1 + i begins at `begins[i]`."""

    # -- relations

    def quoted(self, name: str) -> str:
        """Return the name of a column or a table."""
        return identifier(name)

    def rows(self, select: str) -> str:
        """Return a SELECT as what another one reads FROM."""
        return f"({select})"

    # -- what all spell alike

    def null(self, kind: Kind) -> str:
        """Return NULL of a kind."""
        return f"NULL::{self.sql_type(kind)}"

    def constant(self, value: Value, kind: Kind | None = None) -> str:
        """Return a constant, of the type of `kind` if one is given."""
        match value:
            case None:
                return "NULL" if kind is None else self.null(kind)
            case bool():
                return "TRUE" if value else "FALSE"
            case int() if -(2**63) <= value < 2**63 and kind is Kind.REAL:
                return self.constant(float(value))
            case int() | Decimal():
                own = kind_of(value)
                if own is None or not own.exact:
                    return self.constant(_as_float(value), Kind.REAL)
                text = f"{value:f}" if isinstance(value, Decimal) else str(value)
                return self.converted(f"'{text}'::{self.sql_type(own)}", own, kind or own)
            case float() if kind is not None and kind is not Kind.REAL:
                return self.converted(self.constant(value), Kind.REAL, kind)
            case float():
                double = f"'{value!r}'::{self.sql_type(Kind.REAL)}"
                return self.null(Kind.REAL) if math.isnan(value) else double
            case str():
                if any("\ud800" <= letter <= "\udfff" for letter in value):
                    raise Unsupported("a text that is not valid unicode")
                return self.text(value)
            case datetime.datetime():
                if value.tzinfo is not None:
                    raise Unsupported("a timestamp with a time zone")
                return f"'{value.isoformat(sep=' ')}'::{self.sql_type(Kind.TIMESTAMP)}"
            case datetime.date():
                return f"'{value.isoformat()}'::{self.sql_type(Kind.DATE)}"

    @abstractmethod
    def within(self, sql: str, low: str, high: str) -> str:
        """Return a value that is between two bounds, and NULL for another, of which nothing is left."""

    def within_years(self, sql: str, kind: Kind) -> str:
        """Return a date or timestamp of the years 1 to 9999, and NULL for another."""
        last = "9999-12-31" if kind is Kind.DATE else "9999-12-31 23:59:59.999999"
        of_type = self.sql_type(kind)
        return self.within(sql, f"'0001-01-01'::{of_type}", f"'{last}'::{of_type}")

    def canonical(self, sql: str, kind: Kind) -> str:
        """Return a value in the form that all its equals share: what is shown, hashed or written as text.

        Binary numbers alone have equals that differ, the two zeros; NaN is NULL, and texts are plain.
        """
        return f"({sql} + 0.0)" if kind.binary else sql

    # -- expressions

    def expression(self, node: Expression, names: Mapping[str, str], kind: Kind | None = None) -> str:
        """Return the SQL of an expression; `names` says what columns are called.

        It has the type of the expression's kind, or of `kind`, which must hold the expression's.
        """
        return Writer(self, names)(node, kind)


@dataclass(frozen=True, slots=True)
class Writer:
    """Writes expressions over columns with these names; renderers of functions write arguments with it."""

    dialect: Dialect
    names: Mapping[str, str]

    def __call__(self, node: Expression, kind: Kind | None = None) -> str:
        """Return the SQL of an expression, as a value of `kind` if one is given."""
        dialect = self.dialect
        if kind is not None:
            if isinstance(node, Literal):
                return dialect.constant(node.value, kind)
            return dialect.converted(self(node), node.kind, kind)
        match node:
            case ColumnRef(name=name):
                return self.names[name]
            case Literal(value=value, kind=own):
                return dialect.constant(value, own)
            case Call(function=name, arguments=arguments, kind=own):
                if name not in dialect.functions:
                    raise Unsupported(f"the function `{name}`")
                return dialect.functions[name](self, arguments, own)
            case Case(branches=branches, otherwise=otherwise, kind=own):
                whens = " ".join(
                    f"WHEN {self(condition, Kind.BOOLEAN)} THEN {self(value, own)}"
                    for condition, value in branches
                )
                return f"CASE {whens} ELSE {self(otherwise, own)} END"
            case Cast(operand=operand, kind=own, limits=limits):
                return self._cast(operand, own, limits)
        raise Unsupported(f"the expression {type(node).__name__}")

    def _cast(self, operand: Expression, kind: Kind, limits: tuple[int, int] | None) -> str:
        source, dialect = operand.kind, self.dialect
        if source is None:
            return dialect.null(kind)
        timely = {Kind.DATE, Kind.TIMESTAMP}
        if source is not Kind.TEXT and kind is not Kind.TEXT and (source in timely) != (kind in timely):
            return dialect.null(kind)
        if source is kind and limits is None:
            return self(operand)
        return dialect.cast(dialect.canonical(self(operand), source), source, kind, limits)


Renderer = Callable[[Writer, Arguments, Kind], str]
"""Writes a call of a function that has a value of a kind."""


def _as_float(value: int | Decimal) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
