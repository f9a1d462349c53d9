"""The catalog: the tables that questions may be about."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace

from sfumato.catalog.policy import Policy
from sfumato.catalog.table import Table
from sfumato.errors import InvalidArgument

__all__ = ["Catalog"]


@dataclass(frozen=True, slots=True)
class Catalog:
    """Tables by name, without regard to case, and what their owner allows to be asked of them."""

    tables: tuple[Table, ...]
    policy: Policy = field(default_factory=Policy)

    def __post_init__(self) -> None:
        names = [table.name.lower() for table in self.tables]
        if len(set(names)) != len(names):
            raise InvalidArgument("two tables have one name", place="tables")
        divided = [table.unit.name for table in self.tables if table.unit and table.partition]
        if len(set(divided)) != len(divided):  # their columns may differ: a unit would be in two parts
            raise InvalidArgument("one table of a unit has a partition at most", place="partition")

    def table(self, name: str) -> Table | None:
        """Return a table by its name."""
        return next((table for table in self.tables if table.name.lower() == name.lower()), None)

    def fingerprint(self) -> str:
        """Return a hash of all that is declared, without the grants: those are the ledger's."""
        declared = replace(self, policy=replace(self.policy, analysts=()))
        return hashlib.sha256(repr(declared).encode()).hexdigest()
