"""The store: one SQLite file, or memory, shared by threads, processes and forks, one writer at a time.

Nothing that was read or written leaves it before the disk has confirmed it: neither a charge, nor an
answer to replay, nor a head to keep as an anchor, whoever wrote it.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from sfumato.errors import LedgerError
from sfumato.ledger import forks
from sfumato.ledger.connection import (
    FAILURES,
    Log,
    begin,
    closed,
    connect,
    create_file,
    identity_of,
    in_memory,
    raise_refusal,
    translated,
    unreliable,
)
from sfumato.ledger.forks import Identity
from sfumato.ledger.group_commit import GroupCommit, WriteRequest, busy
from sfumato.ledger.open_reservations import OpenReservations

__all__ = ["Store"]

_T = TypeVar("_T")


class _Transaction:
    """A transaction of a store. A class, not a generator: others wait while it is entered and left."""

    __slots__ = ("_kind", "_store")

    def __init__(self, store: Store, kind: str) -> None:
        self._store = store
        self._kind = kind

    def __enter__(self) -> None:
        try:
            self._store.begin(self._kind)
        except FAILURES as error:
            raise_refusal(error, self._store.place)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self._store.commit()
            else:
                self._store.abandon(error)
        except FAILURES as failure:
            raise_refusal(failure, self._store.place)
        if isinstance(error, FAILURES):
            raise_refusal(error, self._store.place)


_NOBODY = -1  # no process: a store that a child inherited and may not use


class Store(ABC):
    """A database, the connection to it, and the lock of the threads that use it."""

    def __init__(
        self, path: Path | None, wait: float, insert: str, first: tuple[object, ...], *, create: bool
    ) -> None:
        """Open a file; where it may be created, `insert` writes its `first` row."""
        self.path = path
        self.wait = wait
        self._lock = threading.RLock()
        self._group = GroupCommit()
        self._process = os.getpid()
        self._closed = False
        self._connected = False
        self.identity = (0, 0)
        self._open_reservations = OpenReservations(None)
        self._log: Log | None = None
        self._identities: list[Identity] = []
        self._connections = 0
        self._state = self._confirmed = (0, 0, 0)  # nothing is known, and what others wrote not confirmed
        self._held = False
        with self._lock, translated(self.place):  # no fork in between
            forks.observe(self)
            self._open(insert, first, create=create)

    @property
    def place(self) -> str:
        """Where the store is, as errors name it."""
        return "memory" if self.path is None else str(self.path)

    @property
    def in_memory(self) -> bool:
        """Whether the store ends with this process."""
        return self.path is None

    def _open(self, insert: str, first: tuple[object, ...], *, create: bool) -> None:
        if self.path is None:
            self._connection = in_memory()
            self._connection.execute(insert, first)
            return
        if create and not os.path.lexists(self.path):
            create_file(self.path, insert, *first)
        self.identity = identity_of(self.path)
        self._connect(self.path)

    def _connect(self, path: Path) -> None:
        if forks.inherited(self.identity):
            raise forks.refusal()
        forks.count(self.identity, 1)
        try:
            connection = connect(path, self.wait)
            try:
                log = Log(path)
            except BaseException:
                connection.close()
                raise
        except BaseException:
            forks.count(self.identity, -1)
            raise
        self._connection, self._log = connection, log
        self._identities = [identity_of(one) for one in _files(path)]
        self._connections += 1  # what was known or confirmed of an earlier one is not of this one
        self._connected = True

    def _disconnect(self) -> None:
        self._connected = False
        self._connection.close()
        self._log = None  # who still waits for the disk has it
        forks.count(self.identity, -1)

    def before_fork(self, deadline: float) -> None:
        """Close the connection, which must not go through a fork."""
        self._held = False
        self._held = self._lock.acquire(timeout=max(0, deadline - time.monotonic()))
        if self._held and self._connected and self._log is not None and not self._connection.in_transaction:
            try:
                self._log.confirm()  # a disk that failed says so once, and only to who had the log open
            except LedgerError:
                self.close()
            else:
                self._disconnect()

    def after_fork(self, *, child: bool) -> None:
        """Go on; the connection is opened again when it is needed. A child has none of the other threads."""
        ready, self._held = self._held and not self._connected and self.path is not None, False
        if child:
            self._lock = threading.RLock()
            self._group = GroupCommit()
            self._process = os.getpid() if ready else _NOBODY
            self.forget()
            if self._connected:
                forks.keep_for_ever(self._connection)
        else:
            self._lock.release()  # raises where it was not held, which nobody hears

    # -- transactions -------------------------------------------------------------------------

    def writing(self) -> AbstractContextManager[None]:
        """Hold the only right to append; on leaving, what was appended is on the disk or nothing is."""
        return _Transaction(self, "BEGIN IMMEDIATE")

    def reading(self) -> AbstractContextManager[None]:
        """See one state of the store, whatever others append meanwhile; on leaving, it is on the disk."""
        return _Transaction(self, "BEGIN DEFERRED")

    def write(self, section: Callable[[], _T]) -> _T:
        """Run a section that appends, with those of other threads in one transaction; return its result.

        When this returns, what the section appended is on the disk. Where it raises, nothing of it was
        written, unless the disk did not confirm it.
        """
        result: _T = self._group.run(WriteRequest(section), self._write, self._see_confirmed, self.wait)
        return result

    def _write(self, requests: list[WriteRequest]) -> None:
        """Write the requests of several threads in one transaction, and wait for the disk once."""
        with translated(self.place):
            self.begin("BEGIN IMMEDIATE")
            try:
                for request in requests:
                    self._run(request, alone=len(requests) == 1)
                self._end_transaction()
                log, state = self._log, self._note_commit()
            except BaseException as error:
                written = not self._undo(error)  # it may have been interrupted right after the COMMIT
                for request in requests:
                    request.written = written
                raise
            finally:
                self._lock.release()
            for request in requests:
                request.written = True
            self._confirm(log, state)

    def _run(self, request: WriteRequest, *, alone: bool) -> None:
        """Run one section; where it fails among others, take back only what it appended."""
        if alone:
            request.result = request.section()
            return
        self._connection.execute("SAVEPOINT request")
        try:
            request.result = request.section()
        except Exception as error:
            if isinstance(error, sqlite3.Error) and unreliable(error):
                raise
            request.error = _refusal_for(error, self.place)
            self._connection.execute("ROLLBACK TO request")
            self.forget()
        self._connection.execute("RELEASE request")

    def begin(self, kind: str) -> None:
        """Take the lock of this process and begin a transaction; release the lock where that fails."""
        deadline = time.monotonic() + self.wait
        if not self._lock.acquire(timeout=self.wait):
            raise busy()
        try:
            connection = self._own_connection()
            try:
                self._begin(connection, kind, deadline)
            except BaseException as error:
                self._undo(error)
                raise
        except BaseException:
            self._lock.release()
            raise

    def _begin(self, connection: sqlite3.Connection, kind: str, deadline: float) -> None:
        begin(connection, kind, deadline)
        self._look(connection)

    def _end_transaction(self) -> None:
        self._connection.execute("COMMIT")

    def commit(self) -> None:
        """Commit, release the lock, and return when the disk holds what was read and written."""
        if self._process != os.getpid():
            raise forks.refusal()
        try:
            try:
                self._end_transaction()
            except BaseException as error:
                self._undo(error)
                raise
            log, state = self._log, self._note_commit()
        finally:
            self._lock.release()
        self._confirm(log, state)

    def _confirm(self, log: Log | None, state: tuple[int, int, int]) -> None:
        """Return when the disk holds a state of the store; other threads use the store meanwhile."""
        if log is None or state == self._confirmed:
            return
        try:
            log.confirm()
        except LedgerError:
            self.close()  # the system may have forgotten what it failed to write, and claim success next time
            raise
        self._confirmed = state

    def abandon(self, error: BaseException) -> None:
        """Take back what was written since `begin`, and release the lock."""
        if self._process != os.getpid():
            return  # it is the parent's
        try:
            self._undo(error)
        finally:
            self._lock.release()

    def _undo(self, error: BaseException) -> bool:
        """Take back what was written since `begin`; return False where it was committed already."""
        self.forget()
        undone = self._connection.in_transaction
        if isinstance(error, sqlite3.Error) and unreliable(error):
            self.close()  # a disk that failed once to write may claim success next time
        elif undone:
            self._connection.execute("ROLLBACK")
        return undone

    def _look(self, connection: sqlite3.Connection) -> None:
        """Note which state this is: by what others committed, and by what was changed here."""
        version = connection.execute("PRAGMA data_version").fetchone()[0]
        state = (self._connections, version, connection.total_changes)
        if state != self._state:
            self.forget()
            self._state = state

    def _see_confirmed(self) -> None:
        """Return when the disk holds everything that was committed."""
        with self.reading():
            pass

    def _note_commit(self) -> tuple[int, int, int]:
        """Note that the state changed by what was written here, and return it."""
        self._state = (*self._state[:2], self._connection.total_changes)
        return self._state

    @abstractmethod
    def forget(self) -> None:
        """Forget what was read: the store has changed since, or did not change as expected."""

    def empty_log(self) -> None:
        """Copy the log into the file and empty it, if nobody else is at work: it has what was erased."""
        with self._lock, translated(self.place):
            self._own_connection().execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def check_owner(self) -> None:
        """Refuse whoever does not own the file: texts of questions are for the owner alone."""
        if self.path is None or not hasattr(os, "geteuid"):
            return
        if os.geteuid() not in (0, os.stat(self.path).st_uid):
            raise LedgerError(
                "the texts of questions are for the owner of the ledger's file",
                code="SF612",
                place=str(self.path),
                hints=("whatever else the ledger says can be seen without them",),
            )

    def _own_connection(self) -> sqlite3.Connection:
        if self._closed:
            raise closed()
        if self._process != os.getpid():
            if self.path is None:
                raise LedgerError(
                    "a forked process cannot use a ledger in memory: its budget would be spent twice",
                    code="SF601",
                    hints=("keep the ledger in a file",),
                )
            raise forks.refusal()
        if self.path is not None and identity_of(self.path) != self.identity:
            raise LedgerError(
                "the ledger's file was moved or replaced while it was open",
                code="SF601",
                hints=("put it back; what is charged must be found by whoever looks next",),
            )
        if self.path is not None and not self._connected:
            self._connect(self.path)
        if self.path is not None:
            self._check_beside(self.path)
        return self._connection

    def _check_beside(self, path: Path) -> None:
        """Refuse where the log or its index has gone: nobody else would see what is written to it here."""
        for file, known in zip(_files(path), self._identities, strict=True):
            try:
                same = identity_of(file) == known
            except FileNotFoundError:
                same = False
            if not same:
                raise LedgerError(
                    "a file beside the ledger was moved or replaced while it was open",
                    code="SF601",
                    place=str(file),
                    hints=(
                        "put it back; what is charged must be found by whoever looks next",
                        "if it is lost: close the ledger in each program, so that it is written anew",
                    ),
                )

    def close(self) -> None:
        """Let go of the file. Closing twice is harmless."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            if self._process != os.getpid():
                return  # a parent's: neither to be used nor to be closed
            log = self._log
            if self._connected:
                self._disconnect()
            elif self.path is None:
                self._connection.close()
            if log is not None:
                log.close()

    def __del__(
        self, getpid: Callable[[], int] = os.getpid, keep: Callable[[object], None] = forks.keep_for_ever
    ) -> None:
        try:
            if self._process != getpid():
                keep(self._connection)
            else:
                self.close()
        except BaseException:  # half-built, or the interpreter is ending and has begun with this module
            return

    @property
    def open_reservations(self) -> OpenReservations:
        """Which reservations somebody works on."""
        return self._open_reservations if self.path is None else OpenReservations.of(self.path)


def _files(path: Path) -> tuple[Path, ...]:
    """Return SQLite's log and its index, which are there while anybody has the ledger open."""
    return tuple(path.with_name(path.name + more) for more in ("-wal", "-shm"))


def _refusal_for(error: Exception, place: str) -> Exception:
    """Return what is raised to the thread whose section failed; its own transaction does not translate it."""
    try:
        if isinstance(error, FAILURES):
            raise_refusal(error, place)
    except LedgerError as refusal:
        return refusal
    return error
