"""A small ledger and the ways to spend from it, shared by the tests."""

from __future__ import annotations

import sqlite3
from fractions import Fraction
from pathlib import Path

from sfumato.core import PrivacyBudget
from sfumato.core.events import Pure
from sfumato.ledger import OWNER, Ledger, Reservation

HASHES = {"request_hash": "request", "data_version": "1", "policy_hash": "policy", "analyst": OWNER}
HUNDREDTH = Pure(loss=Fraction(1, 100))


def opened(path: Path | None, epsilon: Fraction | int = 1, **settings: float) -> Ledger:
    """Open a ledger in which the unit `person` has a budget of pure epsilon."""
    ledger = Ledger.open(path, **settings)
    ledger.register("person", PrivacyBudget(epsilon=epsilon))
    return ledger


def reserve(ledger: Ledger, event: Pure = HUNDREDTH, **changes: object) -> Reservation:
    return ledger.reserve("person", event, 0, **{**HASHES, **changes})


def answer(ledger: Ledger, release: bytes = b"noisy", **changes: object) -> bytes:
    """Spend a hundredth, as the pipeline does."""
    with reserve(ledger, **changes) as reservation:
        if reservation.replayed is not None:
            return reservation.replayed
        reservation.commit(release)
        return release


def raw(ledger: Ledger) -> sqlite3.Connection:
    """Return the connection below a ledger, as someone who owns the file has it."""
    return ledger._journal._connection
