"""What is left of a budget, and what it was spent on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from sfumato.core.accountant import PrivacyBudget
from sfumato.core.events.base import Event
from sfumato.core.rules import UNITS
from sfumato.errors import BudgetExceeded
from sfumato.ledger.renewal import Renewal
from sfumato.ledger.totals import Charge, Totals

__all__ = ["Balance", "Entry", "GrantBalance"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Balance:
    """The account of one unit of protection, in whole units of 10^-20. The lifetime total is always shown."""

    unit: str
    budget: PrivacyBudget
    limit: int
    keys_limit: int
    totals: Totals = field(default_factory=Totals)
    renewal: Renewal | None = None
    epoch_limit: int = 0
    epoch_keys_limit: int = 0
    partition: str | None = None

    # -- the lifetime -------------------------------------------------------------------------

    @property
    def spent_units(self) -> int:
        """What has been charged to the unit that bears most, in units."""
        return self.totals.spent

    @property
    def keys_spent_units(self) -> int:
        """How much delta key selection has used, in units."""
        return self.totals.keys_spent

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

    # -- this epoch, and parts ----------------------------------------------------------------

    @property
    def epoch_spent(self) -> Fraction | None:
        """What has been charged in this epoch; None where the budget is not renewed."""
        return None if self.renewal is None else Fraction(self.totals.epoch_spent, UNITS)

    @property
    def epoch_remaining(self) -> Fraction | None:
        """What the epoch's own allowance still covers; None where the budget is not renewed."""
        if self.renewal is None:
            return None
        return Fraction(max(0, self.epoch_limit - self.totals.epoch_spent), UNITS)

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

    def remaining_in(self, part: str) -> Fraction:
        """Return what may still be charged to one part in all."""
        others = [units for name, (units, _) in self.totals.parts.items() if name != part]
        beside = sum(sorted(others, reverse=True)[: self.totals.touched - 1])
        own = self.totals.parts.get(part, (0, 0))[0]
        return Fraction(max(0, self.limit - self.totals.common - beside - own), UNITS)

    # -- asking -------------------------------------------------------------------------------

    def shortage(self, charge: Charge, after: Totals) -> BudgetExceeded | None:
        """Return the refusal of a charge that does not fit, None if it fits; `after`: the totals with it."""
        refusal = self.budget.shortage(
            charge.units,
            charge.keys_units,
            left=self.limit - after.spent + charge.units,
            keys_left=self.keys_limit - after.keys_spent + charge.keys_units,
        )
        if refusal is not None or self.renewal is None:
            return refusal
        return _about(
            f"the allowance of this {self.renewal.every}",
            self.renewal.budget.shortage(
                charge.units,
                charge.keys_units,
                left=self.epoch_limit - after.epoch_spent + charge.units,
                keys_left=self.epoch_keys_limit - after.epoch_keys_spent + charge.keys_units,
            ),
        )

    def __str__(self) -> str:
        share = 1 - self.remaining / Fraction(self.limit, UNITS) if self.limit else Fraction(1)
        epsilon, delta = float(self.budget.epsilon), float(self.budget.delta)
        text = f"budget of `{self.unit}`: epsilon {epsilon:g}, delta {delta:g}; {float(share):.1%} spent"
        if self.renewal is None:
            return text
        now = self.totals.epoch_spent / self.epoch_limit if self.epoch_limit else 1.0
        return f"{text} of the lifetime total, {now:.1%} of this {self.renewal.every}'s allowance"


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantBalance:
    """What one analyst may spend of a unit's budget, and has spent. The unit's own limit holds besides."""

    unit: str
    analyst: str
    budget: PrivacyBudget
    limit: int
    keys_limit: int
    spent_units: int
    keys_spent_units: int

    @property
    def spent(self) -> Fraction:
        """What this analyst's charges add up to, each counted in full."""
        return Fraction(self.spent_units, UNITS)

    @property
    def remaining(self) -> Fraction:
        """What this analyst's grant still covers."""
        return Fraction(max(0, self.limit - self.spent_units), UNITS)

    @property
    def keys_spent(self) -> Fraction:
        """How much delta this analyst's key selections have used."""
        return Fraction(self.keys_spent_units, UNITS)

    @property
    def keys_remaining(self) -> Fraction:
        """How much delta this analyst's key selections may still use."""
        return Fraction(max(0, self.keys_limit - self.keys_spent_units), UNITS)

    def shortage(self, charge: Charge) -> BudgetExceeded | None:
        """Return the refusal of a charge that does not fit, None if it fits."""
        left, keys_left = self.limit - self.spent_units, self.keys_limit - self.keys_spent_units
        refusal = self.budget.shortage(charge.units, charge.keys_units, left=left, keys_left=keys_left)
        return _about(f"the grant of `{self.analyst}`", refusal)

    def __str__(self) -> str:
        share = Fraction(self.spent_units, self.limit) if self.limit else Fraction(1)
        epsilon, delta = float(self.budget.epsilon), float(self.budget.delta)
        return f"grant of `{self.analyst}`: epsilon {epsilon:g}, delta {delta:g}; {float(share):.1%} spent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One charge, as an owner or an analyst may see it: public facts only."""

    sequence: int
    at: int  # milliseconds since 1970, by the clock of the machine that wrote it
    unit: str
    cost: Fraction  # in the currency of the budget's rule
    keys_delta: Fraction
    event: Event
    request_hash: str
    policy_hash: str
    key: str | None
    committed: bool  # False: still being answered, or burnt
    analyst: str | None = None
    parts: tuple[str, ...] | None = None  # None: charged to every part


def _about(what: str, refusal: BudgetExceeded | None) -> BudgetExceeded | None:
    if refusal is None:
        return None
    return BudgetExceeded(
        f"{what}: {refusal.message}",
        requested=refusal.requested,
        remaining=refusal.remaining,
        hints=refusal.hints,
    )
