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
from decimal import Decimal

from sfumato.catalog.kind import MOST_DIGITS, Kind, Value, kind_of
from sfumato.errors import Unsupported
from sfumato.plan.functions import common_kind
from sfumato.plan.numbers import as_decimal, widened
from sfumato.plan.tree import Call, Case, Cast, ColumnRef, Expression, Literal

__all__ = [
    "RENDERED",
    "canonical",
    "constant",
    "expression",
    "normalised",
    "number",
    "plain_text",
    "sql_type",
    "within",
]

_LONGEST_PRODUCT = 20_000  # characters
_TYPES = {
    Kind.INTEGER: "BIGINT",
    Kind.HUGEINT: "HUGEINT",
    Kind.FLOAT: "FLOAT",
    Kind.REAL: "DOUBLE",
    Kind.TEXT: "VARCHAR",
    Kind.BOOLEAN: "BOOLEAN",
    Kind.DATE: "DATE",
    Kind.TIMESTAMP: "TIMESTAMP",
}
_NARROW = {
    (-(2**7), 2**7 - 1): "TINYINT",
    (-(2**15), 2**15 - 1): "SMALLINT",
    (-(2**31), 2**31 - 1): "INTEGER",
    (0, 2**8 - 1): "UTINYINT",
    (0, 2**16 - 1): "USMALLINT",
    (0, 2**32 - 1): "UINTEGER",
    (0, 2**64 - 1): "UBIGINT",
}
_Names = Mapping[str, str]
_NAN = "'nan'::DOUBLE"
_LONGEST = 2**16  # code points of a text that was put together
_CHAIN = {"+", "-", "*", "neg", "abs"}  # once not finite, these stay not finite: tested at the top


def sql_type(kind: Kind) -> str:
    """Return the one SQL type that values of a kind have.

    >>> sql_type(Kind.decimal(15, 2))
    'DECIMAL(15,2)'
    """
    return f"DECIMAL({kind.digits},{kind.scale})" if kind.digits else _TYPES[kind]


def constant(value: Value, kind: Kind | None = None) -> str:
    """Return a constant, of the type of `kind` if one is given.

    >>> constant("it's"), constant(2, Kind.REAL)
    ("'it''s'", "'2.0'::DOUBLE")
    >>> constant(Decimal("0.5"), Kind.decimal(15, 2))
    "CAST('0.5'::DECIMAL(2,1) AS DECIMAL(15,2))"
    """
    match value:
        case None:
            return "NULL" if kind is None else f"NULL::{sql_type(kind)}"
        case bool():
            return "TRUE" if value else "FALSE"
        case int() if -(2**63) <= value < 2**63 and kind is Kind.REAL:
            return constant(float(value))
        case int() | Decimal():
            own = kind_of(value)
            if own is None or not own.exact:
                return constant(_as_float(value), Kind.REAL)
            text = f"{value:f}" if isinstance(value, Decimal) else str(value)
            return _converted(f"'{text}'::{sql_type(own)}", own, kind or own)
        case float() if kind is not None and kind is not Kind.REAL:
            return _converted(constant(value), Kind.REAL, kind)
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
        case Kind.REAL | Kind.FLOAT:
            return f"nullif(CAST({sql} AS {sql_type(kind)}), {_NAN})"
        case Kind.DATE | Kind.TIMESTAMP:
            return _years(sql, kind)
        case Kind.TEXT:
            return plain_text(sql)
        case _:
            return f"CAST({sql} AS {sql_type(kind)})"


def within(sql: str, low: str, high: str) -> str:
    """Return a value if it is between two bounds, and NULL otherwise: nothing of another value is left.

    The bounds are tested and applied. Where the engine takes a function for one that cannot fail, it computes
    with all values of a column's dictionary, also with those of rows that a filter or a CASE set aside. To
    write a far timestamp as text is such a function, and fails: a far value must not be there at all.
    """
    return f"CASE WHEN {sql} BETWEEN {low} AND {high} THEN least(greatest({sql}, {low}), {high}) END"


def canonical(sql: str, kind: Kind) -> str:
    """Return a value in the form that all its equals share: what is shown, hashed or written as text.

    Binary numbers alone have equals that differ, the two zeros; NaN is NULL, and texts are plain.
    """
    return f"({sql} + 0.0)" if kind.binary else sql


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
            if name in _CHAIN and kind.binary:
                return _finite(_chained(node, names))
            return RENDERED[name](arguments, kind, names)
        case Case(branches=branches, otherwise=otherwise, kind=kind):
            whens = " ".join(
                f"WHEN {expression(condition, names)} THEN {_as(value, kind, names)}"
                for condition, value in branches
            )
            return f"CASE {whens} ELSE {_as(otherwise, kind, names)} END"
        case Cast(operand=operand, kind=kind, limits=limits):
            return _cast(operand, kind, limits, names)
    raise Unsupported(f"the expression {type(node).__name__}")


