"""The write-ahead log: what is in it is kept once the disk has confirmed it.

SQLite can wait for the disk inside a commit, while everyone else waits for the right to write. Here
the commit only writes; the right to write is passed on, and whoever committed then waits for the
disk, together with all who committed meanwhile. One confirmation covers all that was written before
it, by whichever process.

Theorem: when `confirm` returns, every record of a transaction that was committed before it was called is
on the disk. The log is one file that is written in order: frames of an earlier commit are in it before
those of a later one, and the system's sync covers all of them. Where the log was begun afresh in
between, SQLite had copied its contents to the main file before, and synced first the log and then that
file (both `synchronous` NORMAL and FULL do this).
Assumes: a sync that reports success tells the truth, and one that failed is reported to everybody who
had the file open (Linux since 4.13, others similar). Who opens it later begins a fresh log: see `connect`.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path

from sfumato.errors import LedgerError

try:
    from fcntl import F_FULLFSYNC, fcntl  # type: ignore[attr-defined,unused-ignore]
except ImportError:
    F_FULLFSYNC = None  # only some systems have a sync that does not reach the disk itself

__all__ = ["Log"]


class Log:
    """The log beside a ledger, opened a second time to wait for the disk."""

    __slots__ = ("_closed", "_file", "_lock", "_waiting")

    def __init__(self, path: Path) -> None:  # SQLite has it open already, so nobody deletes it
        flags = os.O_RDWR | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
        self._file = os.open(f"{os.path.realpath(path)}-wal", flags)
        self._lock = threading.Lock()
        self._waiting = 0
        self._closed = False

    def confirm(self) -> None:
        """Return when the disk holds everything that was written to the log before."""
        with self._lock:
            if self._closed:
                raise LedgerError("the ledger was closed before the disk confirmed a write", code="SF601")
            self._waiting += 1
        try:
            _sync(self._file)
        except OSError as error:
            raise LedgerError(
                f"the disk did not confirm a write: {error.strerror or type(error).__name__}",
                code="SF601",
                hints=("nothing was answered; what may have been charged stays charged",),
            ) from error
        finally:
            with self._lock:
                self._waiting -= 1
                self._leave()

    def close(self) -> None:
        """Let go of the file, once nobody waits for it. There are no locks on it that this would drop."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._leave()

    def __del__(self) -> None:
        with suppress(Exception):  # half-built
            self.close()

    def _leave(self) -> None:
        if self._closed and not self._waiting:  # earlier, its number might come to mean another file
            os.close(self._file)


def _sync(file: int) -> None:
    if F_FULLFSYNC is not None:
        fcntl(file, F_FULLFSYNC)
    elif hasattr(os, "fdatasync"):
        os.fdatasync(file)
    else:
        os.fsync(file)
