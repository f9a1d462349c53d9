"""Texts of questions: kept with a charge for the owner alone, found if altered, gone when erased."""

from __future__ import annotations

import hashlib
import io
import json
import os
import stat
from pathlib import Path

import pytest

from sfumato.core.events import Pure
from sfumato.errors import BudgetExceeded, InvalidArgument, LedgerError
from sfumato.ledger import Ledger
from sfumato.ledger.journal import Journal
from tests.ledger.accounts import answer, opened, raw, reserve

QUESTION = "SELECT COUNT(*) FROM people WHERE name = 'Ada Byron'"
PURPOSE = "the yearly report"
NEWEST = "sequence = (SELECT max(sequence) FROM query_texts)"


def texts(ledger: Ledger) -> dict[int, tuple[str | None, str | None]]:
    return {at: (one.question, one.purpose) for at, one in ledger.query_texts(ledger.history()).items()}


def files(path: Path) -> bytes:
    return b"".join(each.read_bytes() for each in sorted(path.parent.iterdir()))


def exported(ledger: Ledger, **options: bool) -> list[dict[str, str]]:
    out = io.StringIO()
    ledger.export(out, **options)
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_what_was_asked_is_kept_with_the_charge(folder: Path) -> None:
    with opened(folder / "a") as ledger:
        answer(ledger, question=QUESTION, purpose=PURPOSE)
        answer(ledger, purpose=PURPOSE)
        answer(ledger)
    with Ledger.open(folder / "a") as ledger:
        first, second, third = ledger.history()
        assert texts(ledger) == {first.sequence: (QUESTION, PURPOSE), second.sequence: (None, PURPOSE)}
        assert third.question_sha256 is None and ledger.verify() == ledger.head()


@pytest.mark.parametrize("purpose", ["", "two\nlines", "x" * 1025, 5])
def test_a_purpose_is_a_line(purpose: object) -> None:
    ledger = opened(None)
    with pytest.raises(InvalidArgument) as refusal:
        reserve(ledger, purpose=purpose)
    assert refusal.value.place == "purpose" and ledger.history() == ()


def test_public_facts_do_not_have_it() -> None:
    ledger = opened(None)
    with reserve(ledger, question=QUESTION, purpose=PURPOSE) as reservation:
        receipt = reservation.receipt("e3b0")
        reservation.commit(b"noisy")
    seen = [repr(ledger.history()), repr(receipt), repr(exported(ledger)), repr(reservation), repr(ledger)]
    assert not any("Ada" in text or "yearly" in text for text in seen)


def test_guesses_cannot_be_tested() -> None:
    """The hash is salted: the same question has another one each time, and none is that of the text."""
    ledger = opened(None)
    for _ in range(2):
        answer(ledger, question=QUESTION)
    one, two = (entry.question_sha256 for entry in ledger.history())
    guess = json.dumps({"purpose": None, "question": QUESTION}, separators=(",", ":"))
    assert one != two and hashlib.sha256(guess.encode()).hexdigest() not in (one, two)
    salts = {text.salt for text in ledger.query_texts(ledger.history()).values()}
    assert len(salts) == 2 and all(len(salt) == 32 for salt in salts)


def test_a_charge_that_is_refused_keeps_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = opened(None)
    with pytest.raises(BudgetExceeded):
        reserve(ledger, Pure(loss=2), question=QUESTION)
    assert raw(ledger).execute("SELECT count(*) FROM query_texts").fetchone() == (0,)

    def fail(*_: object) -> None:
        raise LedgerError("no room", code="SF601")

    monkeypatch.setattr(Journal, "keep_text", fail)
    with pytest.raises(LedgerError):
        reserve(ledger, question=QUESTION)
    assert ledger.history() == () and ledger.spent("person") == 0, "without the text there is no charge"


def test_a_replay_keeps_the_first_text() -> None:
    ledger = opened(None)
    answer(ledger, idempotency_key="k", question=QUESTION, purpose="first")
    answer(ledger, idempotency_key="k", question="another spelling", purpose="second")
    assert list(texts(ledger).values()) == [(QUESTION, "first")]


