"""Waiting for the disk, outside of the lock: nothing leaves the ledger before it is confirmed.

`Platter` stands for the disk: it takes over what the files hold at each sync of the log, and nothing else.
What it holds is what would be left after the power failed.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from sfumato.errors import LedgerError
from sfumato.ledger import Ledger, connection
from tests.ledger.accounts import answer, raw, reserve
from tests.ledger.accounts import opened as _opened


def opened(path: Path, epsilon: int = 10) -> Ledger:
    """Open a ledger that has read all it will read once only."""
    ledger = _opened(path, epsilon)
    assert ledger.public_key
    return ledger


def until(condition: Callable[[], object]) -> None:
    """Wait for other threads."""
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.002)


class Platter:
    """A disk that holds what was synced."""

    def __init__(self, path: Path, folder: Path) -> None:
        self.path, self.folder, self.syncs = path, folder, 0
        self._lock = threading.Lock()
        self.gate: threading.Event | None = None

    def sync(self, _: int) -> None:
        if self.gate is not None:
            self.gate.wait()
        with self._lock:
            self.syncs += 1
            for suffix in ("", "-wal", "-key"):
                shutil.copy(f"{self.path}{suffix}", self.folder / f"a{suffix}")

    def left(self) -> Ledger:
        """Return the ledger as it is after a power failure."""
        copy = self.folder.with_name(f"{self.folder.name}.{self.syncs}.{threading.get_ident()}")
        with self._lock:
            shutil.copytree(self.folder, copy, dirs_exist_ok=True)
        return Ledger.open(copy / "a", create=False)


@pytest.fixture
def platter(tmp_path, monkeypatch) -> Platter:
    opened(tmp_path / "a").close()
    folder = tmp_path / "platter"
    folder.mkdir()
    platter = Platter(tmp_path / "a", folder)
    monkeypatch.setattr(connection, "_sync", platter.sync)
    return platter


def test_what_was_confirmed_survives_a_power_failure(platter, monkeypatch):
    """After every step, what was answered is on the disk; other ledgers' syncs do not hide a missing one."""
    sync = platter.sync
    with opened(platter.path) as first, opened(platter.path) as second:
        for ledger in (first, second, first, first, second):
            reservation = reserve(ledger)
            monkeypatch.setattr(
                connection, "_sync", lambda _: None
            )  # opening the copy must not move the disk on
            with platter.left() as left:
                assert left.head() == reservation.head
            monkeypatch.setattr(connection, "_sync", sync)
            head = reservation.commit(b"noisy")
            monkeypatch.setattr(connection, "_sync", lambda _: None)
            with platter.left() as left:
                assert left.head() == head and left.release(reservation.sequence) == b"noisy"
                left.verify()
            monkeypatch.setattr(connection, "_sync", sync)


def test_others_write_while_one_waits_for_the_disk(platter):
    """The right to write is passed on before the disk has confirmed; nobody is answered before it has."""
    with opened(platter.path) as first, opened(platter.path) as second, opened(platter.path) as third:
        platter.gate = threading.Event()
        done: list[str] = []

        def spend(ledger: Ledger) -> None:
            reserve(ledger)
            done.append("answered")

        threads = [threading.Thread(target=spend, args=(ledger,)) for ledger in (first, second, third)]
        for thread in threads:
            thread.start()
        query = "SELECT count(*) FROM records WHERE kind = 'reserved'"
        until(lambda: raw(first).execute(query).fetchone()[0] == 3)
        assert done == []
        platter.gate.set()
        for thread in threads:
            thread.join()
        assert len(done) == 3


def test_what_is_read_was_confirmed_before(platter):
    """A head that another process has not confirmed yet may be noted as an anchor: it is confirmed first."""
    with opened(platter.path) as first, opened(platter.path) as second:
        second.head()
        first._journal._confirm = lambda *_: None  # type: ignore[method-assign]  # it dies just before
        reserve(first, idempotency_key="k").commit(b"noisy")
        before = platter.syncs
        head = second.head()
        assert platter.syncs == before + 1 and head == first.head()
        assert second.head() == head and answer(second, idempotency_key="k") == b"noisy"
        assert platter.syncs == before + 1  # nothing new: nothing to wait for
        with platter.left() as left:
            assert left.head() == head


def test_a_thread_sees_nothing_that_its_neighbour_has_not_confirmed(platter):
    """Both use one ledger, so SQLite counts the other's commit as its own."""
    with opened(platter.path) as ledger:
        platter.gate = threading.Event()
        spending = threading.Thread(target=reserve, args=(ledger,))
        spending.start()
        until(lambda: ledger._journal._state != ledger._journal._confirmed)
        seen: list[int] = []
        looking = threading.Thread(target=lambda: seen.append(ledger.head().sequence))
        looking.start()
        looking.join(0.1)
        assert seen == []
        platter.gate.set()
        looking.join()
        spending.join()
        assert seen == [ledger.head().sequence]


def test_a_log_is_not_closed_under_one_who_waits(platter):
    """Its descriptor could come to mean another file, and syncing that would confirm nothing."""
    ledger, other = opened(platter.path), opened(platter.path)
    platter.gate = threading.Event()
    failed: list[LedgerError] = []

    def spend() -> None:
        try:
            reserve(ledger)
        except LedgerError as error:
            failed.append(error)

    waiting = threading.Thread(target=spend)
    waiting.start()
    log_ = ledger._journal._log
    assert log_ is not None
    until(lambda: log_._waiting)
    ledger.close()
    os.fstat(log_._file)  # still open
    platter.gate.set()
    waiting.join()
    with pytest.raises(OSError, match="descriptor"):
        os.fstat(log_._file)
    with pytest.raises(LedgerError):
        log_.confirm()
    assert failed == []
    other.close()


def test_whoever_opens_a_ledger_alone_begins_a_fresh_log(tmp_path):
    """What was written to the old log may be lost to the disk without anyone knowing; it is copied first."""
    with opened(tmp_path / "a") as ledger:
        reserve(ledger)
        before = (tmp_path / "a-wal").stat().st_size
        with opened(tmp_path / "a") as again:
            assert again.head() == ledger.head()
            assert (tmp_path / "a-wal").stat().st_size == 0 < before
            reserve(again)
        assert ledger.spent("person") * 100 == 2
        ledger.verify()
