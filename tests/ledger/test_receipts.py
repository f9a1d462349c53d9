"""A receipt carries the hash of a ledger's record. It must not let its reader test guesses about the data.

The reader knows all but one value of the table and everything else that went into the record: its
other fields, the record before it, the clock, the source code.
"""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest

import sfumato as sf
from sfumato.backends import open_tables
from sfumato.ledger.receipts import Key
from sfumato.ledger.records import Link
from sfumato.release import Release
from sfumato.session import Database


def frame(secret: float) -> pd.DataFrame:
    return pd.DataFrame({"person": range(20), "x": [1.0] * 19 + [secret]})


def opened(secret: float) -> Database:
    budget = sf.Budget(epsilon=9, delta=1e-6)
    return sf.connect(frame(secret), name="people", unit="person", max_groups=1, max_rows=1, budget=budget)


def fits(guess: float, database: Database, release: Release) -> bool:
    """Whether the receipt is the one that a table with the guessed value would have made."""
    number = int(release.receipt["reservation"])
    journal = database.ledger._journal
    with journal.reading():
        (row,) = journal.rows("WHERE sequence = ?", number)
    record = Link(sequence=number, previous=row.previous, body=row.body).read()
    version = open_tables({"people": frame(guess)}).version()
    forged = replace(record, data_version=f"version\n{version}")
    body = forged.body(number)
    head = Link(sequence=number, previous=row.previous, body=body).head
    return str(head) == release.receipt["anchor"]


def released(secret: float) -> tuple[Database, Release]:
    database = opened(secret)
    return database, database.sql("SELECT COUNT(*) AS n FROM people", epsilon=1).release()


def test_a_receipt_does_not_confirm_a_guess() -> None:
    database, release = released(2.0)
    assert not fits(2.0, database, release)  # the truth
    assert not fits(3.0, database, release)


def test_the_attack_would_work_on_a_bare_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Key, "blind", lambda self, text: text)
    database, release = released(2.0)
    assert fits(2.0, database, release)
    assert not fits(3.0, database, release)