@pytest.mark.parametrize(
    "statement",
    [
        f"UPDATE query_texts SET text = replace(text, 'Ada', 'Bob') WHERE {NEWEST}",
        f"UPDATE query_texts SET text = CAST(text AS BLOB) WHERE {NEWEST}",
        f"DELETE FROM query_texts WHERE {NEWEST}",
        "INSERT INTO query_texts SELECT 1, text FROM query_texts LIMIT 1",
        "INSERT INTO query_texts SELECT 1, x'00'",
        "UPDATE query_texts SET text = (SELECT max(text) FROM query_texts)",
        "UPDATE query_texts SET text = (SELECT min(text) FROM query_texts)",
    ],
)
def test_every_change_of_a_text_is_found(statement: str) -> None:
    ledger = opened(None)
    for _ in range(2):
        answer(ledger, question=QUESTION)
    file = raw(ledger)
    wanted = "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = 'query_texts'"
    triggers = file.execute(wanted).fetchall()
    assert len(triggers) == 2
    for name, _ in triggers:
        file.execute(f"DROP TRIGGER {name}")
    file.execute(statement)
    for _, sql in triggers:
        file.execute(sql)
    with pytest.raises(LedgerError) as refusal:
        ledger.verify()
    assert refusal.value.code == "SF602"


def test_an_altered_text_is_not_shown() -> None:
    ledger = opened(None)
    answer(ledger, question=QUESTION)
    file = raw(ledger)
    file.execute("DROP TRIGGER texts_never_updated")
    file.execute("UPDATE query_texts SET text = replace(text, 'Ada', 'Bob')")
    with pytest.raises(LedgerError) as refusal:
        texts(ledger)
    assert refusal.value.code == "SF602" and refusal.value.sequence == ledger.history()[0].sequence


def test_no_slip_changes_a_text() -> None:
    ledger = opened(None)
    answer(ledger, question=QUESTION)
    for slip in ("UPDATE query_texts SET text = ''", "INSERT INTO query_texts VALUES (1, 'x')"):
        with pytest.raises(Exception, match=r"texts are kept or erased|a text belongs to a charge"):
            raw(ledger).execute(slip)


def test_what_is_erased_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with opened(path) as ledger:
        for number in range(5):
            answer(ledger, question=f"{QUESTION} -- {number}", purpose=PURPOSE)
        before, spent = ledger.history(), ledger.spent("person")
        assert files(path).count(b"Ada Byron") >= 5
        assert ledger.erase_query_texts([before[1].sequence, 10**6]) == 1
        assert b"-- 1" not in files(path) and b"-- 2" in files(path)
        assert ledger.erase_query_texts([before[1].sequence]) == 0
        assert ledger.verify() == ledger.head() and before[1].sequence not in texts(ledger)
        assert ledger.erase_query_texts() == 4 and texts(ledger) == {}
        assert b"Ada" not in files(path) and b"yearly" not in files(path), "the log is empty, too"
        assert ledger.history() == before and ledger.spent("person") == spent
        head = ledger.head()
        assert ledger.erase_query_texts() == 0 and ledger.head() == head, "nothing to say"
        answer(ledger, question=QUESTION)
        assert ledger.verify() == ledger.head()
    erased = [row for row in Ledger.open(path)._journal.rows() if row.kind == "erased"]
    assert [json.loads(row.body)["reservations"] for row in erased] == [
        [str(before[1].sequence)],
        [str(entry.sequence) for entry in before if entry != before[1]],
    ]


def test_an_export_has_texts_only_if_asked() -> None:
    ledger = opened(None)
    answer(ledger, question=QUESTION, purpose=PURPOSE)
    assert all("question" not in line for line in exported(ledger))
    [line] = [line for line in exported(ledger, questions=True) if "question" in line]
    assert json.loads(line["question"])["question"] == QUESTION
    found = hashlib.sha256(line["question"].encode()).hexdigest()
    assert json.loads(line["body"])["question_sha256"] == found, "an outsider can check it"


def test_the_file_is_its_owners(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = os.umask(0)
    try:
        ledger = opened(tmp_path / "a")
        answer(ledger, question=QUESTION, idempotency_key="k")
    finally:
        os.umask(before)
    assert {stat.S_IMODE(each.stat().st_mode) for each in tmp_path.iterdir()} == {0o600}
    entries = ledger.history()
    monkeypatch.setattr(os, "geteuid", lambda: 54_321)
    for attempt in (
        lambda: ledger.query_texts(entries),
        lambda: ledger.erase_query_texts(),
        lambda: ledger.export(io.StringIO(), questions=True),
    ):
        with pytest.raises(LedgerError) as refusal:
            attempt()
        assert refusal.value.code == "SF612"
    assert ledger.history() == entries and ledger.export(io.StringIO()) > 0, "all else can be seen"
