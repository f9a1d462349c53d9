"""`sfumato ledger report`: one page to file and to sign."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import stat
from pathlib import Path

import pytest

from tests.cli.programs import PROJECT, make_project, sfumato

SHARED = f"""{PROJECT}people = 3000
renew = {{ every = "week", epsilon = 1.5 }}

[policy]
ceiling = 0.5

[policy.analysts.anna]
epsilon = 1
"""
NAMED = "SELECT COUNT(*) AS n FROM people WHERE name <> '<b>eve</b>'"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    make_project(tmp_path, SHARED)
    for words in ((NAMED, "--purpose", "the <yearly> report"), ("SELECT AVG(age) AS a FROM people",)):
        assert sfumato(tmp_path, "query", *words, "-e", "0.3", "--analyst", "anna").returncode == 0
    return tmp_path


def page(folder: Path, *words: str) -> str:
    """Return the words of the page."""
    done = sfumato(folder, "ledger", "report", "--html", "record.html", *words)
    assert done.returncode == 0 and "written: record.html" in done.stdout, done.stderr
    return (folder / "record.html").read_text()


def test_it_says_what_one_signs(folder: Path) -> None:
    anchor = sfumato(folder, "ledger", "anchor").stdout.strip()
    text = page(folder, "--anchor", anchor)
    words = re.sub(r"<[^>]+>", " ", text)
    for said in (
        "What is protected", "column person", "public: not protected", "max_groups = 2, max_rows = 3",
        "3,000, which",
        "factor of up to 7.39", "1 in 1,000,000", "gaussian rule", "each", "week epsilon 1.5 at most",
        "epsilon 0.5 at most", "anna", "not stated", "What is not covered", "k times the epsilon", anchor,
        f"anchor of record {anchor.split(':')[0]} is in it", "Privacy officer", "of budget",
    ):  # fmt: skip
        assert said in words, said
    assert "&lt;b&gt;eve" in text and "the &lt;yearly&gt; report" in text and "<b>eve" not in text
    receipt = json.loads(sfumato(folder, "ledger", "receipt", anchor.split(":")[0]).stdout or "{}")
    assert receipt.get("public_key", "") in text
    assert stat.S_IMODE((folder / "record.html").stat().st_mode) == 0o600


def test_questions_can_be_left_out(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = page(folder, "--no-questions")
    assert "eve&lt;" not in text and "yearly" not in text and "(left out)" in text and "anna" in text
    monkeypatch.setattr(os, "geteuid", lambda: 54_321)
    text = page(folder)
    assert "eve&lt;" not in text and "(for the owner)" in text, "whoever does not own the ledger"


def test_the_newest_charges_are_listed(folder: Path) -> None:
    text = page(folder, "--limit", "1")
    assert "AVG(age)" in text and "eve&lt;" not in text and "1 older ones are left out" in text
    assert sfumato(folder, "ledger", "report", "--html", "x.html", "--limit", "-1").returncode == 2


def test_before_the_first_question(tmp_path: Path) -> None:
    make_project(tmp_path)
    text = page(tmp_path)
    assert "the first question fixes the budget" in text and "nothing was charged" in text


def test_no_page_of_a_ledger_that_is_not_sound(folder: Path) -> None:
    with sqlite3.connect(folder / "people.ledger") as file:
        file.execute("DELETE FROM query_texts")
    file.close()
    refused = sfumato(folder, "ledger", "report", "--html", "record.html", "--json-errors")
    assert refused.returncode == 5 and json.loads(refused.stderr)["error"]["code"] == "SF602"
    assert not (folder / "record.html").exists()
    onto = sfumato(folder, "ledger", "report", "--html", "people.ledger")
    assert onto.returncode == 2 and "the ledger" in onto.stderr
