"""Functions in DuckDB's SQL: 64-bit integers are computed in 128 bits and cut back, decimals are wide enough
for any result while 38 digits suffice, and TRY catches what overflows 128 bits or 38 digits.
"""

from __future__ import annotations

from decimal import Decimal
from functools import partial

from sfumato.backends.dialect import Arguments, Renderer, Writer
from sfumato.backends.duckdb.totality import bound, finite, not_equal
from sfumato.backends.functions import (
    COMMON,
    LONGEST,
    TRUNCATIONS,
    called,
    digits_of,
    form,
    operand_kinds,
    texts_and_numbers,
    times_zero,
    with_numbers,
)
from sfumato.catalog.kind import MOST_DIGITS, Kind
from sfumato.errors import Unsupported
from sfumato.plan.moments import steps_of
from sfumato.plan.numbers import as_decimal
from sfumato.plan.tree import Call, Literal

__all__ = ["FUNCTIONS"]

_CHAIN = {  # of binary numbers: once not finite, these stay not finite, and that is tested at the top
    **{name: f"({{}} {name} {{}})" for name in "+-*"},
    "neg": "(-{})",
    "abs": "abs({})",
}


# -- numbers --------------------------------------------------------------------------------


def _chained(name: str, write: Writer, arguments: Arguments, kind: Kind) -> str:
    """Return arithmetic of binary numbers, which may be infinite or NaN."""
    operands = []
    for one in arguments:
        if isinstance(one, Call) and one.function in _CHAIN and one.kind.binary:
            inner = _chained(one.function, write, one.arguments, one.kind)
            operands.append(write.dialect.converted(inner, one.kind, kind))
        else:
            operands.append(write(one, kind))
    return _CHAIN[name].format(*operands)


def _arithmetic(name: str, write: Writer, arguments: Arguments, kind: Kind) -> str:
    """An operator, or a sign."""
    pattern = _CHAIN[name]
    if kind.binary:
        return finite(_chained(name, write, arguments, kind))
    if any(argument.kind is None for argument in arguments):
        return write.dialect.null(kind)
    if kind is Kind.INTEGER:
        wide = (f"CAST({write(argument)} AS HUGEINT)" for argument in arguments)
        return f"TRY_CAST({pattern.format(*wide)} AS BIGINT)"  # in 128 bits nothing overflows
    if kind is Kind.HUGEINT:
        return f"TRY({pattern.format(*(write(argument, kind) for argument in arguments))})"
    if len(arguments) == 1:
        return pattern.format(write(arguments[0]))
    digits, kinds = operand_kinds(name, arguments, kind)

    def computed(*operands: str) -> str:
        """The conversions are written: one that the engine adds inside TRY, and that two calls share, is
        computed once, before and outside of both, and then it fails.
        """
        each = zip(operands, arguments, kinds, strict=True)
        sql = pattern.format(*(write.dialect.converted(sql, one.kind, own) for sql, one, own in each))
        return sql if digits <= MOST_DIGITS else f"TRY({sql})"

    first, second = map(write, arguments)
    if name == "*" and Kind.HUGEINT in (argument.kind for argument in arguments):
        form = times_zero(write, arguments, kind)
        return bound(first, lambda x: bound(second, lambda y: form.format(x, y, computed(x, y))))
    return computed(first, second)


def _divided(name: str, write: Writer, arguments: Arguments, kind: Kind) -> str:
    """A quotient or a remainder: of whole numbers computed in 128 bits."""
    left, right = (write(one, Kind.HUGEINT if kind.whole else kind) for one in arguments)
    if kind.binary:
        return finite(f"({left} {name} {right})")  # by zero: infinite, or NaN
    sql = f"({left} {name} {not_equal(right, '0')})"
    if kind.whole:
        return f"TRY_CAST({sql} AS BIGINT)" if kind is Kind.INTEGER else f"TRY({sql})"
    return sql


def _whole(name: str, write: Writer, arguments: Arguments, kind: Kind) -> str:
    sql = f"{name}({write(arguments[0], kind if kind.binary else None)})"
    return finite(sql) if kind.binary else sql


def _cut(write: Writer, arguments: Arguments, kind: Kind) -> str:
    """TRUNC: a whole number loses digits before the point at most."""
    digits, value = digits_of(arguments), write(arguments[0], kind if not kind.digits else None)
    if digits is None:
        return write.dialect.null(kind)
    if kind.whole and digits >= 0:
        return value
    sql = f"trunc({value}, {digits})" if digits else f"trunc({value})"
    return finite(sql) if kind.binary else sql


def _round(write: Writer, arguments: Arguments, kind: Kind) -> str:
    digits, operand = digits_of(arguments), arguments[0]
    if digits is None:
        return write.dialect.null(kind)
    if kind is Kind.INTEGER:
        return f"TRY_CAST(round({write(operand, Kind.HUGEINT)}, {digits}) AS BIGINT)"
    if kind is Kind.HUGEINT:
        return f"TRY(round({write(operand, kind)}, {digits}))"
    if kind.binary:
        return finite(f"round({write(operand, kind)}, {digits})")
    own = as_decimal(operand.kind or kind)
    if -digits > own.digits - own.scale:  # nothing is left of any number; the engine makes 0 of NULL too
        unit = write.dialect.constant(Decimal((0, (1,), -own.scale)))
        return f"CAST(({write(operand)} % {unit}) AS {write.dialect.sql_type(kind)})"
    sql = f"round({write(operand)}, {digits})"
    return sql if own.digits < MOST_DIGITS else f"TRY({sql})"  # 38 nines have no tens


