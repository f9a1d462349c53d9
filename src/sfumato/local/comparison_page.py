"""A page on what trust is worth: one question with a trusted collector, a shuffler, nobody."""

from __future__ import annotations

from sfumato.local.comparison import HEADS, OWNER, Comparison, cells
from sfumato.pages import BulletList, Facts, Figure, Notice, Page, PageTable, Paragraph, Section

__all__ = ["comparison_page"]


def comparison_page(found: Comparison) -> Page:
    """Return a page on a comparison. For the owner of the data."""
    of_epsilon, of_people = (Figure(picture) for picture in found.pictures())
    error = f"Root mean squared error of {found.repetitions:,} repetitions, and by formula (in brackets)."
    falls = tuple(
        (f"with {what}", ", ".join(f"{one.model} {one}" for one in slopes))
        for what, slopes in (("people", found.slopes), ("epsilon, up to 1", found.epsilon_slopes))
        if slopes
    )
    fallen = (Paragraph("The error falls to these powers (95%)."), Facts(falls)) if falls else ()
    return Page(
        title="What trust is worth",
        made=f"{found.what}; {found.people:,} people; epsilon {found.epsilon:g}",
        opening=(Notice(found.sentence),),
        sections=(
            Section(
                "More epsilon",
                of_epsilon,
                PageTable(heads=HEADS, rows=cells(found.by_epsilon), caption=error),
            ),
            Section(
                "More people",
                of_people,
                PageTable(heads=HEADS, rows=cells(found.by_people), caption=error),
                *fallen,
            ),
            Section("What to know of it", BulletList(tuple(note for note in found.notes if note != OWNER))),
        ),
        closing=OWNER,
    )
