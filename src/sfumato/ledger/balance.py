"""What is left of a budget, and what it was spent on."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from sfumato.core.accountant import PrivacyBudget
from sfumato.core.events.base import Event
from sfumato.core.rules import UNITS
from sfumato.errors import BudgetExceeded

__all__ = ["Balance", "Entry"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Balance:
    """The account of one unit of protection, in whole units of 10^-20."""

    unit: str
    budget: PrivacyBudget
    limit: int
    keys_limit: int
    spent_units: int
    keys_spent_units: int

    @property
    def spent(self) -> Fraction:
        """What has been charged, in the currency of the budget's rule."""
        return Fraction(self.spent_units, UNITS)

    @property
    def remaining(self) -> Fraction:
        """What may still be charged, in the currency of the budget's rule."""
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
        share = 1 - self.remaining / Fraction(self.limit, UNITS) if self.limit else Fraction(1)
        epsilon, delta = float(self.budget.epsilon), float(self.budget.delta)
        return f"budget of `{self.unit}`: epsilon {epsilon:g}, delta {delta:g}; {float(share):.1%} spent"

    def shortage(self, units: int, keys_units: int) -> BudgetExceeded | None:
        """Return the refusal of a charge that does not fit, None if it fits."""
        left, keys_left = self.limit - self.spent_units, self.keys_limit - self.keys_spent_units
        return self.budget.shortage(units, keys_units, left=left, keys_left=keys_left)


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
