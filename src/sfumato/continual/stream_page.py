"""A page about a stream: the newest totals, pictures of all columns over time, and what to know of them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from sfumato.continual.stream_picture import pictures
from sfumato.errors import InvalidArgument
from sfumato.pages import (
    Block,
    BulletList,
    Figure,
    Notice,
    Page,
    PageTable,
    Paragraph,
    Pictures,
    Section,
)
from sfumato.release.display import cells
from sfumato.release.published import CLOSING

if TYPE_CHECKING:
    from sfumato.continual.stream_release import StreamRelease

__all__ = ["stream_page"]


def stream_page(release: StreamRelease, *, level: float) -> Page:
    """Return a report of all that is published."""
    stream, periods = release.stream, release.stream.periods
    name, published = stream.name, periods.said(release.taken)
    opening = Notice(f"Stream {name}: {published} are published.")
    brief: tuple[Block, ...] = (Paragraph(f"stream `{name}`: {published} published"),)
    sections: tuple[Section, ...] = ()
    if release.outputs:
        total = release.total()
        totals = Pictures(partial(_figures, release, totals=True, level=level))
        alone = Pictures(partial(_figures, release, totals=False, level=level))
        heads, rows = cells(total)
        caption = "The newest running total; ± covers 95%."
        newest = PageTable(heads=tuple(heads), rows=rows, caption=caption)
        brief = (
            Paragraph(f"stream `{name}`: {published} published; the running total is"),
            *(block for block in total.document().brief if not isinstance(block, Pictures)),
            totals,
        )
        sections = (
            Section("Running totals", newest, totals),
            Section(f"Each {periods.every} by itself", alone),
            Section("What to know of it", BulletList(total.notes)),
        )
    return Page(
        title=f"Stream {name}",
        made=f"epsilon {float(stream.epsilon):g} for all periods together",
        brief=brief,
        opening=(opening,),
        sections=sections,
        closing=CLOSING,
    )


def _figures(release: StreamRelease, *, totals: bool, level: float) -> tuple[Figure, ...]:
    try:
        return tuple(map(Figure, pictures(release, totals=totals, level=level)))
    except InvalidArgument:  # no number is told
        return ()
