"""Display: a release as a page: its first rows and its cost in short, and all rows with their intervals."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator
from contextlib import suppress
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from sfumato.errors import InvalidArgument
from sfumato.pages import Block, BulletList, Deferred, Figure, Notes, Page, PageTable, Paragraph, Pictures
from sfumato.printable import printable
from sfumato.release.published import CLOSING

if TYPE_CHECKING:
    from sfumato.release.release import Release

__all__ = ["NO_INFORMATION", "cells", "page", "short"]

_ROWS = 40
_DRAWN = 400  # rows that a picture shows
_LEVEL = 0.95
_LONGEST = 48

NO_INFORMATION = "no information at this budget"
"""What stands for a value whose interval covers all that it could be."""


def page(release: Release, level: float) -> Page:
    """Return a release as a page. Short, it has 95% intervals and what it cost.

    An interval is shown as ± its half-width; one that is not symmetric as low..high; and where it covers
    all that the value could be, there is no information at this budget.
    """
    heads, body = cells(release)
    numbers = ("BIGINT", "HUGEINT", "DECIMAL", "FLOAT", "DOUBLE")
    sides = "".join("r" if kind.split("(")[0] in numbers else "l" for kind in release.types)
    pictures = Pictures(lambda: _pictures(release))
    return Page(
        title="Answer",
        made=release.spent,
        brief=(
            PageTable(heads=tuple(heads), rows=body, sides=sides, ruled=True),
            Notes(tuple(_footer(release, body))),
            pictures,
        ),
        opening=(Deferred(lambda: _all_rows(release, level)), pictures),
        closing=CLOSING,
    )


def _pictures(release: Release) -> Iterator[Figure]:
    """Yield the pictures that there are: some releases have no number to draw."""
    drawn = (release.plot,) if 2 <= len(release) <= _DRAWN else ()
    for draw in (*drawn, release.plot_levels):
        with suppress(InvalidArgument):
            yield Figure(draw())


def _all_rows(release: Release, level: float) -> tuple[Block, ...]:
    """Return all rows, their values with the ends of intervals, and the notes."""
    ends, nothing = release.intervals(level), release.no_information(level)

    def cell(name: str, value: Any, row: int) -> str:
        if name not in ends or (pair := ends[name][row]) is None:
            return printable(short(value))
        if nothing[name][row] is True and value is not None:
            return NO_INFORMATION
        return f"{short(value)} ({short(pair[0])} to {short(pair[1])})"

    rows = [
        tuple(cell(name, value, place) for name, value in zip(release.columns, row, strict=True))
        for place, row in enumerate(release.rows)
    ]
    return (
        PageTable(
            heads=tuple(map(printable, release.columns)),
            rows=rows,
            sides="".join("r" if name in ends else "l" for name in release.columns),
        ),
        Paragraph(f"In brackets: {level:.4g} intervals."),
        BulletList(release.remarks(level)),
    )


def short(value: Any) -> str:
    """Return a value in a few letters; nothing where there is none."""
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def cells(release: Release) -> tuple[list[str], list[list[str]]]:
    """Return names of columns, and the first rows as they are shown: numbers with their intervals."""
    intervals, nothing = release.intervals(_LEVEL), release.no_information(_LEVEL)
    body = [
        [
            _cell(value, intervals[name][index], nothing[name][index])
            if name in intervals
            else _cell(value, None)
            for name, value in zip(release.columns, row, strict=True)
        ]
        for index, row in enumerate(release.rows[:_ROWS])
    ]
    return [_shown(name) for name in release.columns], body


def _cell(value: Any, ends: tuple[Any, Any] | None, nothing: Any = None) -> str:
    if isinstance(value, list):
        none = [None] * len(value)
        lows, highs = ends if ends is not None else (none, none)
        flags = nothing if isinstance(nothing, list) else none
        if value and all(flags):
            return NO_INFORMATION
        parts = [
            "no information" if flag else _cell(item, None if low is None else (low, high))
            for item, low, high, flag in zip(value, lows, highs, flags, strict=True)
        ]
        return _shown(f"[{', '.join(parts)}]")
    if ends is None or value is None:
        return _shown(_plain(value))
    if nothing:
        return NO_INFORMATION
    below, above = value - ends[0], ends[1] - value
    if isinstance(below, datetime.timedelta):
        even = _symmetric(below, above, datetime.timedelta(days=1))
        return _moment(value, max(below, above)) if even else f"{_plain(value)} ({ends[0]}..{ends[1]})"
    whole = isinstance(value, int) and isinstance(below, int) and isinstance(above, int)
    if _symmetric(below, above, 1 if whole else 0.0):
        width = max(below, above)
        if whole:
            return f"{value} ±{width}"
        digits = _digits(float(width))
        if digits > 12:
            return f"{value:.6g} ±{width:.2g}"
        return f"{float(value):.{digits}f} ±{width:.{digits}f}"
    if whole:
        return f"{value} ({ends[0]}..{ends[1]})"
    digits = _digits(min(float(arm) for arm in (below, above, above + below) if arm > 0))
    shown = (_end(end, digits) for end in (value, *ends))
    return "{} ({}..{})".format(*shown)


def _symmetric(below: Any, above: Any, step: Any) -> bool:
    """Return whether both arms of an interval are about as long: to a step, or to a tenth.

    A value outside its own interval has an arm below zero, and nothing around it is symmetric.
    """
    shorter, longer = sorted((below, above))
    if shorter < 0 * shorter or longer == math.inf:
        return False
    return bool(longer - shorter <= step or longer <= 1.1 * shorter)


def _end(number: Any, digits: int) -> str:
    if not math.isfinite(number):
        return "∞" if number > 0 else "-∞"
    return f"{float(number):.{digits}f}" if digits <= 12 else f"{number:.6g}"


def _moment(value: datetime.date, width: datetime.timedelta) -> str:
    """Return a date and the days around it; of a timestamp, no more than these leave of it."""
    if not isinstance(value, datetime.datetime):
        return f"{value} ±{width.days} day{'' if width.days == 1 else 's'}"
    for unit, shown in (("days", "minutes"), ("hours", "minutes"), ("minutes", "seconds")):
        number = width / datetime.timedelta(**{unit: 1})
        if number >= 2:
            return f"{value.isoformat(sep=' ', timespec=shown)} ±{number:.3g} {unit}"
    return f"{value.isoformat(sep=' ')} ±{width.total_seconds():.3g} seconds"


def _digits(width: float) -> int:
    """Return how many decimals show two digits of a half-width."""
    return 2 if width <= 0 else max(0, 1 - math.floor(math.log10(width)))


def _plain(value: Any) -> str:
    match value:
        case None:
            return "NULL"
        case float():
            return f"{value:.6g}"
        case Decimal():
            return f"{value:f}"
        case _:
            return str(value)


def _shown(cell: str) -> str:
    """Return one line of printable text, shortened."""
    clean = printable(cell)
    return clean if len(clean) <= _LONGEST else clean[: _LONGEST - 1] + "…"


def _footer(release: Release, body: list[list[str]]) -> list[str]:
    intervals = release.intervals(_LEVEL)
    places = [place for place, name in enumerate(release.columns) if name in intervals]
    uneven = any(".." in row[place] for row in body for place in places)
    lines = []
    if len(release.rows) > _ROWS:
        lines.append(f"{_ROWS} of {len(release.rows)} rows")
    spent = [release.spent] if release.spent else []
    if intervals:
        spent.append("± and low..high cover 95%" if uneven else "± covers 95%")
    if spent:
        lines.append("; ".join(spent))
    return [*lines, *release.remarks(_LEVEL)]
