"""Connections to a ledger file: what was committed stays, once the disk has confirmed it.

SQLite can wait for the disk inside a commit, while everyone else waits for the right to write. Here a commit
only writes to the write-ahead log. The right to write is passed on, and whoever committed then waits for the
disk, together with all who committed meanwhile.

Theorem: when `Log.confirm` returns, every record of a transaction that was committed before it was called is
on the disk. The log is one file that is written in order: frames of an earlier commit are in it before those
of a later one, and the system's sync covers all of them. Where the log was begun afresh in between, SQLite
had copied its contents to the main file before, and synced first the log and then that file (both
`synchronous` NORMAL and FULL do this).
Assumes: a sync that reports success tells the truth, and one that failed is reported to everybody who had the
file open (Linux since 4.13, others similar). Whoever opens it later begins a fresh log: see `connect`.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import NoReturn
from urllib.parse import quote

from sfumato.errors import LedgerError
from sfumato.ledger import schema
from sfumato.ledger.forks import Identity

try:
    from fcntl import F_FULLFSYNC, fcntl  # type: ignore[attr-defined,unused-ignore]
except ImportError:
    F_FULLFSYNC = None  # only some systems have a sync that does not reach the disk itself

__all__ = [
    "FAILURES",
    "Log",
    "begin",
    "closed",
    "connect",
    "create_file",
    "identity_of",
    "in_memory",
    "raise_refusal",
    "translated",
    "unreliable",
]

FAILURES = (sqlite3.Error, OSError, LedgerError, UnicodeDecodeError)
"""What can go wrong with a ledger's file. SQLite's own words about a damaged schema may not be text."""


def in_memory() -> sqlite3.Connection:
    """Return an empty database that lives and dies with this process."""
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    schema.create(connection)
    return connection


def connect(path: Path, wait: float) -> sqlite3.Connection:
    """Return a connection to an existing ledger, to which it is certain that one may write.

    A commit writes to the log and does not wait for the disk; whoever commits has to: see `Log`. Whoever
    finds another writer at work waits up to `wait` seconds for each transaction.

    If nobody else is at work, a fresh log is begun: what an earlier process wrote to the old one without
    learning whether the disk kept it is copied, synced, and out of the way of what comes next.
    """
    _check_writable(Path(os.path.realpath(path)))
    connection = _connection(path, "rw", wait)
    try:
        schema.check(connection)
        _make_durable(connection)
        connection.execute("PRAGMA busy_timeout = 0")  # from here on `begin` waits
        begin(connection, "BEGIN IMMEDIATE", time.monotonic() + wait)
        schema.mark(connection)  # SQLite grants the lock even for a file that it can only read
        connection.execute("ROLLBACK")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("PRAGMA synchronous = NORMAL")
    except BaseException:
        connection.close()
        raise
    return connection


def begin(connection: sqlite3.Connection, kind: str, deadline: float) -> None:
    """Begin a transaction; while others are at work, ask again until the deadline.

    SQLite's own way of waiting sleeps longer the longer one has waited, up to a tenth of a second, so
    newcomers overtake those who wait. Here the pauses get shorter: who has waited longest asks most
    often. They begin long: whoever is at work goes on with warm caches, and all get more done.
    """
    pause = _LONG_PAUSE
    while True:
        try:
            connection.execute(kind)
            if kind == "BEGIN DEFERRED":
                connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone()  # now it sees one state
            return
        except sqlite3.OperationalError as error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            if _primary(error) != sqlite3.SQLITE_BUSY or time.monotonic() >= deadline:
                raise
        time.sleep(pause)
        pause = max(_SHORT_PAUSE, pause * _HASTE)


def identity_of(path: str | Path) -> Identity:
    """Return which file has this name now: another file may have it later."""
    status = os.stat(path)
    return status.st_dev, status.st_ino


def create_file(path: Path, begin: str, *values: object) -> None:
    """Write a new ledger whose first record `begin` inserts; do nothing if another process was faster.

    It is written under another name and linked to its own when complete: nobody ever sees half a
    ledger, so an empty file is never mistaken for a new one. It is its owner's alone: texts of questions may
    be in it. What SQLite puts beside it follows.
    """
    draft = path.with_name(f"{path.name}.{os.urandom(8).hex()}.new")
    try:
        os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o600))
        with closing(_connection(draft, "rw", 0)) as connection:
            _make_durable(connection)
            connection.execute("BEGIN IMMEDIATE")
            schema.create(connection)
            connection.execute(begin, values)
            connection.execute("COMMIT")
        with suppress(FileExistsError):
            os.link(draft, path)
        _sync_folder(path.parent)
    finally:
        for suffix in ("", "-wal", "-shm"):
            draft.with_name(draft.name + suffix).unlink(missing_ok=True)


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
                raise closed("the ledger was closed before the disk confirmed a write")
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


@contextmanager
def translated(place: str) -> Iterator[None]:
    """Turn what SQLite and the operating system report into refusals."""
    try:
        yield
    except FAILURES as error:
        raise_refusal(error, place)


def raise_refusal(error: BaseException, place: str) -> NoReturn:
    """Raise the refusal that one of `FAILURES` means, with the place where it happened."""
    match error:
        case sqlite3.Error():
            raise _refusal(error, place) from error
        case UnicodeDecodeError():
            raise _refusal(sqlite3.DatabaseError(), place) from None
        case OSError():
            reason = error.strerror or type(error).__name__
            at = error.filename if isinstance(error.filename, str) else place  # it may be a file beside it
            raise LedgerError(
                f"the ledger cannot be opened: {reason}", code="SF601", place=at, hints=(_NOTHING,)
            ) from error
        case LedgerError(place=None):
            error.place = place
            error.args = (str(error),)
    raise error


def closed(message: str = "the ledger is closed") -> LedgerError:
    """Return the refusal of a ledger that was closed: by its user, or after a failure of its disk."""
    return LedgerError(
        message, code="SF601", hints=("open it again: it closes when its disk fails or it is damaged, too",)
    )


def unreliable(error: sqlite3.Error) -> bool:
    """Return whether after this error the connection can no longer be trusted to keep what it is given."""
    return _primary(error) in _UNRELIABLE


_LONG_PAUSE, _SHORT_PAUSE, _HASTE = 0.02, 0.005, 0.9
_NOTHING = "nothing was answered; no answer is given while a cost cannot be written down"
_SETTINGS = (
    "synchronous = FULL",
    "fullfsync = ON",
    "trusted_schema = OFF",
    "cell_size_check = ON",
    "secure_delete = ON",  # what is erased is overwritten
)
_UNRELIABLE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOTADB}


def _connection(path: Path, mode: str, wait: float) -> sqlite3.Connection:
    return sqlite3.connect(
        f"file:{quote(str(path))}?mode={mode}",
        uri=True,
        timeout=wait,
        isolation_level=None,
        check_same_thread=False,
    )


def _check_writable(path: Path) -> None:
    """Refuse what cannot be written, by its name, before SQLite touches it.

    SQLite opens such a file to read, and gives the index beside it the same mode: nobody could write that
    index later, when the file itself can be written again.
    """
    effective = os.access in os.supports_effective_ids
    for one in (path, *(path.with_name(path.name + more) for more in ("-wal", "-shm"))):
        at = one if os.path.lexists(one) else one.parent  # or it will be created there
        if not os.access(at, os.W_OK, effective_ids=effective):
            kind = "file" if at is one else "folder"
            raise LedgerError(
                f"the ledger cannot be written: this user may not write to this {kind}",
                code="SF601",
                place=str(at),
                hints=(_NOTHING, f"its owner can allow it to the owner and the group: chmod ug+w {at}"),
            )


def _make_durable(connection: sqlite3.Connection) -> None:
    mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
    if mode != "wal":
        raise LedgerError(
            "this file system cannot keep a write-ahead log",
            code="SF601",
            hints=("keep the ledger on a local disk",),
        )
    for setting in _SETTINGS:
        connection.execute(f"PRAGMA {setting}")


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _primary(error: sqlite3.Error) -> int:
    """Return SQLite's code; an error without one is Python's, about text that is not text."""
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF


def _refusal(error: sqlite3.Error, place: str) -> LedgerError:
    match _primary(error):
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            message, code = "the ledger was busy for longer than the stated wait", "SF604"
            hints: tuple[str, ...] = ("nothing was charged by this call; try again",)
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB | sqlite3.SQLITE_CONSTRAINT:
            message, code = "the ledger is damaged or altered", "SF602"
            hints = (_NOTHING, "restore a copy and compare its head with one kept elsewhere")
        case sqlite3.SQLITE_FULL:
            message, code, hints = "the disk is full", "SF601", (_NOTHING,)
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
            message, code = f"the ledger cannot be written: {error}", "SF601"
            hints = (_NOTHING, "the file and its folder must be writable: the log lies beside the file")
        case _:
            message, code, hints = f"the ledger failed: {error}", "SF601", (_NOTHING,)
    return LedgerError(message, code=code, place=place, hints=hints)


def _sync(file: int) -> None:
    if F_FULLFSYNC is not None:
        fcntl(file, F_FULLFSYNC)
    elif hasattr(os, "fdatasync"):
        os.fdatasync(file)
    else:
        os.fsync(file)
