"""A figure: a picture drawn into the page, what it says in words, and its numbers for who cannot see it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape

from sfumato.errors import Unsupported
from sfumato.pages.blocks import Block, PageTable
from sfumato.plots import Axis, Bars, Picture, Tiles, date_text, svg

__all__ = ["Figure"]

_MOST = 12  # numbers of one curve that are written out

# What is inside a picture is not read out piece by piece: it is one image, with a name.
_ROLES = re.compile(r' (?:role|aria-[a-z]+)="[^"<>]*"')

_NO_DRAWING = "(Drawing needs the extra sfumato[plots]; these are the numbers.)"


@dataclass(frozen=True, slots=True)
class Figure(Block):
    """A picture with its caption. Where nothing can be drawn, its numbers stand in the page instead."""

    picture: Picture

    def html(self) -> str:
        picture = self.picture
        words = f"<strong>{escape(picture.title)}</strong> <span>{escape(picture.caption)}</span>"
        try:
            drawn = svg(replace(picture, title=""))
        except Unsupported:
            numbers = f"<p>{escape(_NO_DRAWING)}</p>{_numbers(picture).html()}"
        else:
            drawn = _ROLES.sub("", drawn)
            drawn = drawn.replace("<svg ", f'<svg role="img" aria-label="{escape(_described(picture))}" ', 1)
            summary = f"<summary>The numbers of “{escape(picture.title)}”</summary>"
            numbers = f"{drawn}<details>{summary}{_numbers(picture).html()}</details>"
        return f"<figure><figcaption>{words}</figcaption>{numbers}</figure>"


def _described(picture: Picture) -> str:
    shown = "; ".join(dict.fromkeys(mark.label for mark in picture.marks))
    return f"{picture.title}. {picture.y.title} by {picture.x.title}: {shown}. The numbers follow."


def _numbers(picture: Picture) -> PageTable:
    if isinstance(picture.marks[0], Bars):
        bars = [mark for mark in picture.marks if isinstance(mark, Bars)]
        heights = [dict(mark.bars) for mark in bars]
        names = dict.fromkeys(name for each in heights for name in each)
        rows = [
            [name, *(_shown(each[name], picture.y) if name in each else "" for each in heights)]
            for name in names
        ]
        return PageTable(heads=(picture.x.title or "bar", *(mark.label for mark in bars)), rows=rows)
    if isinstance(picture.marks[0], Tiles):
        tiles = picture.marks[0].tiles
        return PageTable(
            heads=(picture.x.title or "one", picture.y.title or "other", picture.marks[0].label),
            rows=[(x, y, _shown(value, picture.y)) for x, y, value in tiles],
        )
    rows = list(_points(picture))
    heads = ("series", picture.x.title, picture.y.title, "interval")
    if not any(row[3] for row in rows):
        return PageTable(heads=heads[:3], rows=[row[:3] for row in rows])
    return PageTable(heads=heads, rows=rows)


def _points(picture: Picture) -> Iterator[list[str]]:
    for mark in picture.marks:
        if isinstance(mark, Bars | Tiles):
            continue
        for x, y, *ends in _some(mark.points):
            interval = " to ".join(_shown(end, picture.y) for end in ends) if len(set(ends)) > 1 else ""
            yield [mark.label, _shown(x, picture.x), _shown(y, picture.y), interval]


def _some(points: Sequence[tuple[float, ...]]) -> list[tuple[float, ...]]:
    """Return some of the points, from the first to the last."""
    if len(points) <= _MOST:
        return list(points)
    return [points[round(at * (len(points) - 1) / (_MOST - 1))] for at in range(_MOST)]


def _shown(number: float, axis: Axis) -> str:
    if axis.time:
        return date_text(number)
    if axis.percent:
        return f"{number:.1%}"
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.4g}"
