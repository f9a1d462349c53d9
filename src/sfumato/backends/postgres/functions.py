"""Functions in PostgreSQL's SQL. One that is not here has no exact form in it, and is refused by name.

Whole numbers and decimals are computed in `numeric`, which has no end here, and cut back to their kind.
What letters and spaces are is asked of DuckDB, whose tables are the meaning of LOWER, UPPER and TRIM.
"""

from __future__ import annotations

import datetime
from functools import partial

from sfumato.backends.dialect import Arguments, Renderer, Writer
from sfumato.backends.functions import (
    COMMON,
    TRUNCATIONS,
    digits_of,
    form,
    operand_kinds,
    times_zero,
    with_numbers,
)
from sfumato.backends.letters import letters, spaces
from sfumato.backends.postgres.formats import DAYS, MONTHS, listed_name, strftime
from sfumato.backends.postgres.regexps import REGEXPS
from sfumato.backends.postgres.totality import (
    bound,
    double,
    exact,
    finite,
    fitted,
    nearest_double,
    product,
    quotient,
    rounded_single,
    total_sum,
    within_range,
)
from sfumato.catalog.kind import Kind
from sfumato.errors import Unsupported
from sfumato.plan.moments import later, steps_of
from sfumato.plan.tree import Expression, Literal

__all__ = ["FUNCTIONS"]

_FIRST = datetime.datetime(1, 1, 1)
_TENS = 22  # 10^22 is a double, 10^23 is not
_LARGEST_SINGLE = 3.4028235677973362e38  # what is above is nearer to 2^128, which is not there


def _rounded_to(kind: Kind, sql: str) -> str:
    """Return a result that was computed in 64 bits as a value of a binary kind, NULL if it is not finite."""
    return finite(sql if kind is Kind.REAL else rounded_single(sql, _LARGEST_SINGLE))


# -- numbers --------------------------------------------------------------------------------


def _in_double(write: Writer, argument: Expression, kind: Kind) -> str:
    """Return an operand, rounded to the binary kind of the result, as a double."""
    return write.dialect.converted(write(argument, kind), kind, Kind.REAL)


def _arithmetic(name: str, write: Writer, arguments: Arguments, kind: Kind) -> str:
    if any(argument.kind is None for argument in arguments):
        return write.dialect.null(kind)
    if kind.binary:
        first, second = (_in_double(write, argument, kind) for argument in arguments)
        sql = product(first, second) if name == "*" else total_sum(first, second, name)
        return _rounded_to(kind, sql)
    if kind.whole:
        first, second = (f"CAST({write(argument)} AS numeric)" for argument in arguments)
        return fitted(f"({first} {name} {second})", kind)
    _, kinds = operand_kinds(name, arguments, kind)

    def computed(*operands: str) -> str:
        each = zip(operands, arguments, kinds, strict=True)
        first, second = (write.dialect.converted(sql, one.kind, own) for sql, one, own in each)
        return fitted(f"({first} {name} {second})", kind)

    if name != "*" or all(argument.kind is not Kind.HUGEINT for argument in arguments):
        return computed(*map(write, arguments))
    form = times_zero(write, arguments, kind)
    return bound([*map(write, arguments)], lambda x, y: form.format(x, y, computed(x, y)))


def _signed(pattern: str, write: Writer, arguments: Arguments, kind: Kind) -> str:
    value = write(arguments[0], kind)
    if kind.binary:
        return finite(pattern.format(value))
    return fitted(pattern.format(f"CAST({value} AS numeric)"), kind)


def _divided(name: str, write: Writer, arguments: Arguments, kind: Kind) -> str:
    if kind.binary:
        operands = [_in_double(write, argument, kind) for argument in arguments]
        return _rounded_to(kind, quotient(*operands) if name == "/" else bound(operands, _remainder))
    first, second = (write(one, Kind.HUGEINT if kind.whole else kind) for one in arguments)
    call = "div" if name == "//" else "mod"
    return fitted(f"{call}({first}, nullif({second}, 0))", kind)


