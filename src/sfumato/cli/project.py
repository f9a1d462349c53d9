"""Opening a project for a command: its tables and its ledger, or its ledger alone."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sfumato.catalog import Project, read_project
from sfumato.cli.options import LedgerOptions
from sfumato.cli.screen import screen, working
from sfumato.errors import LedgerError, RoleWarning
from sfumato.ledger import OWNER, Ledger
from sfumato.session import Database, open_project

__all__ = ["book_of", "open_ledger", "open_tables", "role_notes", "tables_of"]


def open_tables(file: str, *, analyst: str | None = None, free: bool = False) -> tuple[Project, Database]:
    """Open a project's tables. With `free`, to look at prices: no private value is read."""
    project = read_project(file)
    return project, tables_of(project, analyst=analyst, free=free)


def tables_of(project: Project, *, analyst: str | None = None, free: bool = False) -> Database:
    """Open the tables of a project that was read."""
    with working("opening the tables"), role_notes() as notes:
        book = book_of(project)
        who = OWNER if analyst is None else analyst
        database = open_project(project, analyst=who, ledger=book, read=not free)
    for note in notes:
        screen(error=True).print(f"note: {note}")
    return database


@contextmanager
def role_notes() -> Iterator[list[str]]:
    """Collect what is said, while tables are opened, about a role that may do more than read them."""
    found: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RoleWarning)
        yield found
    found += [str(one.message) for one in caught]


def open_ledger(options: LedgerOptions) -> Ledger:
    """Open a ledger by its own path, or the one that a project names."""
    if options.ledger is not None:
        return Ledger.open(options.ledger, create=False)
    return book_of(read_project(options.project))


def book_of(project: Project) -> Ledger:
    """Open the ledger that a project names; one that is missing may have been moved."""
    if isinstance(project.ledger, Path) and not project.ledger.exists():
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
