"""Row-wise expressions in DuckDB's SQL, with one total meaning: no row can ever make them fail.

The rules, the same for every row and every engine:

* a value has the one SQL type of its kind: BIGINT, HUGEINT, DECIMAL, FLOAT, DOUBLE, VARCHAR, BOOLEAN, ..;
* arithmetic is the engine's own in that type: exact for whole numbers and decimals. What does not fit is
  NULL: 64-bit integers are computed in 128 bits and cut back, decimals are wide enough for any result while
  38 digits suffice, and TRY catches what overflows 128 bits or 38 digits;
* a binary result that is not finite is NULL: overflow, division by zero, the root or
  logarithm of what has none, infinity minus infinity. NaN is NULL wherever it comes from;
* a conversion that is impossible is NULL; dates and timestamps outside the years 1 to 9999 are NULL;
* positions in texts count code points; one that does not fit into 32 bits is NULL;
* regular expressions are RE2's, which reads a text in linear time; where none matches, '' is extracted;
* zero is written without a sign. Engines hold 0.0 and -0.0 for equal, so which of a person's zeros MIN, MAX,
  DISTINCT or GROUP BY keeps is up to the order of rows; nothing that is asked can tell which it was;
* texts are compared code point by code point, whatever collation a column was given. Under another one two
  spellings are one group, and which of them stands for it (and is shown, and hashed) would be up to one row;
* `||`, `concat`, `concat_ws` and `replace` cut what they make to 65,536 code points; `replace` and
  `regexp_replace` of all matches read no more of their text than can become that. Else a short question
  could make one row too large for any memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import partial

from sfumato.backends.sql_values import NAN, canonical, constant, converted, finite, sql_type, within_years
from sfumato.catalog.kind import MOST_DIGITS, Kind
from sfumato.errors import Unsupported
from sfumato.plan.functions import common_kind
from sfumato.plan.moments import steps_of
from sfumato.plan.numbers import as_decimal, widened
from sfumato.plan.tree import Call, Case, Cast, ColumnRef, Expression, Literal

__all__ = ["RENDERED", "expression"]

_LONGEST_TERM = 20_000  # characters of an expression that is written several times
_LONGEST = 2**16  # code points of a text that was put together
_NARROW = {
    (-(2**7), 2**7 - 1): "TINYINT",
    (-(2**15), 2**15 - 1): "SMALLINT",
    (-(2**31), 2**31 - 1): "INTEGER",
    (0, 2**8 - 1): "UTINYINT",
    (0, 2**16 - 1): "USMALLINT",
    (0, 2**32 - 1): "UINTEGER",
    (0, 2**64 - 1): "UBIGINT",
}
_CHAIN = {  # of binary numbers: once not finite, these stay not finite, and that is tested at the top
    **{name: f"({{}} {name} {{}})" for name in "+-*"},
    "neg": "(-{})",
    "abs": "abs({})",
}
_TRUNCATIONS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")

_Names = Mapping[str, str]
_Arguments = tuple[Expression, ...]
_Renderer = Callable[[_Arguments, Kind, _Names], str]


def expression(node: Expression, names: _Names, kind: Kind | None = None) -> str:
    """Return the SQL of an expression; `names` says what columns are called.

    It has the type of the expression's kind, or of `kind`, which must hold the expression's.
    """
    if kind is not None:
        if isinstance(node, Literal):
            return constant(node.value, kind)
        return converted(expression(node, names), node.kind, kind)
    match node:
        case ColumnRef(name=name):
            return names[name]
        case Literal(value=value, kind=own):
            return constant(value, own)
        case Call(function=name, arguments=arguments, kind=own):
            if name not in RENDERED:
                raise Unsupported(f"the function `{name}`")
            if name in _CHAIN and own.binary:
                return finite(_chained(node, names))
            return RENDERED[name](arguments, own, names)
        case Case(branches=branches, otherwise=otherwise, kind=own):
            whens = " ".join(
                f"WHEN {expression(condition, names)} THEN {expression(value, names, own)}"
                for condition, value in branches
            )
            return f"CASE {whens} ELSE {expression(otherwise, names, own)} END"
        case Cast(operand=operand, kind=own, limits=limits):
            return _cast(operand, own, limits, names)
    raise Unsupported(f"the expression {type(node).__name__}")


def _chained(node: Call, names: _Names) -> str:
    """Return arithmetic of binary numbers, which may be infinite or NaN."""
    operands = []
    for one in node.arguments:
        if isinstance(one, Call) and one.function in _CHAIN and one.kind.binary:
            operands.append(converted(_chained(one, names), one.kind, node.kind))
        else:
            operands.append(expression(one, names, node.kind))
    return _CHAIN[node.function].format(*operands)


def _cast(operand: Expression, kind: Kind, limits: tuple[int, int] | None, names: _Names) -> str:
    source, of_type = operand.kind, sql_type(kind)
    nothing = f"NULL::{of_type}"
    if source is None:
        return nothing
    timely = {Kind.DATE, Kind.TIMESTAMP}
    if source is not Kind.TEXT and kind is not Kind.TEXT and (source in timely) != (kind in timely):
        return nothing
    value = canonical(expression(operand, names), source)
    if limits is not None:
        return f"CAST(TRY_CAST({value} AS {_NARROW[limits]}) AS {of_type})"
    if source is kind:
        return expression(operand, names)
    sql = f"TRY_CAST({value} AS {of_type})"
    if kind.binary:
        return f"nullif({sql}, {NAN})"
    return within_years(sql, kind) if kind in timely and source is Kind.TEXT else sql


# -- numbers --------------------------------------------------------------------------------


def _arithmetic(name: str, arguments: _Arguments, kind: Kind, names: _Names) -> str:
    """An operator, or a sign, of exact numbers."""
    form = _CHAIN[name]
    if any(argument.kind is None for argument in arguments):
        return f"NULL::{sql_type(kind)}"
    if kind is Kind.INTEGER:
        wide = (f"CAST({expression(argument, names)} AS HUGEINT)" for argument in arguments)
        return f"TRY_CAST({form.format(*wide)} AS BIGINT)"  # in 128 bits nothing overflows
    if kind is Kind.HUGEINT:
        return f"TRY({form.format(*(expression(argument, names, kind) for argument in arguments))})"
    if len(arguments) == 1:
        return form.format(expression(arguments[0], names))
    first, second = (as_decimal(argument.kind or kind) for argument in arguments)
    if name == "*":
        factor, _ = widened(first, second)
        digits, kinds = factor.digits + second.digits, (factor, second)
    else:
        digits = max(first.digits - first.scale, second.digits - second.scale) + kind.scale + 1
        kinds = (first, second) if digits <= MOST_DIGITS else (kind, kind)
    # Operands are converted here: a conversion that the engine adds inside TRY, and that two calls
    # share, is computed once, before and outside of both, and then it fails.
    sql = form.format(*(expression(one, names, own) for one, own in zip(arguments, kinds, strict=True)))
    sql = sql if digits <= MOST_DIGITS else f"TRY({sql})"
    huge = name == "*" and any(argument.kind is Kind.HUGEINT for argument in arguments)
    return _or_zero(sql, arguments, kind, names) if huge else sql


def _or_zero(product: str, arguments: _Arguments, kind: Kind, names: _Names) -> str:
    """Return a product with a whole number of 39 digits: that is no decimal, but times zero it is zero."""
    whole, other = sorted(arguments, key=lambda argument: argument.kind is not Kind.HUGEINT)
    if len(product) > _LONGEST_TERM:  # its operands stand in it twice: nested ones would double and double
        raise Unsupported("a product of such long expressions")
    zero = f"{expression(other, names)} = 0 AND {expression(whole, names)} IS NOT NULL"
    return f"CASE WHEN {zero} THEN CAST(0 AS {sql_type(kind)}) ELSE {product} END"


def _divided(name: str, arguments: _Arguments, kind: Kind, names: _Names) -> str:
    """A quotient or a remainder: of whole numbers computed in 128 bits."""
    left, right = (expression(one, names, Kind.HUGEINT if kind.whole else kind) for one in arguments)
    sql = f"({left} {name} nullif({right}, 0))"
    if kind.whole:
        return f"TRY_CAST({sql} AS BIGINT)" if kind is Kind.INTEGER else f"TRY({sql})"
    return finite(sql) if kind.binary else sql


def _whole(name: str, arguments: _Arguments, kind: Kind, names: _Names) -> str:
    sql = f"{name}({expression(arguments[0], names, kind if kind.binary else None)})"
    return finite(sql) if kind.binary else sql


def _digits(arguments: _Arguments) -> int | None:
    """Return to how many digits ROUND or TRUNC goes, None for NULL."""
    if len(arguments) == 1:
        return 0
    literal = arguments[1]
    if not isinstance(literal, Literal) or not isinstance(literal.value, int | None):
        raise Unsupported("a number of digits that is not a constant")
    return None if literal.value is None else max(-400, min(400, literal.value))


def _cut(arguments: _Arguments, kind: Kind, names: _Names) -> str:
    """TRUNC: a whole number loses digits before the point at most."""
    digits, value = _digits(arguments), expression(arguments[0], names, kind if not kind.digits else None)
    if digits is None:
        return f"NULL::{sql_type(kind)}"
    if kind.whole and digits >= 0:
        return value
    sql = f"trunc({value}, {digits})" if digits else f"trunc({value})"
    return finite(sql) if kind.binary else sql


def _round(arguments: _Arguments, kind: Kind, names: _Names) -> str:
    digits, operand = _digits(arguments), arguments[0]
    if digits is None:
        return f"NULL::{sql_type(kind)}"
    if kind is Kind.INTEGER:
        return f"TRY_CAST(round({expression(operand, names, Kind.HUGEINT)}, {digits}) AS BIGINT)"
    if kind is Kind.HUGEINT:
        return f"TRY(round({expression(operand, names, kind)}, {digits}))"
    if kind.binary:
        return finite(f"round({expression(operand, names, kind)}, {digits})")
    own = as_decimal(operand.kind or kind)
    if -digits > own.digits - own.scale:  # nothing is left of any number; the engine makes 0 of NULL too
        unit = constant(Decimal((0, (1,), -own.scale)))
        return f"CAST(({expression(operand, names)} % {unit}) AS {sql_type(kind)})"
    sql = f"round({expression(operand, names)}, {digits})"
    return sql if own.digits < MOST_DIGITS else f"TRY({sql})"  # 38 nines have no tens


def _real(name: str, arguments: _Arguments, kind: Kind, names: _Names) -> str:
    """A function of binary numbers; where it has no value the engine's is NaN or infinite."""
    return finite(_called(name, Kind.REAL, arguments, kind, names))


