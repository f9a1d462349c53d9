"""Terms: what is allowed. Budgets of units, grants of analysts, and whom a source is about.

Whoever opens data proposes terms. Nothing of a proposal is on record until something is charged: the first
charge writes, in one transaction with itself, what the proposal says and the ledger does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar

from sfumato.core.accountant import PrivacyBudget
from sfumato.ledger.canonical import restored
from sfumato.ledger.charges import Totals
from sfumato.ledger.records import Record, as_dict, as_text, as_whole
from sfumato.ledger.renewal import Renewal

__all__ = ["Binding", "Bound", "Granted", "OWNER", "Owner", "Proposal", "Registered"]


class Owner(Enum):
    """Whoever owns the data: the budget alone limits what the owner asks."""

    OWNER = "owner"


OWNER = Owner.OWNER
"""Given where an analyst is asked for. None is refused: a name that is missing must not mean "no limit"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered(Record):
    """A unit of protection and what may ever be learned about one of them.

    The limits, in units of 10^-20, are those computed on the day: a later version that
    computes a larger one does not widen a budget. `distinct` is the owner's word that a second unit
    of a ledger is not the first one under another name.
    """

    kind: ClassVar[str] = "registered"
    unit: str
    budget: dict[str, Any]  # as PrivacyBudget.to_dict wrote it
    limit: int
    keys_limit: int
    renewal: dict[str, Any] | None = None  # as Renewal.to_dict wrote it
    epoch_limit: int = 0
    epoch_keys_limit: int = 0
    partition: str | None = None
    replace_one: bool = False
    distinct: bool = False

    @staticmethod
    def of(
        unit: str,
        budget: PrivacyBudget,
        at: int,
        *,
        renewal: Renewal | None = None,
        partition: str | None = None,
        replace_one: bool = False,
        distinct: bool = False,
    ) -> Registered:
        """Return the record of a new budget."""
        return Registered(
            at=at,
            unit=unit,
            budget=budget.to_dict(),
            limit=budget.limit,
            keys_limit=budget.keys_limit,
            renewal=None if renewal is None else renewal.to_dict(),
            epoch_limit=0 if renewal is None else renewal.budget.limit,
            epoch_keys_limit=0 if renewal is None else renewal.budget.keys_limit,
            partition=partition,
            replace_one=replace_one,
            distinct=distinct,
        )

    def terms(self) -> PrivacyBudget:
        """Return the budget."""
        return PrivacyBudget.from_dict(restored(self.budget))

    def renewed(self) -> Renewal | None:
        """Return how the budget is renewed."""
        return None if self.renewal is None else Renewal.from_dict(self.renewal)

    def start(self, renewal: Renewal | None) -> Totals:
        """Return the totals before the first charge."""
        epoch = None if renewal is None else renewal.epoch_at(self.at)
        return Totals(touched=2 if self.replace_one else 1, epoch=epoch)

    def _fields(self) -> dict[str, Any]:
        names = ("unit", "budget", "limit", "keys_limit", "partition", "replace_one", "distinct")
        epoch = {"epoch_limit": self.epoch_limit, "epoch_keys_limit": self.epoch_keys_limit}
        renewal = None if self.renewal is None else {**self.renewal, **epoch}
        return {**{name: getattr(self, name) for name in names}, "renewal": renewal}

    @classmethod
    def _read(cls, at: int, fields: dict[str, Any]) -> Registered:
        limits = {name: as_whole(fields[name]) for name in ("limit", "keys_limit")}
        renewal = None if fields["renewal"] is None else dict(as_dict(fields["renewal"]))
        if renewal is not None:
            limits |= {name: as_whole(renewal.pop(name)) for name in ("epoch_limit", "epoch_keys_limit")}
        return Registered(
            at=at,
            unit=as_text(fields["unit"]),
            budget=as_dict(fields["budget"]),
            renewal=renewal,
            partition=None if fields["partition"] is None else as_text(fields["partition"]),
            replace_one=_truth(fields["replace_one"]),
            distinct=_truth(fields["distinct"]),
            **limits,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Granted(Record):
    """How much of a unit's budget one analyst may spend; the newest grant holds."""

    kind: ClassVar[str] = "granted"
    unit: str
    analyst: str
    budget: dict[str, Any]  # as PrivacyBudget.to_dict wrote it; of the same rule as the unit's
    limit: int
    keys_limit: int

    @staticmethod
    def of(unit: str, analyst: str, budget: PrivacyBudget, at: int) -> Granted:
        """Return the record of a grant."""
        return Granted(
            at=at,
            unit=unit,
            analyst=analyst,
            budget=budget.to_dict(),
            limit=budget.limit,
            keys_limit=budget.keys_limit,
        )

    def terms(self) -> PrivacyBudget:
        """Return the budget."""
        return PrivacyBudget.from_dict(restored(self.budget))

    def _fields(self) -> dict[str, Any]:
        names = ("unit", "analyst", "budget", "limit", "keys_limit")
        return {name: getattr(self, name) for name in names}

    @classmethod
    def _read(cls, at: int, fields: dict[str, Any]) -> Granted:
        return Granted(
            at=at,
            unit=as_text(fields["unit"]),
            analyst=as_text(fields["analyst"]),
            budget=as_dict(fields["budget"]),
            limit=as_whole(fields["limit"]),
            keys_limit=as_whole(fields["keys_limit"]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound(Record):
    """A source of data, by a keyed hash of what identifies it, and the unit that it is about, for ever.

    `column` is the one that says whose each row is; None: every row is a unit by itself. The same people
    under the same name, but told apart by another column, would be other people.
    """

    kind: ClassVar[str] = "bound"
    unit: str
    source: str
    column: str | None

    def _fields(self) -> dict[str, Any]:
        return {"unit": self.unit, "source": self.source, "column": self.column}

    @classmethod
    def _read(cls, at: int, fields: dict[str, Any]) -> Bound:
        column = None if fields["column"] is None else as_text(fields["column"])
        return Bound(at=at, unit=as_text(fields["unit"]), source=as_text(fields["source"]), column=column)


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


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("true or false expected")
    return value