def number(node: Expression, names: _Names) -> str:
    """Return the SQL of a numeric expression in DOUBLE."""
    if isinstance(node, Literal):
        return constant(node.value, Kind.REAL)
    sql = expression(node, names)
    return sql if node.kind is Kind.REAL else f"CAST({sql} AS DOUBLE)"


# -- parts ----------------------------------------------------------------------------------


def _encodable(text: str) -> str:
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        raise Unsupported("a text that is not valid unicode")
    return text


def _as_float(value: int | Decimal) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _finite(sql: str) -> str:
    return f"nullif(nullif(nullif({sql}, {_NAN}), 'inf'::DOUBLE), '-inf'::DOUBLE)"


def _years(sql: str, kind: Kind) -> str:
    last = "9999-12-31" if kind is Kind.DATE else "9999-12-31 23:59:59.999999"
    of_type = sql_type(kind)
    return within(sql, f"'0001-01-01'::{of_type}", f"'{last}'::{of_type}")


def _as(node: Expression, kind: Kind, names: _Names) -> str:
    """Return an expression as a value of a kind that holds it."""
    if isinstance(node, Literal):
        return constant(node.value, kind)
    return _converted(expression(node, names), node.kind, kind)


def _converted(sql: str, source: Kind, kind: Kind) -> str:
    """Return a value as one of a kind that holds it; of a decimal that is too narrow, NULL."""
    if source is kind:
        return sql
    fits = True
    if kind.digits:
        fits = source.exact and _before(as_decimal(source)) <= _before(kind) and source is not Kind.HUGEINT
    return f"{'CAST' if fits else 'TRY_CAST'}({sql} AS {sql_type(kind)})"


def _before(kind: Kind) -> int:
    """Return the digits of a decimal before the point."""
    return kind.digits - kind.scale


def _chained(node: Expression, names: _Names) -> str:
    """Return arithmetic of binary numbers, which may be infinite or NaN."""
    match node:
        case Call(function="neg", arguments=(operand,)):
            return f"(-{_operand(operand, node.kind, names)})"
        case Call(function="abs", arguments=(operand,)):
            return f"abs({_operand(operand, node.kind, names)})"
        case Call(function="+" | "-" | "*" as name, arguments=arguments):
            left, right = (_operand(operand, node.kind, names) for operand in arguments)
            return f"({left} {name} {right})"
    raise Unsupported("arithmetic that is rendered as a chain")


def _operand(node: Expression, kind: Kind, names: _Names) -> str:
    if isinstance(node, Call) and node.function in _CHAIN and node.kind.binary:
        return _converted(_chained(node, names), node.kind, kind)
    return _as(node, kind, names)


def _common(arguments: tuple[Expression, ...]) -> Kind:
    kinds = [argument.kind for argument in arguments if argument.kind is not None]
    if Kind.TIMESTAMP in kinds:
        return Kind.TIMESTAMP
    return common_kind(tuple(kinds)) or Kind.INTEGER


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
        return f"nullif({sql}, {_NAN})"
    return _years(sql, kind) if kind in timely and source is Kind.TEXT else sql


# -- functions ------------------------------------------------------------------------------

_Renderer = Callable[[tuple[Expression, ...], Kind, _Names], str]


def _arithmetic(name: str) -> _Renderer:
    """An operator, or a sign, of exact numbers."""

    def render(arguments: tuple[Expression, ...], kind: Kind, names: _Names) -> str:
        if any(argument.kind is None for argument in arguments):
            return f"NULL::{sql_type(kind)}"
        if kind is Kind.INTEGER:
            wide = (f"CAST({expression(argument, names)} AS HUGEINT)" for argument in arguments)
            return f"TRY_CAST({_applied(name, *wide)} AS BIGINT)"  # in 128 bits nothing overflows
        if kind is Kind.HUGEINT:
            return f"TRY({_applied(name, *(_as(argument, kind, names) for argument in arguments))})"
        if len(arguments) == 1:
            return _applied(name, expression(arguments[0], names))
        first, second = (as_decimal(argument.kind or kind) for argument in arguments)
        if name == "*":
            factor, _ = widened(first, second)
            digits, kinds = factor.digits + second.digits, (factor, second)
        else:
            digits = max(_before(first), _before(second)) + kind.scale + 1
            kinds = (first, second) if digits <= MOST_DIGITS else (kind, kind)
        # Operands are converted here: a conversion that the engine adds inside TRY, and that two calls
        # share, is computed once, before and outside of both, and then it fails.
        left, right = (_as(argument, own, names) for argument, own in zip(arguments, kinds, strict=True))
        sql = _applied(name, left, right)
        sql = sql if digits <= MOST_DIGITS else f"TRY({sql})"
        huge = name == "*" and any(argument.kind is Kind.HUGEINT for argument in arguments)
        return _or_zero(sql, arguments, kind, names) if huge else sql

    return render


