"""The history of a ledger, as data and as lines: who asked what, when, what for and at what cost."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from fractions import Fraction
from functools import cache
from typing import Any

from sfumato.core.accountant import PrivacyBudget
from sfumato.core.rules import UNITS
from sfumato.errors import LedgerError
from sfumato.ledger import Entry, Ledger

__all__ = ["charges", "date_of", "lines_of", "one_line", "state_of"]

_LONGEST = 100  # letters of a question in a line
_HEADER = "number  when (UTC)        who           epsilon  of budget  answer         question"


def charges(ledger: Ledger, entries: Iterable[Entry], *, texts: bool = True) -> list[dict[str, Any]]:
    """Return charges as plain data; with what was asked and why, where that is kept and this is the owner."""
    listed = tuple(entries)
    units = {entry.unit for entry in listed}
    budgets = {unit: (ledger.budget(unit), ledger.balance(unit).limit) for unit in units}
    try:
        kept = ledger.query_texts(listed) if texts else {}
        withheld = None if texts else "left out"
    except LedgerError as error:
        if error.code != "SF612":
            raise
        kept, withheld = {}, "for the owner"
    found = []
    for entry in listed:
        text = kept.get(entry.sequence)
        state = "kept" if text is not None else withheld or "erased"
        record = {
            **_public(entry, *budgets[entry.unit]),
            "text": "not kept" if entry.question_sha256 is None else state,
            "question": None if text is None else text.question,
            "purpose": None if text is None else text.purpose,
        }
        found.append(record)
    return found


def _public(entry: Entry, budget: PrivacyBudget, limit: int) -> dict[str, Any]:
    return {
        "number": entry.sequence,
        "at": date_of(entry.at).isoformat(timespec="seconds"),
        "unit": entry.unit,
        "analyst": entry.analyst,
        "parts": None if entry.parts is None else list(entry.parts),
        "epsilon": _epsilon(budget, entry.cost),
        "share_of_budget": float(entry.cost / Fraction(max(1, limit), UNITS)),
        "keys_delta": float(entry.keys_delta),
        "request": entry.request_hash,
        "key": entry.key,
        "answered": entry.committed,
        "steps": entry.steps,
        "taken": entry.taken,
    }


@cache
def _epsilon(budget: PrivacyBudget, cost: Fraction) -> float:
    """Return the epsilon of a charge by itself, at the delta that the budget has for losses."""
    return float(budget.rule.epsilon(cost, budget.delta_loss)) if cost else 0.0


def date_of(at: int) -> datetime.datetime:
    """Return a date of the ledger's."""
    return datetime.datetime.fromtimestamp(at / 1000, datetime.UTC)


def lines_of(records: list[dict[str, Any]]) -> list[str]:
    """Return charges as lines under a header."""
    lines = [_HEADER]
    for one in records:
        asked = one["question"] if one["text"] == "kept" else f"({one['text']})"
        lines.append(
            f"{one['number']:>6}  {one['at'][:16].replace('T', ' ')}  {one['analyst'] or 'the owner':<12}  "
            f"{one['epsilon']:>7.3g}  {one['share_of_budget']:>9.2%}  {state_of(one):<13}  "
            f"{one_line(asked or '(no question)', _LONGEST)}"
        )
        more = {"for": one["purpose"], "key": one["key"], "parts": ", ".join(one["parts"] or ())}
        said = [f"{name} {one_line(text, _LONGEST)}" for name, text in more.items() if text]
        if said:
            lines.append(f"{'':>8}{'; '.join(said)}")
    return lines


def state_of(one: dict[str, Any]) -> str:
    """Return whether a charge was answered, in words."""
    if one["steps"] is not None:
        return f"{one['taken']} of {one['steps']} steps, {'ended' if one['answered'] else 'not ended'}"
    return "answered" if one["answered"] else "no answer"


def one_line(text: str, longest: int) -> str:
    r"""Return a text in one line, without anything that a terminal would obey.

    >>> one_line("SELECT COUNT(*)\n  FROM people \x1b[2J", 100)
    'SELECT COUNT(*) FROM people ?[2J'
    """
    plain = "".join(letter if letter.isprintable() else "?" for letter in " ".join(text.split()))
    return plain if len(plain) <= longest else f"{plain[: longest - 2]}.."
