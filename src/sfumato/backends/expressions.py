"""Row-wise expressions in DuckDB's SQL, with one total meaning: no row can ever make them fail.

The rules, the same for every row and every engine:

* a value has the one SQL type of its kind: BIGINT, DOUBLE, VARCHAR, BOOLEAN, DATE, TIMESTAMP;
* arithmetic is done in DOUBLE (only `%` and `//` of integers are not), so that no integer can overflow;
  beyond 2^53 integers are rounded, and a result of kind INTEGER outside 64 bits is NULL;
* a result of arithmetic that is not finite is NULL: overflow, division by zero, the root or
  logarithm of what has none, infinity minus infinity. NaN is NULL wherever it comes from;
* a conversion that is impossible is NULL; dates and timestamps outside the years 1 to 9999 are NULL;
* positions in texts count code points; one that does not fit into 32 bits is NULL;
* zero is written without a sign. Engines hold 0.0 and -0.0 for equal, so which of a person's zeros MIN, MAX,
  DISTINCT or GROUP BY keeps is up to the order of rows; nothing that is asked can tell which it was;
* texts are compared code point by code point, whatever collation a column was given. Under another one two
  spellings are one group, and which of them stands for it (and is shown, and hashed) would be up to one row;
* `||`, `concat` and `replace` cut what they make to 65,536 code points, and `replace` reads no more of its
  text than can become that. Else a short question could make one row too large for any memory.

Constants are quoted here and nowhere else; NUL, which SQL text cannot hold, is spelled `chr(0)`.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Mapping

from sfumato.catalog.kind import Kind, Value
from sfumato.errors import Unsupported
from sfumato.plan.tree import Call, Case, Cast, ColumnRef, Expression, Literal

__all__ = [
    "RENDERED",
    "SQL_TYPES",
    "canonical",
    "constant",
    "expression",
    "normalised",
    "number",
    "plain_text",
]

SQL_TYPES = {
    Kind.INTEGER: "BIGINT",
    Kind.REAL: "DOUBLE",
    Kind.TEXT: "VARCHAR",
    Kind.BOOLEAN: "BOOLEAN",
    Kind.DATE: "DATE",
    Kind.TIMESTAMP: "TIMESTAMP",
}
"""The one SQL type that values of a kind have."""

_Names = Mapping[str, str]
_NAN = "'nan'::DOUBLE"
_LONGEST = 2**16  # code points of a text that was put together
_CHAIN = {"+", "-", "*", "neg", "abs"}  # once not finite, these stay not finite: tested at the top


def constant(value: Value, kind: Kind | None = None) -> str:
    """Return a constant, of the type of `kind` if one is given.

    >>> constant("it's"), constant(2, Kind.REAL)
    ("'it''s'", "'2.0'::DOUBLE")
    """
    match value:
        case None:
            return "NULL" if kind is None else f"NULL::{SQL_TYPES[kind]}"
        case bool():
            return "TRUE" if value else "FALSE"
        case int() if kind is Kind.REAL or not -(2**63) <= value < 2**63:
            return constant(_as_float(value))
        case int():
            return f"'{value}'::BIGINT"
        case float():
            return "NULL::DOUBLE" if math.isnan(value) else f"'{value!r}'::DOUBLE"
        case str():
            parts = ("'" + part.replace("'", "''") + "'" for part in _encodable(value).split("\0"))
            joined = " || chr(0) || ".join(parts)
            return f"({joined})" if "\0" in value else joined
        case datetime.datetime():
            if value.tzinfo is not None:
                raise Unsupported("a timestamp with a time zone")
            return f"'{value.isoformat(sep=' ')}'::TIMESTAMP"
        case datetime.date():
            return f"'{value.isoformat()}'::DATE"


def normalised(sql: str, kind: Kind) -> str:
    """Return a raw column as a value of its kind: the one place where NaN and far dates become NULL."""
    match kind:
        case Kind.REAL:
            return f"nullif(CAST({sql} AS DOUBLE), {_NAN})"
        case Kind.DATE | Kind.TIMESTAMP:
            return _years(sql, kind)
        case Kind.TEXT:
            return plain_text(sql)
        case _:
            return f"CAST({sql} AS {SQL_TYPES[kind]})"


def canonical(sql: str, kind: Kind) -> str:
    """Return a value in the form that all its equals share: what is shown, hashed or written as text.

    Of all kinds reals alone have equals that differ, the two zeros; NaN is NULL, and texts are plain.
    """
    return f"({sql} + 0.0)" if kind is Kind.REAL else sql


def plain_text(sql: str) -> str:
    """Return a raw column as a text that equals no text but itself."""
    return f'CAST({sql} AS VARCHAR) COLLATE "binary"'


def expression(node: Expression, names: _Names) -> str:
    """Return the SQL of an expression, of the type of its kind; `names` says what columns are called."""
    match node:
        case ColumnRef(name=name):
            return names[name]
        case Literal(value=value, kind=kind):
            return constant(value, kind)
        case Call(function=name, arguments=arguments, kind=kind):
            if name not in RENDERED:
                raise Unsupported(f"the function `{name}`")
            if name in _CHAIN:
                sql = _finite(_chained(node, names))
                return f"TRY_CAST({sql} AS BIGINT)" if kind is Kind.INTEGER else sql
            return RENDERED[name](arguments, kind, names)
        case Case(branches=branches, otherwise=otherwise, kind=kind):
            whens = " ".join(
                f"WHEN {expression(condition, names)} THEN {_as(value, kind, names)}"
                for condition, value in branches
            )
            return f"CASE {whens} ELSE {_as(otherwise, kind, names)} END"
        case Cast(operand=operand, kind=kind):
            return _cast(operand, kind, names)
    raise Unsupported(f"the expression {type(node).__name__}")


def number(node: Expression, names: _Names) -> str:
    """Return the SQL of a numeric expression in DOUBLE, without a detour through 64-bit integers."""
    match node:
        case Call(function=name) if name in _CHAIN:
            return _finite(_chained(node, names))
        case Literal(value=value) if node.kind is None or node.kind.numeric:
            return constant(value, Kind.REAL)
        case Case(branches=branches, otherwise=otherwise):
            whens = " ".join(
                f"WHEN {expression(condition, names)} THEN {number(value, names)}"
                for condition, value in branches
            )
            return f"CASE {whens} ELSE {number(otherwise, names)} END"
    sql = expression(node, names)
    return sql if node.kind is Kind.REAL else f"CAST({sql} AS DOUBLE)"


# -- parts ----------------------------------------------------------------------------------


def _encodable(text: str) -> str:
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        raise Unsupported("a text that is not valid unicode")
    return text


def _as_float(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _finite(sql: str) -> str:
    return f"nullif(nullif(nullif({sql}, {_NAN}), 'inf'::DOUBLE), '-inf'::DOUBLE)"


def _years(sql: str, kind: Kind) -> str:
    last = "9999-12-31" if kind is Kind.DATE else "9999-12-31 23:59:59.999999"
    of_type = SQL_TYPES[kind]
    return f"CASE WHEN {sql} BETWEEN '0001-01-01'::{of_type} AND '{last}'::{of_type} THEN {sql} END"


def _as(node: Expression, kind: Kind, names: _Names) -> str:
    """Return an expression as a value of a kind that holds it."""
    if isinstance(node, Literal):
        return constant(node.value, kind)
    if node.kind is kind:
        return expression(node, names)
    return (
        number(node, names) if kind is Kind.REAL else f"CAST({expression(node, names)} AS {SQL_TYPES[kind]})"
    )


def _chained(node: Expression, names: _Names) -> str:
    match node:
        case Call(function="neg", arguments=(operand,)):
            return f"(-{_chained(operand, names)})"
        case Call(function="abs", arguments=(operand,)):
            return f"abs({_chained(operand, names)})"
        case Call(function="+" | "-" | "*" as name, arguments=(left, right)):
            return f"({_chained(left, names)} {name} {_chained(right, names)})"
    return number(node, names)


def _common(arguments: tuple[Expression, ...]) -> Kind:
    kinds = {argument.kind for argument in arguments if argument.kind is not None}
    if len(kinds) > 1:
        return Kind.TIMESTAMP if Kind.TIMESTAMP in kinds else Kind.REAL
    return kinds.pop() if kinds else Kind.INTEGER


def _cast(operand: Expression, kind: Kind, names: _Names) -> str:
    source = operand.kind
    nothing = f"NULL::{SQL_TYPES[kind]}"
    if source is None:
        return nothing
    if source is kind:
        return expression(operand, names)
    timely = {Kind.DATE, Kind.TIMESTAMP}
    if source is not Kind.TEXT and kind is not Kind.TEXT and (source in timely) != (kind in timely):
        return nothing
    if kind is Kind.REAL and source is Kind.INTEGER:
        return number(operand, names)
    sql = f"TRY_CAST({canonical(expression(operand, names), source)} AS {SQL_TYPES[kind]})"
    if kind is Kind.REAL:
        return f"nullif({sql}, {_NAN})"
    return _years(sql, kind) if kind in timely and source is Kind.TEXT else sql


# -- functions ------------------------------------------------------------------------------

_Renderer = Callable[[tuple[Expression, ...], Kind, _Names], str]


def _typed(sql: str, kind: Kind) -> str:
    return f"TRY_CAST({sql} AS BIGINT)" if kind is Kind.INTEGER else sql


def _chain(arguments: tuple[Expression, ...], kind: Kind, names: _Names) -> str:
    raise Unsupported("arithmetic that is rendered as a chain")


def _quotient(arguments: tuple[Expression, ...], kind: Kind, names: _Names) -> str:
    left, right = (number(argument, names) for argument in arguments)
    return _finite(f"({left} / nullif({right}, 0))")


def _remainder(arguments: tuple[Expression, ...], kind: Kind, names: _Names) -> str:
    if kind is Kind.INTEGER:
        left, right = (f"CAST({_as(argument, Kind.INTEGER, names)} AS HUGEINT)" for argument in arguments)
        return f"CAST(({left} % nullif({right}, 0)) AS BIGINT)"  # in 128 bits nothing overflows
    left, right = (number(argument, names) for argument in arguments)
    return _finite(f"({left} % nullif({right}, 0))")


def _whole_quotient(arguments: tuple[Expression, ...], kind: Kind, names: _Names) -> str:
    left, right = (f"CAST({_as(argument, Kind.INTEGER, names)} AS HUGEINT)" for argument in arguments)
    return f"TRY_CAST(({left} // nullif({right}, 0)) AS BIGINT)"


def _whole(name: str) -> _Renderer:
    def render(arguments: tuple[Expression, ...], kind: Kind, names: _Names) -> str:
        if kind is Kind.INTEGER:
            return _as(arguments[0], Kind.INTEGER, names)
        return _finite(f"{name}({number(arguments[0], names)})")

    return render


def _round(arguments: tuple[Expression, ...], kind: Kind, names: _Names) -> str:
    digits = 0
    if len(arguments) == 2:
        literal = arguments[1]
        if not isinstance(literal, Literal) or not isinstance(literal.value, int | None):
            raise Unsupported("round to a number of digits that is not a constant")
        if literal.value is None:
            return f"NULL::{SQL_TYPES[kind]}"
        digits = max(-400, min(400, literal.value))
    if kind is Kind.INTEGER and digits >= 0:
        return _as(arguments[0], Kind.INTEGER, names)
    return _typed(_finite(f"round({number(arguments[0], names)}, {digits})"), kind)


def _real(name: str) -> _Renderer:
    """A function of one number; where it has no value the engine's is NaN or infinite."""

    def render(arguments: tuple[Expression, ...], kind: Kind, names: _Names) -> str:
        return _finite(f"{name}({number(arguments[0], names)})")

    return render


