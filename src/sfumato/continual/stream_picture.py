"""Pictures of a stream: numbers over time, with a band for their intervals."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from sfumato.errors import InvalidArgument
from sfumato.plots import Axis, Band, Line, Mark, Picture, Points

if TYPE_CHECKING:
    from sfumato.continual.stream_release import StreamRelease
    from sfumato.release import Release

__all__ = ["drawn_columns", "pictures"]

_GROUPS = 6  # colours that can be told apart
_POINTS = 400  # more are not seen
_CELLS = 40_000  # of all groups: more take long
_LEAST = 20  # points, however many groups there are
_EPOCH = datetime.datetime(1970, 1, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Number:
    """One published number: of which period and group, and between which ends."""

    period: int
    group: str
    ends: tuple[float, float, float]  # itself, and its interval


def pictures(
    release: StreamRelease,
    columns: Sequence[str] | None = None,
    *,
    totals: bool,
    groups: Sequence[Any] | None = None,
    level: float,
) -> list[Picture]:
    """Return a picture of each of some columns, or of all that have intervals."""
    known = drawn_columns(release)
    if unknown := [name for name in columns or () if name not in known]:
        hint = f"it has {', '.join(known)}"
        raise InvalidArgument(f"no column {unknown[0]!r} has intervals", place="y", hints=(hint,))
    found = _numbers(release, known if columns is None else columns, totals, level)
    drawn = [_picture(release, name, own, totals, groups, level) for name, own in found.items() if own]
    if not drawn:
        hint = "ask with more epsilon, or draw another column"
        raise InvalidArgument("there is nothing to draw: no number is told", place="y", hints=(hint,))
    return drawn


def drawn_columns(release: StreamRelease) -> list[str]:
    """Return the columns that have intervals."""
    if not release.outputs:
        raise InvalidArgument("no period is published yet", place="plot")
    return list(release.total().intervals())


def _numbers(
    release: StreamRelease, columns: Sequence[str], totals: bool, level: float
) -> Mapping[str, list[_Number]]:
    """Return all numbers of some columns that tell anything."""
    found: dict[str, list[_Number]] = {name: [] for name in columns}
    for number, one in release.each(totals=totals, among=_drawn(release)):
        groups = _groups(one)
        plain = one.with_intervals(level, columns)
        for name, own in found.items():
            if f"{name}_low" not in plain.columns:  # its post-processing failed on these very numbers
                continue
            place = plain.columns.index(name)
            for group, *ends in zip(groups, *plain.values[place : place + 3], strict=True):
                if all(isinstance(end, int | float | Decimal) and math.isfinite(end) for end in ends):
                    value, low, high = map(float, ends)
                    own.append(_Number(period=number, group=group or name, ends=(value, low, high)))
    return found


def _groups(one: Release) -> list[str]:
    """Return what the keys of each row say; nothing where there are none."""
    keys = {name for table in one.tables for name, _ in table.keys}
    origins = zip(one.columns, one.origins, strict=True)
    shown = [one.column(name) for name, origin in origins if origin is not None and origin.column in keys]
    found = list(map(_label, zip(*shown, strict=True))) if shown else [""] * len(one)
    if len(set(found)) < len(found):
        hint = "let the question show the keys of its groups"
        raise InvalidArgument("groups cannot be told apart", place="plot", hints=(hint,))
    return found


def _label(key: Sequence[Any]) -> str:
    return ", ".join("NULL" if value is None else str(value) for value in key)


def _drawn(release: StreamRelease) -> list[int]:
    """Return the periods that are drawn: all, or of many periods some, and the newest."""
    numbers = sorted(release.outputs)
    return sorted({*numbers[:: _every(release)], numbers[-1]})


def _every(release: StreamRelease) -> int:
    """Return how many periods there are for each one that is drawn."""
    groups = len(release.outputs[max(release.outputs)]["keys"])
    most = min(_POINTS, max(_LEAST, _CELLS // max(1, groups)))
    return -(-len(release.outputs) // most)


def _picture(
    release: StreamRelease,
    name: str,
    numbers: Sequence[_Number],
    totals: bool,
    groups: Sequence[Any] | None,
    level: float,
) -> Picture:
    newest = {one.group: one.ends[0] for one in numbers}
    if groups is None:
        largest = sorted(newest, key=lambda group: -abs(newest[group]))[:_GROUPS]
        shown = sorted(largest)  # the same colours in all pictures of a page
    else:
        shown = [_label(key if isinstance(key, tuple) else (key,)) for key in groups]
        if unknown := [group for group in shown if group not in newest]:
            hint = f"groups are named by their keys: {', '.join(list(newest)[:_GROUPS])}"
            raise InvalidArgument(f"no group is called {unknown[0]!r}", place="groups", hints=(hint,))
        if len(shown) > _GROUPS:
            raise InvalidArgument(
                f"{len(shown)} series cannot be told apart in one picture",
                place="groups",
                hints=(f"name at most {_GROUPS} groups",),
            )
    every, drawn = release.stream.periods.every, [one for one in numbers if one.group in shown]
    return Picture(
        title=f"{name} of all {every}s so far" if totals else f"{name} of each {every}",
        caption=_caption(release, len(shown), len(newest), level),
        x=Axis(title=f"{every} (UTC)", time=True),
        y=Axis(title=name),
        marks=(
            *(mark for group in shown for mark in _marks(release, numbers, group)),
            *_design(release, drawn),
        ),
    )


def _design(release: StreamRelease, numbers: Sequence[_Number]) -> Iterator[Mark]:
    """Yield a line where a stream without an end passes what it is designed for."""
    design = release.stream.periods.design
    if design is not None and max(release.outputs) > design:
        ends = [end for one in numbers for end in one.ends]
        at = _moment(release, design)
        yield Line(label="designed up to here", points=((at, min(ends)), (at, max(ends))), dashed=True)


def _marks(release: StreamRelease, numbers: Sequence[_Number], group: str) -> Iterator[Mark]:
    """Yield the curve of one group, in pieces where numbers are missing; one that stands alone is a point."""
    joined = {
        after
        for before, after in pairwise(_drawn(release))
        if all(number in release.outputs for number in range(before, after))
    }
    told = {one.period: one for one in numbers if one.group == group}
    pieces: list[list[_Number]] = []
    for before, number in pairwise([0, *_drawn(release)]):
        if number in told:
            if number not in joined or before not in told:
                pieces.append([])
            pieces[-1].append(told[number])
    for piece in pieces:
        points = tuple((_moment(release, one.period), *one.ends) for one in piece)
        yield Band(label=group, points=points) if len(points) > 1 else Points(label=group, points=points)


def _moment(release: StreamRelease, number: int) -> float:
    """Return where a period begins, in milliseconds since 1970."""
    return (release.stream.periods.begin(number) - _EPOCH) / datetime.timedelta(milliseconds=1)


def _caption(release: StreamRelease, shown: int, groups: int, level: float) -> str:
    stream, missing = release.stream, release.taken - len(release.outputs)
    words = [
        f"Bands are intervals that cover {level:.4g} each; epsilon {float(stream.epsilon):g} for all periods."
    ]
    if shown < groups:
        words.append(f"{shown} of {groups} groups are drawn.")
    if (design := stream.periods.design) is not None and release.taken > design:
        words.append(
            f"It is designed for {design} {stream.periods.every}s: past them totals err more and more."
        )
    if missing:
        words.append(f"{missing} of {release.taken} periods were not published: gaps.")
    if (every := _every(release)) > 1:
        words.append(f"One period in {every} is drawn.")
    return " ".join(words)
