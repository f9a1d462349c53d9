"""Pages about k-anonymity: what a table gives away, and what generalising it did. For its owner."""

from __future__ import annotations

from sfumato.anonymity.columns import OWNER
from sfumato.anonymity.generalised import WARNING, Generalised
from sfumato.anonymity.losses import Loss
from sfumato.anonymity.measures import AnonymityMeasures, Diversity
from sfumato.anonymity.pictures import risk_picture, size_picture
from sfumato.pages import Block, Facts, Figure, Notice, Page, PageTable, Paragraph, Section

__all__ = ["generalised_page", "measures_page"]


def measures_page(found: AnonymityMeasures) -> Page:
    """Return a page on what a table gives away."""
    classes = (
        ("k, the smallest class", f"{found.k:,} row{'' if found.k == 1 else 's'}"),
        ("classes", f"{found.classes:,}; the largest has {found.largest:,} rows"),
        ("unique rows", f"{found.uniqueness:.2%}"),
        ("highest chance to be found", f"{found.highest_risk:.2%}"),
        ("average chance to be found", f"{found.average_risk:.2%}"),
        (f"rows with a chance above {found.risk:.0%}", f"{found.at_risk:.2%}"),
    )
    sensitive = tuple(
        Section(f"What it tells about {each.column}", Facts(_facts(each)), anchor=f"sensitive-{place}")
        for place, each in enumerate(found.diversity, 1)
    )
    return Page(
        title="What the table gives away",
        made=f"{found.rows:,} rows, told apart by {', '.join(found.quasi)}",
        opening=(Notice(OWNER),),
        sections=(
            Section(
                "How well rows hide", Facts(classes), *map(Figure, (risk_picture(found), size_picture(found)))
            ),
            *sensitive,
        ),
        closing=WARNING,
    )


def generalised_page(found: Generalised) -> Page:
    """Return a page on what generalising a table did."""
    return Page(
        title="What generalising did",
        made=f"Generalised by {found.method}, to reach {found.goal}",
        opening=(Notice(OWNER),),
        sections=(
            Section(
                "Before and after",
                PageTable(heads=("measure", "before", "after"), rows=found.rows()),
                *map(Figure, found.pictures()),
            ),
            Section("What was lost", *_lost(found.loss)),
        ),
        closing=WARNING,
    )


def _facts(each: Diversity) -> tuple[tuple[str, str], ...]:
    order = "values in order" if each.ordered else "values equally far apart"
    return (
        ("l, distinct values of a class", f"{each.distinct_l} at least; entropy l {each.entropy_l:.2f}"),
        ("t, distance from the table", f"{each.t:.3f} at most, {order}"),
        ("the likeliest value is right", f"with a chance of up to {each.alpha:.1%}"),
        ("known without doubt", f"for {each.homogeneous:.1%} of rows"),
    )


def _lost(loss: Loss) -> tuple[Block, ...]:
    facts = [
        ("certainty", f"{loss.certainty:.1%}"),
        ("entropy", f"{loss.entropy:.1%}"),
        ("rows suppressed", f"{loss.suppressed:.2%}"),
        ("size of classes", f"{loss.class_size:.1f} times as large as they need be"),
        ("discernibility", f"{loss.discernibility:,}"),
    ]
    if loss.precision is not None:
        facts.append(("precision", f"{loss.precision:.1%}"))
    rows = [
        (
            each.column,
            f"{each.certainty:.1%}",
            f"{each.entropy:.1%}",
            "" if each.height is None else f"{each.height:.0%}",
        )
        for each in loss.columns
    ]
    heads = ("column", "certainty lost", "entropy lost", "levels raised")
    return (
        Paragraph(
            "Certainty is the width of what a value may be; entropy the bits it takes to learn it anew."
        ),
        Facts(tuple(facts)),
        PageTable(heads=heads, rows=rows),
    )
