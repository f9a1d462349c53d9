"""Row-wise expressions in Python: `col("age") > 30` builds what `age > 30` builds in SQL.

A float of up to 15 digits is the decimal that it prints as, as the same digits are in SQL:
`col("rate") == 0.07` finds the rates of a decimal column that are 0.07. No double is lost by it: where the
decimal meets a binary number, it is rounded to that very double. Other floats are binary numbers. `Decimal`
and NumPy's numbers are taken too.
"""

from __future__ import annotations

import datetime
import math
import numbers
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from sfumato.catalog.kind import Kind, Value, kind_of
from sfumato.errors import InvalidArgument
from sfumato.plan import conversions, functions
from sfumato.plan.hints import did_you_mean, hints_for
from sfumato.plan.tree import Case, ColumnRef, Expression, Literal

__all__ = ["Val", "call", "col", "lit", "val", "when"]

_Find = Callable[[str], ColumnRef]


def _operator(name: str) -> Callable[[Val, Any], Val]:
    return lambda self, other: call(name, self, other)


def _reflected(name: str) -> Callable[[Val, Any], Val]:
    return lambda self, other: call(name, other, self)


@dataclass(frozen=True, slots=True, eq=False)
class Val:
    """An expression that becomes one of the tree once it is known which columns there are."""

    build: Callable[[_Find], Expression]

    def __bool__(self) -> bool:
        hint = "join conditions with & and |, not with ~"
        raise InvalidArgument("a condition on columns is neither true nor false yet", hints=(hint,))

    __add__, __radd__ = _operator("+"), _reflected("+")
    __sub__, __rsub__ = _operator("-"), _reflected("-")
    __mul__, __rmul__ = _operator("*"), _reflected("*")
    __truediv__, __rtruediv__ = _operator("/"), _reflected("/")
    __floordiv__ = _operator("//")
    __mod__ = _operator("%")
    __pow__ = _operator("power")
    __eq__ = _operator("=")  # type: ignore[assignment]
    __ne__ = _operator("<>")  # type: ignore[assignment]
    __hash__ = None  # type: ignore[assignment]
    __lt__ = _operator("<")
    __le__ = _operator("<=")
    __gt__ = _operator(">")
    __ge__ = _operator(">=")
    __and__ = _operator("and")
    __or__ = _operator("or")

    def __neg__(self) -> Val:
        return call("neg", self)

    def __abs__(self) -> Val:
        return call("abs", self)

    def __invert__(self) -> Val:
        return call("not", self)

    def is_null(self) -> Val:
        """Whether there is no value."""
        return call("is_null", self)

    def is_in(self, *values: Any) -> Val:
        """Whether the value is one of these constants."""
        return call("in", self, *values)

    def between(self, low: Any, high: Any) -> Val:
        """Whether the value lies between two others, both included."""
        return call("between", self, low, high)

    def like(self, pattern: str) -> Val:
        """Whether a text matches a pattern of % and _."""
        return call("like", self, pattern)

    def cast(self, kind: Kind | str) -> Val:
        """Return the value as another kind; what cannot be converted is absent."""
        to = _kind(kind)
        return Val(lambda find: conversions.cast(self.build(find), to))


def val(value: Any) -> Val:
    """Return a value of Python as an expression; expressions stay as they are."""
    return value if isinstance(value, Val) else lit(value)


def lit(value: Any) -> Val:
    """Return a constant.

    >>> lit(0.07).build(lambda name: None)  # doctest: +ELLIPSIS
    Literal(value=Decimal('0.07'), kind=Kind('decimal(3,2)'), ...
    """
    known = _constant(value)
    literal = Literal(value=known, kind=kind_of(known))
    return Val(lambda find: literal)


_SAFE_DIGITS = 15  # decimals of no more digits are different doubles


def _constant(value: Any) -> Value:
    """Return a constant as one of the values that questions have."""
    if value is None or isinstance(value, (bool, str, datetime.date)):
        return value
    if type(value).__name__ in ("bool", "bool_"):  # NumPy's
        return bool(value)
    if isinstance(value, numbers.Integral):
        if kind_of(int(value)) is Kind.REAL:
            hint = "give a float instead"
            raise InvalidArgument("a whole number has at most 128 bits", place="lit", hints=(hint,))
        return int(value)
    if isinstance(value, Decimal):
        if not value.is_finite():
            raise InvalidArgument("a decimal must be finite", place="lit", hints=("leave it out",))
        if kind_of(value) is Kind.REAL:
            message = "a decimal has at most 38 digits, and no exponent"
            raise InvalidArgument(message, place="lit", hints=("round it, or give a float",))
        return value
    if isinstance(value, numbers.Real) and not isinstance(value, numbers.Rational):
        binary = float(value)
        text = repr(binary)
        short = sum(letter.isdigit() for letter in text) <= _SAFE_DIGITS
        return Decimal(text) if math.isfinite(binary) and short and "e" not in text else binary
    hint = "numbers, texts, truths, dates and timestamps are"
    raise InvalidArgument(f"{type(value).__name__} is not a kind of value", place="lit", hints=(hint,))


def _kind(kind: Kind | str) -> Kind:
    try:
        return kind if isinstance(kind, Kind) else Kind(kind.replace(" ", "").lower())
    except (AttributeError, ValueError):
        hint = "integer, hugeint, decimal(15,2), float, real, text, boolean, date or timestamp"
        raise InvalidArgument("cast takes the name of a kind", place="cast", hints=(hint,)) from None


def col(name: str) -> Val:
    """Return a column by its name, or by its table's and its own: `col("p.age")`.

    >>> from sfumato import count
    >>> adults = count().where(col("age") >= 18)
    >>> adults.function.label
    'count(*)'
    """
    if not isinstance(name, str):
        raise InvalidArgument("a column is named by a text", place="col", hints=('col("age")',))
    return Val(lambda find: find(name))


def call(function: str, *arguments: Any) -> Val:
    """Return a call of the allow-list by name: `call("lower", col("job"))`.

    >>> from sfumato import count
    >>> nurses = count().where(call("lower", col("job")) == "nurse")
    >>> nurses.function.label
    'count(*)'
    """
    if function not in functions.FUNCTIONS:
        message = f"`{function}` is not on the list of functions"
        hints = hints_for("SF403", did_you_mean(function, functions.NAMES))
        raise InvalidArgument(message, place="call", hints=hints)
    values = tuple(val(argument) for argument in arguments)
    return Val(lambda find: functions.call(function, tuple(value.build(find) for value in values)))


def when(*branches: tuple[Any, Any], otherwise: Any = None) -> Val:
    """Return the value of the first branch whose condition holds: `when((col("age") < 18, "minor"))`.

    >>> from sfumato import sum_
    >>> adults = sum_(when((col("age") < 18, 0), otherwise=1))
    >>> adults.function.label
    'sum'
    """
    pairs = tuple((val(test), val(value)) for test, value in branches)
    last = val(otherwise)

    def build(find: _Find) -> Case:
        built = tuple((test.build(find), value.build(find)) for test, value in pairs)
        return functions.case(built, last.build(find))

    return Val(build)
