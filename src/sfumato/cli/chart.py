"""Charts of letters: curves with their bands, one below the other, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from sfumato.cli.screen import shows
from sfumato.plots import Band, Picture, Points, date_text

__all__ = ["chart_lines"]

_Point = tuple[float, float, float, float]


def chart_lines(picture: Picture, *, width: int = 60, height: int = 10) -> list[str]:
    """Return the curves of a picture over time, each with a scale of its own; nothing stands for gaps.

    >>> from sfumato.plots import Axis
    >>> days = tuple((day * 86_400_000.0, day, day - 1.0, day + 1.0) for day in range(4))
    >>> axes = {"x": Axis(title="day", time=True), "y": Axis(title="n")}
    >>> picture = Picture(title="n by day", caption="", **axes, marks=(Band(label="n", points=days),))
    >>> lines = chart_lines(picture, width=8, height=3)
    >>> lines[0], lines[-1].strip()
    ('n by day', '1970-01-01 1970-01-04')
    """
    curves: dict[str, list[_Point]] = {}
    for mark in picture.marks:
        if isinstance(mark, Band | Points):
            curves.setdefault(mark.label, []).extend(mark.points)
    lines = []
    for label, points in curves.items():
        lines.append(picture.title if len(curves) == 1 else f"{picture.title}: {label}")
        lines += _drawn(sorted(points), width, height)
    return lines


def _drawn(points: Sequence[_Point], width: int, height: int) -> Iterator[str]:
    low, high = min(point[2] for point in points), max(point[3] for point in points)
    step = (high - low) / height or 1.0
    dot, shade, line = ("•", "░", "│") if shows("•░│") else ("*", ":", "|")

    def row(value: float) -> int:
        return min(height - 1, max(0, int((value - low) / step)))

    grid = [[" "] * width for _ in range(height)]
    for place, column in enumerate(_columns(points, width)):
        for point in column:
            for at in range(row(point[2]), row(point[3]) + 1):
                grid[at][place] = shade
        for point in column:
            grid[row(point[1])][place] = dot
    scale = {0: _number(low, step), height // 2: _number(low + step * height / 2, step)}
    scale[height - 1] = _number(high, step)
    wide = max(map(len, scale.values()))
    for at in reversed(range(height)):
        yield f"{scale.get(at, '').rjust(wide)} {line}{''.join(grid[at])}".rstrip()
    first, last = (date_text(points[place][0]) for place in (0, -1))
    between = max(1, width - len(first) - len(last))
    yield f"{' ' * wide}  {first}{' ' * between}{last}"


def _columns(points: Sequence[_Point], width: int) -> Iterator[list[_Point]]:
    """Yield the points of each column: a point is as wide as the distance of two that follow each other."""
    distances = sorted(after[0] - before[0] for before, after in pairwise(points))
    own = distances[len(distances) // 2] if distances else 1.0
    begin, whole = points[0][0], points[-1][0] - points[0][0] + own
    for place in range(width):
        left, right = (begin + whole * edge / width for edge in (place, place + 1))
        middle = (left + right) / 2
        yield [point for point in points if left <= point[0] < right or 0 <= middle - point[0] < own]


def _number(value: float, step: float) -> str:
    return f"{value:,.0f}" if step >= 0.5 else f"{value:.3g}"
