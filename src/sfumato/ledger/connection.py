"""Connections to a ledger file: made so that what was committed stays, and refused where it would not."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import NoReturn
from urllib.parse import quote

from sfumato.errors import LedgerError
from sfumato.ledger import schema

__all__ = [
    "FAILURES",
    "begin",
    "busy",
    "connect",
    "create_file",
    "in_memory",
    "raise_refusal",
    "too_busy",
    "translated",
    "unreliable",
]

FAILURES = (sqlite3.Error, OSError, LedgerError)
"""What can go wrong with a ledger's file."""


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
            if not busy(error) or time.monotonic() >= deadline:
                raise
        time.sleep(pause)
        pause = max(_SHORT_PAUSE, pause * _HASTE)


def create_file(path: Path, begin: str, *values: object) -> None:
    """Write a new ledger whose first record `begin` inserts; do nothing if another process was faster.

    It is written under another name and linked to its own when complete: nobody ever sees half a
    ledger, so an empty file is never mistaken for a new one.
    """
    draft = path.with_name(f"{path.name}.{os.urandom(8).hex()}.new")
    try:
        with closing(_connection(draft, "rwc", 0)) as connection:
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


@contextmanager
def translated(path: Path | None) -> Iterator[None]:
    """Turn what SQLite and the operating system report into refusals."""
    try:
        yield
    except FAILURES as error:
        raise_refusal(error, path)


def raise_refusal(error: BaseException, path: Path | None) -> NoReturn:
    """Raise the refusal that one of `FAILURES` means, with the place where it happened."""
    place = "memory" if path is None else str(path)
    match error:
        case sqlite3.Error():
            raise _refusal(error, place) from error
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


def busy(error: sqlite3.Error) -> bool:
    """Return whether an error says that others are at work."""
    return _primary(error) == sqlite3.SQLITE_BUSY


def too_busy(place: object) -> LedgerError:
    """Return the refusal of one who waited in vain for others."""
    return LedgerError(
        "the ledger was busy for longer than the stated wait",
        code="SF604",
        place=str(place),
        hints=("nothing was charged by this call; try again",),
    )


def unreliable(error: sqlite3.Error) -> bool:
    """Return whether after this error the connection can no longer be trusted to keep what it is given."""
    return _primary(error) in _UNRELIABLE


_LONG_PAUSE, _SHORT_PAUSE, _HASTE = 0.02, 0.005, 0.9
_NOTHING = "nothing was answered; no answer is given while a cost cannot be written down"
_UNRELIABLE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOTADB}


def _connection(path: Path, mode: str, wait: float) -> sqlite3.Connection:
    return sqlite3.connect(
        f"file:{quote(str(path))}?mode={mode}",
        uri=True,
        timeout=wait,
        isolation_level=None,
        check_same_thread=False,
    )


def _make_durable(connection: sqlite3.Connection) -> None:
    mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
    if mode != "wal":
        raise LedgerError(
            "this file system cannot keep a write-ahead log",
            code="SF601",
            hints=("keep the ledger on a local disk",),
        )
    for setting in ("synchronous = FULL", "fullfsync = ON", "trusted_schema = OFF", "cell_size_check = ON"):
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
            return too_busy(place)
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB | sqlite3.SQLITE_CONSTRAINT:
            message, code = "the ledger is damaged or altered", "SF602"
            hints: tuple[str, ...] = (_NOTHING, "restore a copy and compare its head with one kept elsewhere")
        case sqlite3.SQLITE_FULL:
            message, code, hints = "the disk is full", "SF601", (_NOTHING,)
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
            message, code = f"the ledger cannot be written: {error}", "SF601"
            hints = (_NOTHING, "the file and its folder must be writable: the log lies beside the file")
        case _:
            message, code, hints = f"the ledger failed: {error}", "SF601", (_NOTHING,)
    return LedgerError(message, code=code, place=place, hints=hints)
