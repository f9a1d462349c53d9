"""Functions in Spark's SQL. One that is not here has no exact form in it, and is refused by name.

What letters and spaces are is asked of DuckDB, whose tables are the meaning of LOWER, UPPER and TRIM.
"""

from __future__ import annotations

from decimal import Decimal
from functools import partial

from sfumato.backends.dialect import Arguments, Renderer, Writer
from sfumato.backends.formats import formatted
from sfumato.backends.functions import (
    COMMON,
    TRUNCATIONS,
    common,
    digits_of,
    form,
    operand_kinds,
    with_numbers,
)
from sfumato.backends.letters import letters, spaces
from sfumato.backends.spark.regexps import REGEXPS
from sfumato.backends.spark.totality import (
    bound,
    ceiling,
    cut,
    double,
    finite,
    floored,
    magnitude,
    negated,
    rounded,
)
from sfumato.catalog.kind import MOST_DIGITS, Kind
from sfumato.errors import Unsupported
from sfumato.plan.moments import steps_of
from sfumato.plan.numbers import as_decimal
from sfumato.plan.tree import Call, Case, Cast, ColumnRef, Expression, Literal

__all__ = ["FUNCTIONS"]

_TENS = 22  # 10^22 is a double, 10^23 is not
_NAMED = {"+": "try_add", "-": "try_subtract", "*": "try_multiply"}
_DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
    "November", "December",
)  # fmt: skip


# -- numbers --------------------------------------------------------------------------------


def _largest(node: Expression) -> int:
    """Return a number that no absolute value of a whole number is above: 2^127 where nothing is known."""
    match node:
        case Literal(value=int(value)):
            return abs(value)
        case Cast(limits=(low, high)):
            return max(abs(low), abs(high))
        case _ if node.kind in (Kind.INTEGER, Kind.BOOLEAN, None):
            return 2**63
        case _ if node.kind.digits:
            return int(10 ** (node.kind.digits - node.kind.scale))
        case Cast(operand=operand) if operand.kind is not None and operand.kind.exact:
            return _largest(operand)
        case Case(branches=branches, otherwise=otherwise):
            return max(map(_largest, (otherwise, *(value for _, value in branches))))
        case Call(function=("+" | "-"), arguments=arguments):
            return sum(map(_largest, arguments))
        case Call(function="*", arguments=(first, second)):
            return _largest(first) * _largest(second)
        case Call(function=("round" | "trunc"), arguments=(first, *_) as arguments):
            return _largest(first) + int(10 ** max(0, -(digits_of(arguments) or 0)))
        case Call(function=("neg" | "abs" | "%" | "nullif"), arguments=(first, *_)):
            return _largest(first)
        case Call(function=("least" | "greatest" | "coalesce"), arguments=arguments):
            return max(map(_largest, arguments))
    return 2**127


def _check(name: str, arguments: Arguments, kind: Kind) -> None:
    """Refuse what may be a whole number of 39 digits, which DuckDB has and Spark has not."""
    if (
        kind is Kind.HUGEINT
        and _largest(Call(function=name, arguments=arguments, kind=kind)) >= 10**MOST_DIGITS
    ):
        raise Unsupported("whole numbers of more than 38 digits in Spark")


def _typed(write: Writer, sql: str, kind: Kind) -> str:
    return f"try_cast({sql} AS {write.dialect.sql_type(kind)})"


def _arithmetic(name: str, write: Writer, arguments: Arguments, kind: Kind) -> str:
    if any(argument.kind is None for argument in arguments):
        return write.dialect.null(kind)
    if kind.binary:
        return finite(f"({f' {name} '.join(write(argument, kind) for argument in arguments)})", kind)
    if kind.whole:
        _check(name, arguments, kind)
        first, second = (write(argument, kind) for argument in arguments)
        return _typed(write, f"{_NAMED[name]}({first}, {second})", kind)
    _, kinds = operand_kinds(name, arguments, kind)
    first, second = (write(one, own) for one, own in zip(arguments, kinds, strict=True))
    return _typed(write, f"{_NAMED[name]}({first}, {second})", kind)


def _signed(name: str, write: Writer, arguments: Arguments, kind: Kind) -> str:
    value = write(arguments[0], kind)
    pattern = "(-{})" if name == "neg" else "abs({})"
    if kind.binary:
        return finite(pattern.format(value), kind)
    if kind is Kind.INTEGER:
        return _typed(write, pattern.format(f"CAST({value} AS DECIMAL(20,0))"), kind)
    _check(name, arguments, kind)
    return (negated if name == "neg" else magnitude)(value, write.dialect.sql_type(kind))


