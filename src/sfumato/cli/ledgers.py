"""The commands about the ledger: begin it, check it, look at it, and take parts of it elsewhere."""

from __future__ import annotations

from typing import Annotated

import typer

from sfumato.cli.options import (
    Format,
    FormatOption,
    JsonErrorsOption,
    OutputOption,
    Plain,
    PlainOption,
    ProjectOption,
)

__all__ = ["ledger_app"]

ledger_app = typer.Typer(
    help="Begin, verify, show and export the ledger.", no_args_is_help=True, rich_markup_mode=None
)

_Ledger = Annotated[
    str | None, typer.Option("--ledger", help="The ledger's file; else the one that the project names.")
]


@ledger_app.command("create")
def _create(
    ledger: _Ledger = None, project: ProjectOption = "sfumato.toml", json_errors: JsonErrorsOption = False
) -> None:
    """Begin a new, empty ledger. The first question fixes the budget in it, for ever."""
    from sfumato.cli.ledger import create

    create(project, ledger)


@ledger_app.command("grant")
def _grant(
    analyst: Annotated[str, typer.Argument(help="The name of an analyst in the project file.")],
    project: ProjectOption = "sfumato.toml",
    json_errors: JsonErrorsOption = False,
) -> None:
    """Put the grant that the project file states on record; it replaces an earlier one."""
    from sfumato.cli.ledger import grant

    grant(project, analyst)


@ledger_app.command("verify")
def _verify(
    anchor: Annotated[
        str | None,
        typer.Option("--anchor", help="A head noted before, to find what was cut off or rewritten."),
    ] = None,
    ledger: _Ledger = None,
    project: ProjectOption = "sfumato.toml",
    style: PlainOption = Plain.table,
    json_errors: JsonErrorsOption = False,
) -> None:
    """Walk the whole chain; find any record that was edited, deleted, moved or put in."""
    from sfumato.cli.ledger import verify

    verify(project, ledger, anchor, as_json=style is Plain.json)


@ledger_app.command("anchor")
def _anchor(
    ledger: _Ledger = None, project: ProjectOption = "sfumato.toml", json_errors: JsonErrorsOption = False
) -> None:
    """Print the head of the chain: keep it where the ledger's keeper cannot write."""
    from sfumato.cli.ledger import anchor

    anchor(project, ledger)


@ledger_app.command("history")
def _history(
    limit: Annotated[int, typer.Option("--limit", "-n", help="How many to show; 0 for all.")] = 20,
    ledger: _Ledger = None,
    project: ProjectOption = "sfumato.toml",
    style: PlainOption = Plain.table,
    json_errors: JsonErrorsOption = False,
) -> None:
    """List what was charged: public facts only."""
    from sfumato.cli.ledger import history

    history(project, ledger, limit, as_json=style is Plain.json)


@ledger_app.command("show")
def _show(
    number: Annotated[int, typer.Argument(help="The number of the charge that paid for it.")],
    step: Annotated[
        int | None, typer.Option("--step", help="Of a charge for several looks: which one.")
    ] = None,
    style: FormatOption = Format.table,
    output: OutputOption = None,
    ledger: _Ledger = None,
    project: ProjectOption = "sfumato.toml",
    json_errors: JsonErrorsOption = False,
) -> None:
    """Show an old answer again, free."""
    from sfumato.cli.ledger import show

    show(project, ledger, number, style.value, output, step=step)


@ledger_app.command("receipt")
def _receipt(
    receipt: Annotated[
        str, typer.Argument(help="The number of a charge; or a receipt, a file or -, to check.")
    ],
    ledger: _Ledger = None,
    project: ProjectOption = "sfumato.toml",
    json_errors: JsonErrorsOption = False,
) -> None:
    """Print the receipt of an answer, or check one that somebody holds against the ledger."""
    from sfumato.cli.ledger import receipt as run

    run(project, ledger, receipt)


@ledger_app.command("export")
def _export(
    output: Annotated[str, typer.Argument(help="The file to write, or - for standard output.")] = "-",
    releases: Annotated[bool, typer.Option(help="With the answers that were given.")] = True,
    ledger: _Ledger = None,
    project: ProjectOption = "sfumato.toml",
    json_errors: JsonErrorsOption = False,
) -> None:
    """Write every record as JSON Lines that an outsider can check without this program."""
    from sfumato.cli.ledger import export

    export(project, ledger, output, releases=releases)
