"""Budgets belong to people: no name, copy, view, second table or other door gives a fresh one."""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import replace
from fractions import Fraction as F

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.errors import BudgetExceeded, LedgerError
from sfumato.ledger import Ledger, verify_receipt

BUDGET = sf.Budget(epsilon=1)
ROWS = pa.table({"id": [1, 2, 3], "age": [30, 40, 50], "person": [1, 2, 3]})
COUNT = "SELECT COUNT(*) AS n FROM people"


@pytest.fixture
def folder(tmp_path):
    pq.write_table(ROWS, tmp_path / "people.parquet")
    return tmp_path


def connect(folder, source="people.parquet", **changes):
    options = {"unit": "id", "budget": BUDGET, "ledger": folder / "a.ledger", "name": "people", "max_rows": 1}
    return sf.connect(folder / source if isinstance(source, str) else source, **{**options, **changes})


def refused(folder, *arguments, **changes) -> str:
    with pytest.raises(LedgerError) as refusal:
        connect(folder, *arguments, **changes)
    return refusal.value.code


def test_the_same_unit_is_charged_under_every_name(folder):
    connect(folder).sql(COUNT, epsilon=0.5).release()
    shutil.copy(folder / "people.parquet", folder / "copy.parquet")
    more = pa.table({"id": [1, 9], "visits": [3, 4]})
    for source in ("people.parquet", "copy.parquet", ROWS, more):
        assert connect(folder, source).budget.spent == F(1, 2)
    assert connect(folder, "copy.parquet", name="view").budget.spent == F(1, 2)
    assert connect(folder, budget=None).budget.spent == F(1, 2)
    with pytest.raises(BudgetExceeded):
        connect(folder, "copy.parquet").sql(COUNT, epsilon=0.6).release()


def test_another_unit_is_refused_in_the_same_ledger(folder):
    connect(folder)
    assert refused(folder, unit="person") == "SF610"  # the column was renamed, or there are two
    assert refused(folder, unit=None) == "SF610"  # each row a unit by itself
    assert refused(folder, unit=None, name="other") == "SF610"
    assert refused(folder, budget=sf.Budget(epsilon=2)) == "SF605"
    with Ledger.open(folder / "a.ledger") as ledger:
        assert ledger.units() == ("id",)


def test_the_owners_word_does_not_give_the_same_data_a_second_unit(folder):
    """`distinct` admits another unit, but not for a source that is on record."""
    connect(folder)
    shutil.copy(folder / "people.parquet", folder / "copy.parquet")
    (folder / "link.parquet").symlink_to(folder / "people.parquet")
    for source in ("people.parquet", "copy.parquet", "link.parquet"):
        assert refused(folder, source, unit="person", distinct=True) == "SF610"
    (folder / "people.parquet").rename(folder / "renamed.parquet")
    assert refused(folder, "renamed.parquet", unit=None, distinct=True) == "SF610"
    frame = pa.table({"id": [7], "person": [8]})
    connect(folder, frame)
    assert refused(folder, frame, unit="person", distinct=True) == "SF610"
    firms = pa.table({"firm": [1, 2]})
    connect(folder, firms, unit="firm", distinct=True)  # other data, other unit, and on record as such
    with Ledger.open(folder / "a.ledger") as ledger:
        assert "firm" in ledger.units()
        ledger.verify()


def test_what_is_about_people_cannot_be_opened_as_public(folder):
    assert refused(folder, public={"open": folder / "people.parquet"}) == "SF610"
    other = pa.table({"id": [5]})
    assert refused(folder, other, public={"open": folder / "people.parquet"}) == "SF610"
    connect(folder, public={"regions": pa.table({"name": ["north"]})})


def test_an_analyst_asks_under_a_grant_and_gets_a_receipt(folder):
    owner = connect(folder)
    alice = connect(folder, analyst="alice")
    with pytest.raises(LedgerError) as refusal:
        alice.sql(COUNT, epsilon=0.1).release()
    assert refusal.value.code == "SF609"
    owner.ledger.grant("id", "alice", sf.Budget(epsilon=F(1, 10)))
    release = alice.sql(COUNT, epsilon=0.1).release(key="monday")
    assert release.receipt["analyst"] == "alice"
    anchor = verify_receipt(release.receipt, owner.ledger.public_key)
    owner.ledger.verify(anchor)
    unsigned = replace(release, receipt={}).to_json().encode()
    assert release.receipt["answer"] == hashlib.sha256(unsigned).hexdigest()
    again = connect(folder, analyst="alice").sql(COUNT, epsilon=0.1).release(key="monday")
    assert again.to_json() == release.to_json()  # free, the same bytes, the same receipt
    with pytest.raises(BudgetExceeded, match="alice"):
        alice.sql(COUNT, epsilon=0.1).release()