# -- values of any kind, texts and times ----------------------------------------------------


def _form(form: str, of: Kind | None, arguments: _Arguments, kind: Kind, names: _Names) -> str:
    """Arguments put into a form, each as a value of a kind; None: as what it is."""
    return form.format(*(expression(argument, names, of) for argument in arguments))


def _compared(form: str, arguments: _Arguments, kind: Kind, names: _Names) -> str:
    """Arguments put into a form as values of their common kind."""
    return _form(form, _common(arguments), arguments, kind, names)


def _common(arguments: _Arguments) -> Kind:
    kinds = [argument.kind for argument in arguments if argument.kind is not None]
    if Kind.TIMESTAMP in kinds:
        return Kind.TIMESTAMP
    return common_kind(tuple(kinds)) or Kind.INTEGER


def _called(name: str, of: Kind | None, arguments: _Arguments, kind: Kind, names: _Names) -> str:
    """A function whose arguments are of a kind, or, for None, of the kind of its value."""
    return f"{name}({', '.join(expression(argument, names, of or kind) for argument in arguments)})"


def _in(arguments: _Arguments, kind: Kind, names: _Names) -> str:
    common = _common(arguments)
    value, *options = (expression(argument, names, common) for argument in arguments)
    return f"({value} IN ({', '.join(options)}))"


