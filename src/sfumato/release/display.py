"""Display: a release as plain aligned text, and as HTML."""

from __future__ import annotations

import datetime
import html as _html
import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sfumato.release.release import Release

__all__ = ["html", "text"]

_ROWS = 40
_LEVEL = 0.95
_LONGEST = 48


def text(release: Release) -> str:
    """Return an aligned table, with half-widths of 95% intervals, and what it cost.

    Where an interval is lopsided the further end counts; open-ended ones are shown as such.
    """
    header, body = _cells(release)
    numeric = [_numeric(release, name) for name in header]
    widths = [max(len(line[i]) for line in (header, *body)) for i in range(len(header))]

    def line(cells: list[str]) -> str:
        padded = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(cells, widths, numeric, strict=True)
        ]
        return "  ".join(padded).rstrip()

    lines = [line(header), line(["-" * width for width in widths]), *(line(row) for row in body)]
    return "\n".join([*lines, *(f"-- {note}" for note in _footer(release))])


def html(release: Release) -> str:
    """Return the same as an HTML table; every value is escaped."""
    header, body = _cells(release)
    align = ["right" if _numeric(release, name) else "left" for name in header]

    def row(cells: list[str], tag: str) -> str:
        inner = "".join(
            f'<{tag} style="text-align:{side}">{_html.escape(cell)}</{tag}>'
            for cell, side in zip(cells, align, strict=True)
        )
        return f"<tr>{inner}</tr>"

    notes = "".join(f"<div><small>{_html.escape(note)}</small></div>" for note in _footer(release))
    rows = "".join(row(cells, "td") for cells in body)
    return f"<table><thead>{row(header, 'th')}</thead><tbody>{rows}</tbody></table>{notes}"


def _cells(release: Release) -> tuple[list[str], list[list[str]]]:
    intervals = release.intervals(_LEVEL)
    header = [_shown(name) for name in release.columns]
    body = []
    for index, row in enumerate(release.rows[:_ROWS]):
        cells = []
        for name, value in zip(release.columns, row, strict=True):
            ends = intervals.get(name)
            cells.append(_cell(value, ends[index] if ends is not None else None))
        body.append(cells)
    return header, body


def _cell(value: Any, ends: tuple[Any, Any] | None) -> str:
    if isinstance(value, list):
        lows, highs = ends if ends is not None else ([None] * len(value), [None] * len(value))
        parts = [
            _cell(item, None if low is None else (low, high))
            for item, low, high in zip(value, lows, highs, strict=True)
        ]
        return _shown(f"[{', '.join(parts)}]")
    if ends is None or value is None:
        return _shown(_plain(value))
    width = max(ends[1] - value, value - ends[0])
    if isinstance(width, datetime.timedelta):
        return _moment(value, width)
    if isinstance(value, int) and isinstance(width, int):
        return f"{value} ±{width}"
    if not math.isfinite(width):
        return f"{_plain(value)} ±∞"
    digits = _digits(float(width))
    return f"{float(value):.{digits}f} ±{width:.{digits}f}" if digits <= 12 else f"{value:.6g} ±{width:.2g}"


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
        case _:
            return str(value)


def _shown(cell: str) -> str:
    """Return one line of printable text, shortened."""
    clean = "".join(letter if letter.isprintable() else f"\\x{ord(letter):02x}" for letter in cell)
    return clean if len(clean) <= _LONGEST else clean[: _LONGEST - 1] + "…"


def _numeric(release: Release, header: str) -> bool:
    kinds = {_shown(name): kind for name, kind in zip(release.columns, release.types, strict=True)}
    return kinds.get(header, "") in ("BIGINT", "HUGEINT", "DOUBLE")


def _footer(release: Release) -> list[str]:
    lines = []
    if len(release.rows) > _ROWS:
        lines.append(f"{_ROWS} of {len(release.rows)} rows")
    spent = []
    if "epsilon" in release.cost:
        spent.append(f"epsilon {float(release.cost['epsilon']):.4g}")
    if release.cost.get("delta"):
        spent.append(f"delta {float(release.cost['delta']):.3g}")
    if release.intervals(_LEVEL):
        spent.append("± covers 95%")
    if spent:
        lines.append("; ".join(spent))
    return [*lines, *release.notes]