def _divided(name: str, write: Writer, arguments: Arguments, kind: Kind) -> str:
    if any(argument.kind is None for argument in arguments):
        return write.dialect.null(kind)
    if kind.binary:
        first, second = (write(argument, kind) for argument in arguments)
        if name == "%":
            return finite(f"try_mod({first}, {second})", kind)
        if kind is Kind.REAL:
            return finite(f"try_divide({first}, {second})")
        quotient = f"try_divide(CAST({first} AS DOUBLE), CAST({second} AS DOUBLE))"
        return finite(f"CAST({quotient} AS FLOAT)", kind)  # rounded to 64 bits first: that is innocuous
    first, second = (write(argument, kind) for argument in arguments)
    if name == "%":
        return _typed(write, f"try_mod({first}, {second})", kind)
    if kind is not Kind.INTEGER:
        raise Unsupported("`//` of whole numbers of 128 bits in Spark")
    return bound(
        (first, second),
        lambda a, b: (
            f"CASE WHEN {b} = -1 THEN try_subtract(0L, {a})"
            f" ELSE {a} div CASE WHEN {b} NOT IN (0L, -1L) THEN {b} END END"
        ),
    )


def _whole(name: str, write: Writer, arguments: Arguments, kind: Kind) -> str:
    value = write(arguments[0], kind if kind.binary else None)
    if not kind.binary:
        return _typed(write, f"{name}({value})", kind)
    made = (floored if name == "floor" else ceiling)(_as_double(value, kind))
    return _single(made, kind)


def _as_double(sql: str, kind: Kind) -> str:
    return sql if kind is Kind.REAL else f"CAST({sql} AS DOUBLE)"


def _single(sql: str, kind: Kind) -> str:
    """Return a result that was computed in 64 bits as a value of a binary kind, NULL if it is not finite."""
    return finite(sql if kind is Kind.REAL else f"CAST({sql} AS FLOAT)", kind)


def _rounded(name: str, write: Writer, arguments: Arguments, kind: Kind) -> str:
    """ROUND, halves away from zero, and TRUNC."""
    digits, operand = digits_of(arguments), arguments[0]
    if digits is None or operand.kind is None:
        return write.dialect.null(kind)
    if kind.binary:
        return _single(_binary_rounded(name, _as_double(write(operand, kind), kind), digits), kind)
    if kind.whole:
        _check(name, arguments, kind)
    own = as_decimal(operand.kind)
    value = write(operand)
    if digits >= own.scale:
        return _typed(write, value, kind)
    if -digits > own.digits - own.scale:
        return f"CASE WHEN {value} IS NOT NULL THEN {write.dialect.constant(0, kind)} END"
    value = write.dialect.converted(value, operand.kind, own)
    if name == "trunc":
        unit = write.dialect.constant(Decimal((0, (1, *(0,) * max(0, -digits)), min(0, -digits))))
        made = bound((value,), lambda x: f"try_subtract({x}, {x} % {unit})")
        return _typed(write, made, kind)
    if digits < 0 and own.digits == MOST_DIGITS and not own.scale:
        return _typed(write, _of_all_digits(write, value, -digits), kind)
    return _typed(write, f"round({value}, {digits})", kind)


def _of_all_digits(write: Writer, value: str, tens: int) -> str:
    """Round a whole number of 38 digits: the engine raises at the nines that have no tens."""
    half = write.dialect.constant(5 * 10 ** (tens - 1))
    if tens == MOST_DIGITS:
        return bound(
            (value,), lambda x: f"CASE WHEN {magnitude(x, 'DECIMAL(38,0)')} < {half} THEN {x} % 1 END"
        )
    unit = write.dialect.constant(10**tens)
    return bound(
        (value,),
        lambda x: bound(
            (x, f"try_add({magnitude(x, 'DECIMAL(38,0)')}, {half})"),
            lambda x, y: f"({y} - {y} % {unit}) * CAST(sign({x}) AS INT)",
        ),
    )


def _binary_rounded(name: str, value: str, digits: int) -> str:
    if abs(digits) > _TENS:
        raise Unsupported(f"`{name}` of binary numbers to {digits} digits in Spark")
    whole, tens = cut if name == "trunc" else rounded, double(10.0 ** abs(digits))

    def made(x: str) -> str:
        if not digits:
            return whole(x)
        if digits < 0:
            tenth = whole(f"({x} / {tens})")
            return f"coalesce({finite(f'({tenth} * {tens})')}, {x} * 0D)"
        cut_off = finite(f"({whole(finite(f'({x} * {tens})'))} / {tens})")
        return f"coalesce({cut_off}, {x})"  # so far from zero that it has no such digits

    return bound((value,), made)


