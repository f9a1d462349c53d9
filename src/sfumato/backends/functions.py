"""Functions that all engines spell alike, and the forms that others are made of."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from sfumato.backends.dialect import LONGEST_TERM, Arguments, Renderer, Writer
from sfumato.catalog.kind import MOST_DIGITS, Kind
from sfumato.errors import Unsupported
from sfumato.plan.functions import common_kind
from sfumato.plan.numbers import as_decimal, widened
from sfumato.plan.tree import Literal

__all__ = [
    "COMMON",
    "LONGEST",
    "TRUNCATIONS",
    "called",
    "common",
    "digits_of",
    "form",
    "operand_kinds",
    "texts_and_numbers",
    "times_zero",
    "with_numbers",
]

LONGEST = 2**16
"""Code points of a text that was put together; what is longer is cut."""

_AT_ONCE = 16  # texts that are put together before the result is cut; PostgreSQL takes 100

TRUNCATIONS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
"""Parts of a date that it is cut to."""


def form(pattern: str, of: Kind | None, write: Writer, arguments: Arguments, kind: Kind) -> str:
    """Put arguments into a form, each as a value of a kind; None: as what it is."""
    return pattern.format(*(write(argument, of) for argument in arguments))


def called(name: str, of: Kind | None, write: Writer, arguments: Arguments, kind: Kind) -> str:
    """Call a function whose arguments are of a kind, or, for None, of the kind of its value."""
    return f"{name}({', '.join(write(argument, of or kind) for argument in arguments)})"


def common(arguments: Arguments) -> Kind:
    """Return the kind as which arguments are compared."""
    kinds = [argument.kind for argument in arguments if argument.kind is not None]
    if Kind.TIMESTAMP in kinds:
        return Kind.TIMESTAMP
    return common_kind(tuple(kinds)) or Kind.INTEGER


def _compared(pattern: str, write: Writer, arguments: Arguments, kind: Kind) -> str:
    """Put arguments into a form as values of their common kind."""
    return form(pattern, common(arguments), write, arguments, kind)


def _tested(pattern: str, write: Writer, arguments: Arguments, kind: Kind) -> str:
    """BETWEEN or IN: a value, and with what it is compared."""
    shared = common(arguments)
    value, *others = (write(one, shared) for one in arguments)
    return write.dialect.bound(value, lambda x: pattern.format(x, *others, all=", ".join(others)))


def _nullif(write: Writer, arguments: Arguments, kind: Kind) -> str:
    shared, own = common(arguments), arguments[0].kind
    value, other = write(arguments[0], kind), write(arguments[1], shared)

    def form(x: str) -> str:
        if own in (None, shared):
            return f"nullif({x}, {other})"
        return f"CASE WHEN {write.dialect.converted(x, own, shared)} = {other} THEN NULL ELSE {x} END"

    return write.dialect.bound(value, form)


def operand_kinds(name: str, arguments: Arguments, kind: Kind) -> tuple[int, tuple[Kind, Kind]]:
    """Return as which decimals two operands enter +, - or *, and how many digits the result may have."""
    first, second = (as_decimal(argument.kind or kind) for argument in arguments)
    if name == "*":
        factor, _ = widened(first, second)
        return factor.digits + second.digits, (factor, second)
    digits = max(first.digits - first.scale, second.digits - second.scale) + kind.scale + 1
    return digits, (first, second) if digits <= MOST_DIGITS else (kind, kind)


def times_zero(write: Writer, arguments: Arguments, kind: Kind) -> str:
    """Return a form of two factors and of their product, a decimal.

    A whole number of 39 digits is no decimal, but times zero it is zero.
    """
    whole, other = ("{0}", "{1}") if arguments[0].kind is Kind.HUGEINT else ("{1}", "{0}")
    zero = f"CAST(0 AS {write.dialect.sql_type(kind)})"
    return f"CASE WHEN {other} = 0 AND {whole} IS NOT NULL THEN {zero} ELSE {{2}} END"


def digits_of(arguments: Arguments) -> int | None:
    """Return to how many digits ROUND or TRUNC goes, None for NULL."""
    if len(arguments) == 1:
        return 0
    literal = arguments[1]
    if not isinstance(literal, Literal) or not isinstance(literal.value, int | None):
        raise Unsupported("a number of digits that is not a constant")
    return None if literal.value is None else max(-400, min(400, literal.value))


def with_numbers(name: str, write: Writer, arguments: Arguments, kind: Kind) -> str:
    """Call a function of texts and of whole numbers, which are constants of 32 bits."""
    return f"{name}({', '.join(texts_and_numbers(write, arguments))})"


def texts_and_numbers(write: Writer, arguments: Arguments) -> list[str]:
    """Write texts, and whole numbers, which are constants of 32 bits."""
    return [
        str(one.value) if isinstance(one, Literal) and isinstance(one.value, int) else write(one, Kind.TEXT)
        for one in arguments
    ]


def _concat(write: Writer, arguments: Arguments, kind: Kind) -> str:
    """CONCAT: NULL adds nothing."""
    return _cut_together([_or_nothing(write, write(one, Kind.TEXT)) for one in arguments], LONGEST)


def _concat_ws(write: Writer, arguments: Arguments, kind: Kind) -> str:
    """CONCAT_WS: of many texts, each behind the separator; the first one is taken away again."""
    if len(arguments) <= _AT_ONCE:
        return f"left({called('concat_ws', Kind.TEXT, write, arguments, kind)}, {LONGEST})"
    mark, *texts = (write(one, Kind.TEXT) for one in arguments)
    mark = f"left({mark}, {LONGEST})"
    if len(mark) * len(texts) > LONGEST_TERM * _AT_ONCE:
        raise Unsupported("CONCAT_WS of so many texts with such a long separator")
    whole = _cut_together([_or_nothing(write, f"({mark} || {text})") for text in texts], 2 * LONGEST)
    return f"left(substr({whole}, CAST(char_length({mark}) AS INTEGER) + 1), {LONGEST})"


def _or_nothing(write: Writer, text: str) -> str:
    return f"coalesce({text}, {write.dialect.text('')})"


def _cut_together(texts: Sequence[str], most: int) -> str:
    """Return the first code points of texts one behind the other; the engine never holds many of them."""
    if len(texts) > _AT_ONCE:
        texts = [f"left({text}, {most})" for text in texts]
    while len(texts) > 1:
        texts = [
            f"left(concat({', '.join(texts[first : first + _AT_ONCE])}), {most})"
            for first in range(0, len(texts), _AT_ONCE)
        ]
    return f"left({texts[0]}, {most})"


def _replace(write: Writer, arguments: Arguments, kind: Kind) -> str:
    text, old, new = (write(argument, Kind.TEXT) for argument in arguments)
    if not isinstance(arguments[2], Literal):
        raise Unsupported("replace by a text that is not a constant")
    times = len(str(arguments[2].value or ""))
    if times > 1:  # each code point may become this many
        text = f"left({text}, {LONGEST // times})"
    return f"replace({text}, {old}, {new})"


COMMON: dict[str, Renderer] = {
    **{name: partial(called, name, None) for name in ("least", "greatest", "coalesce")},
    **{name: partial(_compared, f"({{}} {name} {{}})") for name in ("=", "<>", "<", "<=", ">", ">=")},
    "between": partial(_tested, "({} BETWEEN {} AND {})"),
    "in": partial(_tested, "({} IN ({all}))"),
    "nullif": _nullif,
    **{name: partial(form, f"({{}} {name.upper()} {{}})", Kind.BOOLEAN) for name in ("and", "or")},
    "not": partial(form, "(NOT {})", Kind.BOOLEAN),
    "is_null": partial(form, "({} IS NULL)", None),
    "||": partial(form, f"left(({{}} || {{}}), {LONGEST})", Kind.TEXT),
    "concat": _concat,
    "concat_ws": _concat_ws,
    "replace": _replace,
    "position": partial(form, "CAST(strpos({}, {}) AS BIGINT)", Kind.TEXT),
}
"""The functions that every dialect has as they are here."""
