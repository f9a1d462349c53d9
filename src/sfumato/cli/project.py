"""Opening a project for a command: its tables and its ledger, or its ledger alone."""

from __future__ import annotations

from pathlib import Path

from sfumato.catalog import Project, read_project
from sfumato.cli.options import LedgerOptions
from sfumato.cli.screen import working
from sfumato.errors import LedgerError
from sfumato.ledger import OWNER, Ledger
from sfumato.session import Database, open_project

__all__ = ["book_of", "open_ledger", "open_tables"]


def open_tables(file: str, *, analyst: str | None = None, free: bool = False) -> tuple[Project, Database]:
    """Open a project's tables. With `free`, to look at prices: no private value is read."""
    project = read_project(file)
    with working("opening the tables"):
        book = book_of(project)
        who = OWNER if analyst is None else analyst
        return project, open_project(project, analyst=who, ledger=book, read=not free)


def open_ledger(options: LedgerOptions) -> Ledger:
    """Open a ledger by its own path, or the one that a project names."""
    if options.ledger is not None:
        return Ledger.open(options.ledger, create=False)
    return book_of(read_project(options.project))


def book_of(project: Project) -> Ledger:
    """Open the ledger that a project names; one that is missing may have been moved."""
    if not Path(project.ledger).exists():
        raise LedgerError(
            "the project's ledger is not there",
            code="SF601",
            place=str(project.ledger),
            hints=(
                "was it moved? put it back: a new one would begin with nothing spent",
                "if there never was one, `sfumato ledger create` begins it",
            ),
        )
    return Ledger.open(project.ledger, create=False)