# -- values of any kind ---------------------------------------------------------------------


def _in(write: Writer, arguments: Arguments, kind: Kind) -> str:
    """IN: a long list is a hash set to the engine, where there are two zeros."""
    shared = common(arguments)
    value, *options = (write.dialect.canonical(write(argument, shared), shared) for argument in arguments)
    return f"({value} IN ({', '.join(options)}))"


def _nullif(write: Writer, arguments: Arguments, kind: Kind) -> str:
    shared, (first, second) = common(arguments), arguments

    def made(x: str, other: str) -> str:
        own = write.dialect.converted(x, first.kind, kind)
        return (
            f"CASE WHEN {write.dialect.converted(x, first.kind, shared)} = {other} THEN NULL ELSE {own} END"
        )

    return bound((write(first), write(second, shared)), made)


# -- texts ----------------------------------------------------------------------------------


def _cased(name: str, write: Writer, value: str) -> str:
    """LOWER or UPPER: of ASCII the engine's, else letter by letter."""
    old, new = letters(name)
    plain = "".join(map(chr, range(ord("a"), ord("z") + 1)))
    pair = (plain.upper(), plain) if name == "lower" else (plain, plain.upper())
    old, new = write.dialect.text(pair[0] + old), write.dialect.text(pair[1] + new)
    ascii_only, other = f"octet_length({{0}}) = char_length({{0}}) THEN {name}({{0}})", f"{old}, {new}"
    form = f"CASE WHEN {ascii_only} ELSE translate({{0}}, "
    return bound((value,), lambda x: f"{form.format(x)}{other}) END")


def _case(name: str, write: Writer, arguments: Arguments, kind: Kind) -> str:
    return _cased(name, write, write(arguments[0], Kind.TEXT))


def _trimmed(side: str, write: Writer, arguments: Arguments, kind: Kind) -> str:
    if len(arguments) > 1:
        raise Unsupported("TRIM of chosen letters in Spark")
    return f"trim({side} {write.dialect.text(spaces())} FROM {write(arguments[0], Kind.TEXT)})"


def _like(write: Writer, arguments: Arguments, kind: Kind) -> str:
    return _matched(write, write(arguments[0], Kind.TEXT), arguments[1])


def _ilike(write: Writer, arguments: Arguments, kind: Kind) -> str:
    pattern = arguments[1]
    if not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
        raise Unsupported("ILIKE of a pattern that is not a constant")
    old, new = letters("lower")
    lowered = pattern.value.translate(str.maketrans(old, new))
    lowered = "".join(letter.lower() if letter.isascii() else letter for letter in lowered)
    value = _cased("lower", write, write(arguments[0], Kind.TEXT))
    return _matched(write, value, Literal(value=lowered, kind=Kind.TEXT))


def _matched(write: Writer, value: str, pattern: Expression) -> str:
    """LIKE: each part of the pattern where it is found first, and never again, so that time is linear.

    Theorem: if a text matches a%b.., with its first part at the beginning and its last at the end, it also
    does so with each part in the middle at the first place behind the one before. So a part is an atomic
    group, which the engine never tries at another place. The last part is tried from the end.
    """
    if not isinstance(pattern, Literal) or not isinstance(pattern.value, str | None):
        raise Unsupported("LIKE of a pattern that is not a constant")
    if pattern.value is None:
        return write.dialect.null(Kind.BOOLEAN)
    parts = pattern.value.split("%")
    if "_" not in pattern.value:
        first, last = write.dialect.text(parts[0]), write.dialect.text(parts[-1])
        if len(parts) == 1:
            return f"({value} = {first})"
        if not any(parts[1:]):
            return f"startswith({value}, {first})"
        if not any(parts[:-1]):
            return f"endswith({value}, {last})"
    patterns = ["".join("." if one == "_" else _letter(one) for one in part) for part in parts]
    first, *middle = patterns
    last = f".*{middle.pop()}" if middle else ""
    inner = "".join(f"(?>.*?{one})" for one in middle if one)
    whole = write.dialect.text(rf"(?s)\A{first}{inner}{last}\z")
    return f"regexp_like({value}, {whole})"


def _letter(one: str) -> str:
    return one if one.isalnum() or not one.isascii() else f"\\x{{{ord(one):x}}}"


