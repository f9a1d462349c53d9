"""A small ledger and the ways to spend from it, shared by the tests."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from fractions import Fraction
from pathlib import Path

from sfumato.core import PrivacyBudget
from sfumato.core.events import Pure
from sfumato.ledger import OWNER, Ledger, Reservation
from sfumato.ledger.postgres.schema import SCHEMA

HASHES = {"request_hash": "request", "data_version": "1", "policy_hash": "policy", "analyst": OWNER}
HUNDREDTH = Pure(loss=Fraction(1, 100))


def opened(path: Path | str | None, epsilon: Fraction | int = 1, **settings: float) -> Ledger:
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


def before_each_statement(ledger: Ledger, call: Callable[[str], None]) -> None:
    """Call a function before each statement that a ledger sends to its database."""
    connection = raw(ledger)
    if isinstance(connection, sqlite3.Connection):
        connection.set_trace_callback(call)
        return
    execute = connection.execute

    def traced(statement: str, values: tuple[object, ...] = ()) -> object:
        call(statement)
        return execute(statement, values)

    connection.execute = traced


def tamper(place: Path | str, *statements: str) -> None:
    """Change what a ledger holds, as someone does who owns it and knows how to get past the triggers."""
    if isinstance(place, str):
        import psycopg

        with psycopg.connect(place) as server:
            server.execute(f"SET search_path = {SCHEMA}; SET session_replication_role = replica")
            for statement in statements:
                assert server.execute(statement).rowcount > 0
        return
    with closing(sqlite3.connect(place)) as file, file:
        triggers = file.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            file.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            assert file.execute(statement).rowcount > 0
        for _, trigger in triggers:
            file.execute(trigger)
