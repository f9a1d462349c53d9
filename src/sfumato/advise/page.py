"""The page of an advice: for whoever answers for the data to read, to sign and to file beside the audit."""

from __future__ import annotations

from sfumato.advise.advice import Advice
from sfumato.advise.choice import few
from sfumato.advise.precedents import DEPLOYMENTS, LITERATURE, LITERATURE_SOURCE, RULES_OF_THUMB
from sfumato.core.tradeoff import TradeOff
from sfumato.pages import (
    Block,
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
from sfumato.plots import Axis, Line, Picture, Points

__all__ = ["CLOSING", "METHOD", "advice_page"]

METHOD = (
    "The attacker of this page knows every record but one, knows the noise that is used, and takes the best"
    " test that there is. What such an attacker can do is computed from the noise itself, not from epsilon"
    " and delta, which are a summary of it. Real attackers know less."
)
"""What is computed."""

CLOSING = "Computed from declarations and plans alone: nothing was asked of the data, and nothing was spent."
"""What it rests on."""


def advice_page(advice: Advice) -> Page:
    """Return an advice as a page, with its pictures and the precedents."""
    opening, facts, frontier = _opening(advice), Facts(advice.facts()), _frontier(advice)
    delta = Paragraph(_sentence(advice.delta))
    return Page(
        title=f"Which epsilon? Advice on {advice.name}",
        brief=(*opening, facts, *frontier, delta),
        opening=opening,
        sections=(
            Section(
                "What an attacker can learn",
                Paragraph(METHOD),
                Figure(_power(advice)),
                facts,
            ),
            Section(
                "Risk against error" if advice.errors else "Risk at other epsilons",
                *_error_picture(advice),
                *frontier,
            ),
            Section("Delta", delta),
            Section(
                "Precedents",
                Paragraph(
                    "As declared by those who run them, or as reported where it says so: then the source"
                    " itself was not read. Compare like with like: an epsilon for each day or each report"
                    " is not one for ever."
                ),
                PageTable(
                    heads=("system", "date", "epsilon", "delta", "unit and period", "trust in", "source"),
                    rows=[
                        (
                            f"{one.who}: {one.what}", one.date, one.declared, one.delta,
                            f"{one.unit}; {one.period}", one.trust, one.cited,
                        )
                        for one in DEPLOYMENTS
                    ],
                    caption="What public deployments declared",
                ),
                PageTable(
                    heads=("use", "epsilon"),
                    rows=[(one.use, one.epsilon) for one in LITERATURE],
                    caption=f"What papers took ({LITERATURE_SOURCE})",
                ),
                BulletList(RULES_OF_THUMB),
            ),
            Section(
                "Decision", SignatureLines(("Data", "Epsilon", "Reason", "Decided by", "On", "Signature"))
            ),
        ),
        closing=CLOSING,
    )  # fmt: skip


def _opening(advice: Advice) -> tuple[Block, ...]:
    first = Notice(f"epsilon {float(advice.epsilon):.4g}. {advice.risk.sentence}")
    return (first,) if advice.stated is None else (first, Paragraph(_sentence(advice.stated.said)))


def _frontier(advice: Advice) -> tuple[Block, ...]:
    names = [one.name for one in few(advice.frontier[0].errors)]
    table = PageTable(
        heads=("epsilon", "advantage", *names),
        rows=[
            (
                f"{float(point.epsilon):.4g}{'' if (mark := advice.mark(point)) is None else f' ({mark})'}",
                f"{point.advantage:.4f}",
                *(one.said for one in few(point.errors)),
            )
            for point in advice.frontier
        ],
        caption="A quarter, half, the same, double and four times this epsilon; and the one that stands now",
    )
    half = advice.at_half()
    return (table, *(() if half is None else (Paragraph(_sentence(half)),)))


def _power(advice: Advice) -> Picture:
    alone = TradeOff.of_approximate(advice.epsilon)
    rates = [step / 100 for step in range(101)]
    return Picture(
        title="How often an attacker is right, at each rate of false alarms",
        caption="No test gets above the first line, whatever the attacker knows besides.",
        x=Axis(title="false alarms", percent=True, low=0, high=1),
        y=Axis(title="people found", percent=True, low=0, high=1),
        marks=(
            Line(label="the noise that is used", points=advice.risk.points()),
            Line(
                label="epsilon alone",
                points=tuple((rate, alone.tpr(rate)) for rate in rates),
                dashed=True,
            ),
            Line(label="tossing a coin", points=((0.0, 0.0), (1.0, 1.0)), dashed=True),
        ),
    )


def _error_picture(advice: Advice) -> tuple[Figure, ...]:
    """Return risk against the error of the first column that has one, or the largest of many."""
    errors = few(next(point.errors for point in advice.frontier if point.advised))
    shown = next((place for place, one in enumerate(errors) if one.error), None)
    if shown is None:
        return ()
    points = [
        (error, point) for point in advice.frontier if (error := few(point.errors)[shown].error) is not None
    ]
    name = errors[shown].name
    picture = Picture(
        title=f"Risk against the error of {name}",
        caption="Each point of the line is an epsilon. Now: the one that is declared.",
        x=Axis(title=f"95% error of {name}", log=True),
        y=Axis(title="advantage", low=0),
        marks=(
            Line(label="all epsilons", points=tuple((error, point.advantage) for error, point in points)),
            *(
                Points(label=mark, points=((error, point.advantage, point.advantage, point.advantage),))
                for error, point in points
                if (mark := advice.mark(point)) is not None
            ),
        ),
    )
    return (Figure(picture),)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."
