"""Total SQL on ANSI Spark: operations that have NULL where others raise, and values that are written once.

Spark raises at overflow, at division by zero and at casts that do not fit, and it may evaluate constants and
common parts of a statement sooner than the CASE around them. So no operation that can raise is written:

* `try_add`, `try_multiply`, `try_divide`, `try_cast` .. have NULL there, with and without ANSI;
* a divisor is made one that is not zero, and a number one that fits, before anything is done with it;
* `x % Infinity` is x, and NaN where x is not finite, which `nanvl` then makes NULL: x is written once.

A value that a form mentions several times is bound by the function of a list of one, unless it is short: else
texts would double at each level.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence

from sfumato.catalog.kind import Kind

__all__ = [
    "bound",
    "ceiling",
    "cut",
    "double",
    "exact",
    "finite",
    "floored",
    "huge_double",
    "magnitude",
    "negated",
    "rounded",
    "rounded_whole",
]

_SHORT = 100  # characters of a value that is repeated
_BINARY = {Kind.REAL: "DOUBLE", Kind.FLOAT: "FLOAT"}


def bound(values: Sequence[str], form: Callable[..., str]) -> str:
    """Return a form of values, each of which it may mention several times."""
    if all(len(value) <= _SHORT for value in values):
        return form(*values)
    name = "b" + hashlib.sha256("\0".join(values).encode()).hexdigest()[:12]  # no other binding has it
    listed = ", ".join(f"'v{place}', {value}" for place, value in enumerate(values))
    made = form(*(f"{name}.v{place}" for place in range(len(values))))
    return f"transform(array(named_struct({listed})), {name} -> {made})[0]"


def double(value: float) -> str:
    """Return a constant binary number."""
    return f"'{value!r}'::DOUBLE"


def finite(sql: str, kind: Kind = Kind.REAL) -> str:
    """Return a binary number, NULL where it is infinite or NaN: the remainder by infinity is the number."""
    of_type = _BINARY[kind]
    return f"nanvl({sql} % 'Infinity'::{of_type}, NULL::{of_type})"


def negated(sql: str, of_type: str) -> str:
    """Return a decimal with the other sign: the engine's own minus and ABS round to 34 digits."""
    return f"try_cast(try_subtract('0'::{of_type}, {sql}) AS {of_type})"


def magnitude(sql: str, of_type: str) -> str:
    """Return a decimal without its sign."""
    return bound((sql,), lambda x: f"CASE WHEN {x} < 0 THEN {negated(x, of_type)} ELSE {x} END")


# -- whole numbers of binary numbers: the engine's floor is a BIGINT, and raises beyond it ---


def floored(sql: str) -> str:
    """Return the largest whole number that is not above a double, as a double."""
    return bound((sql,), lambda x: f"(rint({x}) - CAST(rint({x}) > {x} AS DOUBLE))")


def ceiling(sql: str) -> str:
    """Return the smallest whole number that is not below a double, as a double."""
    return bound((sql,), lambda x: f"(rint({x}) + CAST(rint({x}) < {x} AS DOUBLE))")


def cut(sql: str) -> str:
    """Return a double without what is behind the point."""
    return bound(
        (sql,), lambda x: f"(rint({x}) - CASE WHEN abs(rint({x})) > abs({x}) THEN sign({x}) ELSE 0D END)"
    )


def rounded(sql: str) -> str:
    """Return a double rounded to a whole number, halves away from zero."""

    def form(x: str) -> str:
        whole = cut(x)
        return bound(
            (x, whole), lambda x, t: f"({t} + CASE WHEN abs({x} - {t}) >= 0.5D THEN sign({x}) ELSE 0D END)"
        )

    return bound((sql,), form)


def rounded_whole(sql: str) -> str:
    """Return a double as a BIGINT, halves to even, NULL where none is so large.

    `try_cast` of 2^63 is 2^63 - 1: the engine compares with the largest BIGINT as a double, which is 2^63.
    """
    low, high = double(-(2.0**63)), double(2.0**63)
    return bound(
        (f"rint({sql})",),
        lambda x: f"try_cast(CASE WHEN {x} >= {low} AND {x} < {high} THEN {x} END AS BIGINT)",
    )


def exact(sql: str) -> str:
    """Return a double that is a whole number as a decimal, NULL where that has more than 38 digits.

    The engine's own cast takes the digits that are shown. Here it is cut into three parts of up to 64 bits:
    quotients by powers of two and what they leave are exact.
    """

    def part(x: str, power: int) -> str:
        return cut(f"({x} * {double(2.0**-power)})")

    def form(x: str) -> str:
        return bound(
            (part(x, 64),),
            lambda high: bound(
                (high, f"({x} - {high} * {double(2.0**64)})"),
                lambda high, rest: bound((high, part(rest, 32), rest), joined),
            ),
        )

    def joined(high: str, middle: str, rest: str) -> str:
        low = f"({rest} - {middle} * {double(2.0**32)})"
        parts = [f"CAST(try_cast({one} AS BIGINT) AS DECIMAL(19,0))" for one in (high, middle, low)]
        upper = f"try_multiply({parts[0]}, '{2**64}'::DECIMAL(20,0))"
        return f"try_add(try_add({upper}, try_multiply({parts[1]}, '{2**32}'::DECIMAL(10,0))), {parts[2]})"

    whole = bound((sql,), lambda x: f"CASE WHEN abs({x}) <= {double(1e38)} THEN {x} END")
    return f"try_cast({bound((whole,), form)} AS DECIMAL(38,0))"


def huge_double(sql: str) -> str:
    """Return a decimal that is a whole number of 128 bits as DuckDB rounds it: the two halves of its bits."""
    half, power = f"'{2**64}'::DECIMAL(20,0)", double(math.ldexp(1.0, 64))

    def joined(upper: str, lower: str) -> str:
        return f"(CAST({lower} AS DOUBLE) + CAST({upper} AS DOUBLE) * {power})"

    def form(x: str) -> str:
        high, low = f"({x} div {half})", f"({x} % {half})"  # cut toward zero; below 2^63
        negative = f"CASE WHEN {low} < 0 THEN {{}} ELSE {{}} END"
        below = joined(
            negative.format(f"{high} - 1", high), negative.format(f"({low} + {half})", low)
        )  # rounded down
        near = f"(-CAST({negated(f'try_add({x}, 1)', 'DECIMAL(38,0)')} AS DOUBLE) - 1D)"
        small = f"CASE WHEN {x} >= '-{2**64}'::DECIMAL(20,0) THEN {near} ELSE {below} END"
        return f"CASE WHEN {x} >= 0 THEN {joined(high, low)} ELSE {small} END"

    return bound((sql,), form)
