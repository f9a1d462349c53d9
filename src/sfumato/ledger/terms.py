"""Terms: what is allowed. Budgets of units and of epochs, grants of analysts, and whom a source is about.

Whoever opens data proposes terms. Nothing of a proposal is on record until something is charged: the first
charge writes, in one transaction with itself, what the proposal says and the ledger does not.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar

from sfumato.core.accountant import PrivacyBudget
from sfumato.errors import InvalidArgument
from sfumato.ledger.canonical import restored
from sfumato.ledger.records import Record, as_dict, as_whole, rebuilt

__all__ = ["Binding", "Bound", "EPOCHS", "Granted", "OWNER", "Owner", "Proposal", "Registered", "Renewal"]

_EPOCH_LIMITS = ("epoch_limit", "epoch_keys_limit")
_DAY = 86_400_000
_FIRST_MONDAY = 4  # 1970-01-05, in days
_LAST = 253_402_300_799_999  # the end of the year 9999, in milliseconds
EPOCHS = ("day", "week", "month", "year")
"""The periods after which an allowance is renewed."""


class Owner(Enum):
    """Whoever owns the data: the budget alone limits what the owner asks.

    >>> import sfumato as sf
    >>> sf.OWNER is Owner.OWNER
    True
    """

    OWNER = "owner"


OWNER = Owner.OWNER
"""Given where an analyst is asked for. None is refused: a name that is missing must not mean "no limit"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Renewal:
    """An allowance for each epoch, within the lifetime budget that it is registered with.

    Epochs are numbered in UTC, so no change to summer time touches them, and the number only grows: it
    is kept in the chain of records, and a charge belongs to the larger of the number on record and
    the clock's. A clock that jumps forward opens one epoch, however far it jumps; set back, it opens none
    until it has caught up. What an epoch leaves unspent is not carried over.

    Theorem: whatever the epochs, all charges together stay within the lifetime budget, which is the
    guarantee about a person. The allowance bounds in the same way what one epoch's answers tell.

    >>> Renewal(every="week", budget=PrivacyBudget(epsilon=0.5)).epoch_at(0)
    0
    """

    every: str
    budget: PrivacyBudget

    def __post_init__(self) -> None:
        if self.every not in EPOCHS:
            raise InvalidArgument(
                f"a budget is renewed every {', '.join(EPOCHS[:-1])} or {EPOCHS[-1]}",
                place="every",
                hints=("the calendar is that of UTC",),
            )
        if not isinstance(self.budget, PrivacyBudget):
            raise InvalidArgument("a renewal needs the PrivacyBudget of one epoch", place="budget")

    def epoch_at(self, at: int) -> int:
        """Return the number of the epoch at a time, in milliseconds since 1970."""
        days = min(max(at, 0), _LAST) // _DAY
        match self.every:
            case "day":
                return days
            case "week":
                return (days - _FIRST_MONDAY + 7) // 7
        date = datetime.date(1970, 1, 1) + datetime.timedelta(days=days)
        return date.year if self.every == "year" else date.year * 12 + date.month - 1

    def ends(self, epoch: int) -> int:
        """Return when an epoch ends, in milliseconds since 1970."""
        match self.every:
            case "day":
                return (epoch + 1) * _DAY
            case "week":
                return (epoch * 7 + _FIRST_MONDAY) * _DAY
            case "year":
                year, month = epoch + 1, 0
            case _:
                year, month = divmod(epoch + 1, 12)
        if year > datetime.MAXYEAR:
            return _LAST + 1
        return (datetime.date(year, month + 1, 1) - datetime.date(1970, 1, 1)).days * _DAY

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready record; `Renewal.from_dict` reads it back."""
        return {"every": self.every, "budget": self.budget.to_dict()}

    @staticmethod
    def from_dict(record: dict[str, Any]) -> Renewal:
        """Rebuild a renewal from a record of a ledger."""
        return Renewal(every=record["every"], budget=PrivacyBudget.from_dict(restored(record["budget"])))


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

    def terms(self) -> PrivacyBudget:
        """Return the budget."""
        return PrivacyBudget.from_dict(restored(self.budget))

    def renewed(self) -> Renewal | None:
        """Return how the budget is renewed."""
        return None if self.renewal is None else Renewal.from_dict(self.renewal)

    def _fields(self) -> dict[str, Any]:
        said = Record._fields(self)
        limits = {name: said.pop(name) for name in _EPOCH_LIMITS}
        return {**said, "renewal": None if self.renewal is None else {**self.renewal, **limits}}

    @classmethod
    def _read(cls, said: dict[str, Any]) -> Registered:
        renewal = None if said["renewal"] is None else dict(as_dict(said["renewal"]))
        limits = {name: 0 if renewal is None else as_whole(renewal.pop(name)) for name in _EPOCH_LIMITS}
        return rebuilt(cls, said, renewal=renewal, **limits)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """A table, by the texts that identify its source, and the column that says whose each row is.

    Without a column every row is a unit by itself; in a public table, there are none.

    >>> Binding(table="visits", sources=("file:visits.parquet",), column="person").column
    'person'
    """

    table: str
    sources: tuple[str, ...]
    column: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A unit of protection, its terms, and the data that is and is not about it.

    Without a budget, the terms on record hold.

    >>> from sfumato.core import PrivacyBudget
    >>> Proposal(unit="person", budget=PrivacyBudget(epsilon=3)).unit
    'person'
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
        budget, renewal = self.budget, self.renewal
        return Registered(
            at=at,
            unit=self.unit,
            budget=budget.to_dict(),
            limit=budget.limit,
            keys_limit=budget.keys_limit,
            renewal=None if renewal is None else renewal.to_dict(),
            epoch_limit=0 if renewal is None else renewal.budget.limit,
            epoch_keys_limit=0 if renewal is None else renewal.budget.keys_limit,
            partition=self.partition,
            replace_one=self.replace_one,
            distinct=self.distinct,
        )
