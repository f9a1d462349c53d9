"""`sfumato budget`: what is spent and left, and how many more questions like the last one fit."""

from __future__ import annotations

import datetime
from fractions import Fraction
from typing import Any

from sfumato.catalog import Project, read_project
from sfumato.cli.project import book_of
from sfumato.cli.screen import bar, say
from sfumato.core.accountant import PrivacyBudget
from sfumato.core.rules import UNITS
from sfumato.ledger import Balance, Entry, Ledger
from sfumato.ledger.charges import Charge
from sfumato.session import propose
from sfumato.session.price import fits

__all__ = ["lines_of", "record_of", "run"]


def run(file: str, *, as_json: bool) -> None:
    """Show the budget of a project."""
    project = read_project(file)
    with book_of(project) as ledger:
        record = record_of(project, ledger)
    say(record, "\n".join(lines_of(record)), as_json=as_json)


def record_of(project: Project, ledger: Ledger) -> dict[str, Any]:
    """Return what is spent and left, as plain data: public facts only."""
    unit = project.unit
    if unit not in ledger.units():
        propose(project, ledger)  # refuses a second unit, as a question would be
        return {**_account(project.budget, 0, project.budget.limit), "unit": unit, "begun": False}
    balance = ledger.balance(unit)
    record = {
        "unit": unit,
        "begun": True,
        **_account(balance.budget, balance.spent_units, balance.limit),
        "keys_delta": {"spent": float(balance.keys_spent), "left": float(balance.keys_remaining)},
    }
    if balance.renewal is not None:
        ends = None if balance.epoch_ends is None else _date(balance.epoch_ends)
        record["period"] = {
            "every": balance.renewal.every,
            "epsilon": float(balance.renewal.budget.epsilon),
            "spent": _share(balance.totals.epoch_spent, balance.epoch_limit),
            "ends": ends,
        }
    grants = ledger.grants(unit)
    if grants:
        record["analysts"] = {
            grant.analyst: {
                "epsilon": float(grant.budget.epsilon),
                "spent": _share(grant.spent_units, grant.limit),
            }
            for grant in grants
        }
    last = ledger.last_entry(unit)
    if last is not None:
        record["last"] = {
            "reservation": last.sequence,
            "share_of_budget": float(last.cost / Fraction(max(1, balance.limit), UNITS)),
            "times": _times(ledger, balance, last),
        }
    return record


def _times(ledger: Ledger, balance: Balance, last: Entry) -> int:
    """Return how many more charges like one fit: of the same parts, by the same analyst, on the same data."""
    charge = Charge(
        units=int(last.cost * UNITS),
        keys_units=int(last.keys_delta * UNITS),
        parts=last.parts,
        version=balance.totals.version,
        epoch=balance.totals.epoch,
    )
    grant = None if last.analyst is None else ledger.grant_balance(balance.unit, last.analyst)
    return fits(balance, charge, grant)


def _share(spent: int, limit: int) -> float:
    return spent / limit if limit else 1.0


def _date(at: int) -> str:
    return datetime.datetime.fromtimestamp(at / 1000, datetime.UTC).isoformat(timespec="minutes")


def _account(budget: PrivacyBudget, spent: int, limit: int) -> dict[str, Any]:
    used = budget.rule.epsilon(Fraction(spent, UNITS), budget.delta_loss) if spent else 0.0
    return {
        "epsilon": float(budget.epsilon),
        "delta": float(budget.delta),
        "rule": budget.rule.name,
        "spent": _share(spent, limit),
        "spent_epsilon": float(used),
    }


def lines_of(record: dict[str, Any]) -> list[str]:
    """Return the budget as text."""
    spent = record["spent"]
    terms = f"epsilon {record['epsilon']:g}, delta {record['delta']:g}"
    lines = [
        f"budget of `{record['unit']}`, for ever: {terms}, {record['rule']} rule",
        f"  {bar(spent)}  {spent:.1%} spent, {1 - spent:.1%} left",
        f"  all answers together have cost epsilon {record['spent_epsilon']:.3g}",
    ]
    if not record["begun"]:
        return [lines[0], "  not fixed yet: the first question fixes it"]
    keys = record["keys_delta"]
    if keys["spent"] or keys["left"]:
        lines.append(f"  delta for finding groups: {keys['spent']:.3g} spent, {keys['left']:.3g} left")
    if "period" in record:
        period = record["period"]
        lines.append(
            f"  this {period['every']}, of epsilon {period['epsilon']:g}: {bar(period['spent'])} "
            f" {period['spent']:.1%} spent"
        )
        if period["ends"]:
            lines.append(f"    the next {period['every']} begins {period['ends']}; nothing carries over")
    for name, grant in record.get("analysts", {}).items():
        lines.append(
            f"  {name}, of epsilon {grant['epsilon']:g}: {bar(grant['spent'])}  {grant['spent']:.1%} spent"
        )
    if "last" in record:
        last = record["last"]
        lines.append(
            f"  the last question took {last['share_of_budget']:.2%}: {last['times']:,} more like it fit"
        )
    return lines
