"""The commands: each loads what it needs when it runs."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from typer import Argument, Option

from sfumato import __version__
from sfumato.cli.advise import advise
from sfumato.cli.anonymity import anonymity_app
from sfumato.cli.attack import attack_app
from sfumato.cli.compare import compare
from sfumato.cli.estimates import bounds, caps
from sfumato.cli.exits import refusal_of, report, wants_json
from sfumato.cli.hierarchy import hierarchy
from sfumato.cli.ledger import ledger_app
from sfumato.cli.marginals import marginals
from sfumato.cli.options import (
    AnalystOption,
    EpsilonOption,
    Plain,
    PlainOption,
    ProjectOption,
    PurposeOption,
    Wishes,
    command,
)
from sfumato.cli.predict import predict
from sfumato.cli.query import explain, losses, query
from sfumato.cli.question_flags import ANSWER_FLAGS
from sfumato.cli.stream import stream_app
from sfumato.cli.survey import survey_app
from sfumato.cli.train import train
from sfumato.cli.workload import workload
from sfumato.errors import InvalidArgument

__all__ = ["app", "main"]

app = typer.Typer(
    name="sfumato",
    help="Publish what records say about a population, and almost nothing about any one person.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(ledger_app, name="ledger")
app.add_typer(attack_app, name="attack")
app.add_typer(anonymity_app, name="anonymity")
app.add_typer(stream_app, name="stream")
app.add_typer(survey_app, name="survey")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"sfumato {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


@app.command("demo")
def _demo(
    folder: Annotated[
        str | None, Argument(help="Where to keep the hospital's files; else they are removed.")
    ] = None,
    people: Annotated[int, Option("--people", help="How many people to invent.")] = 100_000,
    basics: Annotated[
        bool, Option("--basics", help="Instead: noise, a survey and composition by themselves.")
    ] = False,
) -> None:
    """Show it all: an invented hospital, eight questions, a budget that burns down, a ledger, a year."""
    if basics:
        from sfumato.cli.basics import run as run_basics

        run_basics()
    else:
        from sfumato.cli.demo import run

        run(folder=folder, people=people)


@command(app, "init")
def _init(
    *,
    wishes: Wishes,
    project: ProjectOption = "sfumato.toml",
    yes: Annotated[bool, Option("--yes", "-y", help="Ask nothing; take what the options say.")] = False,
    force: Annotated[bool, Option("--force", help="Write over a project file.")] = False,
) -> None:
    """Write a project file and begin its ledger; reads the schema of files, never their values."""
    from sfumato.cli.init import run

    run(wishes, project=project, ask=not yes, force=force)


@command(app, "check")
def _check(project: ProjectOption = "sfumato.toml", style: PlainOption = Plain.table) -> None:
    """Compare the project file with the tables it names; say what is missing. Reads no values."""
    from sfumato.cli.check import run

    run(project, as_json=style is Plain.json)


command(app, "query")(query)
command(app, "explain")(explain)
command(app, "workload")(workload)
command(app, "marginals")(marginals)
command(app, "hierarchy")(hierarchy)
command(app, "train")(train)
command(app, "predict")(predict)


@command(app, "budget")
def _budget(style: PlainOption = Plain.table, project: ProjectOption = "sfumato.toml") -> None:
    """Show what is spent and left, and how many more questions like the last one fit."""
    from sfumato.cli.budget import run

    run(project, as_json=style is Plain.json)


command(app, "bounds")(bounds)
_ANSWERS = ("error", "size", "free", *ANSWER_FLAGS)
command(app, "losses", without=_ANSWERS)(losses)
command(app, "caps")(caps)


@command(app, "shell")
def _shell(
    epsilon: EpsilonOption = None,
    analyst: AnalystOption = None,
    purpose: PurposeOption = None,
    yes: Annotated[bool, Option("--yes", "-y", help="Release without asking first.")] = False,
    project: ProjectOption = "sfumato.toml",
) -> None:
    """Ask one question after another: history, completion, and the price of the line as you type."""
    from sfumato.cli.shell import run

    run(project, epsilon=epsilon, analyst=analyst, purpose=purpose, ask=not yes)


@command(app, "audit")
def _audit(
    output: Annotated[
        str | None, Option("--output", "-o", help="A file for the report: .html, .md or .json.")
    ] = None,
    quick: Annotated[bool, Option("--quick", help="Draw a quarter of the samples.")] = False,
    question: Annotated[
        str | None, Option("--question", help="Instead: one question of a project; SQL, a file or -.")
    ] = None,
    training: Annotated[
        bool, Option("--training", help="Instead: one training run of a model, with canaries.")
    ] = False,
    epsilon: EpsilonOption = None,
    project: ProjectOption = "sfumato.toml",
    style: PlainOption = Plain.table,
) -> None:
    """Look for false privacy claims of this installation, one question, or one training. Spends nothing."""
    from sfumato.cli.audit import run, run_question, run_training

    as_json = style is Plain.json
    if training and question is not None:
        raise InvalidArgument("a question and a training run are examined one at a time", place="--training")
    if training:
        code = run_training(output=output, epsilon=epsilon, as_json=as_json)
    elif question is None:
        code = run(output=output, quick=quick, as_json=as_json)
    else:
        code = run_question(question, output=output, project=project, epsilon=epsilon, as_json=as_json)
    if code:
        raise typer.Exit(code)


command(app, "compare")(compare)
command(app, "advise")(advise)


def main() -> None:
    """Run the command line; a refusal is a message and an exit code, never a traceback."""
    as_json = wants_json(sys.argv[1:])
    for stream in (sys.stdout, sys.stderr):  # a letter that the terminal does not have is no reason to fail
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    shown = sys.stdout
    try:
        code = app(sys.argv[1:] or ["--help"], standalone_mode=False, prog_name="sfumato")
        sys.exit(code if isinstance(code, int) else 0)
    except SystemExit:
        if sys.stdout is not shown:  # as the parser leaves it if the reader of its help is gone
            sys.exit(0)
        raise
    except (typer.Abort, KeyboardInterrupt):
        sys.stderr.write("interrupted\n")
        sys.exit(130)
    except BrokenPipeError:  # the reader has seen enough
        sys.exit(0)
    except Exception as error:
        sys.exit(report(refusal_of(error), as_json=as_json))
