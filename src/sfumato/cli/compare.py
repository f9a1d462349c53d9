"""What trust is worth, from the command line: one question with a trusted collector, a shuffler, nobody."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from typer import Argument, Option

from sfumato.cli.options import Plain, PlainOption, names_of
from sfumato.cli.outputs import can_write, write
from sfumato.cli.screen import working

__all__ = ["compare"]


def compare(
    file: Annotated[
        str | None, Argument(help="Your own table: Parquet, CSV or DuckDB. Without it, people are invented.")
    ] = None,
    column: Annotated[str | None, Option("--column", help="The column that is asked about.")] = None,
    low: Annotated[float | None, Option("--low", help="The least that its number can be.")] = None,
    high: Annotated[float | None, Option("--high", help="The most that its number can be.")] = None,
    answers: Annotated[
        str | None, Option("--answers", help="Instead of bounds: its answers, divided by commas.")
    ] = None,
    epsilon: Annotated[float, Option("--epsilon", "-e", help="What is promised to each person.")] = 1.0,
    delta: Annotated[float, Option("--delta", help="What the shuffled model needs beside it.")] = 1e-6,
    people: Annotated[
        int | None, Option("--people", help="How many to take at random, or to invent.")
    ] = None,
    repetitions: Annotated[int, Option("--repetitions", help="How often each answer is given.")] = 100,
    html: Annotated[
        str | None, Option("--html", help="Write a page with pictures, in one file that needs no other.")
    ] = None,
    style: PlainOption = Plain.table,
) -> None:
    """Compare what trust is worth: a trusted collector, a trusted shuffler, nobody. For the owner's eyes."""
    from sfumato.local.compare import compare
    from sfumato.local.comparison_page import comparison_page

    can_write(html, {} if file is None else {file: "the table"}, place="--html")
    named = None if answers is None else list(names_of(answers))
    with working("comparing"):
        found = compare(
            file, column=column, low=low, high=high, answers=named, epsilon=epsilon, delta=delta,
            people=people, repetitions=repetitions,
        )  # fmt: skip
        if html is not None:
            write(comparison_page(found).html().encode(), html, paid=False, place="--html")
    if style is Plain.json:
        typer.echo(json.dumps(found.to_dict(), indent=2, ensure_ascii=False))
        return
    typer.echo(str(found))
    if html is not None:
        typer.echo(f"\nwritten: {html}")
