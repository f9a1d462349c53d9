"""The allow-list: every row-wise function and operator that a question may use.

A function is here only if its value depends on its arguments alone: nothing volatile, nothing
that reads files, settings or other rows. Engines render these names with one total meaning:
what has no value (a division by zero, the root of a negative number, an overflow) is NULL.

    arithmetic    + - * / // % neg abs round floor ceil sqrt ln exp power least greatest
    comparison    = <> < <= > >= between in is_null
    logic         and or not coalesce nullif
    text          lower upper trim ltrim rtrim length substr replace concat || left right
                  contains starts_with ends_with like ilike
    time          year quarter month week day dow isodow dayofyear hour minute date_trunc date_diff

Whole numbers and decimals are computed exactly, beside a binary number as binary numbers: the kinds of
results are those that DuckDB gives the same text (`numbers.py`). `/` is the binary quotient, `//` that of
whole numbers, cut toward zero. `least`, `greatest` and `concat`
skip NULL, all others pass it on. `dow` counts from Sunday = 0, `isodow` from Monday = 1. `date_diff`
counts the boundaries between two moments, from the first to the second. `date_trunc` keeps the kind of
its operand. `in` takes a value and literals; `like` and `ilike` a literal pattern without escape;
`replace` a literal to put in. CASE and CAST are nodes of the tree.
"""

from __future__ import annotations

import datetime
import difflib
from collections.abc import Callable
from dataclasses import dataclass

from sfumato.catalog.kind import Kind
from sfumato.plan.numbers import (
    NumberError,
    common_number,
    exact_literal,
    product_kind,
    quotient_kind,
    remainder_kind,
    rounded_kind,
    sum_kind,
)
from sfumato.plan.tree import Call, Case, Cast, Expression, Literal, Span

__all__ = [
    "DATE_PARTS",
    "FUNCTIONS",
    "FunctionError",
    "Signature",
    "call",
    "case",
    "cast",
    "common_kind",
    "near_names",
]

_Kinds = tuple[Kind | None, ...]

DATE_PARTS = ("day", "dayofyear", "dow", "hour", "isodow", "minute", "month", "quarter", "week", "year")
"""Parts of a date that are functions; `date_trunc` and `date_diff` take those that follow one another."""

_TRUNCATE_TIMESTAMP = ("year", "quarter", "month", "week", "day", "hour", "minute")
_TRUNCATE_DATE = ("year", "quarter", "month", "week", "day")
_DIFFERENCES = ("year", "quarter", "month", "day", "hour", "minute")


