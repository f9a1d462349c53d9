"""Periods: half-open intervals of time in UTC, one after the other, numbered from 1."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Any

from sfumato.errors import InvalidArgument

__all__ = ["Moment", "Periods", "moment"]

Moment = datetime.date | datetime.datetime | str
"""A date (its first moment), a moment, or the ISO text of either; without a time zone it is in UTC."""

_STEPS = {
    "hour": datetime.timedelta(hours=1),
    "day": datetime.timedelta(days=1),
    "week": datetime.timedelta(weeks=1),
}
_EVERY = (*_STEPS, "month")
_DESIGN = {"hour": 8_760, "day": 365, "week": 260, "month": 120}  # one year, one, five and ten


def moment(given: Moment, place: str) -> datetime.datetime:
    """Return a moment in UTC, without its time zone, as the engine holds it.

    >>> moment("2026-03-01T01:00:00+02:00", "now")
    datetime.datetime(2026, 2, 28, 23, 0)
    """
    value: Any = given
    if isinstance(value, str):
        try:
            value = datetime.datetime.fromisoformat(value)
        except ValueError:
            value = None
    if isinstance(value, datetime.datetime):
        return value.replace(tzinfo=None) if value.utcoffset() is None else _in_utc(value)
    if isinstance(value, datetime.date):
        return datetime.datetime(value.year, value.month, value.day)
    raise InvalidArgument(
        f"{place} must be a date or a moment", place=place, hints=(f"{place}='2026-01-01', in UTC",)
    )


def _in_utc(value: datetime.datetime) -> datetime.datetime:
    return value.astimezone(datetime.UTC).replace(tzinfo=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Periods:
    """`horizon` hours, days, weeks or months from `start` on; each ends where the next one begins.

    With a `design` they have no end but that of the calendar, and that many are the ones that matter most.

    >>> months = Periods(every="month", start=moment("2026-11-01", "start"), horizon=3)
    >>> [months.begin(number).date().isoformat() for number in (1, 2, 3)]
    ['2026-11-01', '2026-12-01', '2027-01-01']
    >>> months.ended(moment("2027-01-31", "now"))
    2
    """

    every: str
    start: datetime.datetime
    horizon: int
    design: int | None = None

    @staticmethod
    def endless(every: str, start: datetime.datetime, design: int | None) -> Periods:
        """Return all periods up to the year 9999, designed for some: a year of days unless it is said.

        >>> days = Periods.endless("day", moment("2026-11-01", "start"), None)
        >>> days.horizon, days.design, days.said(3)
        (2912138, 365, '3 days')
        """
        months = (9999 - start.year) * 12 + 12 - start.month
        many = (datetime.datetime.max - start) // _STEPS[every] if every in _STEPS else months
        return Periods(every=every, start=start, horizon=many, design=design or _DESIGN.get(every))

    def __post_init__(self) -> None:
        if self.every not in _EVERY:
            hint = f"it is {', '.join(_EVERY[:-1])} or {_EVERY[-1]}"
            raise InvalidArgument(f"no period is called {self.every!r}", place="every", hints=(hint,))
        if isinstance(self.horizon, bool) or not isinstance(self.horizon, int) or self.horizon < 1:
            raise InvalidArgument("a horizon is a whole number of periods, 1 or more", place="horizon")
        whole = {"minute": 0, "second": 0, "microsecond": 0}
        if self.every != "hour":
            whole["hour"] = 0
        if self.every == "month":
            whole["day"] = 1
        if self.start.replace(**whole) != self.start:  # type: ignore[arg-type]
            whole_one = "day" if self.every == "week" else self.every
            raise InvalidArgument(
                f"a stream of {self.every}s begins with a whole {whole_one}",
                place="start",
                hints=("for example start='2026-01-01'",),
            )
        try:
            self.end(self.horizon)
        except (OverflowError, ValueError):
            raise InvalidArgument("the last period would end after the year 9999", place="horizon") from None

    def begin(self, number: int) -> datetime.datetime:
        """Return the first moment of a period."""
        if self.every == "month":
            years, month = divmod(self.start.month - 1 + number - 1, 12)
            return self.start.replace(year=self.start.year + years, month=month + 1)
        return self.start + (number - 1) * _STEPS[self.every]

    def end(self, number: int) -> datetime.datetime:
        """Return the first moment after a period."""
        return self.begin(number + 1)

    def ended(self, now: datetime.datetime) -> int:
        """Return how many periods are over."""
        low, high = 0, self.horizon  # the first `low` are over, and no more than `high`
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self.end(middle) <= now else (low, middle - 1)
        return low

    @property
    def planned(self) -> int:
        """How many periods a stream is designed for: all of them, if there is an end."""
        return self.design or self.horizon

    def said(self, number: int) -> str:
        """Return how far a stream is, in words.

        >>> Periods(every="day", start=moment("2026-11-01", "start"), horizon=30).said(3)
        '3 of 30 days'
        """
        return f"{number} {self.every}s" if self.design else f"{number} of {self.horizon} {self.every}s"

    def name(self, number: int) -> str:
        """Return the first moment of a period as text.

        >>> Periods(every="day", start=moment("2026-11-01", "start"), horizon=3).name(2)
        '2026-11-02'
        """
        begin = self.begin(number)
        return begin.isoformat(timespec="minutes") if self.every == "hour" else begin.date().isoformat()
