"""Budgets belong to people: no name, copy, view, second table or other door gives a fresh one."""

from __future__ import annotations

import hashlib
import shutil
import threading
from dataclasses import replace
from fractions import Fraction as F

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.errors import BudgetExceeded, LedgerError
from sfumato.ledger import Binding, Ledger, Proposal, verify_receipt
from sfumato.ledger.accounts import Accounts

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
    connect(folder)
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


# -- project files: every order, every name --------------------------------------------------------

PRIVATE = """
[tables.people]
path = "people.parquet"
unit = "id"
max_rows = 1
"""
PUBLIC = """
[tables.lookup]
path = "people.parquet"
public = true
"""
ENDING = """
[budget]
epsilon = 1
"""
LEAK = "WITH t AS (SELECT COUNT(*) AS n FROM people) SELECT l.id, l.age FROM t CROSS JOIN lookup l"


def project(folder, text, *, ledger="a.ledger", begin=True):
    if begin:
        Ledger.open(folder / "a.ledger").close()
    path = folder / "sfumato.toml"
    path.write_text(f'ledger = "{ledger}"\n{text}{ENDING}')
    return path


def open_refused(path) -> str:
    with pytest.raises(LedgerError) as refusal:
        sf.open(path).sql(LEAK, epsilon=0.1).release()
    assert refusal.value.hints
    return refusal.value.code


@pytest.mark.parametrize(
    "tables", [PRIVATE + PUBLIC, PUBLIC + PRIVATE], ids=["private first", "public first"]
)
@pytest.mark.parametrize("name", ["people.parquet", "copy.parquet", "link.parquet"])
def test_no_order_of_tables_makes_a_private_file_public(folder, tables, name):
    shutil.copy(folder / "people.parquet", folder / "copy.parquet")
    (folder / "link.parquet").symlink_to(folder / "people.parquet")
    head, _, tail = tables.partition(PUBLIC)
    public = PUBLIC.replace("people.parquet", name)
    path = project(folder, f"{head}{public}{tail}")
    assert open_refused(path) == "SF610"
    with Ledger.open(folder / "a.ledger") as ledger:
        assert ledger.units() == () and ledger.head().sequence == 1, "what is refused is not on record"


@pytest.mark.parametrize(
    "other", ["each_row = true", 'unit = "person"'], ids=["each row is a unit", "another column"]
)
def test_a_name_for_the_people_does_not_let_others_be_protected_in_their_place(folder, other):
    """One person with a thousand rows is one person, whatever `protects` says."""
    rows = [0] * 1000 + list(range(1, 11))
    table = pa.table({"id": rows, "age": [30] * len(rows), "person": range(len(rows))})
    pq.write_table(table, folder / "people.parquet")
    protects = 'protects = "id"\n'
    path = project(folder, PRIVATE)
    path.write_text(protects + path.read_text())
    sf.open(path).sql(COUNT, epsilon=0.1).release()
    changed = path.read_text().replace('unit = "id"\nmax_rows = 1', other)
    assert changed != path.read_text()
    path.write_text(changed)
    assert open_refused(path) == "SF610"
    more = pa.concat_tables([table, table.slice(0, 1)])
    pq.write_table(more, folder / "more.parquet")  # in a file that the ledger has never seen, too
    path.write_text(changed.replace("people.parquet", "more.parquet"))
    if "each_row" in other:
        assert open_refused(path) == "SF610"


def test_a_link_to_the_ledger_is_the_ledger(folder):
    """Its key lies beside the file, not beside the link: under another key no source is recognised."""
    path = project(folder, PRIVATE)
    sf.open(path).sql(COUNT, epsilon=0.1).release(key="monday")
    (folder / "sub").mkdir()
    (folder / "sub" / "l.ledger").symlink_to("../a.ledger")
    again = project(folder, PRIVATE, ledger="sub/l.ledger", begin=False)
    assert sf.open(again).sql(COUNT, epsilon=0.1).release(key="monday").receipt
    (folder / "other.csv").write_text("id\n7\n")
    other = PRIVATE.replace("people.parquet", "other.csv")
    assert open_refused(project(folder, PUBLIC + other, ledger="sub/l.ledger", begin=False)) == "SF610"
    with Ledger.open(folder / "sub" / "l.ledger") as ledger:
        assert len(ledger.public_keys()) == 1
        assert ledger.path == (folder / "a.ledger").resolve()
    assert {one.name for one in (folder / "sub").iterdir()} == {"l.ledger"}


@pytest.mark.parametrize("lost", ["deleted", "another"])
def test_without_its_key_a_ledger_opens_no_data(folder, lost):
    path = project(folder, PRIVATE)
    sf.open(path).sql(COUNT, epsilon=0.1).release()
    key = folder / "a.ledger-key"
    held = key.read_text()
    if lost == "deleted":
        key.unlink()
    else:
        key.write_text("ab" * 32 + "\n")
    (folder / "other.csv").write_text("id\n7\n")
    other = PRIVATE.replace("people.parquet", "other.csv")
    for tables in (PUBLIC + other, PRIVATE):
        with pytest.raises(LedgerError) as refusal:
            sf.open(project(folder, tables, begin=False)).sql(COUNT, epsilon=0.1).release()
        assert refusal.value.code == "SF602" and refusal.value.place.endswith("a.ledger-key")
        assert "restore" in refusal.value.hints[0]
    assert refused(folder, pa.table({"id": [1]})) == "SF602"
    with Ledger.open(folder / "a.ledger") as ledger:
        ledger.verify()
        assert len(ledger.public_keys()) == 1 and ledger.spent("id") == F(1, 10)
    assert key.exists() == (lost == "another"), "no new key is made"
    key.write_text(held)
    sf.open(project(folder, PRIVATE, begin=False)).sql(COUNT, epsilon=0.1).release()


