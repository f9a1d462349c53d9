"""The picture of a release: bars, lines or a histogram, each number with its interval."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

from sfumato.errors import InvalidArgument
from sfumato.plots import Axis, Bars, Line, Mark, Picture, Points
from sfumato.release.release import Release

__all__ = ["picture"]

_SERIES = 6  # colours that can be told apart
_EDGES = ("_from", "_to", "_value")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Spot:
    """One number to draw: where, of which series, and between which ends."""

    at: Any
    series: str
    height: float
    low: float
    high: float


def picture(
    release: Release,
    y: str | None = None,
    *,
    x: str | None = None,
    by: str | None = None,
    kind: Literal["bars", "line"] | None = None,
    level: float = 0.95,
) -> Picture:
    """Return what `Release.plot` shows."""
    if kind not in (None, "bars", "line"):
        raise InvalidArgument("a release is drawn as bars or as a line", place="kind", hints=('kind="bars"',))
    for name, place in ((y, "y"), (x, "x"), (by, "by")):
        if name is not None and name not in release.columns:
            hint = f"it has {', '.join(release.columns)}"
            raise InvalidArgument(f"this release has no column {name!r}", place=place, hints=(hint,))
    ends = release.intervals(level)
    drawn = _drawn(release, ends) if y is None else y
    keys = [name for name in release.columns if name not in ends and name != drawn]
    bins = [name for name in keys if name in {drawn + end for end in _EDGES}]
    along = x or next(iter((*bins, *keys)), "")
    others = [name for name in keys if name not in (along, *bins)]
    series = [by] if by is not None else others
    spots = list(_spots(release, drawn, along, series, bins, level))
    if not spots:
        raise InvalidArgument(
            f"there is nothing to draw: no row tells {drawn!r}",
            place="y",
            hints=("ask with more epsilon, or draw another column",),
        )
    places = [spot.at for spot in spots]
    ordered = not bins and _in_order(places)
    if kind == "line" and not ordered:
        hint = f'kind="bars", or another x: {along or drawn!r} is not in order'
        raise InvalidArgument(
            "a line goes through three numbers or dates at least", place="kind", hints=(hint,)
        )
    lines = ordered if kind is None else kind == "line"
    return Picture(
        title=drawn if not along or along in bins else f"{drawn} by {along}",
        caption=_caption(release, len(spots), level),
        x=Axis(title="" if along in bins else along, time=lines and _is_date(places[0])),
        y=Axis(title=drawn),
        marks=tuple(_line_marks(spots) if lines else _bar_marks(spots)),
    )


def _drawn(release: Release, ends: dict[str, Any]) -> str:
    """Return the column to draw: the histogram, or the first one with intervals, or the first number."""
    items = [
        name for name, origin in zip(release.columns, release.origins, strict=True) if origin and origin.item
    ]
    plain = [name for name in release.columns if any(map(_is_number, release.column(name)))]
    for name in (*items, *(name for name in ends if name in plain), *reversed(plain)):
        return name
    raise InvalidArgument(
        "this release has no number to draw", place="y", hints=("lists and dates are shown as a table",)
    )


def _spots(
    release: Release, drawn: str, along: str, series: Sequence[str], bins: Sequence[str], level: float
) -> Iterator[_Spot]:
    heights = release.column(drawn)
    nowhere = [None] * len(release)
    ends = release.intervals(level).get(drawn, nowhere)
    nothing = release.no_information(level).get(drawn, nowhere)
    places = release.column(along) if along else [drawn] * len(release)
    if len(bins) == 2 and along == bins[0]:
        pairs = zip(places, release.column(bins[1]), strict=True)
        places = [f"{_short(low)} to {_short(high)}" for low, high in pairs]
    names = [release.column(name) for name in series]
    for row, height in enumerate(heights):
        if not _is_number(height) or nothing[row]:
            continue
        low, high = ends[row] or (height, height)
        if math.isfinite(low) and math.isfinite(high):
            yield _Spot(
                at=places[row],
                series=", ".join(_short(column[row]) for column in names) or drawn,
                height=float(height),
                low=float(low),
                high=float(high),
            )


def _bar_marks(spots: Sequence[_Spot]) -> Iterator[Mark]:
    for label, own in _by_series(spots):
        yield Bars(
            label=label,
            bars=tuple((_short(spot.at), spot.height) for spot in own),
            intervals=tuple((spot.low, spot.high) for spot in own),
        )


def _line_marks(spots: Sequence[_Spot]) -> Iterator[Mark]:
    for label, own in _by_series(spots):
        points = sorted((_number(spot.at), spot.height, spot.low, spot.high) for spot in own)
        yield Line(label=label, points=tuple((at, height) for at, height, _, _ in points))
        yield Points(label=label, points=tuple(points))


def _by_series(spots: Sequence[_Spot]) -> Iterator[tuple[str, list[_Spot]]]:
    labels = list(dict.fromkeys(spot.series for spot in spots))
    if len(labels) > _SERIES:
        raise InvalidArgument(
            f"{len(labels)} series cannot be told apart in one picture",
            place="by",
            hints=(f"name one column with at most {_SERIES} values: by=..", "or ask with a WHERE"),
        )
    for label in labels:
        yield label, [spot for spot in spots if spot.series == label]


def _in_order(places: Sequence[Any]) -> bool:
    """Return whether places are all numbers or all dates, and enough of them for a line."""
    return len(set(places)) > 2 and (all(map(_is_number, places)) or all(map(_is_date, places)))


def _is_date(value: Any) -> bool:
    return isinstance(value, datetime.date)


def _caption(release: Release, drawn: int, level: float) -> str:
    words = [f"Intervals cover {level:.4g} each."]
    if "epsilon" in release.cost:
        words.append(f"Epsilon {float(release.cost['epsilon']):.4g}.")
    if left := len(release) - drawn:
        words.append(f"{left} of {len(release)} rows tell nothing and are not drawn.")
    return " ".join(words)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, Decimal)) and not isinstance(value, bool) and math.isfinite(value)


def _number(value: Any) -> float:
    """Return where a number or a date lies; a date in milliseconds since 1970."""
    if isinstance(value, datetime.date):
        moment = value if isinstance(value, datetime.datetime) else datetime.datetime(*value.timetuple()[:3])
        return (moment - datetime.datetime(1970, 1, 1)) / datetime.timedelta(milliseconds=1)
    return float(value)


def _short(value: Any) -> str:
    if value is None:
        return "NULL"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