def _remainder(a: str, b: str) -> str:
    """Return what is left of a binary number, which is one: it has no more digits than the two."""
    end = "'Infinity'::double precision"
    far = f"CASE WHEN {b} = 0 THEN NULL ELSE {nearest_double(f'mod({exact(a)}, {exact(b)})')} END"
    near = f"CASE WHEN abs({a}) < abs({b}) THEN {a} ELSE {far} END"
    return f"CASE WHEN abs({a}) = {end} THEN NULL ELSE {near} END"


def _whole(name: str, write: Writer, arguments: Arguments, kind: Kind) -> str:
    value = write(arguments[0], kind if kind.binary else None)
    if kind.binary:
        return _rounded_to(kind, f"{name}(CAST({value} AS double precision))")
    return fitted(f"{name}(CAST({value} AS numeric))", kind)


def _rounded(name: str, write: Writer, arguments: Arguments, kind: Kind) -> str:
    """ROUND, halves away from zero, and TRUNC."""
    digits = digits_of(arguments)
    if digits is None:
        return write.dialect.null(kind)
    if not kind.binary:
        return fitted(f"{name}(CAST({write(arguments[0])} AS numeric), {digits})", kind)
    if abs(digits) > _TENS:
        raise Unsupported(f"`{name}` of binary numbers to {digits} digits in PostgreSQL")
    value, tens = _in_double(write, arguments[0], kind), double(10.0 ** abs(digits))

    def made(x: str) -> str:
        if not digits:
            return _to_whole(name, x)
        if digits < 0:
            return f"coalesce({product(_to_whole(name, quotient(x, tens)), tens)}, {x} * {double(0.0)})"
        whole = quotient(_to_whole(name, product(x, tens)), tens)
        return f"coalesce({whole}, {x})"  # so far from zero that it has no such digits

    return _rounded_to(kind, bound((value,), made))


def _to_whole(name: str, value: str) -> str:
    """Return a double rounded to a whole number, halves away from zero, or cut to one."""
    if name == "trunc":
        return f"trunc({value})"
    half = "CASE WHEN abs({0} - trunc({0})) >= '0.5'::double precision THEN sign({0}) ELSE '0' END"
    return bound((value,), lambda x: f"(trunc({x}) + {half.format(x)})")


def _of_positive(name: str, test: str, write: Writer, arguments: Arguments, kind: Kind) -> str:
    """A function of binary numbers that has values where a test holds."""
    value = write(arguments[0], Kind.REAL)
    return bound(
        (value,), lambda x: finite(f"CASE WHEN {x} {test} '0'::double precision THEN {name}({x}) END")
    )


def _logarithm(write: Writer, arguments: Arguments, kind: Kind) -> str:
    """LOG: to the base ten, or of two numbers the second to the base of the first."""
    if len(arguments) == 1:
        return _of_positive("log", ">", write, arguments, kind)
    end, base = "'-Infinity'::double precision", write(arguments[0], Kind.REAL)
    test = f"CASE WHEN {{0}} > {double(0.0)} THEN log({{0}}) WHEN {{0}} = {double(0.0)} THEN {end} END"
    value = _of_positive("log", ">", write, arguments[1:], kind)
    return quotient(value, bound((base,), lambda x: test.format(x)))


def _exp(write: Writer, arguments: Arguments, kind: Kind) -> str:
    def made(x: str) -> str:
        inner = f"CASE WHEN {x} < {double(-745.1332191019411)} THEN {double(0.0)} ELSE exp({x}) END"
        return f"CASE WHEN {x} > {double(709.782712893384)} THEN NULL ELSE {inner} END"

    return bound((write(arguments[0], Kind.REAL),), made)