def test_opening_writes_nothing_and_the_first_charge_everything(folder):
    text = PRIVATE + "[policy.analysts.anna]\nepsilon = 0.5\n"
    path = project(folder, text)
    before = (folder / "a.ledger").read_bytes()
    db = sf.open(path, analyst="anna")
    assert db.budget.remaining == 1 and db.ledger.grant_balance("id", "anna").remaining == F(1, 2)
    with pytest.raises(BudgetExceeded):
        db.sql(COUNT, epsilon=0.6).release()
    assert db.ledger.units() == () and db.budget.spent == 0
    db.ledger.close()
    path.write_text(path.read_text().replace("epsilon = 1\n", "epsilon = 2\n"))
    db = sf.open(path, analyst="anna")
    db.sql(COUNT, epsilon=0.5).release()
    assert db.ledger.units() == ("id",) and db.budget.remaining == F(3, 2)
    assert len(before) > 0 and db.ledger.bound([f"path {(folder / 'people.parquet').resolve()}"]) == "id"
    assert db.ledger.grant_balance("id", "anna").remaining == 0
    db.ledger.verify()


def test_of_two_who_open_before_the_first_charge_one_fixes_the_terms(folder):
    """Both looked at a ledger without a budget; the second to charge finds another one on record."""
    path = project(folder, PRIVATE)
    first = sf.open(path)
    path.write_text(path.read_text().replace("epsilon = 1", "epsilon = 9"))
    second = sf.open(path)
    first.sql(COUNT, epsilon=0.1).release()
    with pytest.raises(LedgerError) as refusal:
        second.sql(COUNT, epsilon=5).release()
    assert refusal.value.code == "SF605"
    with Ledger.open(folder / "a.ledger") as ledger:
        assert ledger.budget("id").epsilon == 1 and ledger.spent("id") == F(1, 10)
        ledger.verify()


def test_what_was_open_as_public_is_looked_at_again_before_the_first_charge(folder):
    (folder / "other.csv").write_text("id\n7\n")
    other = PRIVATE.replace("people.parquet", "other.csv")
    early = sf.open(project(folder, PUBLIC + other))
    sf.open(project(folder, PRIVATE, begin=False)).sql(COUNT, epsilon=0.1).release()
    with pytest.raises(LedgerError) as refusal:
        early.sql(LEAK, epsilon=0.1).release()
    assert refusal.value.code == "SF610"


def test_proposals_on_one_ledger_agree_with_each_other():
    ledger = Ledger.open(None)
    ledger.propose(Proposal(unit="id", budget=BUDGET))
    with pytest.raises(LedgerError) as refusal:
        ledger.propose(Proposal(unit="id", budget=sf.Budget(epsilon=2)))
    assert refusal.value.code == "SF605"
    same = Binding(table="t", sources=("path",), column="id")
    with pytest.raises(LedgerError) as refusal:
        ledger.propose(Proposal(unit="id", budget=BUDGET, private=(same,), public=(same,)))
    assert refusal.value.code == "SF610"
    with pytest.raises(LedgerError):
        ledger.propose(Proposal(unit="nobody"))
    assert ledger.units() == () and ledger.remaining("id") == 1
    ledger.grant("id", "anna", sf.Budget(epsilon=F(1, 2)))  # an act of the owner's, so it fixes the terms
    assert ledger.units() == ("id",)


def test_terms_that_another_thread_puts_on_record_meanwhile_are_found(monkeypatch):
    """The record is read; before proposals are, another thread writes them there, and forgets them."""
    ledger = Ledger.open(None)
    ledger.propose(Proposal(unit="id", budget=BUDGET))
    read = Accounts._account

    def read_before_the_others_charge(accounts: Accounts, unit: str) -> object:
        found, pending = read(accounts, unit), tuple(accounts._proposed)
        accounts.forget_proposed(pending)
        for one in pending:
            accounts.fix(one)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(Accounts, "_account", read_before_the_others_charge)
        assert ledger.remaining("id") == 1
    assert ledger.units() == ("id",)


def test_threads_that_ask_first_fix_the_terms_once(folder):
    db = sf.open(project(folder, PRIVATE))
    answers: list[object] = []
    ask = db.sql(COUNT, epsilon=0.05).release
    threads = [threading.Thread(target=lambda: answers.append(ask())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 8 and db.budget.spent == F(8, 20)
    kinds = [row.kind for row in db.ledger._journal.rows()]
    assert (kinds.count("registered"), kinds.count("bound"), kinds.count("reserved")) == (1, 2, 8)
    db.ledger.verify()


def test_a_budget_for_replaced_units_answers_no_questions(folder) -> None:
    """They are priced for a unit that is added or removed: a replaced one can move answers twice as far."""
    with Ledger.open(folder / "a.ledger") as ledger:
        ledger.register("id", BUDGET, replace_one=True)
    question = connect(folder, budget=None).sql(COUNT, epsilon=0.5)
    with pytest.raises(LedgerError) as refusal:
        question.release()
    assert refusal.value.code == "SF605"
    with Ledger.open(folder / "a.ledger") as ledger:
        assert ledger.replace_one("id") and ledger.spent("id") == 0
