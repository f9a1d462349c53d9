"""`sfumato marginals`: contingency tables over sets of columns, answered together under one budget."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from sfumato.cli.options import (
    AnalystOption,
    AnswerOptions,
    EpsilonOption,
    GroupsOption,
    ProjectOption,
    PurposeOption,
    RowsOption,
    RowsTotalOption,
    names_of,
)
from sfumato.cli.spending import answer, opened
from sfumato.errors import InvalidArgument, QueryRefused

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sfumato.catalog import Project
    from sfumato.session.database import Database
    from sfumato.session.marginals import MarginalsQuestion
    from sfumato.workloads.marginal_release import Marginals

__all__ = ["MarginalsOptions", "declared_marginals", "marginals", "rendered_marginals"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MarginalsOptions:
    """Which tables are asked for, what they may cost, and which of them is shown."""

    columns: Annotated[
        str,
        Argument(
            help="The columns of the tables: age,sex,job; or the name of [marginals.<name>] of the project."
        ),
    ]
    ways: Annotated[
        str | None,
        Option(
            "--ways", help="How many columns a table has: 2, unless said, or 1,2 for tables of both kinds."
        ),
    ] = None
    bins: Annotated[
        list[str] | None,
        Option("--bins", help="age=10, equal steps, or edges: age=0,18,65,110; may be repeated."),
    ] = None
    bases: Annotated[
        list[str] | None,
        Option("--base", help="What is asked about a column: age=prefixes or age=ranges; may be repeated."),
    ] = None
    missing: Annotated[
        str | None, Option("--missing", help="Columns that have a cell for rows with no value.")
    ] = None
    weights: Annotated[
        str | None,
        Option("--weights", help="Whose variances count alike: cells, unless said, or tables."),
    ] = None
    table: Annotated[str | None, Option("--table", help="The private table, if there are several.")] = None
    epsilon: EpsilonOption = None
    error: Annotated[
        float | None, Option("--error", help="Instead of epsilon: the 95% error of a cell of every table.")
    ] = None
    show: Annotated[
        str | None, Option("--show", help="The columns of one table, to be written instead of the errors.")
    ] = None
    analyst: AnalystOption = None
    purpose: PurposeOption = None
    max_groups: GroupsOption = None
    max_rows: RowsOption = None
    max_rows_total: RowsTotalOption = None
    project: ProjectOption = "sfumato.toml"


def marginals(*, asked: MarginalsOptions, options: AnswerOptions) -> None:
    """Ask for contingency tables over sets of columns, and spend: all tables agree, and share their noise."""
    style, show = options.style.value, asked.show
    _check_format(style, show)
    declared, database = opened(asked.project, asked.analyst, options, free=options.dry_run)
    question = declared_marginals(asked.columns, declared, database, _given(asked, declared, database))
    if show is not None:
        question.check_table(names_of(show))
    if asked.error is not None:
        question = question.within(asked.error)
    answer(
        question,
        options,
        lambda release: rendered_marginals(release, style, show, level=options.level),
        about=(f"{len(question.tables()):,} tables, {question.cells:,} cells",),
        cells=question.cells,
    )


def _given(asked: MarginalsOptions, declared: Project, database: Database) -> dict[str, Any]:
    """Return what the options say, by the names that Python has for it; None where they say nothing."""
    from sfumato.catalog.project import ProjectMarginals

    known = declared.marginals.get(asked.columns, ProjectMarginals(columns=names_of(asked.columns)))
    table = known.table if asked.table is None else asked.table
    bins = {name: _bins(database, name, text, table) for name, text in _pairs(asked.bins, "--bins")}
    bases = dict(_pairs(asked.bases, "--base"))
    return {
        "table": asked.table,
        "ways": None if asked.ways is None else _whole_numbers(asked.ways),
        "weights": asked.weights,
        "bins": {**known.bins, **bins} if bins else None,
        "bases": {**known.bases, **bases} if bases else None,
        "missing": None if asked.missing is None else names_of(asked.missing),
        "epsilon": asked.epsilon,
        "purpose": asked.purpose,
        "max_groups": asked.max_groups,
        "max_rows": asked.max_rows,
        "max_rows_total": asked.max_rows_total,
    }


def declared_marginals(
    columns: str, project: Project, database: Database, given: Mapping[str, Any] | None = None
) -> MarginalsQuestion:
    """Return tables as the project file declares them by this name, or of these columns.

    What is `given`, unless it is None, comes before what the file says.
    """
    from sfumato.catalog.project import ProjectMarginals

    known = project.marginals.get(columns, ProjectMarginals(columns=names_of(columns)))
    declared = {one.name: getattr(known, one.name) for one in fields(known)}
    said = {key: value for key, value in (given or {}).items() if value is not None}
    try:
        return database.marginals(**{**declared, **said})
    except (InvalidArgument, QueryRefused) as refusal:
        place = "columns" if "table" not in said else None
        key = refusal.place if isinstance(refusal, InvalidArgument) else place
        if columns not in project.marginals or key not in declared or key in said:
            raise  # the file is not what is wrong
        raise project.written.refusal(
            refusal.message, ("marginals", columns, key), code="SF706", hints=refusal.hints
        ) from None


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
