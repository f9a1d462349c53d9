"""The commands, each in a file of its own that is loaded when the command runs."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from sfumato import __version__
from sfumato.errors import SfumatoError

__all__ = ["app", "main"]

app = typer.Typer(
    name="sfumato",
    help="Publish what records say about a population, and almost nothing about any one person.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"sfumato {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    pass


@app.command("demo")
def _demo() -> None:
    """Show a noised count, a coin-toss survey, and what three releases cost together."""
    from sfumato.cli.demo import run

    run()


def main() -> None:
    """Run the command line; a refusal is a message and exit code 2, not a traceback."""
    try:
        app()
    except SfumatoError as refusal:
        typer.echo(refusal, err=True)
        sys.exit(2)
