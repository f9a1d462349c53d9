"""The allow-list: every row-wise function and operator that a question may use.

A function is here only if its value depends on its arguments alone: nothing volatile, nothing
that reads files, settings or other rows. Engines render these names with one total meaning:
what has no value (a division by zero, the root of a negative number, an overflow) is NULL.

Whole numbers and decimals are computed exactly, beside a binary number as binary numbers: the kinds of
results are those that DuckDB gives the same text (`numbers.py`). `/` is the binary quotient, `//` that of
whole numbers, cut toward zero. `least`, `greatest`, `concat` and `concat_ws` skip NULL, all others pass it
on. `dow` counts from Sunday = 0, `isodow` from Monday = 1. `date_diff` counts the boundaries between two
moments, from the first to the second, but of weeks whole ones, as the engine does. `date_trunc` keeps the
kind of its operand. `date_add` takes a part, a whole number and a moment. `in` takes a value and literals;
`like` and `ilike` a literal pattern without escape; `replace` a literal to put in; regular expressions,
formats and paddings are literals (`patterns.py`). CASE and CAST are nodes of the tree.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass

from sfumato.catalog.kind import Kind, Value
from sfumato.plan import conversions, moments, numbers, patterns
from sfumato.plan.conversions import MOMENTS
from sfumato.plan.numbers import KindError
from sfumato.plan.tree import Call, Case, Expression, Literal, Span

__all__ = [
    "DATE_PARTS",
    "FUNCTIONS",
    "NAMES",
    "Signature",
    "call",
    "case",
    "common_kind",
    "later",
]

_Kinds = tuple[Kind | None, ...]
_Rule = Callable[[_Kinds], Kind]

DATE_PARTS = (
    "day", "dayofyear", "dow", "hour", "isodow", "minute", "month", "quarter", "second", "week", "year",
)  # fmt: skip
"""Parts of a date that are functions; `date_trunc` and `date_diff` take those that follow one another."""

_MOST_CUT = 18  # of more digits the engine makes other numbers, type by type
_TO_DIGITS = ("round", "trunc")
_TRUNCATE_DATE = ("year", "quarter", "month", "week", "day")
_TRUNCATE_TIMESTAMP = (*_TRUNCATE_DATE, "hour", "minute", "second")
_DIFFERENCES = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")


@dataclass(frozen=True, slots=True)
class Signature:
    """How many arguments a function takes (`most=None`: any number), and the kind of its value."""

    least: int
    most: int | None
    kind: _Rule
    literal: tuple[int, ...] = ()  # positions that must hold a constant
    check: Callable[[list[Value]], None] | None = None  # refuses constants, given in their order


def common_kind(kinds: _Kinds) -> Kind | None:
    """Return the kind that holds values of all these kinds, None if all are NULL.

    >>> common_kind((Kind.INTEGER, None, Kind.REAL))
    Kind('real')
    """
    present = list(dict.fromkeys(kind for kind in kinds if kind is not None))
    if len(present) < 2:
        return present[0] if present else None
    if all(kind.numeric for kind in present):
        return numbers.common_number(present)
    raise KindError(f"cannot mix {' and '.join(sorted(kind.value for kind in present))}")


def call(name: str, arguments: tuple[Expression, ...], span: Span | None = None) -> Call:
    """Return a call of the allow-list; raise `KindError` if the arguments do not fit.

    Text constants beside dates are read as dates: `day >= '2024-02-01'`.

    >>> call("+", (Literal(value=1, kind=Kind.INTEGER), Literal(value=0.5, kind=Kind.REAL))).kind
    Kind('real')
    """
    signature = FUNCTIONS[name]
    least, most = signature.least, signature.most
    if len(arguments) < least or (most is not None and len(arguments) > most):
        wanted = f"{least} or more" if most is None else f"{least} to {most}" if most > least else f"{least}"
        raise KindError(f"`{name}` takes {wanted} argument(s), got {len(arguments)}")
    for position in signature.literal:
        if position < len(arguments) and not isinstance(arguments[position], Literal):
            raise KindError(f"argument {position + 1} of `{name}` must be a constant")
    if name == "in" and not all(isinstance(argument, Literal) for argument in arguments[1:]):
        raise KindError("`in` takes a list of constants")
    if signature.kind is _compared:
        arguments = conversions.with_dates(arguments)
    elif signature.kind is _logic:
        arguments = tuple(map(conversions.as_condition, arguments))
    elif name == "date_diff":
        arguments = (arguments[0], *conversions.with_dates(arguments[1:]))
    if name not in _TO_DIGITS:
        arguments = conversions.with_decimals(arguments)
    try:
        if signature.kind is _compared:
            arguments = conversions.with_numbers(arguments)
        kind = signature.kind(tuple([argument.kind for argument in arguments]))
        if signature.check is not None:
            signature.check(_constants(arguments, signature.literal))
    except KindError as error:
        raise KindError(f"`{name}` {error}") from None
    if name in _TO_DIGITS:
        digits = _digits(arguments)
        if name == "trunc" and kind.whole and digits < -_MOST_CUT:
            raise KindError(f"`trunc` takes at most {_MOST_CUT} digits of a whole number")
        # cut off, no number needs more digits than before; rounded up, it may
        kind = numbers.rounded_kind(kind, digits if name == "round" else max(0, digits))
    if name == "date_trunc":
        _check_truncation(arguments)
    if name == "date_diff" and not (isinstance(arguments[0], Literal) and arguments[0].value in _DIFFERENCES):
        raise KindError(f"`date_diff` counts one of {', '.join(_DIFFERENCES)}")
    return Call(function=name, arguments=arguments, kind=kind, span=span)


def case(
    branches: tuple[tuple[Expression, Expression], ...], otherwise: Expression, span: Span | None = None
) -> Case:
    """Return a CASE; raise `KindError` if conditions are not truths or values do not mix."""
    tests = [conversions.as_condition(test) for test, _ in branches]
    if any(test.kind not in (None, Kind.BOOLEAN) for test in tests):
        raise KindError("a condition of CASE must be true or false")
    *values, last = conversions.with_decimals((*(value for _, value in branches), otherwise))
    kind = common_kind((*(value.kind for value in values), last.kind))
    if kind is None:
        raise KindError("CASE needs a value other than NULL")
    return Case(branches=tuple(zip(tests, values, strict=True)), otherwise=last, kind=kind, span=span)


def later(moment: Expression, part: str, count: int, span: Span | None = None) -> Expression:
    """Return a moment some parts later, or earlier if the count is negative; of a constant, a constant."""
    if not isinstance(moment, Literal) or not isinstance(moment.value, datetime.date):
        named, number = Literal(value=part, kind=Kind.TEXT), Literal(value=count, kind=Kind.INTEGER)
        return call("date_add", (named, number, moment), span)
    found = moments.later(moment.value, *moments.steps_of(part, count))
    if found is None:
        raise KindError("`date_add` leaves the years 1 to 9999")
    return Literal(value=found, kind=Kind.TIMESTAMP, span=span)


def _constants(arguments: tuple[Expression, ...], places: tuple[int, ...]) -> list[Value]:
    """Return the constants at some places; none of them is NULL."""
    given = (arguments[place] for place in places if place < len(arguments))
    found = [one.value for one in given if isinstance(one, Literal)]
    if None in found:
        raise KindError("takes a constant other than NULL")
    return found


def _digits(arguments: tuple[Expression, ...]) -> int:
    """Return to how many digits ROUND or TRUNC goes."""
    digits = arguments[1].value if len(arguments) == 2 and isinstance(arguments[1], Literal) else 0
    return digits if isinstance(digits, int) else 0


def _check_truncation(arguments: tuple[Expression, ...]) -> None:
    part, operand = arguments
    allowed = _TRUNCATE_DATE if operand.kind is Kind.DATE else _TRUNCATE_TIMESTAMP
    if not isinstance(part, Literal) or part.value not in allowed:
        raise KindError(f"`date_trunc` of this kind takes one of {', '.join(allowed)}")


# -- kinds ----------------------------------------------------------------------------------


def _need(kinds: _Kinds, fits: Callable[[Kind], bool], wanted: str) -> list[Kind]:
    """Return the kinds of values that are not NULL, all of which must fit."""
    present = [kind for kind in kinds if kind is not None]
    for kind in present:
        if not fits(kind):
            raise KindError(f"takes {wanted}, got {kind.value}")
    return present


def _need_numbers(kinds: _Kinds) -> list[Kind]:
    return _need(kinds, lambda kind: kind.numeric, "numbers")


def _need_one_of(kinds: _Kinds, *allowed: Kind) -> None:
    _need(kinds, lambda kind: kind in allowed, " or ".join(kind.value for kind in allowed))


def _computed(rule: Callable[[list[Kind]], Kind]) -> _Rule:
    """Return the rule of an operator whose result may be larger than its operands."""

    def kind(kinds: _Kinds) -> Kind:
        present = _need_numbers(kinds)
        if len(present) < len(kinds):  # NULL
            return common_kind(kinds) or Kind.INTEGER
        return rule(present)

    return kind


def _number(kinds: _Kinds) -> Kind:
    _need_numbers(kinds)
    return common_kind(kinds) or Kind.INTEGER


def _integer(kinds: _Kinds) -> Kind:
    _need(kinds, lambda kind: kind.whole, "integer")
    return common_kind(kinds) or Kind.INTEGER


def _real(kinds: _Kinds) -> Kind:
    _need_numbers(kinds)
    return Kind.REAL


def _whole(kinds: _Kinds) -> Kind:
    """FLOOR and CEIL: of a whole number a binary one, as the engine has it."""
    (kind,) = _need_numbers(kinds) or [Kind.INTEGER]
    return Kind.REAL if kind.whole else numbers.rounded_kind(kind, 0)


def _rounded(kinds: _Kinds) -> Kind:
    _need_numbers(kinds[:1])
    _need_one_of(kinds[1:], Kind.INTEGER)
    return kinds[0] or Kind.INTEGER


def _same(kinds: _Kinds) -> Kind:
    kind = common_kind(kinds)
    if kind is None:
        raise KindError("needs a value other than NULL")
    return kind


def _first(kinds: _Kinds) -> Kind:
    common_kind(kinds)
    return kinds[0] or _same(kinds)


def _compared(kinds: _Kinds) -> Kind:
    present = {kind for kind in kinds if kind is not None}
    if present != {Kind.DATE, Kind.TIMESTAMP}:
        common_kind(kinds)
    return Kind.BOOLEAN


def _sign(kinds: _Kinds) -> Kind:
    _need_numbers(kinds)
    return Kind.INTEGER


def _added(kinds: _Kinds) -> Kind:
    _need_one_of(kinds[:1], Kind.TEXT)
    _need_one_of(kinds[1:2], Kind.INTEGER)
    _need_one_of(kinds[2:], *MOMENTS)
    return Kind.TIMESTAMP


def _texts_around(*places: int, gives: Kind = Kind.TEXT) -> _Rule:
    """Return the rule of a function of texts, but for whole numbers at some places."""

    def kind(kinds: _Kinds) -> Kind:
        for place, one in enumerate(kinds):
            _need_one_of((one,), Kind.INTEGER if place in places else Kind.TEXT)
        return gives

    return kind


def _check_steps(constants: list[Value]) -> None:
    part, count = constants
    moments.steps_of(str(part), count if isinstance(count, int) else 0)


def _truncated(kinds: _Kinds) -> Kind:
    _difference(kinds)
    return kinds[1] or Kind.TIMESTAMP


def _takes(allowed: tuple[Kind, ...], gives: Kind, first: tuple[Kind, ...] = ()) -> _Rule:
    """Return the rule of a function of arguments of these kinds; `first`: the first one is of others."""
    rest = 1 if first else 0

    def kind(kinds: _Kinds) -> Kind:
        _need_one_of(kinds[:rest], *first)
        _need_one_of(kinds[rest:], *allowed)
        return gives

    return kind


_TEXTS = (Kind.TEXT,)
_logic = _takes((Kind.BOOLEAN,), Kind.BOOLEAN)
_text = _takes(_TEXTS, Kind.TEXT)
_text_to_truth = _takes(_TEXTS, Kind.BOOLEAN)
_text_positions = _takes((Kind.INTEGER,), Kind.TEXT, _TEXTS)
_part = _takes(MOMENTS, Kind.INTEGER)
_difference = _takes(MOMENTS, Kind.INTEGER, _TEXTS)


FUNCTIONS: dict[str, Signature] = {
    **{name: Signature(2, 2, _computed(numbers.sum_kind)) for name in ("+", "-")},
    "*": Signature(2, 2, _computed(numbers.product_kind)),
    "/": Signature(2, 2, _computed(numbers.quotient_kind)),
    "//": Signature(2, 2, _integer),
    "%": Signature(2, 2, _computed(numbers.remainder_kind)),
    **{name: Signature(1, 1, _number) for name in ("neg", "abs")},
    **{name: Signature(1, 1, _whole) for name in ("floor", "ceil")},
    **{name: Signature(1, 2, _rounded, (1,)) for name in _TO_DIGITS},
    "sign": Signature(1, 1, _sign),
    **{name: Signature(1, 1, _real) for name in ("sqrt", "ln", "log10", "log2", "exp")},
    **{name: Signature(2, 2, _real) for name in ("log", "power")},
    **{name: Signature(2, None, _same) for name in ("least", "greatest")},
    **{name: Signature(2, 2, _compared) for name in ("=", "<>", "<", "<=", ">", ">=")},
    "between": Signature(3, 3, _compared),
    "in": Signature(2, None, _compared),
    "is_null": Signature(1, 1, lambda kinds: Kind.BOOLEAN),
    **{name: Signature(2, 2, _logic) for name in ("and", "or")},
    "not": Signature(1, 1, _logic),
    "coalesce": Signature(1, None, _same),
    "nullif": Signature(2, 2, _first),
    **{name: Signature(1, 1, _text) for name in ("lower", "upper", "trim", "ltrim", "rtrim")},
    "length": Signature(1, 1, _takes(_TEXTS, Kind.INTEGER)),
    "substr": Signature(2, 3, _text_positions),
    "replace": Signature(3, 3, _text, (2,)),
    "concat": Signature(1, None, _text),
    "||": Signature(2, 2, _text),
    **{name: Signature(2, 2, _text_positions) for name in ("left", "right")},
    **{name: Signature(2, 2, _text_to_truth) for name in ("contains", "starts_with", "ends_with")},
    **{name: Signature(2, 2, _text_to_truth, (1,)) for name in ("like", "ilike")},
    "position": Signature(2, 2, _takes(_TEXTS, Kind.INTEGER)),
    "split_part": Signature(3, 3, _texts_around(2), (1, 2), patterns.check_split),
    **{name: Signature(3, 3, _texts_around(1), (1, 2), patterns.check_padding) for name in ("lpad", "rpad")},
    "concat_ws": Signature(2, None, _text),
    **{
        name: Signature(2, 3, _text_to_truth, (1, 2), patterns.check_match)
        for name in ("regexp_matches", "regexp_full_match")
    },
    "regexp_extract": Signature(2, 3, _texts_around(2), (1, 2), patterns.check_extract),
    "regexp_replace": Signature(3, 4, _text, (1, 2, 3), patterns.check_regexp_replace),
    **{name: Signature(1, 1, _part) for name in DATE_PARTS},
    "epoch": Signature(1, 1, _takes(MOMENTS, Kind.REAL)),
    "last_day": Signature(1, 1, _takes(MOMENTS, Kind.DATE)),
    **{name: Signature(1, 1, _takes(MOMENTS, Kind.TEXT)) for name in ("dayname", "monthname")},
    "strftime": Signature(2, 2, _takes(_TEXTS, Kind.TEXT, MOMENTS), (1,), patterns.check_format),
    "strptime": Signature(2, 2, _takes(_TEXTS, Kind.TIMESTAMP), (1,), patterns.check_format),
    "date_add": Signature(3, 3, _added, (0, 1), _check_steps),
    "date_trunc": Signature(2, 2, _truncated, (0,)),
    "date_diff": Signature(3, 3, _difference, (0,)),
}
"""What may be called, by our names."""

_OPERATORS = ("and", "in", "is_null", "neg", "not", "or")
NAMES = tuple(name for name in FUNCTIONS if name[0].isalpha() and name not in _OPERATORS)
"""The functions that are written before parentheses: `and` and `||` are not."""
