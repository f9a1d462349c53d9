"""A proposal: what whoever opens data says about it. Nothing of it is on record until something is charged.

Opening data is looking at a price list. The first charge writes, in one transaction with itself, all that
the proposal says and the ledger does not: the terms of the budget, whose the sources are, the grants.
"""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.core.accountant import PrivacyBudget
from sfumato.ledger.renewal import Renewal
from sfumato.ledger.terms import Registered

__all__ = ["Binding", "Proposal"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """A table, by the texts that identify its source, and the column that says whose each row is.

    Without a column every row is a unit by itself; in a public table, there are none.
    """

    table: str
    sources: tuple[str, ...]
    column: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A unit of protection, its terms, and the data that is and is not about it.

    Without a budget, the terms on record hold.
    """

    unit: str
    budget: PrivacyBudget | None = None
    renewal: Renewal | None = None
    partition: str | None = None
    replace_one: bool = False
    distinct: bool = False
    private: tuple[Binding, ...] = ()
    public: tuple[Binding, ...] = ()
    grants: tuple[tuple[str, PrivacyBudget], ...] = ()

    def registered(self, at: int) -> Registered | None:
        """Return the record of its terms; None where they are left to what is on record."""
        if self.budget is None:
            return None
        return Registered.of(
            self.unit,
            self.budget,
            at,
            renewal=self.renewal,
            partition=self.partition,
            replace_one=self.replace_one,
            distinct=self.distinct,
        )
