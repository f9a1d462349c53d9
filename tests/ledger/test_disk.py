"""Disks that are full, read-only or lie: the ledger fails closed, with a code, and nothing is answered."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from fractions import Fraction as F
from pathlib import Path

import pytest

from sfumato.errors import LedgerError
from sfumato.ledger import Ledger
from sfumato.ledger.records import FORMAT
from tests.ledger.accounts import answer, opened, raw, reserve
from tests.processes import start


def refused(path: Path) -> str:
    """Return the code with which a file is refused."""
    with pytest.raises(LedgerError) as refusal:
        Ledger.open(path, wait=1)
    assert refusal.value.hints is not None and refusal.value.place is not None
    return refusal.value.code


def written(path: Path, spends: int = 3) -> None:
    with opened(path) as ledger:
        for _ in range(spends):
            answer(ledger)


def changed(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


# -- files that are not a ledger, or not one we know --------------------------------------


@pytest.mark.parametrize("version", [FORMAT - 1, FORMAT + 1])
def test_another_format_is_refused_and_left_alone(tmp_path, version):
    written(tmp_path / "a")
    changed(tmp_path / "a", f"PRAGMA user_version = {version}")
    before = (tmp_path / "a").read_bytes()
    assert refused(tmp_path / "a") == "SF603"
    assert (tmp_path / "a").read_bytes() == before


@pytest.mark.parametrize("content", [b"", b"SQLite format 3\0", b"x" * 5000, b"id,age\n1,42\n"])
def test_a_file_that_is_no_ledger_is_refused_and_left_alone(tmp_path, content):
    (tmp_path / "a").write_bytes(content)
    assert refused(tmp_path / "a") == "SF602"
    assert (tmp_path / "a").read_bytes() == content


def test_another_database_is_refused(tmp_path):
    changed(tmp_path / "a", "CREATE TABLE t (x)")
    assert refused(tmp_path / "a") == "SF602"


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TRIGGER never_deleted",
        "CREATE TRIGGER more AFTER INSERT ON records BEGIN SELECT 1; END",
        "DROP INDEX one_output",
        "PRAGMA user_version = 0",
    ],
)
def test_changed_tables_are_refused(tmp_path, statement):
    written(tmp_path / "a")
    changed(tmp_path / "a", statement)
    assert refused(tmp_path / "a") == "SF602"


def test_a_ledger_without_records_does_not_spend(tmp_path):
    written(tmp_path / "a")
    trigger = "CREATE TRIGGER never_deleted BEFORE DELETE ON records\nBEGIN"
    trigger += " SELECT raise(ABORT, 'records are never deleted'); END"
    changed(tmp_path / "a", "DROP TRIGGER never_deleted", "DELETE FROM records", trigger)
    with Ledger.open(tmp_path / "a") as ledger:
        for use in (ledger.head, ledger.verify, lambda: opened(tmp_path / "a")):
            with pytest.raises(LedgerError) as refusal:
                use()
            assert refusal.value.code == "SF602"


def test_every_damaged_page_is_noticed(tmp_path):
    """Overwrite one page after the other with noise: opening, or verifying, refuses."""
    written(tmp_path / "a", 40)
    content = (tmp_path / "a").read_bytes()
    page = 4096
    assert len(content) >= 5 * page
    for start_of_page in range(0, len(content), page):
        damaged = bytearray(content)
        damaged[start_of_page : start_of_page + page] = b"\xa5" * page
        (tmp_path / "b").write_bytes(damaged)
        with pytest.raises(LedgerError) as refusal, Ledger.open(tmp_path / "b", wait=1) as ledger:
            ledger.verify()
        assert refusal.value.code == "SF602"
    for cut in range(page, len(content), page):
        (tmp_path / "b").write_bytes(content[:cut])
        with pytest.raises(LedgerError) as refusal, Ledger.open(tmp_path / "b", wait=1) as ledger:
            ledger.verify()
        assert refusal.value.code == "SF602"


def test_text_that_is_no_text_is_noticed(tmp_path):
    trigger = "CREATE TRIGGER never_updated BEFORE UPDATE ON records\nBEGIN"
    trigger += " SELECT raise(ABORT, 'records are never changed'); END"
    written(tmp_path / "a")
    edit = "UPDATE records SET body = CAST(x'ff' AS TEXT) WHERE sequence = 3"
    changed(tmp_path / "a", "DROP TRIGGER never_updated", edit, trigger)
    with Ledger.open(tmp_path / "a") as ledger, pytest.raises(LedgerError) as refusal:
        ledger.verify()
    assert refusal.value.code == "SF602"


# -- disks --------------------------------------------------------------------------------

READ_ONLY = """
import os, sys
from sfumato.errors import LedgerError
from tests.ledger.accounts import opened
if os.geteuid() == 0:
    os.setgid(65534); os.setuid(65534)  # nothing is read-only to root
