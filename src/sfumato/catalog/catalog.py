"""The catalog: the tables that questions may be about."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from sfumato.catalog.table import Table
from sfumato.errors import InvalidArgument

__all__ = ["Catalog"]


@dataclass(frozen=True, slots=True)
class Catalog:
    """Tables by name, without regard to case."""

    tables: tuple[Table, ...]

    def __post_init__(self) -> None:
        names = [table.name.lower() for table in self.tables]
        if len(set(names)) != len(names):
            raise InvalidArgument("two tables have one name", place="tables")

    def table(self, name: str) -> Table | None:
        """Return a table by its name."""
        return next((table for table in self.tables if table.name.lower() == name.lower()), None)

    def fingerprint(self) -> str:
        """Return a hash of all that is declared: a policy that changes in any way has another."""
        return hashlib.sha256(repr(self).encode()).hexdigest()