def _power(write: Writer, arguments: Arguments, kind: Kind) -> str:
    """POWER: the half of it, a^(b/2), which neither overflows nor underflows, tells whether it does.

    (Where the half is within 2^-50 of the limit, an overflow or underflow is assumed.)
    """
    one, nothing, end = double(1.0), double(0.0), "'Infinity'::double precision"

    def of_both(a: str, b: str) -> str:
        half = f"power(abs({a}), {b} * {double(0.5)})"
        direct = (
            f"CASE WHEN {{0}} >= {double(2.0**512 * (1 - 2.0**-50))} THEN NULL"
            f" WHEN {{0}} <= {double(2.0**-537.5 * (1 + 2.0**-50))} THEN {nothing} ELSE power({a}, {b}) END"
        )
        near = bound((half,), lambda h: direct.format(h))
        size = f"(least(greatest({b}, {double(-1e22)}), {double(1e22)}) * ln(abs({a})))"
        inside = f"CASE WHEN {size} > {double(720.0)} THEN NULL WHEN {size} < {double(-760.0)} THEN {nothing}"
        inside = f"{inside} ELSE {near} END"
        tiny = f"CASE WHEN abs({b}) < {double(1e-300)} THEN {one} ELSE {inside} END"
        minus_one = f"CASE WHEN {b} = trunc({b}) THEN power({a}, {b}) END"
        real = f"CASE WHEN {a} < 0 THEN CASE WHEN {b} = trunc({b}) THEN {inside} END ELSE {tiny} END"
        cases = (
            (f"{a} IS NULL", "NULL"),
            (f"{b} IS NULL", "NULL"),
            (f"{b} = 0", one),
            (f"{a} = 1", one),
            (f"{b} = 1", a),
            (f"abs({a}) = {end}", f"CASE WHEN {b} < 0 THEN {nothing} END"),
            (f"{a} = -1", f"CASE WHEN abs({b}) = {end} THEN {one} ELSE {minus_one} END"),
            (f"abs({b}) = {end}", f"CASE WHEN (abs({a}) < 1) = ({b} > 0) THEN {nothing} END"),
            (f"{a} = 0", f"CASE WHEN {b} > 0 THEN {nothing} END"),
        )
        return f"CASE {' '.join(f'WHEN {test} THEN {then}' for test, then in cases)} ELSE {real} END"

    return finite(bound([write(one, Kind.REAL) for one in arguments], of_both))


# -- texts ----------------------------------------------------------------------------------


def _cased(name: str, write: Writer, value: str) -> str:
    """LOWER or UPPER: of ASCII by the collation "C", of other letters one by one."""
    old, new = map(write.dialect.text, letters(name))

    def made(x: str) -> str:
        plain = f'{name}({x} COLLATE "C")'
        other = f"translate({plain}, {old}, {new})"
        return f"CASE WHEN octet_length({x}) = char_length({x}) THEN {plain} ELSE {other} END"

    return bound((value,), made)


def _case(name: str, write: Writer, arguments: Arguments, kind: Kind) -> str:
    return _cased(name, write, write(arguments[0], Kind.TEXT))


def _trimmed(name: str, write: Writer, arguments: Arguments, kind: Kind) -> str:
    if len(arguments) > 1:
        raise Unsupported(f"`{name}` of chosen letters in PostgreSQL")
    return f"{name}({write(arguments[0], Kind.TEXT)}, {write.dialect.text(spaces())})"


def _like(write: Writer, arguments: Arguments, kind: Kind) -> str:
    text, pattern = (write(argument, Kind.TEXT) for argument in arguments)
    return f"({text} LIKE {pattern} ESCAPE '')"


def _ilike(write: Writer, arguments: Arguments, kind: Kind) -> str:
    text, pattern = (_cased("lower", write, write(argument, Kind.TEXT)) for argument in arguments)
    return f"({text} LIKE {pattern} ESCAPE '')"


def _position(write: Writer, argument: Expression) -> str:
    """Return a position; one that does not fit into 32 bits is NULL."""
    value = write(argument, Kind.INTEGER)
    return f"CAST({within_range(f'CAST({value} AS numeric)', -(2**31), 2**31 - 1)} AS bigint)"


def _end(name: str, write: Writer, arguments: Arguments, kind: Kind) -> str:
    """LEFT or RIGHT; no text has 2^30 code points."""
    text, place = write(arguments[0], Kind.TEXT), _position(write, arguments[1])
    near = f"least(greatest({{0}}, {-(2**30)}), {2**30})"
    return bound(
        (text, place),
        lambda x, n: f"CASE WHEN {n} IS NOT NULL THEN {name}({x}, CAST({near.format(n)} AS integer)) END",
    )