def _position(write: Writer, argument: Expression) -> str:
    """Return a position; one that does not fit into 32 bits is NULL."""
    value = write(argument, Kind.INTEGER)
    return bound((value,), lambda x: f"CASE WHEN {x} BETWEEN {-(2**31)} AND {2**31 - 1} THEN {x} END")


def _sliced(x: str, first: str, end: str) -> str:
    """Return the code points from a place to before another, counted from 1; no text has 2^30."""
    begin, stop = (f"least(greatest({place}, 1L), {2**30}L)" for place in (first, end))
    return f"substring({x}, CAST({begin} AS INT), CAST(greatest({stop} - {begin}, 0L) AS INT))"


def _end(name: str, write: Writer, arguments: Arguments, kind: Kind) -> str:
    """LEFT or RIGHT: of a negative number, all but so many."""

    def made(x: str, n: str) -> str:
        length = f"char_length({x})"
        if name == "left":
            place = f"1L + {n} + CASE WHEN {n} < 0 THEN {length} ELSE 0 END"
            sliced = _sliced(x, "1L", place)
        else:
            place = f"1L - {n} + CASE WHEN {n} < 0 THEN 0 ELSE {length} END"
            sliced = _sliced(x, place, f"{2**30}L")
        return f"CASE WHEN {n} IS NOT NULL THEN {sliced} END"

    return bound((write(arguments[0], Kind.TEXT), _position(write, arguments[1])), made)


def _substr(write: Writer, arguments: Arguments, kind: Kind) -> str:
    """Cut the code points from one place to another: a negative place counts from the end, a length back."""
    values = [write(arguments[0], Kind.TEXT), *(_position(write, one) for one in arguments[1:])]

    def made(x: str, place: str, length: str | None = None) -> str:
        begin = f"({place} + CASE WHEN {place} < 0 THEN char_length({x}) + 1L ELSE 0L END)"
        if length is None:
            sliced = _sliced(x, begin, f"{2**30}L")
        else:
            end = f"({begin} + {length})"
            sliced = _sliced(x, f"least({begin}, {end})", f"greatest({begin}, {end})")
        there = " ".join(f"WHEN {one} IS NULL THEN NULL" for one in (place, length) if one)
        return f"CASE {there} ELSE {sliced} END"

    return bound(values, made)


def _split(write: Writer, arguments: Arguments, kind: Kind) -> str:
    """SPLIT_PART: a negative place counts from the end; an empty mark is between any two code points."""
    text, mark, place = arguments
    if not isinstance(place, Literal) or not isinstance(place.value, int) or not isinstance(mark, Literal):
        raise Unsupported("split_part at a mark or a place that is not a constant")
    at = place.value
    if at and mark.value:
        return with_numbers("split_part", write, arguments, kind)
    value = write(text, Kind.TEXT)
    if at >= 0:
        return f"substring({value}, {max(at, 1)}, {min(at, 1)})"
    return bound(
        (value,), lambda x: _sliced(x, f"char_length({x}) + {at + 1}L", f"char_length({x}) + {at + 2}L")
    )


# -- times ----------------------------------------------------------------------------------


def _moment(write: Writer, argument: Expression) -> str:
    return f"CAST({write(argument)} AS TIMESTAMP_NTZ)"


def _day(write: Writer, argument: Expression) -> str:
    return f"CAST({write(argument)} AS DATE)"


def _part(pattern: str, write: Writer, arguments: Arguments, kind: Kind) -> str:
    return f"CAST({pattern.format(_moment(write, arguments[0]))} AS BIGINT)"


def _truncated(write: Writer, arguments: Arguments, kind: Kind) -> str:
    part, moment = arguments
    if not isinstance(part, Literal) or part.value not in TRUNCATIONS:
        raise Unsupported("date_trunc to a part that is not known")
    value = _moment(write, moment)
    if part.value == "day":
        sql = f"CAST({value} AS DATE)"
    elif part.value in ("hour", "minute", "second"):
        sql = f"date_trunc('{part.value}', {value})"
    else:
        sql = f"trunc(CAST({value} AS DATE), '{part.value}')"
    return f"CAST({sql} AS {write.dialect.sql_type(kind)})"


