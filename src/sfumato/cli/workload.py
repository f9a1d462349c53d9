"""`sfumato workload`: many questions of a file, answered together under one budget.

-- name: by_region
-- error: 40
SELECT region, COUNT(*) AS n FROM people GROUP BY region;

-- name: age
-- error: age=0.5
SELECT AVG(age) AS age FROM people;

-- name: total
-- epsilon: 0.1
SELECT COUNT(*) AS n FROM people;
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from sfumato.cli.options import (
    AnalystOption,
    AnswerOptions,
    Format,
    ProjectOption,
    PurposeOption,
)
from sfumato.cli.spending import answer, opened
from sfumato.errors import InvalidArgument

if TYPE_CHECKING:
    from sfumato.catalog import Project
    from sfumato.session.database import Database
    from sfumato.session.workload import Target, Workload

__all__ = ["FileQuestion", "declared_workload", "questions_of", "workload"]

_HEADER = re.compile(r"--\s*(name|error|epsilon)\s*:\s*(.*?)\s*$")


def workload(
    *,
    file: Annotated[
        str,
        Argument(help="A file of SQL statements that end in semicolons, a workload of the project, or -."),
    ],
    epsilon: Annotated[
        float | None,
        Option("--epsilon", "-e", help="What all questions together may give away."),
    ] = None,
    size: Annotated[
        float | None, Option("--size", help="Rows to expect in a group, for the error of averages.")
    ] = None,
    analyst: AnalystOption = None,
    purpose: PurposeOption = None,
    project: ProjectOption = "sfumato.toml",
    options: AnswerOptions,
) -> None:
    """Ask many questions at once, and spend: what they have in common is measured once."""
    if options.style in (Format.csv, Format.parquet):
        raise InvalidArgument(
            f"several answers are no {options.style.value} file", place="--format", hints=("--format json",)
        )
    declared, database = opened(project, analyst, options, free=options.dry_run)
    asked = declared_workload(file, declared, database, epsilon=epsilon, size=size, purpose=purpose)
    answer(asked, options)


def declared_workload(
    file: str,
    project: Project,
    database: Database,
    *,
    epsilon: float | None = None,
    size: float | None = None,
    purpose: str | None = None,
) -> Workload:
    """Return a workload as the project file declares it, or as a file of questions does."""
    from sfumato.catalog.project import ProjectWorkload
    from sfumato.cli.query import text_of

    if file not in project.workloads and file != "-" and not Path(file).exists():
        names = ", ".join(project.workloads)
        raise InvalidArgument(
            "there is no such file, and the project file declares no such workload",
            place=file,
            hints=(f"it declares {names}" if names else "declare one: [workloads.yearly]",),
        )
    known = project.workloads.get(file, ProjectWorkload(file=file))
    questions = questions_of(text_of(known.file))
    return database.workload(
        {one.name: database.sql(one.sql, epsilon=one.epsilon) for one in questions},
        epsilon=known.epsilon if epsilon is None else epsilon,
        errors={one.name: one.error for one in questions if one.error is not None},
        size=known.size if size is None else size,
        purpose=purpose,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FileQuestion:
    """One statement of a file, with what the comments before it say."""

    name: str
    sql: str
    epsilon: float | None = None
    error: Target | None = None


def questions_of(text: str) -> tuple[FileQuestion, ...]:
    """Return the statements of a file; without a name they are called q1, q2, .. by their place.

    >>> [one] = questions_of("-- name: n; all of them\\n-- error: n=40\\nSELECT COUNT(*) AS n FROM people")
    >>> one.name, one.error
    ('n; all of them', {'n': 40.0})
    """
    from sfumato.cli.statements import blank, split

    whole, rest = split(text)
    statements = [*whole, *([] if blank(rest) else [rest.strip()])]
    if not statements:
        hint = "statements end in a semicolon"
        raise InvalidArgument("there is no question in this file", place="workload", hints=(hint,))
    found = [_question(statement, f"q{place}") for place, statement in enumerate(statements, 1)]
    names = [one.name for one in found]
    if twice := [name for name in names if names.count(name) > 1]:
        raise InvalidArgument(f"two questions are called `{twice[0]}`", place="workload")
    return tuple(found)


def _question(statement: str, name: str) -> FileQuestion:
    said: dict[str, str] = {}
    for line in statement.splitlines():
        if match := _HEADER.match(line.strip()):
            if match[1] in said:
                raise InvalidArgument(f"`{match[1]}` is said twice", place=said.get("name", name))
            said[match[1]] = match[2]
    name = said.get("name", name)
    return FileQuestion(
        name=name,
        sql=statement,
        epsilon=None if "epsilon" not in said else _number(said["epsilon"], name, "epsilon"),
        error=None if "error" not in said else _error(said["error"], name),
    )


def _error(text: str, name: str) -> Target:
    """Return an error of all columns, or of each that is named: `40`, or `n=40, age=0.5`."""
    if "=" not in text:
        return _number(text, name, "error")
    pairs = [part.partition("=") for part in text.split(",")]
    return {column.strip(): _number(value, name, "error") for column, _, value in pairs}


def _number(text: str, name: str, what: str) -> float:
    try:
        return float(text)
    except ValueError:
        hint = f"-- {what}: 0.5"
        raise InvalidArgument(f"the {what} of `{name}` is not a number", place=name, hints=(hint,)) from None
