"""What trust is worth, from the command line: one question with a trusted collector, a shuffler, nobody."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from sfumato.local.comparison import Comparison

__all__ = ["run"]

_TITLE = "What trust is worth"


def run(
    file: str | None,
    *,
    column: str | None,
    low: float | None,
    high: float | None,
    answers: str | None,
    epsilon: float,
    delta: float,
    people: int | None,
    repetitions: int,
    html: str | None,
    as_json: bool,
) -> None:
    """Compare, show the table, and write the page."""
    import json

    from sfumato.cli.outputs import can_write, write
    from sfumato.cli.screen import working
    from sfumato.local.compare import compare

    can_write(html, {} if file is None else {file: "the table"}, place="--html")
    named = None if answers is None else [one.strip() for one in answers.split(",") if one.strip()]
    with working("comparing"):
        found = compare(
            file, column=column, low=low, high=high, answers=named, epsilon=epsilon, delta=delta,
            people=people, repetitions=repetitions,
        )  # fmt: skip
        if html is not None:
            write(_page(found).encode(), html, paid=False, place="--html")
    if as_json:
        typer.echo(json.dumps(found.to_dict(), indent=2, ensure_ascii=False))
        return
    typer.echo(str(found))
    if html is not None:
        typer.echo(f"\nwritten: {html}")


def _page(found: Comparison) -> str:
    from sfumato.pages import figure, page, paragraph, preformatted

    pictures = (figure(picture) for picture in found.pictures())
    return page(_TITLE, [paragraph(found.sentence), *pictures, preformatted(str(found))])
