"""The options that commands share, said once; and groups of them, which are dataclasses."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from enum import Enum
from typing import Annotated, Any, get_type_hints

import typer
from typer import Argument, Option

from sfumato.cli.question_flags import FLAGS, flag, options_of, parameter_of
from sfumato.errors import InvalidArgument
from sfumato.plan.options import QuestionOptions

__all__ = [
    "AnalystOption",
    "AnswerOptions",
    "Asking",
    "EpsilonOption",
    "EstimateOptions",
    "Format",
    "FormatOption",
    "GroupsOption",
    "LedgerOptions",
    "LevelOption",
    "NonNegativeOption",
    "OutputOption",
    "Plain",
    "PlainOption",
    "ProjectOption",
    "PurposeOption",
    "RowsOption",
    "RowsTotalOption",
    "SharesOption",
    "Wishes",
    "command",
    "group_of",
    "names_of",
    "style_of",
]


class Format(str, Enum):  # noqa: UP042 - typer shows the values of a str enum
    """How an answer is written."""

    table = "table"
    csv = "csv"
    json = "json"
    parquet = "parquet"
    markdown = "markdown"


_ENDINGS = {
    ".csv": Format.csv, ".json": Format.json, ".parquet": Format.parquet, ".md": Format.markdown,
}  # fmt: skip
_OTHERS = frozenset(
    (".arrow", ".db", ".feather", ".htm", ".html", ".ods", ".pdf", ".png", ".svg", ".tsv", ".xls", ".xlsx")
)


def style_of(given: Format | None, output: str | None) -> Format:
    """Return how an answer is written: as it was asked for, and as the ending of its file says.

    >>> style_of(None, "answer.csv").value, style_of(None, None).value
    ('csv', 'table')
    """
    ending = os.path.splitext(output or "")[1].lower()
    meant = _ENDINGS.get(ending)
    if ending in _OTHERS or (given is not None and meant is not None and given is not meant):
        raise InvalidArgument(
            f"an answer is no {ending} file" if given is None else f"a {ending} file is not {given.value}",
            place="--output",
            hints=(f"name a file that ends in {', '.join(_ENDINGS)} or .txt", *_spreadsheet(ending)),
        )
    return given or meant or Format.table


def _spreadsheet(ending: str) -> tuple[str, ...]:
    return ("spreadsheets open .csv files",) if ending in (".xls", ".xlsx", ".ods") else ()


class Plain(str, Enum):  # noqa: UP042
    """How a report is written."""

    table = "table"
    json = "json"


ProjectOption = Annotated[str, Option("--project", "-p", envvar="SFUMATO_PROJECT", help="The project file.")]
EpsilonOption = Annotated[
    float | None, Option("--epsilon", "-e", help="What this question may give away by itself.")
]
_Key = Annotated[str | None, Option("--key", "-k", help="Ask again under this key: the same answer, free.")]
AnalystOption = Annotated[
    str | None,
    Option("--analyst", "-a", envvar="SFUMATO_ANALYST", help="Who asks, where the project says who may."),
]
FormatOption = Annotated[
    Format | None,
    Option(
        "--format",
        "-f",
        help="How the answer is written: by default as the ending of --output says, or as a table.",
    ),
]
PlainOption = Annotated[Plain, Option("--format", "-f", help="How the report is written.")]
OutputOption = Annotated[
    str | None, Option("--output", "-o", help="A file for the answer, instead of standard output.")
]
LevelOption = Annotated[float, Option("--level", help="The level of intervals.")]
GroupsOption = Annotated[int | None, flag("max_groups")]
RowsOption = Annotated[int | None, flag("max_rows")]
RowsTotalOption = Annotated[int | None, flag("max_rows_total")]
PurposeOption = Annotated[
    str | None, Option("--purpose", help="What it is for; kept in the ledger, for its owner.")
]
SharesOption = Annotated[str, flag("level_shares")]
NonNegativeOption = Annotated[bool, flag("non_negative")]
_DryRun = Annotated[bool, Option("--dry-run", help="Show the price, and spend nothing.")]
_JsonErrors = Annotated[
    bool, Option("--json-errors", help="Errors as JSON on standard error; so they are with --format json.")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """A question as it was typed, with the options that came with it."""

    question: Annotated[str, Argument(help="SQL, the path of a file with SQL, or - for standard input.")]
    epsilon: EpsilonOption = None
    error: Annotated[
        float | None, Option("--error", help="Instead of epsilon: the 95% error you can live with.")
    ] = None
    size: Annotated[
        float | None, Option("--size", help="Rows to expect in a group, for the error of averages.")
    ] = None
    analyst: AnalystOption = None
    purpose: PurposeOption = None
    options: QuestionOptions = field(default_factory=QuestionOptions)  # a flag for each that has one
    free: Annotated[
        bool, Option("--free", help="Answer from releases that are kept, without a charge, or refuse.")
    ] = False
    project: ProjectOption = "sfumato.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerOptions:
    """How an answer is paid for and where it goes."""

    key: _Key = None
    dry_run: _DryRun = False
    given: FormatOption = None
    output: OutputOption = None
    level: LevelOption = 0.95

    @property
    def style(self) -> Format:
        """How the answer is written."""
        return style_of(self.given, self.output)


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateOptions:
    """What the estimates of bounds and of caps share."""

    epsilon: EpsilonOption = None
    key: _Key = None
    analyst: AnalystOption = None
    purpose: PurposeOption = None
    dry_run: _DryRun = False
    style: PlainOption = Plain.table
    project: ProjectOption = "sfumato.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerOptions:
    """Which ledger: a file by its own path, or the one that a project names."""

    ledger: Annotated[
        str | None, Option("--ledger", help="The ledger's file; else the one that the project names.")
    ] = None
    project: ProjectOption = "sfumato.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What the options of `sfumato init` said; None and nothing where they did not."""

    files: Annotated[
        list[str], Argument(help="The private tables: Parquet, CSV or DuckDB files; or postgresql://..")
    ]
    table: Annotated[
        list[str] | None,
        Option("--table", help="A private table of the database: clinic.visits; may be repeated."),
    ] = None
    unit: Annotated[
        list[str] | None,
        Option("--unit", help="The column that says whose each row is; of each table: orders=customer."),
    ] = None
    protects: Annotated[
        str | None, Option("--protects", help="Who they are, where tables name them by different columns.")
    ] = None
    each_row: Annotated[bool, Option("--each-row", help="Every row is a unit by itself.")] = False
    public: Annotated[
        list[str] | None, Option("--public", help="A file or table that is no secret; may be repeated.")
    ] = None
    between: Annotated[list[str] | None, Option("--between", help="Bounds: age=0,110; may be repeated.")] = (
        None
    )
    one_of: Annotated[
        list[str] | None, Option("--one-of", help="Values: region=north,south; may be repeated.")
    ] = None
    max_groups: GroupsOption = None
    max_rows: RowsOption = None
    max_rows_total: RowsTotalOption = None
    epsilon: Annotated[float | None, Option("--epsilon", "-e", help="The budget, for ever.")] = None
    delta: Annotated[float | None, Option("--delta", help="Its delta.")] = None
    people: Annotated[
        int | None,
        Option("--people", help="How many units there are, if that is public: delta is below 1/n."),
    ] = None
    ceiling: Annotated[float | None, Option("--ceiling", help="The most one question may cost.")] = None
    ledger: Annotated[
        str | None, Option("--ledger", help="The file, or address, that remembers what was spent.")
    ] = None