def _power(arguments: tuple[Expression, ...], kind: Kind, names: _Names) -> str:
    left, right = (number(argument, names) for argument in arguments)
    return _finite(f"pow({left}, {right})")


def _function(name: str) -> _Renderer:
    """A function whose arguments have the kind of its value."""

    def render(arguments: tuple[Expression, ...], kind: Kind, names: _Names) -> str:
        return f"{name}({', '.join(_as(argument, kind, names) for argument in arguments)})"

    return render


def _operator(name: str) -> _Renderer:
    """A comparison, or a logical connective: arguments of one kind around it."""

    def render(arguments: tuple[Expression, ...], kind: Kind, names: _Names) -> str:
        left, right = (_as(argument, _common(arguments), names) for argument in arguments)
        return f"({left} {name} {right})"

    return render


def _between(arguments: tuple[Expression, ...], kind: Kind, names: _Names) -> str:
    value, lower, upper = (_as(argument, _common(arguments), names) for argument in arguments)
    return f"({value} BETWEEN {lower} AND {upper})"


def _in(arguments: tuple[Expression, ...], kind: Kind, names: _Names) -> str:
    value, *options = (_as(argument, _common(arguments), names) for argument in arguments)
    return f"({value} IN ({', '.join(options)}))"


def _nullif(arguments: tuple[Expression, ...], kind: Kind, names: _Names) -> str:
    left, right = (_as(argument, _common(arguments), names) for argument in arguments)
    if arguments[0].kind in (None, _common(arguments)):
        return f"nullif({left}, {right})"
    return f"CASE WHEN {left} = {right} THEN NULL ELSE {_as(arguments[0], kind, names)} END"


