"""`sfumato marginals`: contingency tables over sets of columns, answered together under one budget."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from sfumato.cli.options import (
    AnalystOption,
    AnswerOptions,
    EpsilonOption,
    Format,
    GroupsOption,
    ProjectOption,
    PurposeOption,
    RowsOption,
    RowsTotalOption,
    names_of,
)
from sfumato.cli.outputs import can_write, kept, write
from sfumato.cli.screen import screen, working
from sfumato.errors import InvalidArgument

if TYPE_CHECKING:
    from sfumato.session.database import Database
    from sfumato.session.marginals import MarginalsQuestion
    from sfumato.workloads.marginal_release import Marginals

__all__ = ["marginals", "rendered_marginals"]


def marginals(
    *,
    columns: Annotated[str, Argument(help="The columns that tables are made of: age,sex,job.")],
    ways: Annotated[
        str, Option("--ways", help="How many columns a table has: 2, or 1,2 for tables of both kinds.")
    ] = "2",
    bins: Annotated[
        list[str] | None,
        Option("--bins", help="age=10, equal steps, or edges: age=0,18,65,110; may be repeated."),
    ] = None,
    bases: Annotated[
        list[str] | None,
        Option("--base", help="What is asked about a column: age=prefixes or age=ranges; may be repeated."),
    ] = None,
    missing: Annotated[
        str, Option("--missing", help="Columns that have a cell for rows with no value.")
    ] = "",
    weights: Annotated[
        str, Option("--weights", help="Which variances count alike: of all cells, or of all tables.")
    ] = "cells",
    table: Annotated[str | None, Option("--table", help="The private table, if there are several.")] = None,
    epsilon: EpsilonOption = None,
    error: Annotated[
        float | None, Option("--error", help="Instead of epsilon: the 95% error of a cell of every table.")
    ] = None,
    show: Annotated[
        str | None, Option("--show", help="The columns of one table, to be written instead of the errors.")
    ] = None,
    analyst: AnalystOption = None,
    purpose: PurposeOption = None,
    max_groups: GroupsOption = None,
    max_rows: RowsOption = None,
    max_rows_total: RowsTotalOption = None,
    project: ProjectOption = "sfumato.toml",
    options: AnswerOptions,
) -> None:
    """Ask for contingency tables over sets of columns, and spend: all tables agree, and share their noise."""
    from sfumato.catalog import read_project
    from sfumato.cli.project import open_tables
    from sfumato.core.mechanism import confidence

    confidence(options.level)
    _check_format(options.style.value, show)
    can_write(options.output, kept(read_project(project)), style=options.style.value)
    _, database = open_tables(project, analyst=analyst, free=options.dry_run)
    question = database.marginals(
        names_of(columns),
        ways=_whole_numbers(ways),
        epsilon=epsilon,
        table=table,
        weights=weights,  # type: ignore[arg-type]
        bins={name: _bins(database, name, text, table) for name, text in _pairs(bins, "--bins")},
        bases=dict(_pairs(bases, "--base")),
        missing=names_of(missing),
        purpose=purpose,
        max_groups=max_groups,
        max_rows=max_rows,
        max_rows_total=max_rows_total,
    )
    if show is not None:
        question.check_table(names_of(show))
    if error is not None:
        question = question.within(error)
    if options.dry_run:
        _show_price(question, as_json=options.style is Format.json)
        return
    with working("charging, computing, adding noise"):
        release = question.release(key=options.key)
    write(rendered_marginals(release, options.style.value, show, level=options.level), options.output)
    if options.output is not None:
        screen(error=True).print(f"written: {options.output}")


def _show_price(question: MarginalsQuestion, *, as_json: bool) -> None:
    price = question.price()
    lines = [f"{len(price.errors):,} tables, {question.cells:,} cells", *price.lines()]
    text = json.dumps({"price": price.record(), "cells": question.cells}) if as_json else "\n".join(lines)
    write(f"{text}\n".encode(), None, paid=False)
    if price.refusal is not None:
        raise price.refusal


def _check_format(style: str, show: str | None) -> None:
    if style in ("parquet", "markdown") or (style == "csv" and show is None):
        raise InvalidArgument(
            f"many tables are no {style} file",
            place="--format",
            hints=(
                "--format json holds all of them",
                "`sfumato marginals --format csv --show age,sex` writes one",
            ),
        )


def rendered_marginals(
    release: Marginals, style: str, show: str | None = None, *, level: float = 0.95
) -> bytes:
    """Return all tables as JSON, the errors of all as text, or the one to `show` as CSV, a line per cell."""
    _check_format(style, show)
    if style == "json":
        return f"{release.to_json()}\n".encode()
    if show is None:
        return f"{release!r}\n".encode()
    import pyarrow as pa
    from pyarrow import csv

    sink = pa.BufferOutputStream()
    csv.write_csv(release.table(*names_of(show)).to_arrow(level), sink)
    return bytes(sink.getvalue())


def _pairs(given: list[str] | None, place: str) -> list[tuple[str, str]]:
    """Return what options of the form name=value say."""
    parts = [one.partition("=") for one in given or ()]
    if any(not name.strip() or not value.strip() for name, _, value in parts):
        raise InvalidArgument("a column and what is said of it: age=10", place=place)
    return [(name.strip(), value.strip()) for name, _, value in parts]


def _bins(database: Database, name: str, text: str, table: str | None) -> Any:
    """Return a number of bins, or their edges in the kind of the column."""
    from sfumato.catalog import OneOf
    from sfumato.cli.answers import values_of
    from sfumato.plan.estimates import known_field, private_table

    if "," not in text:
        return _whole_numbers(text, place="--bins")[0]
    found = private_table(database.catalog, table, f"--bins {name}", columns=(name,))
    edges = values_of(text, known_field(found, name, f"--bins {name}").kind, bounds=False)
    return list(edges.values) if isinstance(edges, OneOf) else edges


def _whole_numbers(text: str, place: str = "--ways") -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise InvalidArgument("whole numbers, divided by commas", place=place, hints=("2, or 1,2",)) from None
