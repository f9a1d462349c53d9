"""The ledger and the budget from the command line: anchors, receipts, exports, grants and periods."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from sfumato.ledger import Ledger
from sfumato.ledger.journal import Journal
from tests.cli.programs import PROJECT, make_project, program, sfumato

COUNT = "SELECT COUNT(*) AS n FROM people"
SHARED = PROJECT + "\n[policy.analysts.anna]\nepsilon = 0.4\n\n[policy.analysts.bo]\nepsilon = 1\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    make_project(tmp_path)
    for _ in range(2):
        assert sfumato(tmp_path, "query", COUNT, "-e", "0.1").returncode == 0
    return tmp_path


def test_an_anchor_finds_an_old_copy(folder: Path) -> None:
    files = [path for path in folder.iterdir() if path.name.startswith("people.ledger")]
    old = {path: path.read_bytes() for path in files}
    assert sfumato(folder, "query", COUNT, "-e", "0.1").returncode == 0
    anchor = sfumato(folder, "ledger", "anchor").stdout.strip()
    assert "the anchor is in it" in sfumato(folder, "ledger", "verify", "--anchor", anchor).stdout
    for path in folder.iterdir():
        if path.name.startswith("people.ledger"):
            path.unlink()
    for path, data in old.items():
        path.write_bytes(data)
    assert sfumato(folder, "ledger", "verify").returncode == 0, "the chain alone cannot tell"
    found = sfumato(folder, "ledger", "verify", "--anchor", anchor, "--json-errors")
    assert found.returncode == 5 and json.loads(found.stderr)["error"]["code"] == "SF602"
    assert sfumato(folder, "ledger", "verify", "--anchor", "nonsense").returncode == 2


def test_an_edit_is_found(folder: Path) -> None:
    with sqlite3.connect(folder / "people.ledger") as file:
        file.execute("DROP TRIGGER IF EXISTS never_updated")
        changed = 'replace(body, \'"key":null\', \'"key":"x"\')'
        file.execute(f"UPDATE records SET body = {changed} WHERE kind = 'reserved'")
    file.close()
    assert sfumato(folder, "ledger", "verify").returncode == 5


def test_history_show_and_receipt(folder: Path) -> None:
    charges = json.loads(sfumato(folder, "ledger", "history", "--format", "json").stdout)
    assert len(charges) == 2 and all(charge["answered"] for charge in charges)
    assert len(sfumato(folder, "ledger", "history", "--limit", "1").stdout.splitlines()) == 2
    number = str(charges[0]["number"])
    before = (folder / "people.ledger").read_bytes()
    shown = json.loads(sfumato(folder, "ledger", "show", number, "--format", "json").stdout)
    receipt = sfumato(folder, "ledger", "receipt", number).stdout
    assert json.loads(receipt) == shown["receipt"]
    (folder / "answer.json").write_text(json.dumps(shown))
    assert sfumato(folder, "ledger", "receipt", "answer.json").returncode == 0
    assert sfumato(folder, "ledger", "receipt", "-", given=receipt).returncode == 0
    forged = {**shown["receipt"], "unit": "somebody"}
    refused = sfumato(folder, "ledger", "receipt", "-", "--json-errors", given=json.dumps(forged))
    assert refused.returncode == 5 and json.loads(refused.stderr)["error"]["code"] == "SF611"
    assert sfumato(folder, "ledger", "receipt", "-", given="[]").returncode == 2
    assert sfumato(folder, "ledger", "show", "999").returncode == 5
    assert (folder / "people.ledger").read_bytes() == before, "looking back is free"


def history(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(sfumato(folder, "ledger", "history", "-f", "json").stdout)
    return found


def test_history_says_who_asked_what_and_what_for(tmp_path: Path) -> None:
    make_project(tmp_path, SHARED)
    asked = "SELECT COUNT(*) AS n\nFROM people WHERE name = '\x1b[2Jeve'"
    ask = ("query", asked, "-e", "0.3", "--analyst", "anna", "--key", "monday")
    assert sfumato(tmp_path, *ask, "--purpose", "a survey").returncode == 0
    assert sfumato(tmp_path, "caps", "visits", "-e", "0.2", "-a", "bo", "--purpose", "set-up").returncode == 0
    header, first, more, second, _ = sfumato(tmp_path, "ledger", "history").stdout.splitlines()
    assert all(word in header for word in ("number", "when", "who", "epsilon", "of budget", "question"))
    assert "anna" in first and "0.3 " in first and "answered" in first, "at what cost"
    assert "SELECT COUNT(*) AS n FROM people WHERE name = '?[2Jeve'" in first, "nothing that a terminal obeys"
    assert more.split() == ["for", "a", "survey;", "key", "monday"] and "bo" in second and "visits" in second
    survey, caps = history(tmp_path)
    assert (survey["question"], survey["purpose"], survey["text"]) == (asked, "a survey", "kept")
    assert survey["epsilon"] == pytest.approx(0.3, rel=1e-3) and caps["purpose"] == "set-up"
    assert "survey" not in sfumato(tmp_path, "ledger", "export").stdout
    assert "a survey" in sfumato(tmp_path, "ledger", "export", "--questions").stdout


def test_questions_are_not_kept_if_the_project_says_so(tmp_path: Path) -> None:
    make_project(tmp_path, PROJECT + "\n[policy]\nkeep_questions = false\n")
    assert sfumato(tmp_path, "query", COUNT, "-e", "0.1").returncode == 0
    assert sfumato(tmp_path, "query", COUNT, "-e", "0.1", "--purpose", "said").returncode == 0
    bare, stated = history(tmp_path)
    assert (bare["text"], stated["question"], stated["purpose"]) == ("not kept", None, "said")
    assert "people" not in sfumato(tmp_path, "ledger", "export", "--questions", "--no-releases").stdout
    assert "(not kept)" in sfumato(tmp_path, "ledger", "history").stdout


def test_texts_are_erased(folder: Path) -> None:
    first, second = history(folder)
    for words in ((), ("3", "--all"), ("--before", "yesterday")):
        assert sfumato(folder, "ledger", "erase", *words).returncode == 2
    assert "the texts of 0 charges" in sfumato(folder, "ledger", "erase", "--before", "2026-01-01").stdout
    assert "the texts of 1 charges" in sfumato(folder, "ledger", "erase", str(first["number"])).stdout
    assert [one["text"] for one in history(folder)] == ["erased", "kept"]
    assert "the texts of 1 charges" in sfumato(folder, "ledger", "erase", "--before", "9999-01-01").stdout
    assert sfumato(folder, "ledger", "verify").returncode == 0
    assert sfumato(folder, "ledger", "show", str(second["number"])).returncode == 0, "answers stay"


def test_whoever_does_not_own_the_file_sees_no_texts(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 54_321)
    assert [(one["text"], one["question"]) for one in history(folder)] == [("for the owner", None)] * 2
    refused = sfumato(folder, "ledger", "export", "--questions", "--json-errors")
    assert refused.returncode == 5 and json.loads(refused.stderr)["error"]["code"] == "SF612"


def test_a_receipt_is_for_the_answer_beside_it(folder: Path) -> None:
    """A genuine receipt next to a number that was changed proves nothing about the number."""
    number = str(json.loads(sfumato(folder, "ledger", "history", "-f", "json").stdout)[0]["number"])
    shown = json.loads(sfumato(folder, "ledger", "show", number, "-f", "json").stdout)
    stored = json.loads(Ledger.open(folder / "people.ledger").release(int(number)))
    wrong = [
        {**shown, "rows": [{"n": shown["rows"][0]["n"] + 1000}]},
        {**shown, "intervals": {"n": [[0, 1]]}},
        {**shown, "level": 0.5},
        {**shown, "level": "high"},
        {**shown, "cost": {}},
        {**stored, "rows": [[7]]},
        {"receipt": shown["receipt"]},
    ]
    for answer in (shown, stored):
        done = sfumato(folder, "ledger", "receipt", "-", given=json.dumps(answer))
        assert done.returncode == 0 and "the answer is genuine" in done.stdout, done.stderr
    alone = sfumato(folder, "ledger", "receipt", "-", given=json.dumps(shown["receipt"]))
    assert "the receipt is genuine" in alone.stdout
    for answer in wrong:
        refused = sfumato(folder, "ledger", "receipt", "-", "--json-errors", given=json.dumps(answer))
        error = json.loads(refused.stderr)["error"]
        assert error["code"] == "SF611" and f"ledger show {number}" in error["hints"][0], answer


@pytest.mark.parametrize("number", ["9" * 26, "9" * 5000, "9223372036854775808", "0"])
def test_numbers_that_no_charge_has(folder: Path, number: str) -> None:
    for words in (("show",), ("receipt",)):
        if words == ("show",) and len(number) > 4000:
            continue  # the parser of options says that it is no number
        refused = sfumato(folder, "ledger", *words, number, "--json-errors")
        assert refused.returncode == 5 and json.loads(refused.stderr)["error"]["code"] == "SF608"
    assert sfumato(folder, "ledger", "history", "-n", number).returncode in (0, 2)


def test_the_newest_charges_are_looked_up(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not the whole ledger: three of a million cost what three of four cost."""
    for _ in range(2):
        assert sfumato(folder, "query", COUNT, "-e", "0.1").returncode == 0
    everything = json.loads(sfumato(folder, "ledger", "history", "-n", "0", "-f", "json").stdout)
    seen: list[int] = []
    reading = Journal.charges

    def counted(self: Journal, *given: Any, **more: Any) -> Any:
        found = reading(self, *given, **more)
        seen.append(len(found))
        return found

    monkeypatch.setattr(Journal, "charges", counted)
    newest = json.loads(sfumato(folder, "ledger", "history", "-n", "3", "-f", "json").stdout)
    assert newest == everything[-3:] and len(everything) == 4 and seen == [3]


