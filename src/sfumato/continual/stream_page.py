"""A page about a stream: the newest totals, pictures of all columns over time, and what to know of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato.continual.stream_picture import pictures
from sfumato.errors import InvalidArgument
from sfumato.pages import Block, BulletList, Figure, Notice, Page, PageTable, Section
from sfumato.release.display import cells

if TYPE_CHECKING:
    from sfumato.continual.stream_release import StreamRelease

__all__ = ["stream_blocks", "stream_page"]


def stream_blocks(release: StreamRelease, *, level: float = 0.95) -> tuple[Block, ...]:
    """Return what a notebook shows: how far it is, the newest totals, and a picture of each column."""
    periods = release.stream.periods
    said = f"Stream {release.stream.name}: {periods.said(release.taken)} are published."
    if not release.outputs:
        return (Notice(said),)
    heads, rows = cells(release.total())
    newest = PageTable(heads=tuple(heads), rows=rows, caption="The newest running total; ± covers 95%.")
    return (Notice(said), newest, *_figures(release, totals=True, level=level))


def stream_page(release: StreamRelease, *, level: float) -> Page:
    """Return a report of all that is published."""
    stream = release.stream
    opening, *totals = stream_blocks(release, level=level)
    sections = []
    if release.outputs:
        alone = _figures(release, totals=False, level=level)
        sections = [
            Section("Running totals", *totals),
            Section(f"Each {stream.periods.every} by itself", *alone),
            Section("What to know of it", BulletList(release.total().notes)),
        ]
    return Page(
        title=f"Stream {stream.name}",
        made=f"epsilon {float(stream.epsilon):g} for all periods together",
        opening=(opening,),
        sections=tuple(sections),
        closing="Everything on this page was published with noise, and may be shown to anybody.",
    )


def _figures(release: StreamRelease, *, totals: bool, level: float) -> tuple[Figure, ...]:
    try:
        return tuple(map(Figure, pictures(release, totals=totals, level=level)))
    except InvalidArgument:  # no number is told
        return ()
