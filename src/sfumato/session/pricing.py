"""The price of a question, in the terms that matter to somebody about to pay it. Free, reads no data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from sfumato.analysis.forecast import forecasts
from sfumato.errors import BudgetExceeded
from sfumato.ledger import Balance, GrantBalance, Owner
from sfumato.ledger.charges import Charge
from sfumato.pipeline import admit, parts_charged
from sfumato.session.question import Question

__all__ = ["Price", "fits", "price_of", "shortage"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """What a question would cost: `share` of the whole budget; `times` it could still be asked."""

    epsilon: Fraction
    keys_delta: Fraction
    units: int
    keys_units: int
    share: float
    times: int
    errors: tuple[tuple[str, str], ...]
    refusal: BudgetExceeded | None

    def lines(self) -> list[str]:
        """Return the price as text."""
        known = [f"  {name}: {error}" for name, error in self.errors]
        left = f"{self.times} more like it fit" if self.times else "it does not fit in what is left"
        return [
            f"epsilon {float(self.epsilon):.4g}: {self.share:.2%} of the budget; {left}",
            *known,
            "nothing was spent",
        ]

    def record(self) -> dict[str, Any]:
        """Return the price as plain data."""
        return {
            "epsilon": float(self.epsilon),
            "keys_delta": float(self.keys_delta),
            "share_of_budget": self.share,
            "times": self.times,
            "errors": dict(self.errors),
        }


def price_of(question: Question, *, size: float | None = None) -> Price:
    """Price a question against what is left; refuse what the policy forbids. `size`: rows of a group."""
    database = question.database
    priced = question.priced()
    admit(priced, database.catalog.policy)
    balance = database.balance
    parts = parts_charged(priced, catalog=database.catalog, ledger=database.ledger)
    units, keys_units = balance.budget.charge(priced.event, priced.keys_delta)
    charge = Charge(
        units=units,
        keys_units=keys_units,
        parts=None if parts is None else tuple(sorted(parts)),
        version=balance.totals.version,  # that of the last charge: nothing is read to see if it is old
        epoch=balance.totals.epoch,
    )
    who = database.analyst
    grant = None if isinstance(who, Owner) else database.ledger.grant_balance(database.unit, who)
    errors = [
        (one.name, "depends on the group's size" if one.error is None else _error(one.error, one.in_ranks))
        for bounding, cost in zip(priced.boundings, priced.costs, strict=True)
        for one in forecasts(bounding, cost, size=size)
    ]
    shown = question.names()
    return Price(
        epsilon=priced.epsilon,
        keys_delta=priced.keys_delta,
        units=units,
        keys_units=keys_units,
        share=units / max(1, balance.limit),
        times=fits(balance, charge, grant),
        errors=tuple((shown.get(name, name), error) for name, error in errors),
        refusal=shortage(balance, charge, grant),
    )


def fits(balance: Balance, charge: Charge, grant: GrantBalance | None = None) -> int:
    """Return how often a charge still fits, now: in the budget, in this period's allowance, in the grant.

    Equal charges leave the totals that one charge as large as their sum would leave; so the
    ledger's own answer to that one decides, and the largest is searched for.
    """
    pairs = ((balance.limit, charge.units), (balance.keys_limit, charge.keys_units))
    most = min((limit // units for limit, units in pairs if units > 0), default=0)
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if shortage(balance, _many(charge, middle), grant) is None:
            low = middle
        else:
            high = middle - 1
    return low


def shortage(balance: Balance, charge: Charge, grant: GrantBalance | None = None) -> BudgetExceeded | None:
    """Return the refusal that a charge would meet now, None if it fits."""
    refusal = balance.shortage(charge, balance.totals.charged(charge))
    return refusal if refusal is not None or grant is None else grant.shortage(charge)


def _many(charge: Charge, times: int) -> Charge:
    return replace(charge, units=times * charge.units, keys_units=times * charge.keys_units)


def _error(error: float, in_ranks: bool) -> str:
    return f"±{error:.4g} rows in rank (95%)" if in_ranks else f"±{error:.4g} (95%)"