def names_of(text: str) -> tuple[str, ...]:
    """Return the names that a text lists, divided by commas."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def group_of(help: str) -> typer.Typer:
    """Return an empty group of commands."""
    return typer.Typer(help=help, no_args_is_help=True, rich_markup_mode=None)


def command(
    app: typer.Typer, name: str, *, without: tuple[str, ...] = (), **settings: Any
) -> Callable[[Callable[..., None]], None]:
    """Add a command to an app, with `--json-errors`, which `main` reads.

    A parameter whose type is a dataclass stands for the options that are its fields, except for those
    in `without`, which keep their defaults. A field of `QuestionOptions` stands for their flags.
    """

    def add(run: Callable[..., None]) -> None:
        groups: dict[str, _Group] = {}
        options = []
        for parameter in inspect.signature(run, eval_str=True).parameters.values():
            if is_dataclass(kind := parameter.annotation):
                groups[parameter.name] = group = _Group(kind, without)
                options += group.options()
            else:
                options.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
        options.append(_option("json_errors", _JsonErrors, False))

        def given(*, json_errors: bool, **values: Any) -> None:
            for name, group in groups.items():
                values[name] = group.taken(values)
            try:
                run(**values)
            except KeyboardInterrupt as stop:  # of a question: it says whether it was charged
                sys.stderr.write(f"{stop}\n" if str(stop) else "interrupted\n")
                raise typer.Exit(130) from None

        given.__doc__ = run.__doc__
        given.__annotations__ = {each.name: each.annotation for each in options}
        given.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
        app.command(name, **settings)(given)

    return add


class _Group:
    """A dataclass whose fields are options of a command, but for those that it goes without."""

    def __init__(self, kind: Any, without: tuple[str, ...]) -> None:
        self._kind, self._hints = kind, get_type_hints(kind, include_extras=True)
        self._fields = [each for each in fields(kind) if each.name not in without]
        self._flags = [name for name in FLAGS if name not in without]

    def options(self) -> list[inspect.Parameter]:
        """Return the options, in the order of the fields."""
        found = []
        for each in self._fields:
            if self._hints[each.name] is QuestionOptions:
                found += [_option(name, *parameter_of(name)) for name in self._flags]
            else:
                found.append(_option(each.name, self._hints[each.name], each.default))
        return found

    def taken(self, values: dict[str, Any]) -> Any:
        """Take the values of the options from those that were given, and return them as the dataclass."""
        taken = {}
        for each in self._fields:
            if self._hints[each.name] is QuestionOptions:
                taken[each.name] = options_of({name: values.pop(name) for name in self._flags})
            else:
                taken[each.name] = values.pop(each.name)
        return self._kind(**taken)


def _option(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    missing = inspect.Parameter.empty if default is MISSING else default
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=missing, annotation=annotation)