def _texts(name: str) -> _Renderer:
    """A function of texts."""

    def render(arguments: tuple[Expression, ...], kind: Kind, names: _Names) -> str:
        return f"{name}({', '.join(_as(argument, Kind.TEXT, names) for argument in arguments)})"

    return render


def _joined(name: str) -> _Renderer:
    """Texts put together: at most `_LONGEST` of them, so that no nesting of these can grow without end."""
    together = _operator(name) if name == "||" else _texts(name)

    def render(arguments: tuple[Expression, ...], kind: Kind, names: _Names) -> str:
        return f"left({together(arguments, kind, names)}, {_LONGEST})"

    return render


def _replace(arguments: tuple[Expression, ...], kind: Kind, names: _Names) -> str:
    text, old, new = (_as(argument, Kind.TEXT, names) for argument in arguments)
    if not isinstance(arguments[2], Literal):
        raise Unsupported("replace by a text that is not a constant")
    times = len(str(arguments[2].value or ""))
    if times > 1:  # each code point may become so many
        text = f"left({text}, {_LONGEST // times})"
    return f"replace({text}, {old}, {new})"


def _positions(name: str) -> _Renderer:
    """A function of a text and positions in it."""

    def render(arguments: tuple[Expression, ...], kind: Kind, names: _Names) -> str:
        text = _as(arguments[0], Kind.TEXT, names)
        places = (_as(argument, Kind.INTEGER, names) for argument in arguments[1:])
        cut = (f"CAST(TRY_CAST({place} AS INTEGER) AS BIGINT)" for place in places)
        return f"{name}({text}, {', '.join(cut)})"

    return render


