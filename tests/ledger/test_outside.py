"""What outsiders hold: receipts, anchors, exports; an export is checked with nothing of this package."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from sfumato.errors import InvalidArgument, LedgerError
from sfumato.ledger import Head, Ledger, verify_receipt
from tests.ledger.accounts import answer, opened, reserve

PAGE = Path(__file__).parent.parent.parent / "docs" / "ledger.md"


def receipt_of(ledger: Ledger) -> dict[str, str]:
    with reserve(ledger) as reservation:
        receipt = reservation.receipt("ab12")
        reservation.commit(b"noisy")
    return receipt


# -- receipts -----------------------------------------------------------------------------


def test_a_receipt_is_signed_and_carries_the_head(tmp_path):
    with opened(tmp_path / "a") as ledger:
        receipt = receipt_of(ledger)
        anchor = verify_receipt(receipt, ledger.public_key)
        assert str(anchor) == receipt["anchor"] and receipt["cost"] == "1/100" and receipt["answer"] == "ab12"
        assert ledger.verify(anchor) == ledger.verify(receipt["anchor"]) == ledger.head()
        assert ledger.public_keys() == (ledger.public_key,)
    with opened(tmp_path / "a") as ledger:  # the key outlives the process
        assert verify_receipt(receipt, ledger.public_key) == anchor
        assert ledger.public_keys() == (ledger.public_key,)


def test_every_change_of_a_receipt_is_found():
    ledger, other = opened(None), opened(None)
    receipt = receipt_of(ledger)
    forgeries = [{**receipt, name: text + "0"} for name, text in receipt.items()]
    forgeries += [{key: text for key, text in receipt.items() if key != name} for name in receipt]
    forgeries += [{**receipt, "more": "x"}, {}, {**receipt, "cost": 1}, receipt_of(other)]
    forgeries += [{**receipt_of(other), "public_key": ledger.public_key}]
    for forgery in forgeries:
        with pytest.raises(LedgerError) as refusal:
            verify_receipt(forgery, ledger.public_key)
        assert refusal.value.code == "SF611"
    for key in ("", "zz", other.public_key):
        with pytest.raises(LedgerError):
            verify_receipt(receipt, key)


def test_the_key_is_its_owners_alone(tmp_path):
    before = os.umask(0)
    try:
        with opened(tmp_path / "a") as ledger:
            first = ledger.public_key
    finally:
        os.umask(before)
    key = tmp_path / "a-key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir() if path.name.endswith(".new")] == []
    secret = key.read_text().strip()
    assert secret.encode() not in b"".join(path.read_bytes() for path in tmp_path.glob("a*") if path != key)
    key.unlink()  # lost: a new one is made and put on record
    with opened(tmp_path / "a") as ledger:
        answer(ledger)
        assert ledger.public_keys() == (first, ledger.public_key) and ledger.public_key != first
        ledger.verify()
    key.write_text("damaged\n")
    with opened(tmp_path / "a") as ledger, pytest.raises(LedgerError) as refusal:
        answer(ledger)
    assert refusal.value.code == "SF602"


def test_versions_of_data_are_blinded(tmp_path):
    """Who reads the file cannot test a guess about the data against it."""
    with opened(tmp_path / "a") as ledger:
        answer(ledger, data_version="canary-version")
        ledger.bind("person", ["canary-source"], column="id")
        out = io.StringIO()
        ledger.export(out)
    assert "canary" not in out.getvalue()
    assert b"canary" not in b"".join(path.read_bytes() for path in tmp_path.glob("a*"))


# -- anchors ------------------------------------------------------------------------------


def test_an_anchor_is_text_that_reads_back():
    ledger = opened(None)
    assert Head.parse(ledger.anchor()) == ledger.head() == Head.parse(f"  {ledger.anchor().upper()}\n")
    for text in ("", "7", "7:ab", "0:" + "a" * 64, "x:" + "a" * 64, "7:" + "g" * 64, "-1:" + "a" * 64, None):
        with pytest.raises(InvalidArgument):
            Head.parse(text)  # type: ignore[arg-type]


def test_a_restored_old_copy_and_a_rewrite_are_found_with_an_anchor(tmp_path):
    with opened(tmp_path / "a") as ledger:
        answer(ledger)
    shutil.copytree(tmp_path, tmp_path / "backup")
    with opened(tmp_path / "a") as ledger:
        answer(ledger)
        anchor = ledger.anchor()
        ledger.verify(anchor)
    shutil.copy(tmp_path / "backup" / "a", tmp_path / "a")  # the old copy: its charge is forgotten
    with opened(tmp_path / "a") as ledger:
        ledger.verify()
        with pytest.raises(LedgerError) as refusal:
            ledger.verify(anchor)
        assert refusal.value.code == "SF602"
        for _ in range(3):  # also when it has grown past the anchor again
            answer(ledger)
        with pytest.raises(LedgerError):
            ledger.verify(anchor)


# -- exports ------------------------------------------------------------------------------


def documented_checker() -> str:
    """Return the one-page checker of the documentation: the snippet that reads standard input."""
    snippets = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (found,) = [snippet for snippet in snippets if "def check_export" in snippet]
    assert found.count("\n") < 60  # a page
    return found


def checked(export: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-I",
        "-S",
        "-c",
        documented_checker(),
        *arguments,
    ]  # the standard library only
    return subprocess.run(command, input=export, capture_output=True, text=True)


@pytest.fixture(scope="module")
def export() -> tuple[str, str]:
    ledger = opened(None)
    for number in range(30):
        answer(ledger, b"release %d" % number)
    reserve(ledger)
    out = io.StringIO()
    assert ledger.export(out) == ledger.head().sequence
    return out.getvalue(), ledger.anchor()


def test_an_outsider_can_check_an_export_with_a_page_of_code(export):
    text, anchor = export
    for arguments in ((), (anchor,)):
        ran = checked(text, *arguments)
        assert ran.returncode == 0 and anchor in ran.stdout and "31/100" in ran.stdout, ran.stderr


def test_the_page_of_code_finds_edits_deletions_swaps_and_cuts(export):
    text, anchor = export
    lines = text.splitlines(keepends=True)
    edited = json.loads(lines[7])
    edited["body"] = edited["body"].replace('"units":"1', '"units":"2')
    other = opened(None)
    forged = io.StringIO()
    other.export(forged)
    broken = {
        "edited": [*lines[:7], json.dumps(edited) + "\n", *lines[8:]],
        "deleted": [*lines[:7], *lines[8:]],
        "swapped": [*lines[:7], lines[8], lines[7], *lines[9:]],
        "release": [line.replace('"release":"', '"release":"AAAA') for line in lines],
    }
    for name, changed in broken.items():
        assert checked("".join(changed)).returncode != 0, name
    assert checked("".join(lines[:-2])).returncode == 0  # a cut tail looks genuine
    for cut in ("".join(lines[:-2]), forged.getvalue()):
        assert checked(cut, anchor).returncode != 0  # but not beside an anchor


def test_exports_go_to_files_and_can_leave_releases_out(tmp_path, export):
    with opened(tmp_path / "a") as ledger:
        answer(ledger, b"a long release")
        assert ledger.export(tmp_path / "all.jsonl", releases=False) == ledger.head().sequence
        anchor = ledger.anchor()
    text = (tmp_path / "all.jsonl").read_text()
    assert '"release":null' in text and checked(text, anchor).returncode == 0


# -- history ------------------------------------------------------------------------------


def test_history_comes_in_pages(monkeypatch):
    ledger = opened(None)
    for _ in range(25):
        answer(ledger)
    reserve(ledger)
    everything = ledger.history()
    assert [entry.committed for entry in everything] == [True] * 25 + [False]
    pages, after = [], 0
    while page := ledger.history(after=after, limit=7):
        pages.append(page)
        after = page[-1].sequence
    assert [len(page) for page in pages] == [7, 7, 7, 5] and sum(pages, ()) == everything
    monkeypatch.setattr("sfumato.ledger.ledger._PAGE", 4)
    assert tuple(ledger.entries("person")) == everything and tuple(ledger.entries("nobody")) == ()