def _nullif(arguments: _Arguments, kind: Kind, names: _Names) -> str:
    common = _common(arguments)
    left, right = (expression(argument, names, common) for argument in arguments)
    if arguments[0].kind in (None, common):
        return f"nullif({left}, {right})"
    return f"CASE WHEN {left} = {right} THEN NULL ELSE {expression(arguments[0], names, kind)} END"


def _concat(name: str, arguments: _Arguments, kind: Kind, names: _Names) -> str:
    return f"left({_called(name, Kind.TEXT, arguments, kind, names)}, {_LONGEST})"


def _replace(arguments: _Arguments, kind: Kind, names: _Names) -> str:
    text, old, new = (expression(argument, names, Kind.TEXT) for argument in arguments)
    if not isinstance(arguments[2], Literal):
        raise Unsupported("replace by a text that is not a constant")
    times = len(str(arguments[2].value or ""))
    if times > 1:  # each code point may become this many
        text = f"left({text}, {_LONGEST // times})"
    return f"replace({text}, {old}, {new})"


def _replace_matches(arguments: _Arguments, kind: Kind, names: _Names) -> str:
    """REGEXP_REPLACE: a pattern may match between any two code points, and of nothing."""
    text, *rest = (expression(argument, names, Kind.TEXT) for argument in arguments)
    replacement, options = arguments[2], (*arguments, None)[3]
    if not isinstance(replacement, Literal):
        raise Unsupported("replace by a text that is not a constant")
    if not isinstance(options, Literal) or "g" not in str(options.value):
        return f"regexp_replace({', '.join((text, *rest))})"  # one match: it grows by a constant
    text = f"left({text}, {_LONGEST // (1 + len(str(replacement.value)))})"
    return f"left(regexp_replace({', '.join((text, *rest))}), {_LONGEST})"


