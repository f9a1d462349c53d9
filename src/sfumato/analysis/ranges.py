"""Ranges: what is known in public of the value of a row-wise expression.

Every function of the allow-list that gives a number has a rule here, or is unbounded. NaN is NULL
wherever it comes from: engines are told so in every expression.
"""

from __future__ import annotations

import datetime
import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from operator import attrgetter
from typing import Any

from sfumato.analysis.calendar import (
    Dates,
    bounded,
    difference,
    everything,
    months_end,
    of_kind,
    seconds,
    shifted,
    truncated,
)
from sfumato.catalog.kind import Kind, Value
from sfumato.core.intervals import EVERYTHING, End, Interval, hull
from sfumato.errors import Unsupported
from sfumato.plan.moments import steps_of
from sfumato.plan.tree import Call, Case, Cast, ColumnRef, Expression, Literal

__all__ = ["Known", "UNKNOWN", "either", "known_of"]

_MOST_VALUES = 10_000
_TIMELY = (Kind.DATE, Kind.TIMESTAMP)
_NAMED_DAYS: dict[str, tuple[Value, ...]] = {
    "dayname": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
    "monthname": (
        "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
        "November", "December",
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is known of a column or an expression. `interval` is None if it never has a value."""

    interval: Interval | None = EVERYTHING
    values: tuple[Value, ...] | None = None  # all that it can be, NULL aside
    dates: Dates | None = None  # of its kind; the first and the last there are stand for no bound
    longest: float = math.inf  # no text has more characters
    nullable: bool = True
    declared: bool = False  # the owner, or a public table, lists the values: no group of others, nor of NULL
    unlisted: bool = False  # some may be none of `values`: the owner's list does not say what rows hold


_Columns = Mapping[str, Known]
UNKNOWN = Known()
_NULL = Known(interval=None, values=())
_NULLABLE, _UNLISTED = attrgetter("nullable"), attrgetter("unlisted")


def known_of(expression: Expression, columns: _Columns) -> Known:
    """Return what is known of an expression, from what is known of its columns."""
    match expression:
        case ColumnRef(name=name):
            return columns.get(name, UNKNOWN)
        case Literal():
            return _literal(expression.value)
        case Case(branches=branches, otherwise=otherwise):
            tests = [_truths(known_of(test, columns)) for test, _ in branches]
            values = [known_of(value, columns) for value in (*(v for _, v in branches), otherwise)]
            last = next((place for place, test in enumerate(tests) if test == {True}), len(tests))
            met = [value for test, value in zip(tests[:last], values, strict=False) if True in test]
            return _of_kind(_one_of_those(values, [*met, values[last]]), expression.kind)
        case Cast(operand=operand, kind=kind, limits=limits):
            found = _cast(known_of(operand, columns), operand.kind, kind)
            return found if limits is None else _limited(found, limits)
        case Call():
            arguments = [known_of(argument, columns) for argument in expression.arguments]
            return _of_kind(_call(expression, arguments), expression.kind)
    raise Unsupported(f"no interval is known for {type(expression).__name__}")


def _literal(value: Value) -> Known:
    if value is None:
        return _NULL
    number = isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)
    if number and not math.isfinite(value):  # type: ignore[arg-type]
        return UNKNOWN
    interval = Interval(Fraction(value), Fraction(value)) if number else EVERYTHING  # type: ignore[arg-type]
    dates = (value, value) if isinstance(value, datetime.date) else None
    return Known(interval=interval, values=(value,), dates=dates, nullable=False)


def _of_kind(known: Known, kind: Kind) -> Known:
    """Return what is known of a value as one of a kind: 0.1 and 1e-1 are one binary number."""
    if not kind.binary or known.values is None:
        return known
    return replace(known, values=tuple(dict.fromkeys(float(value) for value in known.values)))  # type: ignore[arg-type]


def either(several: list[Known]) -> Known:
    """Return what is known of a value that is one of several."""
    values: list[Value] | None = []
    for one in several:
        if one.values is None or values is None:
            values = None
        else:
            values.extend(one.values)
    return Known(
        interval=hull([one.interval for one in several]),
        values=tuple(dict.fromkeys(values)) if values is not None and len(values) <= _MOST_VALUES else None,
        dates=_dates_around([one.dates for one in several if one.values != ()]),
        longest=max(map(_characters, several), default=math.inf),
        nullable=any(map(_NULLABLE, several)),
        unlisted=any(map(_UNLISTED, several)),
    )


def _one_of_those(several: list[Known], met: list[Known]) -> Known:
    """Return what is known of one of several values; only the values of those that are `met` occur."""
    whole = either(several)
    if len(met) == len(several):
        return whole
    found = either(met)
    return replace(whole, values=found.values, nullable=found.nullable, unlisted=found.unlisted)


def _truths(condition: Known) -> set[Value]:
    """Return what a condition can be; None is NULL. An owner's list does not say what rows hold."""
    listed = condition.values is not None and not condition.unlisted
    found: set[Value] = set(condition.values or ()) if listed else {True, False}
    return found | {None} if condition.nullable else found


def _logic(word: str, known: list[Known]) -> Known:
    """Return what AND, OR and NOT make of what their conditions can be: FALSE AND NULL is FALSE."""
    truths = [_truths(one) for one in known]
    if word == "not":
        found = {None if one is None else not one for one in truths[0]}
    else:
        decides = word == "or"
        found = {
            decides if decides in pair else None if None in pair else not decides
            for pair in itertools.product(*truths)
        }
    if found >= {True, False, None}:
        return UNKNOWN
    if found == {None}:
        return _NULL
    return Known(values=tuple(one for one in (False, True) if one in found), nullable=None in found)


def _characters(text: Known) -> float:
    if text.values is None:
        return text.longest
    return max((len(value) if isinstance(value, str) else math.inf for value in text.values), default=0)


def _dates_around(spans: list[Dates | None]) -> Dates | None:
    known = [span for span in spans if span is not None]
    if len(known) < len(spans) or len({type(end) for span in known for end in span}) != 1:
        return None
    return min(low for low, _ in known), max(high for _, high in known)


def _cast(operand: Known, source: Kind | None, target: Kind) -> Known:
    """What cannot be converted is NULL; a number that becomes one with fewer digits is rounded somehow."""
    if source is target:
        return operand
    if operand.interval is None:
        return _NULL
    if source is Kind.BOOLEAN and target.numeric:
        return Known(interval=Interval(0, 1), nullable=operand.nullable)
    if source is not None and source.numeric and target.binary:
        return Known(interval=operand.interval, nullable=operand.nullable or not source.exact)
    if source is not None and source.numeric and target.exact:
        return Known(interval=operand.interval.outward(target.scale))
    if operand.dates is None or {source, target} != {Kind.DATE, Kind.TIMESTAMP}:
        return Known()
    low, high = (of_kind(end, target) for end in operand.dates)
    if operand.dates[1] == datetime.date.max:  # its first moment is not the last there is
        high = everything(target)[1]
    return Known(dates=(low, high), nullable=operand.nullable)


def _limited(known: Known, limits: tuple[int, int]) -> Known:
    """What lies outside the limits of a narrow type is NULL."""
    low, high = (Fraction(limit) for limit in limits)
    interval = None if known.interval is None else known.interval.clipped(low=low, high=high)
    return Known(interval=interval, values=() if interval is None else None)


def _call(call: Call, known: list[Known]) -> Known:
    name = call.function
    if name == "coalesce":
        last = next((place for place, one in enumerate(known) if not one.nullable), len(known) - 1)
        met = known[: last + 1]
        return replace(_one_of_those(known, met), nullable=met[-1].nullable)
    if name == "nullif":
        return _nullified(known[0], call.arguments[1])
    if name == "is_null":
        if known[0].values == ():
            return Known(values=(True,), nullable=False)
        return Known(values=(False, True) if known[0].nullable else (False,), nullable=False)
    if name in ("and", "or", "not"):
        return _logic(name, known)
    if name == "date_trunc":
        return _truncated(call, known[1])
    if name in _PARTS:
        return _NULL if known[0].interval is None else Known(interval=_part(name, known[0]))
    if name in ("date_add", "last_day"):
        return _moved(call, known[-1])
    if name in _NAMED_DAYS and call.kind is Kind.TEXT:
        return Known(values=_NAMED_DAYS[name], nullable=known[0].nullable)
    if call.kind is Kind.TEXT:
        return Known(longest=_longest(call, known))
    if name in ("least", "greatest") and (call.kind.numeric or call.kind in _TIMELY):
        return _extreme(name, call.kind, known)
    if not call.kind.numeric:
        return UNKNOWN
    if any(one.interval is None for one in known):
        return _NULL  # NULL in, NULL out
    if name == "length":
        return Known(interval=_length(known[0]))
    if name == "position":
        return Known(interval=Interval(0, max(1, _characters(known[0]))))
    if name == "date_diff":
        part = call.arguments[0]
        named = str(part.value) if isinstance(part, Literal) else ""
        return Known(interval=difference(named, known[1].dates, known[2].dates))
    if name == "epoch":
        return Known(interval=seconds(known[0].dates))
    rule = _RULES.get(name)
    intervals = [one.interval for one in known if one.interval is not None]
    return UNKNOWN if rule is None else Known(interval=rule(call, intervals))


def _nullified(first: Known, second: Expression) -> Known:
    """A computed NULL is a group of its own, whoever declared the values; the constant is not among them."""
    values, nullable = first.values, True
    if values is not None and isinstance(second, Literal):
        nullable = first.nullable or first.unlisted or second.value in values
        values = tuple(value for value in values if value != second.value)
        if not values:
            return UNKNOWN if first.unlisted else _NULL
    return replace(first, values=values, nullable=nullable, declared=False)


def _extreme(name: str, kind: Kind, known: list[Known]) -> Known:
    """The least (greatest) of those arguments that are not NULL; those that never are always take part."""
    ends: list[tuple[Any, Any]] = []
    always: list[tuple[Any, Any]] = []
    for one in known:
        if one.interval is not None:
            span = (one.interval.low, one.interval.high) if kind.numeric else one.dates or everything(kind)
            ends.append(span)
            always += [] if one.nullable else [span]
    if not ends:
        return _NULL
    if name == "least":
        low = min(low for low, _ in ends)
        high = min((high for _, high in always), default=max(high for _, high in ends))
    else:
        low = max((low for low, _ in always), default=min(low for low, _ in ends))
        high = max(high for _, high in ends)
    nullable = all(one.nullable for one in known)
    if kind.numeric:
        return Known(interval=Interval(low, high), nullable=nullable)
    return Known(dates=(low, high), nullable=nullable)


def _truncated(call: Call, moment: Known) -> Known:
    part = call.arguments[0]
    if moment.interval is None:
        return _NULL
    if moment.dates is None or not isinstance(part, Literal):
        return Known(nullable=moment.nullable)
    low, high = moment.dates
    if high != type(high).max:
        high = truncated(str(part.value), high)
    return Known(dates=(truncated(str(part.value), low), high), nullable=moment.nullable)


def _moved(call: Call, moment: Known) -> Known:
    """What DATE_ADD and LAST_DAY make; a moment that leaves the years is NULL."""
    if moment.interval is None:
        return _NULL
    if call.function == "last_day":
        dates = None if moment.dates is None else months_end(moment.dates)
        return Known(dates=dates, nullable=moment.nullable)
    part, count = (one.value if isinstance(one, Literal) else None for one in call.arguments[:2])
    if moment.dates is None or not isinstance(count, int):
        return Known()
    return Known(dates=shifted(moment.dates, *steps_of(str(part), count)))


def _length(text: Known) -> Interval:
    if text.values and all(isinstance(value, str) for value in text.values):
        lengths = [len(str(value)) for value in text.values]
        return Interval(min(lengths), max(lengths))
    return Interval(0, text.longest)


def _longest(call: Call, known: list[Known]) -> float:
    """Return how many characters the text of a call has at most; its counts must be constants."""
    whole = _characters(known[0])
    counts = [one.value if isinstance(one, Literal) else None for one in call.arguments[1:]]
    match call.function:
        case "left" | "right" if isinstance(counts[0], int) and counts[0] >= 0:
            return min(whole, counts[0])
        case "substr" if len(counts) == 2 and isinstance(counts[1], int):
            return min(whole, abs(counts[1]))
        case "left" | "right" | "substr" | "trim" | "ltrim" | "rtrim" | "split_part" | "regexp_extract":
            return whole
        case "lpad" | "rpad" if isinstance(counts[0], int):
            return counts[0]
    return math.inf


_PARTS = {
    "quarter": (1, 4),
    "month": (1, 12),
    "week": (1, 53),
    "day": (1, 31),
    "dow": (0, 6),
    "isodow": (1, 7),
    "dayofyear": (1, 366),
    "hour": (0, 23),
    "minute": (0, 59),
    "second": (0, 59),
    "year": (-math.inf, math.inf),
}


def _part(name: str, moment: Known) -> Interval:
    dates = bounded(moment.dates)
    if name == "year" and dates is not None:
        return Interval(dates[0].year, dates[1].year)
    return Interval(*_PARTS[name])


_Rule = Callable[[Call, list[Interval]], Interval]


def _remainder(call: Call, x: list[Interval]) -> Interval:
    """Of truncated or floored division: smaller than the divisor, and no further from zero than allowed."""
    size = x[1].magnitude
    low = Fraction(0) if x[0].low >= 0 and x[1].low >= 0 else -size
    high = Fraction(0) if x[0].high <= 0 and x[1].high <= 0 else size
    if x[0].low >= 0 and x[1].low >= 0:
        high = min(high, x[0].high)
    return Interval(low, high)


def _rounded(call: Call, x: list[Interval]) -> Interval:
    places = 0
    if len(call.arguments) > 1:
        digits = call.arguments[1]
        if not isinstance(digits, Literal) or not isinstance(digits.value, int) or abs(digits.value) > 300:
            return EVERYTHING
        places = digits.value
    found = x[0].outward(places)
    if call.function == "round" or not places or not call.kind.binary:
        return found
    unit = Fraction(1, 10) ** places  # a binary number may be cut to the step before: 0.29 to 0.28
    return found + Interval(-unit, unit)


def _root(call: Call, x: list[Interval]) -> Interval:
    inside = x[0].clipped(low=Fraction(0))
    return Interval(0, 0) if inside is None else inside.rising(math.sqrt, bottom=0.0)


def _logarithm(function: Callable[[float], float]) -> _Rule:
    def rule(call: Call, x: list[Interval]) -> Interval:
        inside = x[0].clipped(low=Fraction(0))
        if inside is None or inside.high == 0:
            return Interval(0, 0)  # always NULL
        return inside.rising(lambda end: function(end) if end > 0 else -math.inf)

    return rule


def _logarithm_to_base(call: Call, x: list[Interval]) -> Interval:
    bottom, top = (_logarithm(math.log10)(call, [one]) for one in x)
    return top.divided_by(bottom, whole=False)


def _power(call: Call, x: list[Interval]) -> Interval:
    base, exponent = x
    if exponent.low == exponent.high and isinstance(exponent.low, Fraction) and exponent.low.denominator == 1:
        times = int(exponent.low)
        if abs(times) > 10_000:
            return EVERYTHING
        whole = base.power(abs(times))
        return whole if times >= 0 else Interval(1, 1).divided_by(whole, whole=False)
    if base.low >= 0:  # x^p = e^(p ln x), monotone in each of both
        corners = [_corner(a, b) for a in (base.low, base.high) for b in (exponent.low, exponent.high)]
        if None in corners or not (base.bounded and exponent.bounded):
            return Interval(0, math.inf)
        found = [corner for corner in corners if corner is not None]
        return Interval(max(0.0, min(found) * (1 - 2.0**-40)), max(found) * (1 + 2.0**-40))
    return EVERYTHING


def _corner(base: End, exponent: End) -> float | None:
    """One corner of a power; those at base 0 are 0 and 1 together, of which the hull needs both."""
    if base == 0:
        return None if exponent < 0 else (1.0 if exponent == 0 else 0.0)
    try:
        return math.pow(float(base), float(exponent))
    except OverflowError:
        return math.inf


def _quotient(call: Call, x: list[Interval]) -> Interval:
    divisor = call.arguments[1].kind
    return x[0].divided_by(x[1], whole=divisor is not None and divisor.whole)


_RULES: dict[str, _Rule] = {
    "+": lambda _, x: x[0] + x[1],
    "-": lambda _, x: x[0] - x[1],
    "*": lambda call, x: x[0].power(2) if call.arguments[0] == call.arguments[1] else x[0] * x[1],
    "/": _quotient,
    "//": lambda _, x: x[0].divided_by(x[1], whole=True).outward(),
    "%": _remainder,
    "neg": lambda _, x: -x[0],
    "abs": lambda _, x: abs(x[0]),
    "floor": lambda _, x: x[0].outward(),
    "ceil": lambda _, x: x[0].outward(),
    "trunc": _rounded,
    "sign": lambda _, x: Interval(-1 if x[0].low < 0 else 0, 1 if x[0].high > 0 else 0),
    "round": _rounded,
    "sqrt": _root,
    "ln": _logarithm(math.log),
    "log": _logarithm_to_base,
    "log10": _logarithm(math.log10),
    "log2": _logarithm(math.log2),
    "exp": lambda _, x: x[0].rising(math.exp, bottom=0.0),
    "power": _power,
}
