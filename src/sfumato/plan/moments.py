"""Moments: a date or timestamp some months, days or seconds later, as the engine counts them.

A month later is the same day of the next month, or its last day where there is none: 31 January becomes
29 February. What is later or earlier than the years 1 to 9999 is NULL in a row, and refused of a constant.
"""

from __future__ import annotations

import calendar
import datetime

from sfumato.plan.numbers import KindError

__all__ = ["STEPS", "last_day", "later", "steps_of"]

STEPS: dict[str, tuple[str, int]] = {
    "year": ("months", 12),
    "quarter": ("months", 3),
    "month": ("months", 1),
    "week": ("days", 7),
    "day": ("days", 1),
    "hour": ("seconds", 3600),
    "minute": ("seconds", 60),
    "second": ("seconds", 1),
}
"""What a part of a date is made of."""

_MOST = {"months": 12 * 10_000, "days": 366 * 10_000, "seconds": 366 * 10_000 * 86_400}


def steps_of(part: str, count: int) -> tuple[str, int]:
    """Return an interval in months, days or seconds; one longer than all of the years is refused.

    >>> steps_of("week", -2)
    ('days', -14)
    """
    if part not in STEPS:
        raise KindError(f"`date_add` counts one of {', '.join(STEPS)}")
    unit, size = STEPS[part]
    if abs(count * size) > _MOST[unit]:
        raise KindError("`date_add` takes no interval of more than 10,000 years")
    return unit, count * size


def later(moment: datetime.date, unit: str, count: int) -> datetime.datetime | None:
    """Return the moment some steps later, None outside of the years 1 to 9999.

    >>> later(datetime.date(2024, 1, 31), "months", 1)
    datetime.datetime(2024, 2, 29, 0, 0)
    """
    whole = (
        moment
        if isinstance(moment, datetime.datetime)
        else datetime.datetime.combine(moment, datetime.time())
    )
    try:
        if unit != "months":
            return whole + datetime.timedelta(**{unit: count})
        years, month = divmod(whole.year * 12 + whole.month - 1 + count, 12)
        day = min(whole.day, calendar.monthrange(years, month + 1)[1]) if 1 <= years <= 9999 else 0
        return whole.replace(year=years, month=month + 1, day=day)
    except (OverflowError, ValueError):
        return None


def last_day(moment: datetime.date) -> datetime.date:
    """Return the last day of the month of a moment."""
    return datetime.date(moment.year, moment.month, calendar.monthrange(moment.year, moment.month)[1])
