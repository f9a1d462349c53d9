"""The price of a question against what is left of the budget: its errors, and how often it still fits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from html import escape
from typing import TYPE_CHECKING, Any

from sfumato.errors import BudgetExceeded
from sfumato.ledger import Balance, GrantBalance, Owner
from sfumato.ledger.charges import Charge
from sfumato.pipeline import Priced, admit, parts_charged

if TYPE_CHECKING:
    from sfumato.session.database import Database

__all__ = ["Price", "charge_of", "fits", "price_together", "shortage"]

_COLUMNS = ("question", "column", "error")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Price:
    """What a question would cost: `share` of the whole budget; `times` it could still be asked.

    `errors` are pairs of a column and its error; of a workload the question comes first. `head` is said
    before the errors, the share of the budget unless a kind of question has its own words, and `foot` after
    them. `facts` are the numbers of its record, where a kind has its own.
    """

    epsilon: Fraction
    keys_delta: Fraction
    units: int
    keys_units: int
    share: float
    times: int
    errors: tuple[tuple[str, ...], ...] = ()
    notes: tuple[str, ...] = ()
    refusal: BudgetExceeded | None = None
    head: tuple[str, ...] = ()
    foot: tuple[str, ...] = ("nothing was spent",)
    facts: Mapping[str, Any] | None = None

    def __repr__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> list[str]:
        """Return the price as text."""
        first, *rest = self._said()
        return [first, *(f"  {line}" for line in (*rest, *self._errors(), *self._remarks())), *self.foot]

    def html(self) -> str:
        """Return the price as HTML: a table of errors, and what is said around it."""
        first, *rest = (escape(line) for line in self._said())
        width = max(map(len, self.errors), default=0)
        rows = [f"<tr>{_cells(one, 'td')}</tr>" for one in self.errors]
        head = f"<thead><tr>{_cells(_COLUMNS[-width:], 'th')}</tr></thead>"
        table = f"<table>{head}<tbody>{''.join(rows)}</tbody></table>" if rows else ""
        after = (*rest, *map(escape, (*self._remarks(), *self.foot)))
        return f"<div>{first}</div>{table}{''.join(f'<div><small>{line}</small></div>' for line in after)}"

    def _said(self) -> tuple[str, ...]:
        if self.head:
            return self.head
        if not self.epsilon:
            return self.notes or ("this is about public tables alone: free",)
        left = f"{self.times} more like it fit" if self.times else "it does not fit in what is left"
        return (f"epsilon {float(self.epsilon):.4g}: {self.share:.2%} of the budget; {left}",)

    def _remarks(self) -> tuple[str, ...]:
        return self.notes if self.epsilon else ()

    def _errors(self) -> Iterator[str]:
        """Yield a line for each error: questions, where there are several, are aligned."""
        width = max((len(one[0]) for one in self.errors), default=0)
        for *question, column, error in self.errors:
            named = "".join(f"{name.ljust(width)}  " for name in question)
            yield f"{named}{column}: {error}"

    def record(self) -> dict[str, Any]:
        """Return the price as plain data."""
        several = any(len(one) == len(_COLUMNS) for one in self.errors)
        named = [dict(zip(_COLUMNS, one, strict=False)) for one in self.errors]
        found = {
            "epsilon": float(self.epsilon),
            "keys_delta": float(self.keys_delta),
            "share_of_budget": self.share,
            "times": self.times,
            "errors": named if several else {one[0]: one[-1] for one in self.errors},
            "notes": list(self.notes),
        }
        return found if self.facts is None else {**self.facts, "errors": found["errors"]}


def _cells(texts: Iterable[str], tag: str) -> str:
    return "".join(f'<{tag} style="text-align:left">{escape(text)}</{tag}>' for text in texts)


def price_together(
    database: Database,
    several: Sequence[Priced],
    errors: Iterable[tuple[str, ...]] = (),
    notes: Iterable[str] = (),
) -> Price:
    """Return the price of several things of the same rows that are charged for one after another.

    It is against what is left of the budget; what the policy forbids is refused.
    """
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