def _or_zero(product: str, arguments: tuple[Expression, ...], kind: Kind, names: _Names) -> str:
    """Return a product with a whole number of 39 digits: that is no decimal, but times zero it is zero."""
    whole, other = sorted(arguments, key=lambda argument: argument.kind is not Kind.HUGEINT)
    if len(product) > _LONGEST_PRODUCT:  # its operands stand in it twice: nested ones would double and double
        raise Unsupported("a product of such long expressions")
    zero = f"{expression(other, names)} = 0 AND {expression(whole, names)} IS NOT NULL"
    return f"CASE WHEN {zero} THEN CAST(0 AS {sql_type(kind)}) ELSE {product} END"


def _applied(name: str, *operands: str) -> str:
    match name, operands:
        case "neg", (operand,):
            return f"(-{operand})"
        case "abs", (operand,):
            return f"abs({operand})"
        case _, (left, right):
            return f"({left} {name} {right})"
    raise Unsupported(f"the operator `{name}`")


def _quotient(arguments: tuple[Expression, ...], kind: Kind, names: _Names) -> str:
    left, right = (_as(argument, kind, names) for argument in arguments)
    return _finite(f"({left} / nullif({right}, 0))")


def _remainder(arguments: tuple[Expression, ...], kind: Kind, names: _Names) -> str:
    if kind.whole:
        return _whole_division("%", arguments, kind, names)
    left, right = (_as(argument, kind, names) for argument in arguments)
    sql = f"({left} % nullif({right}, 0))"
    return _finite(sql) if kind.binary else sql


def _whole_quotient(arguments: tuple[Expression, ...], kind: Kind, names: _Names) -> str:
    return _whole_division("//", arguments, kind, names)


def _whole_division(name: str, arguments: tuple[Expression, ...], kind: Kind, names: _Names) -> str:
    left, right = (_as(argument, Kind.HUGEINT, names) for argument in arguments)
    sql = f"({left} {name} nullif({right}, 0))"
    return f"TRY_CAST({sql} AS BIGINT)" if kind is Kind.INTEGER else f"TRY({sql})"


def _whole(name: str) -> _Renderer:
    def render(arguments: tuple[Expression, ...], kind: Kind, names: _Names) -> str:
        if kind.binary:
            return _finite(f"{name}({_as(arguments[0], kind, names)})")
        return f"{name}({expression(arguments[0], names)})"

    return render


def _round(arguments: tuple[Expression, ...], kind: Kind, names: _Names) -> str:
    digits = 0
    if len(arguments) == 2:
        literal = arguments[1]
        if not isinstance(literal, Literal) or not isinstance(literal.value, int | None):
            raise Unsupported("round to a number of digits that is not a constant")
        if literal.value is None:
            return f"NULL::{sql_type(kind)}"
        digits = max(-400, min(400, literal.value))
    operand = arguments[0]
    if kind is Kind.INTEGER:
        return f"TRY_CAST(round({_as(operand, Kind.HUGEINT, names)}, {digits}) AS BIGINT)"
    if kind is Kind.HUGEINT:
        return f"TRY(round({_as(operand, kind, names)}, {digits}))"
    if kind.binary:
        return _finite(f"round({_as(operand, kind, names)}, {digits})")
    own = as_decimal(operand.kind or kind)
    if -digits > _before(own):  # nothing is left of any number; the engine makes 0 of NULL too
        unit = constant(Decimal((0, (1,), -own.scale)))
        return f"CAST(({expression(operand, names)} % {unit}) AS {sql_type(kind)})"
    sql = f"round({expression(operand, names)}, {digits})"
    return sql if own.digits < MOST_DIGITS else f"TRY({sql})"  # 38 nines have no tens


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
    common = _common(arguments)
    value, *options = (_as(argument, common, names) for argument in arguments)
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
    if times > 1:  # each code point may become this many
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
    return f"CAST(date_trunc('{part.value}', {_as(moment, kind, names)}) AS {sql_type(kind)})"


def _difference(arguments: tuple[Expression, ...], kind: Kind, names: _Names) -> str:
    part, *moments = arguments
    if not isinstance(part, Literal) or part.value not in (*_TRUNCATIONS, "microsecond"):
        raise Unsupported("date_diff in a part that is not known")
    first, second = (f"CAST({_as(one, one.kind or Kind.DATE, names)} AS TIMESTAMP)" for one in moments)
    return f"CAST(date_diff('{part.value}', {first}, {second}) AS BIGINT)"


_TRUNCATIONS = ("year", "quarter", "month", "week", "day", "hour", "minute")

RENDERED: dict[str, _Renderer] = {
    **{name: _arithmetic(name) for name in sorted(_CHAIN)},
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