def test_an_export_can_be_checked_with_a_page_of_code(folder: Path) -> None:
    exported = program(folder, "ledger", "export")
    assert exported.returncode == 0, exported.stderr
    records = [json.loads(line) for line in exported.stdout.splitlines()]
    head = sfumato(folder, "ledger", "anchor").stdout.strip()
    previous = "0" * 64
    for record in records:
        if "body" in record:
            assert record["previous"] == previous
            previous = hashlib.sha256(f"{previous}\n{record['body']}".encode()).hexdigest()
    assert head.endswith(previous)
    assert sfumato(folder, "ledger", "export", "out.jsonl").returncode == 0
    assert (folder / "out.jsonl").read_text() == exported.stdout


def test_grants_lie_under_the_budget(tmp_path: Path) -> None:
    make_project(tmp_path, SHARED)
    ask = ("query", COUNT, "-e", "0.3")
    nobody = sfumato(tmp_path, *ask, "--json-errors")
    assert nobody.returncode == 2 and json.loads(nobody.stderr)["error"]["line"] == 28
    assert sfumato(tmp_path, *ask, "--analyst", "eve").returncode == 2
    assert sfumato(tmp_path, *ask, "--analyst", "anna").returncode == 0
    again = sfumato(tmp_path, *ask, "--analyst", "anna")
    assert again.returncode == 4 and "anna" in again.stderr
    assert sfumato(tmp_path, *ask, "--dry-run", "--analyst", "anna").returncode == 4
    assert sfumato(tmp_path, *ask, "--analyst", "bo").returncode == 0
    record = json.loads(sfumato(tmp_path, "budget", "--format", "json").stdout)
    assert record["analysts"]["anna"]["spent"] > 0.5 > record["analysts"]["bo"]["spent"] > 0
    text = sfumato(tmp_path, "budget").stdout
    assert "anna, of epsilon 0.4" in text and "bo, of epsilon 1" in text
    assert [one["analyst"] for one in history(tmp_path)] == ["anna", "bo"]


def test_a_period_is_shown_beside_the_lifetime(tmp_path: Path) -> None:
    renewed = PROJECT + 'renew = { every = "week", epsilon = 0.3 }\n'
    make_project(tmp_path, renewed)
    assert sfumato(tmp_path, "query", COUNT, "-e", "0.25").returncode == 0
    record = json.loads(sfumato(tmp_path, "budget", "--format", "json").stdout)
    assert record["period"]["every"] == "week" and record["period"]["spent"] > 0.5 > record["spent"]
    assert record["last"]["times"] == 0
    text = sfumato(tmp_path, "budget").stdout
    assert "for ever: epsilon 2" in text and "this week, of epsilon 0.3" in text
    assert sfumato(tmp_path, "query", COUNT, "-e", "0.25").returncode == 4
    assert sfumato(tmp_path, "check").returncode == 0