def _matches(name: str) -> _Renderer:
    def render(arguments: tuple[Expression, ...], kind: Kind, names: _Names) -> str:
        text, pattern = (_as(argument, Kind.TEXT, names) for argument in arguments)
        return f"({text} {name} {pattern})"

    return render


def _part(name: str) -> _Renderer:
    def render(arguments: tuple[Expression, ...], kind: Kind, names: _Names) -> str:
        moment = f"CAST({expression(arguments[0], names)} AS TIMESTAMP)"
        return f"CAST({name}({moment}) AS BIGINT)"

    return render


def _truncated(arguments: tuple[Expression, ...], kind: Kind, names: _Names) -> str:
    part, moment = arguments
    if not isinstance(part, Literal) or part.value not in _TRUNCATIONS:
        raise Unsupported("date_trunc to a part that is not known")
    return f"CAST(date_trunc('{part.value}', {_as(moment, kind, names)}) AS {SQL_TYPES[kind]})"


def _difference(arguments: tuple[Expression, ...], kind: Kind, names: _Names) -> str:
    part, *moments = arguments
    if not isinstance(part, Literal) or part.value not in (*_TRUNCATIONS, "microsecond"):
        raise Unsupported("date_diff in a part that is not known")
    first, second = (f"CAST({_as(one, one.kind or Kind.DATE, names)} AS TIMESTAMP)" for one in moments)
    return f"CAST(date_diff('{part.value}', {first}, {second}) AS BIGINT)"


_TRUNCATIONS = ("year", "quarter", "month", "week", "day", "hour", "minute")

RENDERED: dict[str, _Renderer] = {
    **dict.fromkeys(sorted(_CHAIN), _chain),
    "/": _quotient,
    "//": _whole_quotient,
    "%": _remainder,
    "floor": _whole("floor"),
    "ceil": _whole("ceil"),
    "round": _round,
    **{name: _real(name) for name in ("sqrt", "ln", "exp")},
    "power": _power,
    "least": _function("least"),
    "greatest": _function("greatest"),
    **{name: _operator(name) for name in ("=", "<>", "<", "<=", ">", ">=")},
    "and": _operator("AND"),
    "or": _operator("OR"),
    "not": lambda arguments, kind, names: f"(NOT {_as(arguments[0], Kind.BOOLEAN, names)})",
    "between": _between,
    "in": _in,
    "is_null": lambda arguments, kind, names: f"({expression(arguments[0], names)} IS NULL)",
    "coalesce": _function("coalesce"),
    "nullif": _nullif,
    **{name: _texts(name) for name in ("lower", "upper", "trim", "ltrim", "rtrim", "length")},
    **{name: _texts(name) for name in ("contains", "starts_with", "ends_with")},
    **{name: _joined(name) for name in ("||", "concat")},
    "replace": _replace,
    **{name: _positions(name) for name in ("substr", "left", "right")},
    "like": _matches("LIKE"),
    "ilike": _matches("ILIKE"),
    **{name: _part(name) for name in ("year", "quarter", "month", "week", "day", "hour", "minute")},
    **{name: _part(name) for name in ("isodow", "dayofyear")},
    "dow": _part("dayofweek"),
    "date_trunc": _truncated,
    "date_diff": _difference,
}
"""How each function of the allow-list is written; a test holds this against the list itself."""
