"""Renewal: how much of a lifetime budget may be spent in one day, week, month or year.

Epochs are numbered in UTC, so no change to summer time touches them, and the number only grows: it
is kept in the chain of records, and a charge belongs to the larger of the number on record and
the clock's. A clock that jumps forward opens one epoch, however far it jumps; set back, it opens none
until it has caught up. What an epoch leaves unspent is not carried over.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Any

from sfumato.core.accountant import PrivacyBudget
from sfumato.errors import InvalidArgument
from sfumato.ledger.canonical import restored

__all__ = ["EPOCHS", "Renewal"]

_DAY = 86_400_000
_FIRST_MONDAY = 4  # 1970-01-05, in days
_LAST = 253_402_300_799_999  # the end of the year 9999, in milliseconds
EPOCHS = ("day", "week", "month", "year")
"""The periods after which an allowance is renewed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Renewal:
    """An allowance for each epoch, within the lifetime budget that it is registered with.

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
