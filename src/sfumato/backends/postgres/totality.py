"""Total SQL on an engine that raises errors: numbers cut to a range, and values that are written once.

PostgreSQL raises at overflow, at underflow, at casts that do not fit. Two things make SQL total there:

* **Sentinels.** `least(greatest(x, low - 1), high + 1)` is in a range that no cast fails at, and the two
  ends, which stand for all that does not fit, become NULL. `x` is written once, and NULL, which least and
  greatest skip, becomes an end and so NULL again. No condition guards it, and so none comes too late.
* **Nested CASE**, where an operation itself raises. The engine evaluates constants before it runs, and the
  operands of AND in any order; but it drops a branch of CASE whose condition is constant and false before it
  looks at what the branch has, and otherwise evaluates only the branch that is taken. So conditions are
  nested, never joined.

A value that a form mentions several times is bound by a subselect, unless it is short: else texts would
double at each level. `OFFSET 0` keeps the planner from putting it back.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from decimal import Context, Decimal

from sfumato.catalog.kind import Kind

__all__ = [
    "bound",
    "double",
    "exact",
    "finite",
    "fitted",
    "fused",
    "huge_double",
    "nearest_double",
    "product",
    "quotient",
    "rounded_single",
    "total_sum",
    "within_range",
]

_SHORT = 40  # characters of a value that is repeated
_RANGES = {
    Kind.INTEGER: (-(2**63), 2**63 - 1),
    Kind.HUGEINT: (-(2**127), 2**127 - 1),
}


def bound(values: Sequence[str], form: Callable[..., str]) -> str:
    """Return a form of values, each of which it may mention several times."""
    if all(len(value) <= _SHORT for value in values):
        return form(*values)
    name = "b" + hashlib.sha256("\0".join(values).encode()).hexdigest()[:12]  # no other binding has it
    listed = ", ".join(f"{value} AS v{place}" for place, value in enumerate(values))
    made = form(*(f"{name}.v{place}" for place in range(len(values))))
    return f"(SELECT {made} FROM (SELECT {listed} OFFSET 0) AS {name})"


def within_range(sql: str, low: int, high: int) -> str:
    """Return a numeric that is a whole number between two bounds, NULL for another."""
    below, above = f"'{low - 1}'::numeric", f"'{high + 1}'::numeric"
    return f"nullif(nullif(least(greatest({sql}, {below}), {above}), {below}), {above})"


def fitted(sql: str, kind: Kind) -> str:
    """Return a numeric as a value of an exact kind, NULL where it does not fit; halves are rounded away."""
    if kind.digits:
        end = f"'{10 ** (kind.digits - kind.scale)}'::numeric"
        low = f"'-{10 ** (kind.digits - kind.scale)}'::numeric"
        cut = f"nullif(nullif(least(greatest(round({sql}, {kind.scale}), {low}), {end}), {low}), {end})"
        return f"CAST({cut} AS numeric({kind.digits},{kind.scale}))"
    cut = within_range(f"round({sql})", *_RANGES[kind])
    return f"CAST({cut} AS bigint)" if kind is Kind.INTEGER else cut


# -- binary numbers -------------------------------------------------------------------------


def double(value: float) -> str:
    """Return a constant binary number."""
    return f"'{value!r}'::double precision"


def _power(exponent: int) -> str:
    return double(math.ldexp(1.0, exponent))


def finite(sql: str) -> str:
    """Return a binary number, NULL where it is infinite or NaN; here NaN equals NaN."""
    ends = (f"'{end}'::double precision" for end in ("NaN", "Infinity", "-Infinity"))
    for end in ends:
        sql = f"nullif({sql}, {end})"
    return sql


def huge_double(sql: str) -> str:
    """Return a numeric that is a whole number of 128 bits as DuckDB rounds it: the two halves of its bits."""
    half, power = f"'{2**64}'::numeric", _power(64)

    def joined(upper: str, lower: str) -> str:
        return f"(CAST({lower} AS double precision) + CAST({upper} AS double precision) * {power})"

    def form(x: str) -> str:
        upper = f"(-div(-{x} - 1, {half}) - 1)"  # rounded down
        below = joined(upper, f"({x} - {upper} * {half})")
        near = f"(-CAST(-{x} - 1 AS double precision) - {double(1.0)})"
        above = joined(f"div({x}, {half})", f"mod({x}, {half})")
        return f"CASE WHEN {x} >= 0 THEN {above} WHEN {x} >= -{half} THEN {near} ELSE {below} END"

    return bound((sql,), form)


def rounded_single(sql: str, largest: float) -> str:
    """Return a double as a number of 32 bits, NULL where it is beyond the largest; infinite ones stay.

    Theorem: a sum, product, quotient or root of 32-bit numbers that is rounded to 64 bits, and then to 32, is
    the one rounded to 32 at once (Figueroa, "When is double rounding innocuous?").
    """

    def form(x: str) -> str:
        near = f"CASE WHEN abs({x}) <= {_power(-150)} THEN '0'::real ELSE CAST({x} AS real) END"
        near = f"CASE WHEN abs({x}) > {double(largest)} THEN NULL ELSE {near} END"
        infinite = f"abs({x}) = 'Infinity'::double precision"
        return f"CASE WHEN {infinite} THEN CAST({x} AS real) ELSE {near} END"

    return bound((sql,), form)


def total_sum(first: str, second: str, sign: str) -> str:
    """Return a + b or a - b: halves tell whether it overflows; beside 2^1022 less than one is nothing."""

    def form(a: str, b: str) -> str:
        plain, low, one = f"({a} {sign} {b})", _power(1022), double(1.0)
        halves = f"abs({a} * {double(0.5)} {sign} {b} * {double(0.5)})"
        far = f"CASE WHEN {halves} < {_power(1023)} THEN {plain} END"
        far = f"CASE WHEN abs({a}) < {one} THEN {plain} WHEN abs({b}) < {one} THEN {plain} ELSE {far} END"
        near = f"CASE WHEN abs({b}) <= {low} THEN {plain} ELSE {far} END"
        return finite(f"CASE WHEN abs({a}) <= {low} THEN {near} ELSE {far} END")

    return bound((first, second), form)


def product(first: str, second: str) -> str:
    """Return a * b: see `_scaled`."""
    return bound((first, second), lambda a, b: _scaled(a, b, "*"))


def quotient(first: str, second: str) -> str:
    """Return a / b, NULL for b = 0: see `_scaled`."""
    return bound((first, f"nullif({second}, {double(0.0)})"), lambda a, b: _scaled(a, b, "/"))


def _scaled(a: str, b: str, sign: str) -> str:
    """Return a product or quotient of any two binary numbers, where that does not overflow or underflow.

    Theorem: each number is a' 2^s with 2^-500 <= |a'| <= 2^500 and s one of -600, 0, 600, exactly, or it is
    zero, infinite or NaN. p = a' * b' is then a normal number, rounded once, and p 2^(s + s') is known to
    overflow, or to be at most half of the smallest number and so zero, by comparing p with a power of two.
    Otherwise the engine computes a * b itself. (Where p is that power after rounding, a result between half
    of the smallest number and a 2^-53rd more is taken for zero.)
    """
    low, high, nothing = _power(-500), _power(500), double(0.0)

    def moderate(x: str, inside: str, otherwise: str) -> str:
        return f"CASE WHEN abs({x}) BETWEEN {low} AND {high} THEN {inside} ELSE {otherwise} END"

    def part(x: str, large: str, small: str, other: str) -> str:
        tests = (f"abs({x}) > {high} THEN {large}", f"{x} = {nothing} THEN {other}")
        return f"CASE WHEN {' WHEN '.join(tests)} WHEN abs({x}) < {low} THEN {small} ELSE {other} END"

    up, down = _power(600), _power(-600)
    listed = ", ".join(
        f"{x}, {part(x, f'{x} * {down}', f'{x} * {up}', x)} AS p{n}, {part(x, '600', '-600', '0')} AS s{n}"
        for x, n in (("o.a", "a"), ("o.b", "b"))
    )
    scaled = f"SELECT {listed} FROM (SELECT {a} AS a, {b} AS b OFFSET 0) AS o OFFSET 0"
    scale = f"n.sa {'+' if sign == '*' else '-'} n.sb"
    result = f"SELECT n.a, n.b, {scale} AS s, abs(n.pa {sign} n.pb) AS p FROM ({scaled}) AS n OFFSET 0"
    plain = f"(r.a {sign} r.b)"
    tested = " ".join(
        f"WHEN {shift} THEN CASE WHEN r.p {test} {_power(limit)} THEN {then} ELSE {plain} END"
        for shift, test, limit, then in (
            (600, ">=", 424, "NULL"),
            (1200, ">=", -176, "NULL"),
            (-600, "<=", -475, nothing),
            (-1200, "<=", 125, nothing),
        )
    )
    slow = f"(SELECT CASE r.s {tested} ELSE {plain} END FROM ({result}) AS r)"
    return finite(moderate(a, moderate(b, f"({a} {sign} {b})", slow), slow))


# -- binary numbers as decimals, digit by digit ---------------------------------------------


def exact(sql: str) -> str:
    """Return a finite double as the numeric that it is exactly: m 2^e, or m 5^-e 10^e."""

    def parts(bits: str) -> str:
        e = f"greatest(({bits} >> 52) & 2047, 1) - 1075"
        m = f"({bits} & {2**52 - 1}) + CASE WHEN ({bits} >> 52) & 2047 > 0 THEN {2**52} ELSE 0 END"
        split = f"SELECT {e} AS e, CAST({m} AS numeric) AS m OFFSET 0"
        up = "p.m * power('2'::numeric, CAST(p.e AS numeric))"
        down = "CAST(CAST(p.m * power('5'::numeric, CAST(-p.e AS numeric)) AS text) || 'e' || p.e AS numeric)"
        return f"(SELECT CASE WHEN p.e >= 0 THEN {up} ELSE {down} END FROM ({split}) AS p)"

    def signed(x: str) -> str:
        bits = f"CAST(CAST('x' || encode(float8send(abs({x})), 'hex') AS bit(64)) AS bigint)"
        return f"CASE WHEN {x} IS NOT NULL THEN {bound((bits,), parts)} * CAST(sign({x}) AS numeric) END"

    return bound((sql,), signed)


_ROOM = Context(prec=1200)


def nearest_double(sql: str, *, single: bool = False) -> str:
    """Return the binary number nearest to a numeric, halves to even; NULL where that is infinite."""
    of, large, small = (
        ("real", 2**128 - 2**103, -150) if single else ("double precision", 2**1024 - 2**970, -1075)
    )
    nothing = f"'{_ROOM.power(Decimal(2), small)}'::numeric"  # up to here zero is nearest

    def form(x: str) -> str:
        near = f"CASE WHEN abs({x}) <= {nothing} THEN '0'::{of} ELSE CAST({x} AS {of}) END"
        return f"CASE WHEN abs({x}) < '{large}'::numeric THEN {near} END"

    return bound((sql,), form)


def fused(first: str, second: str, third: str) -> str:
    """Return a * b + c of finite doubles, rounded once."""
    return nearest_double(f"({exact(first)} * {exact(second)} + {exact(third)})")