def _with_number(name: str, arguments: _Arguments, kind: Kind, names: _Names) -> str:
    """A function of texts and of whole numbers, which are constants of 32 bits."""
    written = (
        str(one.value)
        if isinstance(one, Literal) and isinstance(one.value, int)
        else expression(one, names, Kind.TEXT)
        for one in arguments
    )
    return f"{name}({', '.join(written)})"


def _positions(name: str, arguments: _Arguments, kind: Kind, names: _Names) -> str:
    """A function of a text and positions in it."""
    text = expression(arguments[0], names, Kind.TEXT)
    places = (expression(argument, names, Kind.INTEGER) for argument in arguments[1:])
    cut = (f"CAST(TRY_CAST({place} AS INTEGER) AS BIGINT)" for place in places)
    return f"{name}({text}, {', '.join(cut)})"


def _truncated(arguments: _Arguments, kind: Kind, names: _Names) -> str:
    part, moment = arguments
    if not isinstance(part, Literal) or part.value not in _TRUNCATIONS:
        raise Unsupported("date_trunc to a part that is not known")
    return f"CAST(date_trunc('{part.value}', {expression(moment, names, kind)}) AS {sql_type(kind)})"


def _difference(arguments: _Arguments, kind: Kind, names: _Names) -> str:
    part, *moments = arguments
    if not isinstance(part, Literal) or part.value not in (*_TRUNCATIONS, "microsecond"):
        raise Unsupported("date_diff in a part that is not known")
    first, second = (f"CAST({expression(one, names, one.kind or Kind.DATE)} AS TIMESTAMP)" for one in moments)
    return f"CAST(date_diff('{part.value}', {first}, {second}) AS BIGINT)"


def _read(arguments: _Arguments, kind: Kind, names: _Names) -> str:
    """STRPTIME: what does not have the format is NULL."""
    return _in_years(f"try_strptime({', '.join(expression(one, names, Kind.TEXT) for one in arguments)})")


