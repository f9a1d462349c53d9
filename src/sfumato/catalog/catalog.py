"""The catalog: the tables that questions may be about."""

from __future__ import annotations

from dataclasses import dataclass, field

from sfumato.catalog.canonical import fingerprint
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
        """Return a hash of all that is declared about tables and questions, without grants.

        Who may ask, and how much, is for the ledger: a grant that changes must not make another analyst's
        retry a different request.
        """
        return fingerprint(tables=self.tables, ceiling=self.policy.ceiling, measures=self.policy.measures)
