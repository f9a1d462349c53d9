"""Columns of numbers and dates for people, from estimates."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Sequence

from sfumato.aggregates.answer import Answer, NoisyColumn
from sfumato.aggregates.ratios import Estimate

__all__ = ["column", "dates", "lists"]


def column(answer: Answer, estimate: Estimate) -> NoisyColumn:
    """Return Python numbers, None for NaN."""
    low, high = estimate.low.tolist(), estimate.high.tolist()
    values = [None if math.isnan(value) else value for value in estimate.values.tolist()]
    if answer.epoch is not None:
        return NoisyColumn(
            values=dates(answer.epoch, values),
            low=dates(answer.epoch, low),
            high=dates(answer.epoch, high, up=True),
        )
    if not answer.integer:
        return NoisyColumn(values=values, low=low, high=high)
    return NoisyColumn(
        values=[None if value is None else round(value) for value in values],
        low=[math.floor(value) if math.isfinite(value) else value for value in low],
        high=[math.ceil(value) if math.isfinite(value) else value for value in high],
    )


def lists(columns: Sequence[NoisyColumn], groups: int) -> NoisyColumn:
    """Return one list per group, of what several columns have in it."""
    return NoisyColumn(
        values=[[one.values[group] for one in columns] for group in range(groups)],
        low=[[one.low[group] for one in columns] for group in range(groups)],
        high=[[one.high[group] for one in columns] for group in range(groups)],
    )


def dates(
    epoch: datetime.date, numbers: Iterable[float | None], *, up: bool = False
) -> list[datetime.date | None]:
    """Return the dates that many days (moments: microseconds) after the first one, None for None.

    The numbers are those that stood for dates (`analysis.calendar`).
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
