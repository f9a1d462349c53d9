"""The price of a question against what is left of the budget: its errors, and how often it still fits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from sfumato.aggregates.answer import Forecast
from sfumato.analysis.forecast import forecasts
from sfumato.errors import BudgetExceeded
from sfumato.ledger import Balance, GrantBalance, Owner
from sfumato.ledger.charges import Charge
from sfumato.pipeline import Priced, admit, parts_charged
from sfumato.plan.outline import labels
from sfumato.session.counting import counted
from sfumato.session.explanation import levels

if TYPE_CHECKING:
    from sfumato.session.database import Database
    from sfumato.session.question import Question

__all__ = [
    "ON_LIMITS", "Price", "charge_of", "error_of", "fits", "price_against", "price_of", "price_together",
    "shortage",
]  # fmt: skip

ON_LIMITS = "depends on limits that are found first"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Price:
    """What a question would cost: `share` of the whole budget; `times` it could still be asked."""

    epsilon: Fraction
    keys_delta: Fraction
    units: int
    keys_units: int
    share: float
    times: int
    errors: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    refusal: BudgetExceeded | None = None

    def __repr__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> list[str]:
        """Return the price as text."""
        if not self.epsilon:
            return [*(self.notes or ("this is about public tables alone: free",)), "nothing was spent"]
        left = f"{self.times} more like it fit" if self.times else "it does not fit in what is left"
        return [
            f"epsilon {float(self.epsilon):.4g}: {self.share:.2%} of the budget; {left}",
            *(f"  {name}: {error}" for name, error in self.errors),
            *(f"  {note}" for note in self.notes),
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
            "notes": list(self.notes),
        }


@counted
def price_of(question: Question, *, size: float | None = None) -> Price:
    """Price a question against what is left; refuse what the policy forbids. `size`: rows of a group."""
    database = question.database
    if question.free or question.only_free:
        free = Fraction(0)
        said = () if question.free else (question.said_free(),)
        return Price(epsilon=free, keys_delta=free, units=0, keys_units=0, share=0.0, times=1, notes=said)
    priced = question.priced()
    limits = priced.limits
    errors, shown = [], question.names()
    asked = zip(priced.request.queries, priced.boundings, priced.costs, strict=True)
    for place, (named, bounding, cost) in enumerate(asked):
        names = {**labels(named.query), **shown}
        for one in forecasts(bounding, cost, size=size):
            on_limits = limits is not None and limits.decide(place, one.name)
            errors.append((names[one.name], error_of(one, size=size, on_limits=on_limits)))
    notes = (*levels(question, priced), *question.request.query_notes)
    return price_against(database, priced, errors, notes)


def price_against(
    database: Database,
    priced: Priced,
    errors: Iterable[tuple[str, str]],
    notes: Iterable[str] = (),
) -> Price:
    """Return the price of what can be paid for, against what is left; refuse what the policy forbids."""
    return price_together(database, (priced,), errors, notes)


def price_together(
    database: Database,
    several: Sequence[Priced],
    errors: Iterable[tuple[str, str]] = (),
    notes: Iterable[str] = (),
) -> Price:
    """Return the price of several things of the same rows that are charged for one after another."""
    charges = [charge_of(database, one) for one in several]
    charge, grant = charges[0]
    charge = replace(
        charge,
        units=sum(one.units for one, _ in charges),
        keys_units=sum(one.keys_units for one, _ in charges),
    )
    balance = database.balance
    return Price(
        epsilon=sum((one.epsilon for one in several), Fraction(0)),
        keys_delta=sum((one.keys_delta for one in several), Fraction(0)),
        units=charge.units,
        keys_units=charge.keys_units,
        share=charge.units / max(1, balance.limit),
        times=fits(balance, charge, grant),
        errors=tuple(errors),
        notes=tuple(notes),
        refusal=shortage(balance, charge, grant),
    )


def charge_of(database: Database, priced: Priced) -> tuple[Charge, GrantBalance | None]:
    """Return what would be charged, and the grant that it would be charged to; refuse what is forbidden."""
    admit(priced, database.catalog.policy)
    balance, who = database.balance, database.analyst
    parts = parts_charged(priced, catalog=database.catalog, ledger=database.ledger)
    units, keys_units = balance.budget.charge(priced.event, priced.keys_delta)
    charge = Charge(
        units=units,
        keys_units=keys_units,
        parts=None if parts is None else tuple(sorted(parts)),
        version=balance.totals.version,  # that of the last charge: nothing is read to see if it is old
        epoch=balance.totals.epoch,
    )
    return charge, None if isinstance(who, Owner) else database.ledger.grant_balance(database.unit, who)


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
        many = replace(charge, units=middle * charge.units, keys_units=middle * charge.keys_units)
        if shortage(balance, many, grant) is None:
            low = middle
        else:
            high = middle - 1
    return low


def shortage(balance: Balance, charge: Charge, grant: GrantBalance | None = None) -> BudgetExceeded | None:
    """Return the refusal that a charge would meet now, None if it fits."""
    refusal = balance.shortage(charge, balance.totals.charged(charge))
    return refusal if refusal is not None or grant is None else grant.shortage(charge)


def error_of(one: Forecast, *, size: float | None = None, on_limits: bool = False) -> str:
    """Return the error that is expected, as text; `size` is what the forecast took for that of a group."""
    if on_limits:
        return ON_LIMITS
    if one.error is None:
        return "depends on the group's size"
    if one.falls_short:
        return f"at most {one.error:.4g} {one.falls_short} (95%)"
    if one.in_ranks:
        return f"±{one.error:.4g} rows in rank (95%)" if size is None else f"±{one.error:.2%} of ranks (95%)"
    return f"±{one.error:.4g} (95%)"
