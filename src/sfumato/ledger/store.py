"""The store: one SQLite file, or memory, shared by threads, processes and forks, one writer at a time.

Nothing that was read or written leaves it before the disk has confirmed it: neither a charge, nor an
answer to replay, nor a head to keep as an anchor, whoever wrote it.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from sfumato.errors import LedgerError
from sfumato.ledger.connection import (
    FAILURES,
    begin,
    connect,
    create_file,
    in_memory,
    raise_refusal,
    translated,
    unreliable,
)
from sfumato.ledger.liveness import Liveness
from sfumato.ledger.log import Log
from sfumato.ledger.turns import Errand, Turns

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
            raise_refusal(error, self._store.path)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self._store.commit()
            else:
                self._store.abandon(error)
        except FAILURES as failure:
            raise_refusal(failure, self._store.path)
        if isinstance(error, FAILURES):
            raise_refusal(error, self._store.path)


_INHERITED: list[object] = []
"""Connections of a parent process. A child may neither use nor close them; here they are kept from both."""


class Store:
    """A database and the right to use it."""

    def __init__(
        self, path: Path | None, wait: float, insert: str, first: tuple[object, ...], *, create: bool
    ) -> None:
        """Open a file; where it may be created, `insert` writes its `first` row."""
        self.path = path
        self.wait = wait
        self._lock = threading.RLock()
        self._turns = Turns()
        self._process = os.getpid()
        self._closed = False
        self._liveness = Liveness(None)
        self._log: Log | None = None
        self._state = self._confirmed = (0, 0)
        with translated(path):
            if path is None:
                self._connection = in_memory()
                self._connection.execute(insert, first)
            else:
                if create and not os.path.lexists(path):
                    create_file(path, insert, *first)
                self._connect(path)
                self._identity = _identity(path)

    def _connect(self, path: Path) -> None:
        self._connection = connect(path, self.wait)
        self._log = Log(path)
        self._confirmed = (-1, -1)  # what others wrote may not be: to be confirmed before it is shown

    # -- transactions -------------------------------------------------------------------------

    def writing(self) -> AbstractContextManager[None]:
        """Hold the only right to append; on leaving, what was appended is on the disk or nothing is."""
        return _Transaction(self, "BEGIN IMMEDIATE")

    def write(self, section: Callable[[], _T]) -> _T:
        """Run a section that appends, with those of other threads in one transaction; return what it returns.

        When this returns, what was appended is on the disk; where it raises, nothing of this section is,
        unless the disk did not confirm it.
        """
        return self._turns.run(section, self._write, self.wait)

    def _write(self, errands: list[Errand]) -> None:
        with self.writing():
            for errand in errands:
                self._do(errand, alone=len(errands) == 1)

    def _do(self, errand: Errand, *, alone: bool) -> None:
        if alone:
            errand.result = errand.section()
            return
        self._connection.execute("SAVEPOINT errand")
        try:
            errand.result = errand.section()
        except BaseException as error:
            if isinstance(error, sqlite3.Error) and unreliable(error):
                raise
            errand.error = error
            self._connection.execute("ROLLBACK TO errand")
            self._forget()
        self._connection.execute("RELEASE errand")

    def reading(self) -> AbstractContextManager[None]:
        """See one state of the store, whatever others append meanwhile; on leaving, it is on the disk."""
        return _Transaction(self, "BEGIN DEFERRED")

    def begin(self, kind: str) -> None:
        """Take the turn and begin a transaction; where that fails, the turn is given back."""
        deadline = time.monotonic() + self.wait
        self._take_turn()
        try:
            connection = self._own_connection()
            try:
                begin(connection, kind, deadline)
                self._look(connection)
            except BaseException as error:
                self._undo(error)
                raise
        except BaseException:
            self._lock.release()
            raise

    def commit(self) -> None:
        """Commit, give the turn back, and return when the disk holds what was read and written."""
        try:
            try:
                self._connection.execute("COMMIT")
            except BaseException as error:
                self._undo(error)
                raise
            state = self._state = (self._state[0], self._connection.total_changes)
            log = self._log
        finally:
            self._lock.release()
        if log is not None and state != self._confirmed:  # others are at work already
            self._confirm(log, state)

    def abandon(self, error: BaseException) -> None:
        """Take back what was written since `begin`, and give the turn back."""
        try:
            self._undo(error)
        finally:
            self._lock.release()

    def _undo(self, error: BaseException) -> None:
        self._forget()
        if isinstance(error, sqlite3.Error) and unreliable(error):
            self.close()  # a disk that failed once to write may claim success next time
        elif self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def _take_turn(self) -> None:
        if not self._lock.acquire(timeout=self.wait):
            raise LedgerError(
                "other threads used the ledger for longer than the stated wait",
                code="SF604",
                hints=("nothing was charged by this call; try again",),
            )

    def _look(self, connection: sqlite3.Connection) -> None:
        """Note which state this is: by what others committed, and by what was changed here."""
        state = (connection.execute("PRAGMA data_version").fetchone()[0], connection.total_changes)
        if state != self._state:
            self._forget()
            self._state = state

    def _forget(self) -> None:
        """Forget what was read: the store has changed since, or did not change as expected."""

    def _confirm(self, log: Log, state: tuple[int, int]) -> None:
        try:
            log.confirm()
        except LedgerError:
            self.close()  # the system may have forgotten what it failed to write, and claim success next time
            raise
        self._confirmed = state

    def _own_connection(self) -> sqlite3.Connection:
        if self._closed:
            raise LedgerError("the ledger is closed", code="SF601")
        if self._process != os.getpid():
            if self.path is None:
                raise LedgerError(
                    "a forked process cannot use a ledger in memory: its budget would be spent twice",
                    code="SF601",
                    hints=("keep the ledger in a file",),
                )
            _INHERITED.extend((self._connection, self._log))
            self._connect(self.path)
            self._process = os.getpid()
            self._forget()
        if self.path is not None and _identity(self.path) != self._identity:
            raise LedgerError(
                "the ledger's file was moved or replaced while it was open",
                code="SF601",
                hints=("put it back; what is charged must be found by whoever looks next",),
            )
        return self._connection

    def close(self) -> None:
        """Let go of the file. Closing twice is harmless."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            if self._process != os.getpid():
                _INHERITED.extend((self._connection, self._log))
                return
            self._connection.close()
            if self._log is not None:
                self._log.close()

    def __del__(self) -> None:
        if suppress is None:  # the interpreter is ending, and has begun with this module
            return
        with suppress(Exception):  # half-built
            self.close()

    @property
    def liveness(self) -> Liveness:
        """Which reservations are being worked on."""
        return self._liveness if self.path is None else Liveness.of(self.path)


def _identity(path: Path) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_dev, status.st_ino
