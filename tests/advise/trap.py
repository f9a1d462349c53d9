"""A trap in the place of open tables and of a ledger: it shows that advice touches neither."""

from __future__ import annotations

from dataclasses import replace
from typing import NoReturn

from sfumato.session.database import Database


class Trap:
    """Whatever is asked of it fails."""

    def __getattr__(self, name: str) -> NoReturn:
        raise AssertionError(f"advice looked at data, or at the ledger: {name}")


def without_data(database: Database) -> Database:
    """Return a database whose engine can say what it has words for, and can read nothing."""
    return replace(database, backend=type(database.backend)(Trap(), database.catalog))