try:
    opened(sys.argv[1])
except LedgerError as error:
    print(error.code)
"""


@pytest.mark.parametrize(("exists", "mode"), [(False, 0o555), (True, 0o555), (True, 0o777)])
def test_a_read_only_folder_or_file_is_refused(tmp_path_factory, exists, mode):
    folder = tmp_path_factory.mktemp("read_only")
    if exists:
        written(folder / "a")
        (folder / "a").chmod(0o444)
    for parent in (folder.parent, folder.parent.parent):
        parent.chmod(0o755)
    folder.chmod(mode)
    try:
        said, _ = start(READ_ONLY, folder / "a").communicate()
    finally:
        folder.chmod(0o755)
    assert said == "SF601\n"
    assert {path.name for path in folder.iterdir()} - {"a-key", "a-shm", "a-wal"} == (
        {"a"} if exists else set()
    )


def test_a_missing_folder_and_a_folder_are_refused(tmp_path):
    assert refused(tmp_path / "none" / "a") == "SF601"
    assert refused(tmp_path) == "SF601"
    (tmp_path / "dangling").symlink_to(tmp_path / "none" / "a")
    assert refused(tmp_path / "dangling") == "SF601"


def test_a_full_disk_charges_and_answers_nothing_more(tmp_path):
    with opened(tmp_path / "a") as ledger:
        answer(ledger)
        with reserve(ledger) as late:
            pages = raw(ledger).execute("PRAGMA page_count").fetchone()[0]
            raw(ledger).execute(f"PRAGMA max_page_count = {pages}")
            with pytest.raises(LedgerError) as refusal:
                late.commit(bytes(10_000))
        assert refusal.value.code == "SF601" and "full" in refusal.value.message
        spent = 2
        with pytest.raises(LedgerError) as refusal:
            for _ in range(50):
                reserve(ledger)
                spent += 1
        assert refusal.value.code == "SF601"
        assert ledger.spent("person") == F(spent, 100)
        ledger.verify()
        raw(ledger).execute("PRAGMA max_page_count = 100000")  # space again: it goes on where it was
        answer(ledger)
        assert ledger.spent("person") == F(spent + 1, 100)
        ledger.verify()


FAILING = """
import resource, sys
from sfumato.errors import LedgerError
from tests.ledger.accounts import answer, opened
ledger = opened(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, resource.RLIM_INFINITY))
codes, answered = [], 0
for _ in range(50):
    try:
        answer(ledger)
        answered += 1
    except LedgerError as error:
        codes.append(error.code)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
with opened(sys.argv[1]) as again:
    again.verify()
    print(answered, *sorted(set(codes)), again.spent("person") * 100 >= answered)
