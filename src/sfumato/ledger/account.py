"""An account: the terms on record of one unit of protection, what was spent and what is left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from sfumato.catalog.table import MOST_PARTS
from sfumato.core.accountant import PrivacyBudget
from sfumato.core.rules import UNITS
from sfumato.errors import BudgetExceeded, InvalidArgument, LedgerError
from sfumato.ledger.canonical import canonical
from sfumato.ledger.charges import Charge, Reserved, Totals
from sfumato.ledger.terms import Granted, Owner, Registered, Renewal

__all__ = ["Account", "Balance", "GrantBalance", "check_budget", "check_text", "checked_analyst"]

_LONGEST = 1024


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class _Spending:
    """A limit and what was charged under it, in whole units of 10^-20; and the same of delta for keys."""

    unit: str
    budget: PrivacyBudget
    limit: int
    keys_limit: int
    spent_units: int = 0
    keys_spent_units: int = 0

    @property
    def spent(self) -> Fraction:
        """What has been charged, in the currency of the budget's rule."""
        return Fraction(self.spent_units, UNITS)

    @property
    def remaining(self) -> Fraction:
        """What may still be charged in all, in the currency of the budget's rule."""
        return Fraction(max(0, self.limit - self.spent_units), UNITS)

    @property
    def keys_spent(self) -> Fraction:
        """How much delta key selection has used."""
        return Fraction(self.keys_spent_units, UNITS)

    @property
    def keys_remaining(self) -> Fraction:
        """How much delta key selection may still use."""
        return Fraction(max(0, self.keys_limit - self.keys_spent_units), UNITS)

    def __str__(self) -> str:
        share = Fraction(self.spent_units, self.limit) if self.limit else Fraction(1)
        epsilon, delta = float(self.budget.epsilon), float(self.budget.delta)
        return f"epsilon {epsilon:g}, delta {delta:g}; {float(share):.1%} spent"

    def __repr__(self) -> str:
        return f"<{self}>"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Balance(_Spending):
    """The account of one unit of protection, of the unit that bears most. The lifetime is always shown.

    >>> from sfumato.core import PrivacyBudget, events
    >>> from sfumato.ledger import OWNER, Ledger
    >>> ledger = Ledger.open(None)
    >>> ledger.register("person", PrivacyBudget(epsilon=1))
    >>> asked = {"request_hash": "5f1c", "data_version": "2026-11", "policy_hash": "77ab", "analyst": OWNER}
    >>> with ledger.reserve("person", events.Pure(loss=0.1), 0, **asked) as reservation:
    ...     head = reservation.commit(b"the release")
    >>> ledger.balance("person").remaining
    Fraction(9, 10)
    """

    totals: Totals
    renewal: Renewal | None = None
    epoch_limit: int = 0
    epoch_keys_limit: int = 0
    partition: str | None = None

    @property
    def epoch_spent(self) -> Fraction | None:
        """What has been charged in this epoch; None where the budget is not renewed."""
        return None if self.renewal is None else Fraction(self.totals.epoch_spent, UNITS)

    @property
    def epoch_remaining(self) -> Fraction | None:
        """What the epoch's own allowance still covers; None where the budget is not renewed."""
        left = Fraction(max(0, self.epoch_limit - self.totals.epoch_spent), UNITS)
        return None if self.renewal is None else left

    @property
    def epoch_ends(self) -> int | None:
        """When the next epoch may begin, in milliseconds since 1970."""
        if self.renewal is None or self.totals.epoch is None:
            return None
        return self.renewal.ends(self.totals.epoch)

    @property
    def available(self) -> Fraction:
        """What may be charged now: within this epoch, and within the lifetime."""
        epoch = self.epoch_remaining
        return self.remaining if epoch is None else min(epoch, self.remaining)

    @property
    def parts(self) -> Mapping[str, Fraction]:
        """What was charged to single parts, on top of what all of them bear."""
        return {part: Fraction(units, UNITS) for part, (units, _) in self.totals.parts.items()}

    def shortage(self, charge: Charge, after: Totals) -> BudgetExceeded | None:
        """Return the refusal of a charge that does not fit, None if it fits; `after`: the totals with it."""
        units, keys = charge.units, charge.keys_units
        left, keys_left = self.limit - after.spent + units, self.keys_limit - after.keys_spent + keys
        refusal = self.budget.shortage(units, keys, left=left, keys_left=keys_left)
        if refusal is not None or self.renewal is None:
            return refusal
        left = self.epoch_limit - after.epoch_spent + units
        keys_left = self.epoch_keys_limit - after.epoch_keys_spent + keys
        refusal = self.renewal.budget.shortage(units, keys, left=left, keys_left=keys_left, whole="allowance")
        return _about(f"the allowance of this {self.renewal.every}", refusal)

    def __str__(self) -> str:
        text = f"budget of `{self.unit}`: {_Spending.__str__(self)}"
        if self.renewal is None:
            return text
        now = self.totals.epoch_spent / self.epoch_limit if self.epoch_limit else 1.0
        return f"{text} of the lifetime total, {now:.1%} of this {self.renewal.every}'s allowance"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class GrantBalance(_Spending):
    """What one analyst may spend of a unit's budget, and has spent: each charge counts in full.

    The unit's own limit holds besides.

    >>> from sfumato.core import PrivacyBudget
    >>> from sfumato.ledger import Ledger
    >>> ledger = Ledger.open(None)
    >>> ledger.register("person", PrivacyBudget(epsilon=1))
    >>> ledger.grant("person", "alice", PrivacyBudget(epsilon=0.5))
    >>> [(grant.analyst, grant.remaining) for grant in ledger.grants("person")]
    [('alice', Fraction(1, 2))]
    """

    analyst: str

    def shortage(self, charge: Charge) -> BudgetExceeded | None:
        """Return the refusal of a charge that does not fit, None if it fits."""
        left, keys_left = self.limit - self.spent_units, self.keys_limit - self.keys_spent_units
        refusal = self.budget.shortage(
            charge.units, charge.keys_units, left=left, keys_left=keys_left, whole="grant"
        )
        return _about(f"the grant of `{self.analyst}`", refusal)

    def __str__(self) -> str:
        return f"grant of `{self.analyst}`: {_Spending.__str__(self)}"


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
        pairs = [(name, getattr(self.registered, name), getattr(other, name)) for name in names]
        changed = [name for name, one, two in pairs if canonical(one) != canonical(two)]
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
        touched = 2 if self.registered.replace_one else 1
        if last is None:
            return Totals(touched=touched, epoch=self.epoch(self.registered.at))
        return last.totals if last.totals.touched == touched else replace(last.totals, touched=touched)

    def balance(self, last: Reserved | None, at: int) -> Balance:
        """Return the balance at a time."""
        limit, keys_limit, epoch_limit, epoch_keys_limit = self.limits
        totals = self.totals(last).at(self.epoch(at))
        return Balance(
            unit=self.registered.unit,
            budget=self.budget,
            limit=limit,
            keys_limit=keys_limit,
            spent_units=totals.spent,
            keys_spent_units=totals.keys_spent,
            totals=totals,
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


def check_budget(budget: object) -> None:
    """Refuse what is no budget."""
    if not isinstance(budget, PrivacyBudget):
        hint = "sf.Budget(epsilon=3, delta=1e-7)"
        raise InvalidArgument("a budget is a PrivacyBudget", place="budget", hints=(hint,))


def check_text(text: object, name: str) -> None:
    """Refuse what is no name: nothing, too long, or not printable."""
    if not isinstance(text, str) or not 1 <= len(text) <= _LONGEST or not text.isprintable():
        raise InvalidArgument(f"{name} must be text of 1 to {_LONGEST} printable characters", place=name)


def checked_analyst(analyst: object) -> str | None:
    """Return the name of whoever asks, None for the owner; refuse a name that is missing."""
    if isinstance(analyst, Owner):
        return None
    if analyst is None:
        raise InvalidArgument(
            "say who asks: the name of an analyst, or OWNER",
            place="analyst",
            hints=("only the budget limits the owner, so a missing name does not stand for the owner",),
        )
    check_text(analyst, "analyst")
    return str(analyst)


def _about(what: str, refusal: BudgetExceeded | None) -> BudgetExceeded | None:
    if refusal is None:
        return None
    return BudgetExceeded(
        f"{what}: {refusal.message}",
        requested=refusal.requested,
        remaining=refusal.remaining,
        hints=refusal.hints,
    )
