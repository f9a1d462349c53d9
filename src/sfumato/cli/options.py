"""The options that commands share, said once."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import typer

__all__ = [
    "AnalystOption",
    "DryRunOption",
    "EpsilonOption",
    "ErrorOption",
    "Format",
    "FormatOption",
    "GroupsOption",
    "JsonErrorsOption",
    "KeyOption",
    "LevelOption",
    "LossesOption",
    "OutputOption",
    "Plain",
    "PlainOption",
    "ProjectOption",
    "QuestionArgument",
    "RowsOption",
    "SelectedOption",
    "SizeOption",
]


class Format(str, Enum):  # noqa: UP042 - typer shows the values of a str enum
    """How an answer is written."""

    table = "table"
    csv = "csv"
    json = "json"
    parquet = "parquet"
    markdown = "markdown"


class Plain(str, Enum):  # noqa: UP042
    """How a report is written."""

    table = "table"
    json = "json"


QuestionArgument = Annotated[
    str, typer.Argument(help="SQL, the path of a file with SQL, or - for standard input.")
]
ProjectOption = Annotated[
    str, typer.Option("--project", "-p", envvar="SFUMATO_PROJECT", help="The project file.")
]
EpsilonOption = Annotated[
    float | None, typer.Option("--epsilon", "-e", help="What this question may give away by itself.")
]
ErrorOption = Annotated[
    float | None, typer.Option("--error", help="Instead of epsilon: the 95% error you can live with.")
]
SizeOption = Annotated[
    float | None, typer.Option("--size", help="Rows to expect in a group, for the error of averages.")
]
KeyOption = Annotated[
    str | None, typer.Option("--key", "-k", help="Ask again under this key: the same answer, free.")
]
AnalystOption = Annotated[
    str | None,
    typer.Option(
        "--analyst", "-a", envvar="SFUMATO_ANALYST", help="Who asks, where the project says who may."
    ),
]
FormatOption = Annotated[Format, typer.Option("--format", "-f", help="How the answer is written.")]
PlainOption = Annotated[Plain, typer.Option("--format", "-f", help="How the report is written.")]
OutputOption = Annotated[
    str | None, typer.Option("--output", "-o", help="A file for the answer, instead of standard output.")
]
LevelOption = Annotated[float, typer.Option("--level", help="The level of intervals.")]
GroupsOption = Annotated[
    int | None, typer.Option("--max-groups", help="How many groups one unit may count in.")
]
RowsOption = Annotated[
    int | None, typer.Option("--max-rows", help="With the weight of how many rows in each of them.")
]
LossesOption = Annotated[
    bool,
    typer.Option("--losses", help="Measure what caps and bounds leave out, for 5% of the cost."),
]
SelectedOption = Annotated[
    bool,
    typer.Option(
        "--selected", help="Select groups privately, known in public or not: small ones are missing."
    ),
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Show the price, and spend nothing.")]
JsonErrorsOption = Annotated[
    bool,
    typer.Option("--json-errors", help="Errors as JSON on standard error; so they are with --format json."),
]