"""


def test_a_disk_that_refuses_writes_ends_the_spending(tmp_path):
    """After 60 kB the system fails every write. What was answered is charged; the rest is refused."""
    said, _ = start(FAILING, tmp_path / "a").communicate()
    answered, code, holds = said.split()
    assert 0 < int(answered) < 50 and code == "SF601" and holds == "True"


def test_a_disk_that_failed_once_is_not_trusted_again(tmp_path):
    """A failed fsync may be forgotten by the system: the next one would claim success."""
    failure = sqlite3.OperationalError("disk I/O error")
    failure.sqlite_errorcode = sqlite3.SQLITE_IOERR | 4 << 8  # fsync
    with opened(tmp_path / "a") as ledger:
        with pytest.raises(LedgerError) as refusal, ledger._journal.writing():
            raise failure
        assert refusal.value.code == "SF601"
        with pytest.raises(LedgerError):
            reserve(ledger)
    with opened(tmp_path / "a") as ledger:
        reserve(ledger)


@pytest.mark.parametrize("act", ["unlink", "replace"])
def test_a_file_that_is_moved_away_stops_the_spending(tmp_path, act):
    """Else charges would go to a file that nobody will ever look at."""
    with opened(tmp_path / "a") as ledger:
        with reserve(ledger) as reservation:
            if act == "unlink":
                (tmp_path / "a").rename(tmp_path / "b")
            else:
                shutil.copy(tmp_path / "a", tmp_path / "c")
                (tmp_path / "c").replace(tmp_path / "a")
            with pytest.raises(LedgerError) as refusal:
                reservation.commit(b"noisy")
        assert refusal.value.code == "SF601"
        for use in (ledger.head, ledger.verify, lambda: reserve(ledger)):
            with pytest.raises(LedgerError):
                use()
    assert (tmp_path / "a").exists() == (act == "replace")


@pytest.mark.parametrize("more", ["-wal", "-shm"])
@pytest.mark.parametrize("act", ["unlink", "replace"])
def test_a_log_that_is_moved_away_stops_the_spending(tmp_path, more, act):
    """Else charges would go to a log that nobody else sees; put back, or closed in time, nothing is lost."""
    beside, away = tmp_path / f"a{more}", tmp_path / "away"
    with opened(tmp_path / "a") as ledger:
        answer(ledger)
        beside.rename(away)
        if act == "replace":
            shutil.copy(away, beside)
        for use in (ledger.head, ledger.verify, lambda: reserve(ledger), lambda: answer(ledger)):
            with pytest.raises(LedgerError) as refusal:
                use()
            assert refusal.value.code == "SF601" and refusal.value.place == str(beside)
        away.replace(beside)
        answer(ledger)
        beside.unlink()
        with pytest.raises(LedgerError):
            answer(ledger)
    with opened(tmp_path / "a") as ledger:
        assert ledger.spent("person") == F(2, 100)
        ledger.verify()


def test_a_ledger_that_closed_says_how_to_go_on(tmp_path):
    """It also closes by itself, where its disk fails or a page is damaged: whoever asks next hears why."""
    ledger = opened(tmp_path / "a")
    ledger.close()
    for use in (ledger.head, ledger.history, lambda: reserve(ledger)):
        with pytest.raises(LedgerError, match="closed") as refusal:
            use()
        assert refusal.value.hints


def test_a_clock_before_1970_leaves_a_ledger_that_can_be_read(tmp_path):
    with opened(tmp_path / "a", clock=lambda: -(10**9)) as ledger:
        answer(ledger)
        ledger.verify()
        assert ledger.last_entry("person") is not None


def test_a_ledger_that_must_exist_is_not_begun(tmp_path):
    with pytest.raises(LedgerError) as refusal:
        Ledger.open(tmp_path / "a", create=False)
    assert refusal.value.code == "SF601" and not (tmp_path / "a").exists()
    written(tmp_path / "a")
    with Ledger.open(tmp_path / "a", create=False) as ledger:
        assert ledger.spent("person") == F(3, 100)


def test_the_log_is_synced_by_whoever_commits(tmp_path):
    """SQLite itself syncs around copying the log only (NORMAL); the rest is `Log`'s: see test_log."""
    with opened(tmp_path / "a") as ledger:
        settings = {
            name: raw(ledger).execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("journal_mode", "synchronous")
        }
        assert settings == {"journal_mode": "wal", "synchronous": 1}
