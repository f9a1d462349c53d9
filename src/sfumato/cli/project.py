"""Opening a project for a command: its tables and its ledger, or its ledger alone."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sfumato.catalog import Project, read_project
from sfumato.cli.screen import working
from sfumato.errors import LedgerError
from sfumato.ledger import OWNER, Ledger
from sfumato.session import Database, open_project

__all__ = ["OpenedProject", "book_of", "open_ledger", "open_tables"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedProject:
    """A project and its database. `begun` is whether its budget is fixed already."""

    project: Project
    database: Database
    begun: bool


def open_tables(file: str, *, analyst: str | None = None, free: bool = False) -> OpenedProject:
    """Open a project's tables. With `free`, to look at prices: no value is, except in CSV files."""
    project = read_project(file)
    with working("opening the tables"):
        book = book_of(project)
        who = OWNER if analyst is None else analyst
        database = open_project(project, analyst=who, ledger=book, read=not free)
        return OpenedProject(project=project, database=database, begun=project.unit in book.units())


def open_ledger(file: str, ledger: str | None) -> Ledger:
    """Open a ledger by its own path, or the one that a project names."""
    if ledger is not None:
        return Ledger.open(ledger, create=False)
    return book_of(read_project(file))


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