def _substr(write: Writer, arguments: Arguments, kind: Kind) -> str:
    """Cut the code points from one place to another: a negative place counts from the end, a length back."""
    values = [write(arguments[0], Kind.TEXT), *(_position(write, one) for one in arguments[1:])]

    def made(x: str, place: str, length: str | None = None) -> str:
        begin = f"({place} + CASE WHEN {place} < 0 THEN char_length({x}) + 1 ELSE 0 END)"
        first = f"least(greatest({begin}, 1), {2**30})"
        cut = f"substr({x}, CAST({first} AS integer))"
        if length is not None:
            end = f"({begin} + {length})"
            first = f"least(greatest(least({begin}, {end}), 1), {2**30})"
            last = f"least(greatest({begin}, {end}, 1), {2**30})"
            cut = f"substr({x}, CAST({first} AS integer), CAST({last} - {first} AS integer))"
        there = " ".join(f"WHEN {one} IS NULL THEN NULL" for one in (place, length) if one)
        return f"CASE {there} ELSE {cut} END"

    return bound(values, made)


def _ends_with(write: Writer, arguments: Arguments, kind: Kind) -> str:
    values = tuple(write(argument, Kind.TEXT) for argument in arguments)
    return bound(values, lambda x, end: f"(right({x}, char_length({end})) = {end})")


def _split(write: Writer, arguments: Arguments, kind: Kind) -> str:
    """SPLIT_PART: a negative place counts from the end; an empty mark is between any two code points."""
    text, mark, place = arguments
    if not isinstance(place, Literal) or not isinstance(place.value, int) or not isinstance(mark, Literal):
        raise Unsupported("split_part at a mark or a place that is not a constant")
    marked = write.dialect.text(str(mark.value)) if mark.value else "NULL::text"
    at = place.value

    def made(x: str) -> str:
        parts = f"string_to_array({x}, {marked})"
        found = f"({parts})[{at if at > 0 else f'cardinality({parts}) + {at + 1}'}]" if at else "NULL::text"
        return f"CASE WHEN {x} IS NOT NULL THEN coalesce({found} COLLATE \"C\", '') END"

    return bound((write(text, Kind.TEXT),), made)


# -- times ----------------------------------------------------------------------------------


def _moment(write: Writer, argument: Expression) -> str:
    return f"CAST({write(argument)} AS timestamp)"


def _part(part: str, write: Writer, arguments: Arguments, kind: Kind) -> str:
    return f"CAST(trunc(extract({part} FROM {_moment(write, arguments[0])})) AS bigint)"


def _truncated(write: Writer, arguments: Arguments, kind: Kind) -> str:
    """DATE_TRUNC: of a date the engine would take the session's time zone."""
    part, moment = arguments
    if not isinstance(part, Literal) or part.value not in TRUNCATIONS:
        raise Unsupported("date_trunc to a part that is not known")
    return f"CAST(date_trunc('{part.value}', {_moment(write, moment)}) AS {write.dialect.sql_type(kind)})"


_COUNTED = {
    "year": "extract(year FROM {})",
    "quarter": "(extract(year FROM {0}) * 4 + extract(quarter FROM {0}))",
    "month": "(extract(year FROM {0}) * 12 + extract(month FROM {0}))",
    "day": "floor(extract(epoch FROM {}) / 86400)",
    "hour": "floor(extract(epoch FROM {}) / 3600)",
    "minute": "floor(extract(epoch FROM {}) / 60)",
    "second": "floor(extract(epoch FROM {}))",
    "microsecond": "(extract(epoch FROM {}) * 1000000)",
}


