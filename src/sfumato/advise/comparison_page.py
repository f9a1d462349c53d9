"""The page of a comparison: several projects side by side, to read and to file."""

from __future__ import annotations

import numpy as np

from sfumato.advise.comparison import RAREST, ProjectComparison
from sfumato.advise.page import CLOSING, METHOD
from sfumato.pages import (
    BulletList,
    Facts,
    Figure,
    Notice,
    Page,
    PageTable,
    Paragraph,
    Section,
    SignatureLines,
)
from sfumato.plots import Axis, Line, Picture

__all__ = ["comparison_page"]

_ROOM = 20  # letters of a name in a legend, on a phone


def comparison_page(comparison: ProjectComparison) -> Page:
    """Return a comparison as a page, with the curves of all projects in one picture."""
    heads = ("project", *(one.name for one in comparison.projects))
    shared = comparison.shared_rows()
    sections = [
        Section(
            "Side by side",
            PageTable(heads=heads, rows=comparison.rows(), caption="Declared, and what it means"),
            Facts(tuple((one.name, one.advice.risk.sentence) for one in comparison.projects)),
        ),
        Section("What an attacker can learn", Paragraph(METHOD), *map(Figure, _pictures(comparison))),
    ]
    if shared:
        table = PageTable(heads=heads, rows=shared, caption="Risk and error of the same questions")
        sections.append(Section("What all of them declare", table))
    if comparison.notes:
        sections.append(Section("Not compared", BulletList(comparison.notes)))
    signed = SignatureLines(("Project", "Reason", "Decided by", "On", "Signature"))
    sections.append(Section("Decision", signed))
    return Page(
        title="Which epsilon? Projects side by side",
        opening=tuple(Notice(f"{one}.") for one in comparison.verdicts()),  # they begin with names of files
        sections=tuple(sections),
        closing=CLOSING,
    )


def _pictures(comparison: ProjectComparison) -> tuple[Picture, Picture]:
    """Return the power curves over all rates of false alarms, and over rare ones."""
    risks = [(_short(one.name, place), one.advice.risk) for place, one in enumerate(comparison.projects, 1)]
    wide = Picture(
        title="How often an attacker is right, at each rate of false alarms",
        caption="The lower line protects people better.",
        x=Axis(title="false alarms", percent=True, low=0, high=1),
        y=Axis(title="people found", percent=True, low=0, high=1),
        marks=(
            *(Line(label=name, points=risk.points()) for name, risk in risks),
            Line(label="tossing a coin", points=((0.0, 0.0), (1.0, 1.0)), dashed=True),
        ),
    )
    rates = np.geomspace(RAREST, 1.0, 91).tolist()
    rare = Picture(
        title="The same for rare false alarms",
        caption="Both axes are logarithmic: here curves cross that seem to be in order above.",
        x=Axis(title="false alarms", log=True),
        y=Axis(title="people found", log=True),
        marks=tuple(
            Line(label=name, points=tuple((rate, risk.curve.tpr(rate)) for rate in rates))
            for name, risk in risks
        ),
    )
    return wide, rare


def _short(name: str, place: int) -> str:
    """Return a name that a legend has room for: of a long one its end, with its place among the projects."""
    return name if len(name) <= _ROOM else f"{place}: ..{name[-_ROOM:]}"
