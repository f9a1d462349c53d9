"""The commands about the ledger: begin it, check it, look at it, and take parts of it elsewhere."""

from __future__ import annotations

from typing import Annotated

from typer import Argument, Option

from sfumato.cli.options import (
    Format,
    FormatOption,
    LedgerOptions,
    OutputOption,
    Plain,
    PlainOption,
    ProjectOption,
    command,
    group_of,
)

__all__ = ["ledger_app"]

ledger_app = group_of("Begin, verify, show and export the ledger.")


@command(ledger_app, "create")
def _create(options: LedgerOptions) -> None:
    """Begin a new, empty ledger. The first question fixes the budget in it, for ever."""
    from sfumato.cli.ledger import create

    create(options)


@command(ledger_app, "grant")
def _grant(
    analyst: Annotated[str, Argument(help="The name of an analyst in the project file.")],
    project: ProjectOption = "sfumato.toml",
) -> None:
    """Put the grant that the project file states on record; it replaces an earlier one."""
    from sfumato.cli.ledger import grant

    grant(project, analyst)


@command(ledger_app, "verify")
def _verify(
    *,
    anchor: Annotated[
        str | None, Option("--anchor", help="A head noted before, to find what was cut off or rewritten.")
    ] = None,
    options: LedgerOptions,
    style: PlainOption = Plain.table,
) -> None:
    """Walk the whole chain; find any record that was edited, deleted, moved or put in."""
    from sfumato.cli.ledger import verify

    verify(options, anchor, as_json=style is Plain.json)


@command(ledger_app, "anchor")
def _anchor(options: LedgerOptions) -> None:
    """Print the head of the chain: keep it where the ledger's keeper cannot write."""
    from sfumato.cli.ledger import anchor

    anchor(options)


@command(ledger_app, "history")
def _history(
    *,
    limit: Annotated[int, Option("--limit", "-n", help="How many to show; 0 for all.")] = 20,
    options: LedgerOptions,
    style: PlainOption = Plain.table,
) -> None:
    """List what was charged: public facts only."""
    from sfumato.cli.ledger import history

    history(options, limit, as_json=style is Plain.json)


@command(ledger_app, "show")
def _show(
    *,
    number: Annotated[int, Argument(help="The number of the charge that paid for it.")],
    step: Annotated[int | None, Option("--step", help="Of a charge for several looks: which one.")] = None,
    style: FormatOption = Format.table,
    output: OutputOption = None,
    options: LedgerOptions,
) -> None:
    """Show an old answer again, free."""
    from sfumato.cli.ledger import show

    show(options, number, style.value, output, step)


@command(ledger_app, "receipt")
def _receipt(
    receipt: Annotated[str, Argument(help="The number of a charge; or a receipt, a file or -, to check.")],
    options: LedgerOptions,
) -> None:
    """Print the receipt of an answer, or check one that somebody holds against the ledger."""
    from sfumato.cli.ledger import receipt as run

    run(options, receipt)


@command(ledger_app, "export")
def _export(
    *,
    output: Annotated[str, Argument(help="The file to write, or - for standard output.")] = "-",
    releases: Annotated[bool, Option(help="With the answers that were given.")] = True,
    options: LedgerOptions,
) -> None:
    """Write every record as JSON Lines that an outsider can check without this program."""
    from sfumato.cli.ledger import export

    export(options, output, releases=releases)