def _added(arguments: _Arguments, kind: Kind, names: _Names) -> str:
    """DATE_ADD: a moment some months, days or seconds later."""
    part, count, moment = arguments
    if not isinstance(part, Literal) or not isinstance(count, Literal) or not isinstance(count.value, int):
        raise Unsupported("date_add of an interval that is not a constant")
    unit, number = steps_of(str(part.value), count.value)
    own = expression(moment, names, moment.kind or Kind.TIMESTAMP)
    return _in_years(f"(CAST({own} AS TIMESTAMP) + INTERVAL '{number} {unit}')")


def _in_years(sql: str) -> str:
    if len(sql) > _LONGEST_TERM:
        raise Unsupported("a moment that is computed from such long expressions")
    return within_years(sql, Kind.TIMESTAMP)


_PARTS = {name: name for name in (*_TRUNCATIONS, "isodow", "dayofyear")} | {"dow": "dayofweek"}
_TEXTS = (
    "lower", "upper", "trim", "ltrim", "rtrim", "length", "contains", "starts_with", "ends_with",
    "regexp_matches", "regexp_full_match",
)  # fmt: skip

RENDERED: dict[str, _Renderer] = {
    **{name: partial(_arithmetic, name) for name in _CHAIN},
    **{name: partial(_divided, name) for name in ("/", "//", "%")},
    **{name: partial(_whole, name) for name in ("floor", "ceil")},
    "round": _round,
    "trunc": _cut,
    "sign": partial(_form, "CAST(sign({}) AS BIGINT)", None),
    **{name: partial(_real, name) for name in ("sqrt", "ln", "log", "log10", "log2", "exp")},
    "power": partial(_real, "pow"),
    **{name: partial(_called, name, None) for name in ("least", "greatest", "coalesce")},
    **{name: partial(_compared, f"({{}} {name} {{}})") for name in ("=", "<>", "<", "<=", ">", ">=")},
    "between": partial(_compared, "({} BETWEEN {} AND {})"),
    "in": _in,
    "nullif": _nullif,
    **{name: partial(_form, f"({{}} {name.upper()} {{}})", Kind.BOOLEAN) for name in ("and", "or")},
    "not": partial(_form, "(NOT {})", Kind.BOOLEAN),
    "is_null": partial(_form, "({} IS NULL)", None),
    **{name: partial(_called, name, Kind.TEXT) for name in _TEXTS},
    **{name: partial(_form, f"({{}} {name.upper()} {{}})", Kind.TEXT) for name in ("like", "ilike")},
    "||": partial(_form, f"left(({{}} || {{}}), {_LONGEST})", Kind.TEXT),
    **{name: partial(_concat, name) for name in ("concat", "concat_ws")},
    "replace": _replace,
    "regexp_replace": _replace_matches,
    "position": partial(_form, "CAST(strpos({}, {}) AS BIGINT)", Kind.TEXT),
    **{name: partial(_with_number, name) for name in ("split_part", "regexp_extract", "lpad", "rpad")},
    **{name: partial(_positions, name) for name in ("substr", "left", "right")},
    **{
        name: partial(_form, f"CAST({part}(CAST({{}} AS TIMESTAMP)) AS BIGINT)", None)
        for name, part in _PARTS.items()
    },
    "date_trunc": _truncated,
    "date_diff": _difference,
    "date_add": _added,
    "epoch": partial(_form, "CAST(epoch(CAST({} AS TIMESTAMP)) AS DOUBLE)", None),
    "last_day": partial(_form, "last_day(CAST({} AS TIMESTAMP))", None),
    **{name: partial(_form, f"{name}(CAST({{}} AS TIMESTAMP))", None) for name in ("dayname", "monthname")},
    "strftime": partial(_form, "strftime(CAST({} AS TIMESTAMP), {})", None),
    "strptime": _read,
}
"""How each function of the allow-list is written; a test holds this against the list itself."""