def _difference(write: Writer, arguments: Arguments, kind: Kind) -> str:
    part, *moments = arguments
    name = part.value if isinstance(part, Literal) else None
    values = tuple(_moment(write, one) for one in moments)
    if name == "week":
        days = _COUNTED["day"]
        return bound(values, lambda a, b: f"CAST(div({days.format(b)} - {days.format(a)}, 7) AS bigint)")
    if not isinstance(name, str) or name not in _COUNTED:
        raise Unsupported("date_diff in a part that is not known")
    counted = _COUNTED[name]
    return bound(values, lambda a, b: f"CAST({counted.format(b)} - {counted.format(a)} AS bigint)")


def _added(write: Writer, arguments: Arguments, kind: Kind) -> str:
    """DATE_ADD: earlier than what the engine holds nothing may be computed, so what is too early is NULL."""
    part, count, moment = arguments
    if not isinstance(part, Literal) or not isinstance(count, Literal) or not isinstance(count.value, int):
        raise Unsupported("date_add of an interval that is not a constant")
    unit, number = steps_of(str(part.value), count.value)
    value = f"CAST({write(moment, moment.kind or Kind.TIMESTAMP)} AS timestamp)"
    first = _FIRST if number >= 0 else later(_FIRST, unit, -number)
    if first is None:
        return write.dialect.null(Kind.TIMESTAMP)
    early = f"{{0}} >= '{first.isoformat(sep=' ')}'::timestamp"
    moved = f"CASE WHEN {early} THEN {{0}} + INTERVAL '{number} {unit}' END"
    return write.dialect.within_years(bound((value,), lambda x: moved.format(x)), Kind.TIMESTAMP)


def _named(
    names: tuple[str, ...], part: str, first: int, write: Writer, arguments: Arguments, kind: Kind
) -> str:
    return listed_name(names, part, first, _moment(write, arguments[0]))


def _last_day(write: Writer, arguments: Arguments, kind: Kind) -> str:
    month = f"date_trunc('month', {_moment(write, arguments[0])})"
    return f"CAST({month} + INTERVAL '1 month' - INTERVAL '1 day' AS date)"


_PARTS = {name: name for name in (*TRUNCATIONS, "isodow", "dow")} | {"dayofyear": "doy"}

FUNCTIONS: dict[str, Renderer] = {
    **COMMON,
    **REGEXPS,
    **{name: partial(_arithmetic, name) for name in "+-*"},
    "neg": partial(_signed, "(-{})"),
    "abs": partial(_signed, "abs({})"),
    **{name: partial(_divided, name) for name in ("/", "//", "%")},
    **{name: partial(_whole, name) for name in ("floor", "ceil")},
    **{name: partial(_rounded, name) for name in ("round", "trunc")},
    "sign": partial(form, "CAST(sign({}) AS bigint)", None),
    "sqrt": partial(_of_positive, "sqrt", ">="),
    "ln": partial(_of_positive, "ln", ">"),
    **dict.fromkeys(("log", "log10"), _logarithm),
    "exp": _exp,
    "power": _power,
    **{name: partial(_case, name) for name in ("lower", "upper")},
    "trim": partial(_trimmed, "btrim"),
    **{name: partial(_trimmed, name) for name in ("ltrim", "rtrim")},
    "length": partial(form, "CAST(char_length({}) AS bigint)", Kind.TEXT),
    "contains": partial(form, "(strpos({}, {}) > 0)", Kind.TEXT),
    "starts_with": partial(form, "starts_with({}, {})", Kind.TEXT),
    "ends_with": _ends_with,
    "like": _like,
    "ilike": _ilike,
    "split_part": _split,
    **{name: partial(with_numbers, name) for name in ("lpad", "rpad")},
    "substr": _substr,
    **{name: partial(_end, name) for name in ("left", "right")},
    **{name: partial(_part, part) for name, part in _PARTS.items()},
    "date_trunc": _truncated,
    "date_diff": _difference,
    "date_add": _added,
    "epoch": lambda write, arguments, kind: (
        f"CAST(extract(epoch FROM {_moment(write, arguments[0])}) AS double precision)"
    ),
    "last_day": _last_day,
    "strftime": strftime,
    "dayname": partial(_named, DAYS, "dow", 0),
    "monthname": partial(_named, MONTHS, "month", 1),
}
"""How each function that PostgreSQL has with the same meaning is written."""
