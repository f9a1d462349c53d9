"""Dates and timestamps from the numbers that stood for them (`analysis.calendar`): post-processing."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable

__all__ = ["dates"]


def dates(
    epoch: datetime.date, numbers: Iterable[float | None], *, up: bool = False
) -> list[datetime.date | None]:
    """Return the dates so many days (moments: microseconds) after the first one, None for None.

    Parts of a day are of that day; with `up`, as the upper end of an interval, the next one is meant.
    What is beyond the calendar becomes its last day.

    >>> dates(datetime.date(2024, 2, 28), [0.0, 1.5, None])
    [datetime.date(2024, 2, 28), datetime.date(2024, 2, 29), None]
    """
    unit = "microseconds" if isinstance(epoch, datetime.datetime) else "days"
    found: list[datetime.date | None] = []
    for number in numbers:
        if number is None:
            found.append(None)
            continue
        whole = math.ceil(number) if up else math.floor(number)
        try:
            found.append(epoch + datetime.timedelta(**{unit: whole}))
        except OverflowError:
            found.append(type(epoch).max if whole > 0 else type(epoch).min)
    return found