def _real(name: str, write: Writer, arguments: Arguments, kind: Kind) -> str:
    """A function of binary numbers; where it has no value the engine's is NaN or infinite."""
    return finite(called(name, Kind.REAL, write, arguments, kind))


# -- values of any kind, texts and times ----------------------------------------------------


def _split(write: Writer, arguments: Arguments, kind: Kind) -> str:
    text, *rest = texts_and_numbers(write, arguments)
    return bound(text, lambda x: f"split_part({x}, {', '.join(rest)})")


def _replace_matches(write: Writer, arguments: Arguments, kind: Kind) -> str:
    """REGEXP_REPLACE: a pattern may match between any two code points, and of nothing."""
    text, *rest = (write(argument, Kind.TEXT) for argument in arguments)
    replacement, options = arguments[2], (*arguments, None)[3]
    if not isinstance(replacement, Literal):
        raise Unsupported("replace by a text that is not a constant")
    if not isinstance(options, Literal) or "g" not in str(options.value):
        return f"regexp_replace({', '.join((text, *rest))})"  # one match: it grows by a constant
    text = f"left({text}, {LONGEST // (1 + len(str(replacement.value)))})"
    return f"left(regexp_replace({', '.join((text, *rest))}), {LONGEST})"


def _positions(name: str, write: Writer, arguments: Arguments, kind: Kind) -> str:
    """A function of a text and positions in it."""
    text = write(arguments[0], Kind.TEXT)
    places = (write(argument, Kind.INTEGER) for argument in arguments[1:])
    cut = (f"CAST(TRY_CAST({place} AS INTEGER) AS BIGINT)" for place in places)
    return f"{name}({text}, {', '.join(cut)})"


def _truncated(write: Writer, arguments: Arguments, kind: Kind) -> str:
    part, moment = arguments
    if not isinstance(part, Literal) or part.value not in TRUNCATIONS:
        raise Unsupported("date_trunc to a part that is not known")
    return f"CAST(date_trunc('{part.value}', {write(moment, kind)}) AS {write.dialect.sql_type(kind)})"


def _difference(write: Writer, arguments: Arguments, kind: Kind) -> str:
    part, *moments = arguments
    if not isinstance(part, Literal) or part.value not in (*TRUNCATIONS, "microsecond"):
        raise Unsupported("date_diff in a part that is not known")
    first, second = (f"CAST({write(one, one.kind or Kind.DATE)} AS TIMESTAMP)" for one in moments)
    return f"CAST(date_diff('{part.value}', {first}, {second}) AS BIGINT)"


def _read(write: Writer, arguments: Arguments, kind: Kind) -> str:
    """STRPTIME: what does not have the format is NULL."""
    read = f"try_strptime({', '.join(write(one, Kind.TEXT) for one in arguments)})"
    return write.dialect.within_years(read, Kind.TIMESTAMP)


def _added(write: Writer, arguments: Arguments, kind: Kind) -> str:
    """DATE_ADD: a moment some months, days or seconds later."""
    part, count, moment = arguments
    if not isinstance(part, Literal) or not isinstance(count, Literal) or not isinstance(count.value, int):
        raise Unsupported("date_add of an interval that is not a constant")
    unit, number = steps_of(str(part.value), count.value)
    own = write(moment, moment.kind or Kind.TIMESTAMP)
    later = f"(CAST({own} AS TIMESTAMP) + INTERVAL '{number} {unit}')"
    return write.dialect.within_years(later, Kind.TIMESTAMP)


_PARTS = {name: name for name in (*TRUNCATIONS, "isodow", "dayofyear")} | {"dow": "dayofweek"}
_TEXTS = (
    "lower", "upper", "trim", "ltrim", "rtrim", "length", "contains", "starts_with", "ends_with",
    "regexp_matches", "regexp_full_match",
)  # fmt: skip

FUNCTIONS: dict[str, Renderer] = {
    **COMMON,
    **{name: partial(_arithmetic, name) for name in _CHAIN},
    **{name: partial(_divided, name) for name in ("/", "//", "%")},
    **{name: partial(_whole, name) for name in ("floor", "ceil")},
    "round": _round,
    "trunc": _cut,
    "sign": partial(form, "CAST(sign({}) AS BIGINT)", None),
    **{name: partial(_real, name) for name in ("sqrt", "ln", "log", "log10", "log2", "exp")},
    "power": partial(_real, "pow"),
    **{name: partial(called, name, Kind.TEXT) for name in _TEXTS},
    **{name: partial(form, f"({{}} {name.upper()} {{}})", Kind.TEXT) for name in ("like", "ilike")},
    "regexp_replace": _replace_matches,
    **{name: partial(with_numbers, name) for name in ("regexp_extract", "lpad", "rpad")},
    "split_part": _split,
    **{name: partial(_positions, name) for name in ("substr", "left", "right")},
    **{
        name: partial(form, f"CAST({part}(CAST({{}} AS TIMESTAMP)) AS BIGINT)", None)
        for name, part in _PARTS.items()
    },
    "date_trunc": _truncated,
    "date_diff": _difference,
    "date_add": _added,
    "epoch": partial(form, "CAST(epoch(CAST({} AS TIMESTAMP)) AS DOUBLE)", None),
    "last_day": partial(form, "last_day(CAST({} AS TIMESTAMP))", None),
    **{name: partial(form, f"{name}(CAST({{}} AS TIMESTAMP))", None) for name in ("dayname", "monthname")},
    "strftime": partial(form, "strftime(CAST({} AS TIMESTAMP), {})", None),
    "strptime": _read,
}
"""How each function of the allow-list is written."""
