"""An account: the terms on record of one unit of protection, and what follows from them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from sfumato.catalog.table import MOST_PARTS
from sfumato.core.accountant import PrivacyBudget
from sfumato.errors import InvalidArgument, LedgerError
from sfumato.ledger.balance import Balance, GrantBalance
from sfumato.ledger.canonical import canonical
from sfumato.ledger.charges import Reserved
from sfumato.ledger.renewal import Renewal
from sfumato.ledger.terms import Granted, Registered
from sfumato.ledger.totals import Totals

__all__ = ["Account", "check_text"]

_LONGEST = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """What was fixed when a unit was registered; it never changes."""

    registered: Registered
    budget: PrivacyBudget
    renewal: Renewal | None
    limits: tuple[int, int, int, int] = field(init=False)
    """Of the lifetime and of an epoch, each with that of keys. Rounds: down, if computed differently."""

    def __post_init__(self) -> None:
        record, renewal = self.registered, self.renewal
        computed = (
            self.budget.limit,
            self.budget.keys_limit,
            0 if renewal is None else renewal.budget.limit,
            0 if renewal is None else renewal.budget.keys_limit,
        )
        on_record = (record.limit, record.keys_limit, record.epoch_limit, record.epoch_keys_limit)
        object.__setattr__(self, "limits", tuple(map(min, computed, on_record)))

    @staticmethod
    def of(record: Registered) -> Account:
        """Return the account that a record opened."""
        return Account(registered=record, budget=record.terms(), renewal=record.renewed())

    def check_same(self, other: Registered) -> None:
        """Refuse other terms for the same unit."""
        names = ("budget", "renewal", "partition", "replace_one")
        changed = [
            name
            for name in names
            if canonical(getattr(self.registered, name)) != canonical(getattr(other, name))
        ]
        if changed:
            raise LedgerError(
                f"unit `{other.unit}` is on record with another {changed[0].replace('_', ' ')}",
                code="SF605",
                place=changed[0],
                hints=(
                    "a budget is fixed once: it is about the people, not about this session",
                    "leave the budget out to go on with the one on record",
                ),
            )

    def epoch(self, at: int) -> int | None:
        """Return the epoch that a clock is in; None where the budget is not renewed."""
        return None if self.renewal is None else self.renewal.epoch_at(at)

    def totals(self, last: Reserved | None) -> Totals:
        """Return the totals after the newest charge."""
        if last is None:
            return self.registered.start(self.renewal)
        touched = 2 if self.registered.replace_one else 1
        return last.totals if last.totals.touched == touched else replace(last.totals, touched=touched)

    def balance(self, last: Reserved | None, at: int) -> Balance:
        """Return the balance at a time."""
        limit, keys_limit, epoch_limit, epoch_keys_limit = self.limits
        return Balance(
            unit=self.registered.unit,
            budget=self.budget,
            limit=limit,
            keys_limit=keys_limit,
            totals=self.totals(last).at(self.epoch(at)),
            renewal=self.renewal,
            epoch_limit=epoch_limit,
            epoch_keys_limit=epoch_keys_limit,
            partition=self.registered.partition,
        )

    def granted(self, grant: Granted, last: Reserved | None) -> GrantBalance:
        """Return what is left of a grant."""
        budget = grant.terms()
        return GrantBalance(
            unit=grant.unit,
            analyst=grant.analyst,
            budget=budget,
            limit=min(grant.limit, budget.limit),
            keys_limit=min(grant.keys_limit, budget.keys_limit),
            spent_units=0 if last is None else last.analyst_spent,
            keys_spent_units=0 if last is None else last.analyst_keys_spent,
        )

    def check_rule(self, budget: object, place: str) -> PrivacyBudget:
        """Refuse a limit in another currency than the unit's own."""
        if not isinstance(budget, PrivacyBudget):
            raise InvalidArgument("a limit is given as a PrivacyBudget", place=place)
        if budget.rule != self.budget.rule:
            raise InvalidArgument(
                f"the budget of unit `{self.registered.unit}` is counted by {self.budget.rule!r}, "
                f"this limit by {budget.rule!r}",
                place=place,
                hints=("give it the same rule: what is added up must be of one currency",),
            )
        return budget

    def checked_parts(self, parts: object) -> tuple[str, ...] | None:
        """Return the parts that a charge may name, in order."""
        if parts is None:
            return None
        if self.registered.partition is None:
            raise LedgerError(
                f"unit `{self.registered.unit}` has no partition; charges are to everyone",
                code="SF605",
                place="parts",
            )
        if not isinstance(parts, (tuple, list, set, frozenset)) or not 1 <= len(parts) <= MOST_PARTS:
            raise InvalidArgument(f"parts must be 1 to {MOST_PARTS} texts, or None for all", place="parts")
        for part in parts:
            check_text(part, "parts")
        return tuple(sorted(set(parts)))


def check_text(text: object, name: str) -> None:
    """Refuse what is no name: nothing, too long, or not printable."""
    if not isinstance(text, str) or not 1 <= len(text) <= _LONGEST or not text.isprintable():
        raise InvalidArgument(f"{name} must be text of 1 to {_LONGEST} printable characters", place=name)
