"""Dates and timestamps as numbers: days, or microseconds, counted from a public bound.

Bounds of dates are a pair of ends, of the type that the kind has: days for dates, moments for
timestamps. The first and the last of all days (and moments) stand for an end that nobody declared:
engines make NULL of what is outside the years 1 to 9999, so that nothing lies beyond them.

    the numbers are those of date_diff('day' or 'microsecond', lower bound, x): total, NULL for NULL.
    A value outside its bounds gives a number outside; the grid clamps it as it does any number.

Theorem: what one unit can change of a histogram of these numbers is what it can change of any, since
`measures` bounds that for whatever rows there are. Bounds that are wrong bias an answer, and no more.
Microseconds beyond 2^53, in 285 years, round to a few of them: a function of the row alone.
"""

from __future__ import annotations

import datetime
from fractions import Fraction

from sfumato.catalog.kind import Kind, kind_of
from sfumato.core.intervals import EVERYTHING, Interval
from sfumato.plan.moments import last_day, later
from sfumato.plan.tree import Call, Cast, Expression, Literal

__all__ = [
    "Dates",
    "bounded",
    "counted",
    "difference",
    "everything",
    "months_end",
    "of_kind",
    "seconds",
    "shifted",
    "truncated",
]

Dates = tuple[datetime.date, datetime.date]
"""The ends between which dates (or timestamps) lie, both included."""

_DAY, _SECOND = datetime.timedelta(days=1), datetime.timedelta(seconds=1)
_MICROSECOND = datetime.timedelta(microseconds=1)
_EPOCH = datetime.datetime(1970, 1, 1)


def everything(kind: Kind) -> Dates:
    """Return the ends of all there is of a kind: where nothing is known.

    >>> everything(Kind.DATE)
    (datetime.date(1, 1, 1), datetime.date(9999, 12, 31))
    """
    of_type = datetime.datetime if kind is Kind.TIMESTAMP else datetime.date
    return of_type.min, of_type.max


def bounded(dates: Dates | None) -> Dates | None:
    """Return an interval of dates if both ends are known, else None."""
    if dates is None or any(end in (type(end).min, type(end).max) for end in dates):
        return None
    return dates


def of_kind(end: datetime.date, kind: Kind) -> datetime.date:
    """Return the day of a moment, or the first moment of a day."""
    if kind is Kind.TIMESTAMP and not isinstance(end, datetime.datetime):
        return datetime.datetime(end.year, end.month, end.day)
    if kind is Kind.DATE and isinstance(end, datetime.datetime):
        return end.date()
    return end


def truncated(part: str, end: datetime.date) -> datetime.date:
    """Return the first day, or moment, of the part that an end is in: `date_trunc`, which never falls.

    >>> truncated("quarter", datetime.date(2024, 6, 9))
    datetime.date(2024, 4, 1)
    """
    if isinstance(end, datetime.datetime):
        if part in ("hour", "minute", "second"):
            whole = end.replace(microsecond=0, second=end.second if part == "second" else 0)
            return whole.replace(minute=0) if part == "hour" else whole
        end = end.replace(hour=0, minute=0, second=0, microsecond=0)
    match part:
        case "year":
            return end.replace(month=1, day=1)
        case "quarter":
            return end.replace(month=end.month - (end.month - 1) % 3, day=1)
        case "month":
            return end.replace(day=1)
        case "week":
            return end - end.weekday() * _DAY
    return end


def shifted(dates: Dates, unit: str, count: int) -> Dates:
    """Return the ends of moments some months, days or seconds later, as timestamps: `date_add`.

    A month later two moments may have changed places (31 January at noon comes before 30 January at one in
    the afternoon), but never their days: so the ends are those of whole days. An end that leaves
    the years is none.
    """
    low, high = (of_kind(end, Kind.TIMESTAMP) for end in dates)
    if dates[1] == type(dates[1]).max:
        high = datetime.datetime.max
    found: list[datetime.date] = []
    for end, nothing in ((low, datetime.datetime.min), (high, datetime.datetime.max)):
        if unit == "months" and end != nothing:
            end = datetime.datetime.combine(end, nothing.time())
        found.append(nothing if end == nothing else later(end, unit, count) or nothing)
    return found[0], found[1]


def months_end(dates: Dates) -> Dates:
    """Return the ends of the last days of months: `last_day`, which never falls."""
    low, high = dates
    first = datetime.date.min if low == type(low).min else last_day(low)
    return first, datetime.date.max if high == type(high).max else last_day(high)


def difference(part: str, first: Dates | None, second: Dates | None) -> Interval:
    """Return where `date_diff` lies: the later the second moment and the earlier the first, the more."""
    one, other = bounded(first), bounded(second)
    if one is None or other is None or not part:
        return EVERYTHING
    if part == "week":  # whole weeks, cut toward zero
        low, high = (_boundaries("day", *pair) for pair in zip(one[::-1], other, strict=True))
        return Interval(low // 7, -(-high // 7))
    ends = [_boundaries(part, *pair) for pair in zip(one[::-1], other, strict=True)]
    return Interval(*ends)


def _boundaries(part: str, first: datetime.date, second: datetime.date) -> int:
    months = (second.year - first.year) * 12 + second.month - first.month
    match part:
        case "year":
            return second.year - first.year
        case "quarter":
            return (second.year - first.year) * 4 + (second.month - 1) // 3 - (first.month - 1) // 3
        case "month":
            return months
    days = second.toordinal() - first.toordinal()
    hours = days * 24 + getattr(second, "hour", 0) - getattr(first, "hour", 0)
    minutes = hours * 60 + getattr(second, "minute", 0) - getattr(first, "minute", 0)
    seconds = minutes * 60 + getattr(second, "second", 0) - getattr(first, "second", 0)
    return {"day": days, "hour": hours, "minute": minutes}.get(part, seconds)


def seconds(dates: Dates | None) -> Interval:
    """Return where `epoch` lies, in whole seconds."""
    found = bounded(dates)
    if found is None:
        return EVERYTHING
    low, high = (datetime.datetime.combine(end, _time(end)) - _EPOCH for end in found)
    return Interval(low // _SECOND, -(-high // _SECOND))


def _time(moment: datetime.date) -> datetime.time:
    return moment.time() if isinstance(moment, datetime.datetime) else datetime.time()


def counted(expression: Expression, dates: Dates) -> tuple[Expression, Fraction, datetime.date]:
    """Return a date or timestamp as a number from 0 to a bound, the bound, and the date that is 0."""
    low, high = (of_kind(end, expression.kind or Kind.DATE) for end in dates)
    name, unit = ("microsecond", _MICROSECOND) if expression.kind is Kind.TIMESTAMP else ("day", _DAY)
    number: Expression = Call(
        function="date_diff",
        arguments=(Literal(value=name, kind=Kind.TEXT), Literal(value=low, kind=kind_of(low)), expression),
        kind=Kind.INTEGER,
        span=expression.span,
    )
    if expression.kind is Kind.TIMESTAMP:  # cells of any width, not of whole microseconds
        number = Cast(operand=number, kind=Kind.REAL, span=expression.span)
    return number, Fraction((high - low) // unit), low