class FunctionError(Exception):
    """A call that does not fit the function; it becomes a refusal with a place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """How many arguments a function takes (`most=None`: any number), and the kind of its value."""

    least: int
    most: int | None
    kind: Callable[[_Kinds], Kind]
    literal: tuple[int, ...] = ()  # positions that must hold a constant


def common_kind(kinds: _Kinds) -> Kind | None:
    """Return the kind that holds values of all these kinds, None if all are NULL.

    >>> common_kind((Kind.INTEGER, None, Kind.REAL))
    Kind('real')
    """
    present = list(dict.fromkeys(kind for kind in kinds if kind is not None))
    if not present or len(present) == 1:
        return present[0] if present else None
    if all(kind.numeric for kind in present):
        return _checked(common_number, present)
    raise FunctionError(f"cannot mix {_listed(present)}")


def call(name: str, arguments: tuple[Expression, ...], span: Span | None = None) -> Call:
    """Return a call of the allow-list; raise `FunctionError` if the arguments do not fit.

    Text constants beside dates are read as dates: `day >= '2024-02-01'`.

    >>> call("+", (Literal(value=1, kind=Kind.INTEGER), Literal(value=0.5, kind=Kind.REAL))).kind
    Kind('real')
    """
    signature = FUNCTIONS[name]
    if len(arguments) < signature.least or (signature.most is not None and len(arguments) > signature.most):
        wanted = f"{signature.least}"
        if signature.most is None:
            wanted += " or more"
        elif signature.most > signature.least:
            wanted += f" to {signature.most}"
        raise FunctionError(f"`{name}` takes {wanted} argument(s), got {len(arguments)}")
    for position in signature.literal:
        if position < len(arguments) and not isinstance(arguments[position], Literal):
            raise FunctionError(f"argument {position + 1} of `{name}` must be a constant")
    if name == "in" and not all(isinstance(argument, Literal) for argument in arguments[1:]):
        raise FunctionError("`in` takes a list of constants")
    if signature.kind is _compared:
        arguments = _with_dates(arguments)
    elif name == "date_diff":
        arguments = (arguments[0], *_with_dates(arguments[1:]))
    if name != "round":
        arguments = _with_decimals(arguments)
    try:
        kind = signature.kind(tuple(argument.kind for argument in arguments))
    except FunctionError as error:
        raise FunctionError(f"`{name}` {error}") from None
    if name == "round":
        kind = rounded_kind(kind, _digits(arguments))
    if name == "date_trunc":
        _check_truncation(arguments)
    if name == "date_diff" and not (isinstance(arguments[0], Literal) and arguments[0].value in _DIFFERENCES):
        raise FunctionError(f"`date_diff` counts one of {', '.join(_DIFFERENCES)}")
    return Call(function=name, arguments=arguments, kind=kind, span=span)


def case(
    branches: tuple[tuple[Expression, Expression], ...], otherwise: Expression, span: Span | None = None
) -> Case:
    """Return a CASE; raise `FunctionError` if conditions are not truths or values do not mix."""
    for condition, _ in branches:
        if condition.kind not in (None, Kind.BOOLEAN):
            raise FunctionError("a condition of CASE must be true or false")
    *values, last = _with_decimals((*(value for _, value in branches), otherwise))
    kind = common_kind((*(value.kind for value in values), last.kind))
    if kind is None:
        raise FunctionError("CASE needs a value other than NULL")
    tests = (condition for condition, _ in branches)
    return Case(branches=tuple(zip(tests, values, strict=True)), otherwise=last, kind=kind, span=span)


def cast(
    operand: Expression, kind: Kind, span: Span | None = None, limits: tuple[int, int] | None = None
) -> Expression:
    """Return a conversion; a text constant becomes a date constant at once.

    `limits` are those of a type of whole numbers that is narrower than its kind.
    """
    if isinstance(operand, Literal) and operand.kind is Kind.TEXT and kind in (Kind.DATE, Kind.TIMESTAMP):
        return _dated(operand, kind, span)
    if operand.kind is kind and limits is None:
        return operand
    return Cast(operand=operand, kind=kind, limits=limits, span=span)


def _with_decimals(arguments: tuple[Expression, ...]) -> tuple[Expression, ...]:
    """Return short whole constants beside decimals as decimals."""
    if not any(argument.kind is not None and argument.kind.digits for argument in arguments):
        return arguments
    return tuple(
        exact_literal(argument)
        if isinstance(argument, Literal) and argument.kind is not None and argument.kind.whole
        else argument
        for argument in arguments
    )


def _digits(arguments: tuple[Expression, ...]) -> int:
    """Return to how many digits ROUND rounds."""
    digits = arguments[1].value if len(arguments) == 2 and isinstance(arguments[1], Literal) else 0
    return digits if isinstance(digits, int) else 0


def _checked(rule: Callable[[list[Kind]], Kind], kinds: list[Kind]) -> Kind:
    try:
        return rule(kinds)
    except NumberError as error:
        raise FunctionError(str(error)) from None


def _with_dates(arguments: tuple[Expression, ...]) -> tuple[Expression, ...]:
    dated = [argument.kind for argument in arguments if argument.kind in (Kind.DATE, Kind.TIMESTAMP)]
    if not dated or dated[0] is None:
        return arguments
    kind = dated[0]
    return tuple(
        _dated(argument, kind, argument.span)
        if isinstance(argument, Literal) and argument.kind is Kind.TEXT
        else argument
        for argument in arguments
    )


def _dated(literal: Literal, kind: Kind, span: Span | None) -> Literal:
    text = str(literal.value)
    try:
        value = (
            datetime.date.fromisoformat(text) if kind is Kind.DATE else datetime.datetime.fromisoformat(text)
        )
    except ValueError:
        if kind is Kind.DATE and _is_timestamp(text):
            return _dated(literal, Kind.TIMESTAMP, span)
        raise FunctionError(f"'{text}' is not a {kind.value}; write it as 2024-02-01") from None
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        raise FunctionError("timestamps have no time zone")
    return Literal(value=value, kind=kind, span=span)


def _is_timestamp(text: str) -> bool:
    try:
        return datetime.datetime.fromisoformat(text).tzinfo is None
    except ValueError:
        return False


def near_names(name: str, known: tuple[str, ...] | None = None) -> tuple[str, ...]:
    """Return up to three names of the allow-list that look like this one.

    >>> near_names("absolute")
    ('abs',)
    """
    names = known if known is not None else [name for name in FUNCTIONS if _is_called(name)]
    return tuple(difflib.get_close_matches(name.lower(), sorted(names), n=3, cutoff=0.5))


def _is_called(name: str) -> bool:
    """Whether a name is written before parentheses: `and` and `||` are not."""
    return name[0].isalpha() and name not in ("and", "in", "is_null", "neg", "not", "or")


def _check_truncation(arguments: tuple[Expression, ...]) -> None:
    part, operand = arguments
    allowed = _TRUNCATE_DATE if operand.kind is Kind.DATE else _TRUNCATE_TIMESTAMP
    if not isinstance(part, Literal) or part.value not in allowed:
        raise FunctionError(f"`date_trunc` of this kind takes one of {', '.join(allowed)}")


# -- kinds ----------------------------------------------------------------------------------


def _listed(kinds: list[Kind]) -> str:
    return " and ".join(sorted(kind.value for kind in kinds))


def _need(kinds: _Kinds, *allowed: Kind) -> None:
    for kind in kinds:
        if kind is not None and kind not in allowed:
            raise FunctionError(f"takes {' or '.join(one.value for one in allowed)}, got {kind.value}")


def _need_numbers(kinds: _Kinds) -> list[Kind]:
    for kind in kinds:
        if kind is not None and not kind.numeric:
            raise FunctionError(f"takes numbers, got {kind.value}")
    return [kind for kind in kinds if kind is not None]


def _computed(rule: Callable[[list[Kind]], Kind]) -> Callable[[_Kinds], Kind]:
    """Return the rule of an operator whose result may be larger than its operands."""

    def kind(kinds: _Kinds) -> Kind:
        present = _need_numbers(kinds)
        if len(present) < len(kinds):  # NULL
            return common_kind(kinds) or Kind.INTEGER
        return _checked(rule, present)

    return kind


def _number(kinds: _Kinds) -> Kind:
    _need_numbers(kinds)
    return common_kind(kinds) or Kind.INTEGER


def _integer(kinds: _Kinds) -> Kind:
    for kind in kinds:
        if kind is not None and not kind.whole:
            raise FunctionError(f"takes integer, got {kind.value}")
    return common_kind(kinds) or Kind.INTEGER


def _real(kinds: _Kinds) -> Kind:
    _need_numbers(kinds)
    return Kind.REAL


def _whole(kinds: _Kinds) -> Kind:
    """FLOOR and CEIL: of a whole number a binary one, as the engine has it."""
    (kind,) = _need_numbers(kinds) or [Kind.INTEGER]
    return Kind.REAL if kind.whole else rounded_kind(kind, 0)


def _rounded(kinds: _Kinds) -> Kind:
    _need_numbers(kinds[:1])
    _need(kinds[1:], Kind.INTEGER)
    return kinds[0] or Kind.INTEGER


def _same(kinds: _Kinds) -> Kind:
    kind = common_kind(kinds)
    if kind is None:
        raise FunctionError("needs a value other than NULL")
    return kind


def _first(kinds: _Kinds) -> Kind:
    common_kind(kinds)
    return kinds[0] or _same(kinds)


def _compared(kinds: _Kinds) -> Kind:
    present = {kind for kind in kinds if kind is not None}
    if present != {Kind.DATE, Kind.TIMESTAMP}:
        common_kind(kinds)
    return Kind.BOOLEAN


def _logic(kinds: _Kinds) -> Kind:
    _need(kinds, Kind.BOOLEAN)
    return Kind.BOOLEAN


def _any_to_truth(kinds: _Kinds) -> Kind:
    return Kind.BOOLEAN


def _text(kinds: _Kinds) -> Kind:
    _need(kinds, Kind.TEXT)
    return Kind.TEXT


def _text_to_truth(kinds: _Kinds) -> Kind:
    _need(kinds, Kind.TEXT)
    return Kind.BOOLEAN


def _text_length(kinds: _Kinds) -> Kind:
    _need(kinds, Kind.TEXT)
    return Kind.INTEGER


def _text_positions(kinds: _Kinds) -> Kind:
    _need(kinds[:1], Kind.TEXT)
    _need(kinds[1:], Kind.INTEGER)
    return Kind.TEXT


def _part(kinds: _Kinds) -> Kind:
    _need(kinds, Kind.DATE, Kind.TIMESTAMP)
    return Kind.INTEGER


def _difference(kinds: _Kinds) -> Kind:
    _need(kinds[:1], Kind.TEXT)
    _need(kinds[1:], Kind.DATE, Kind.TIMESTAMP)
    return Kind.INTEGER


def _truncated(kinds: _Kinds) -> Kind:
    _need(kinds[:1], Kind.TEXT)
    _need(kinds[1:], Kind.DATE, Kind.TIMESTAMP)
    return kinds[1] or Kind.TIMESTAMP


def _of(
    least: int, most: int | None, kind: Callable[[_Kinds], Kind], literal: tuple[int, ...] = ()
) -> Signature:
    return Signature(least=least, most=most, kind=kind, literal=literal)


FUNCTIONS: dict[str, Signature] = {
    **{name: _of(2, 2, _computed(sum_kind)) for name in ("+", "-")},
    "*": _of(2, 2, _computed(product_kind)),
    "/": _of(2, 2, _computed(quotient_kind)),
    "//": _of(2, 2, _integer),
    "%": _of(2, 2, _computed(remainder_kind)),
    **{name: _of(1, 1, _number) for name in ("neg", "abs")},
    **{name: _of(1, 1, _whole) for name in ("floor", "ceil")},
    "round": _of(1, 2, _rounded, (1,)),
    **{name: _of(1, 1, _real) for name in ("sqrt", "ln", "exp")},
    "power": _of(2, 2, _real),
    **{name: _of(2, None, _same) for name in ("least", "greatest")},
    **{name: _of(2, 2, _compared) for name in ("=", "<>", "<", "<=", ">", ">=")},
    "between": _of(3, 3, _compared),
    "in": _of(2, None, _compared),
    "is_null": _of(1, 1, _any_to_truth),
    **{name: _of(2, 2, _logic) for name in ("and", "or")},
    "not": _of(1, 1, _logic),
    "coalesce": _of(1, None, _same),
    "nullif": _of(2, 2, _first),
    **{name: _of(1, 1, _text) for name in ("lower", "upper", "trim", "ltrim", "rtrim")},
    "length": _of(1, 1, _text_length),
    "substr": _of(2, 3, _text_positions),
    "replace": _of(3, 3, _text, (2,)),
    "concat": _of(1, None, _text),
    "||": _of(2, 2, _text),
    **{name: _of(2, 2, _text_positions) for name in ("left", "right")},
    **{name: _of(2, 2, _text_to_truth) for name in ("contains", "starts_with", "ends_with")},
    **{name: _of(2, 2, _text_to_truth, (1,)) for name in ("like", "ilike")},
    **{name: _of(1, 1, _part) for name in DATE_PARTS},
    "date_trunc": _of(2, 2, _truncated, (0,)),
    "date_diff": _of(3, 3, _difference, (0,)),
}
"""What may be called, by our names."""