_DAY = "CAST(unix_date(CAST({0} AS DATE)) AS BIGINT)"
_HOUR = f"({_DAY} * 24 + hour({{0}}))"
_MINUTE = f"({_HOUR} * 60 + minute({{0}}))"
_MICROSECOND = "unix_micros(CAST({0} AS TIMESTAMP))"
_COUNTED = {
    "year": "CAST(year({0}) AS BIGINT)",
    "quarter": "CAST(year({0}) * 4 + quarter({0}) AS BIGINT)",
    "month": "CAST(year({0}) * 12 + month({0}) AS BIGINT)",
    "day": _DAY,
    "hour": _HOUR,
    "minute": _MINUTE,
    "second": f"({_MINUTE} * 60 + second({{0}}))",
    "microsecond": _MICROSECOND,
}


def _difference(write: Writer, arguments: Arguments, kind: Kind) -> str:
    part, *moments = arguments
    name = part.value if isinstance(part, Literal) else None
    values = tuple(_moment(write, one) for one in moments)
    if name == "week":
        return bound(values, lambda a, b: f"(({_DAY.format(b)} - {_DAY.format(a)}) div 7)")
    if not isinstance(name, str) or name not in _COUNTED:
        raise Unsupported("date_diff in a part that is not known")
    counted = _COUNTED[name]
    return bound(values, lambda a, b: f"({counted.format(b)} - {counted.format(a)})")


def _added(write: Writer, arguments: Arguments, kind: Kind) -> str:
    """DATE_ADD: some ten thousand years around ours are far inside of what the engine holds."""
    part, count, moment = arguments
    if not isinstance(part, Literal) or not isinstance(count, Literal) or not isinstance(count.value, int):
        raise Unsupported("date_add of an interval that is not a constant")
    unit, number = steps_of(str(part.value), count.value)
    value = f"CAST({write(moment, moment.kind or Kind.TIMESTAMP)} AS TIMESTAMP_NTZ)"
    return write.dialect.within_years(f"({value} + INTERVAL '{number}' {unit[:-1]})", Kind.TIMESTAMP)


def _named(names: tuple[str, ...], part: str, write: Writer, arguments: Arguments, kind: Kind) -> str:
    listed = ", ".join(f"'{name}'" for name in names)
    return f"get(array({listed}), {part}({_day(write, arguments[0])}) - 1)"


def _formatted(write: Writer, arguments: Arguments, kind: Kind) -> str:
    pattern = arguments[1]
    if not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
        raise Unsupported("a format that is not a constant")
    shape = formatted(ColumnRef(name="moment", kind=Kind.TIMESTAMP), pattern.value)
    moment = _moment(write, arguments[0])
    return bound((moment,), lambda x: write.dialect.expression(shape, {"moment": x}))


_PARTS = {
    **{name: f"{name}({{}})" for name in ("year", "quarter", "month", "day", "hour", "minute", "second")},
    "week": "weekofyear({})",
    "dayofyear": "dayofyear({})",
    "dow": "(dayofweek({}) - 1)",
    "isodow": "(weekday({}) + 1)",
}

FUNCTIONS: dict[str, Renderer] = {
    **COMMON,
    **{name: partial(_arithmetic, name) for name in "+-*"},
    **{name: partial(_signed, name) for name in ("neg", "abs")},
    **{name: partial(_divided, name) for name in ("/", "//", "%")},
    **{name: partial(_whole, name) for name in ("floor", "ceil")},
    **{name: partial(_rounded, name) for name in ("round", "trunc")},
    "sign": partial(form, "CAST(sign({}) AS BIGINT)", None),
    "sqrt": lambda write, arguments, kind: finite(f"sqrt({write(arguments[0], Kind.REAL)})"),
    "in": _in,
    "nullif": _nullif,
    **{name: partial(_case, name) for name in ("lower", "upper")},
    **{
        name: partial(_trimmed, side)
        for name, side in (("trim", "BOTH"), ("ltrim", "LEADING"), ("rtrim", "TRAILING"))
    },
    "length": partial(form, "CAST(char_length({}) AS BIGINT)", Kind.TEXT),
    "position": partial(form, "CAST(instr({}, {}) AS BIGINT)", Kind.TEXT),
    "contains": partial(form, "contains({}, {})", Kind.TEXT),
    "starts_with": partial(form, "startswith({}, {})", Kind.TEXT),
    "ends_with": partial(form, "endswith({}, {})", Kind.TEXT),
    **REGEXPS,
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
        f"(CAST({_MICROSECOND.format(_moment(write, arguments[0]))} AS DOUBLE) / {double(1e6)})"
    ),
    "strftime": _formatted,
    "last_day": lambda write, arguments, kind: f"last_day({_day(write, arguments[0])})",
    "dayname": partial(_named, _DAYS, "dayofweek"),
    "monthname": partial(_named, _MONTHS, "month"),
}
"""How each function that Spark has with the same meaning is written."""
