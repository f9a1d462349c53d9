"""Display: a release as plain aligned text, and as HTML."""

from __future__ import annotations

import datetime
import html as _html
import math
from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from sfumato.errors import InvalidArgument, Unsupported

if TYPE_CHECKING:
    from sfumato.plots import Picture
    from sfumato.release.release import Release

__all__ = ["NO_INFORMATION", "cells", "html", "text"]

_ROWS = 40
_DRAWN = 400  # rows that a picture shows
_LEVEL = 0.95
_LONGEST = 48

NO_INFORMATION = "no information at this budget"
"""What stands for a value whose interval covers all that it could be."""


def text(release: Release) -> str:
    """Return an aligned table, with 95% intervals, and what it cost.

    An interval is shown as ± its half-width; one that is not symmetric as low..high; and where it covers
    all that the value could be, there is no information at this budget.
    """
    header, body = cells(release)
    numeric = _numeric(release)
    widths = [max(len(line[i]) for line in (header, *body)) for i in range(len(header))]

    def line(cells: list[str]) -> str:
        padded = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(cells, widths, numeric, strict=True)
        ]
        return "  ".join(padded).rstrip()

    lines = [line(header), line(["-" * width for width in widths]), *(line(row) for row in body)]
    return "\n".join([*lines, *(f"-- {note}" for note in _footer(release, body))])


def html(release: Release) -> str:
    """Return the same as an HTML table, and a picture of it if it can be drawn; every value is escaped."""
    header, body = cells(release)
    align = ["right" if number else "left" for number in _numeric(release)]

    def row(cells: list[str], tag: str) -> str:
        inner = "".join(
            f'<{tag} style="text-align:{side}">{_html.escape(cell)}</{tag}>'
            for cell, side in zip(cells, align, strict=True)
        )
        return f"<tr>{inner}</tr>"

    notes = "".join(f"<div><small>{_html.escape(note)}</small></div>" for note in _footer(release, body))
    rows = "".join(row(cells, "td") for cells in body)
    pictures = (_drawn(release.plot) if 2 <= len(release) <= _DRAWN else "") + _drawn(release.plot_levels)
    return f"<table><thead>{row(header, 'th')}</thead><tbody>{rows}</tbody></table>{notes}{pictures}"


def _drawn(draw: Callable[[], Picture]) -> str:
    """Return a picture as SVG; nothing where there is none, or no library to draw it."""
    from sfumato.plots import svg

    try:
        picture = draw()
        return f'<div role="img" aria-label="{_html.escape(picture.title)}">{svg(picture)}</div>'
    except (InvalidArgument, Unsupported):
        return ""


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
    clean = "".join(letter if letter.isprintable() else f"\\x{ord(letter):02x}" for letter in cell)
    return clean if len(clean) <= _LONGEST else clean[: _LONGEST - 1] + "…"


def _numeric(release: Release) -> list[bool]:
    numbers = ("BIGINT", "HUGEINT", "DECIMAL", "FLOAT", "DOUBLE")
    return [kind.split("(")[0] in numbers for kind in release.types]


def _footer(release: Release, body: list[list[str]]) -> list[str]:
    intervals = release.intervals(_LEVEL)
    places = [place for place, name in enumerate(release.columns) if name in intervals]
    uneven = any(".." in row[place] for row in body for place in places)
    lines = []
    if len(release.rows) > _ROWS:
        lines.append(f"{_ROWS} of {len(release.rows)} rows")
    spent = []
    if "epsilon" in release.cost:
        spent.append(f"epsilon {float(release.cost['epsilon']):.4g}")
    if release.cost.get("delta"):
        spent.append(f"delta {float(release.cost['delta']):.3g}")
    if intervals:
        spent.append("± and low..high cover 95%" if uneven else "± covers 95%")
    if spent:
        lines.append("; ".join(spent))
    return [*lines, *release.remarks(_LEVEL)]
