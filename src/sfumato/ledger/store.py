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
from sfumato.ledger.beside import identity_of
from sfumato.ledger.clerk import Clerk
from sfumato.ledger.connection import (
    FAILURES,
    begin,
    busy,
    connect,
    create_file,
    in_memory,
    raise_refusal,
    translated,
    unreliable,
)
from sfumato.ledger.desk import Ask
from sfumato.ledger.liveness import Liveness
from sfumato.ledger.log import Log
from sfumato.ledger.records import Link
from sfumato.ledger.turns import Errand, Turns

__all__ = ["Store"]

_T = TypeVar("_T")


class _Transaction:
    """A transaction of a store. A class, not a generator: others wait while it is entered and left."""

    __slots__ = ("_at_once", "_begun", "_kind", "_store")

    def __init__(self, store: Store, kind: str, *, at_once: bool = False) -> None:
        self._store = store
        self._kind = kind
        self._at_once = at_once

    def __enter__(self) -> bool:
        try:
            self._begun = self._store.begin(self._kind, at_once=self._at_once)
        except FAILURES as error:
            raise_refusal(error, self._store.path)
        return self._begun

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if not self._begun:
            return
        try:
            if error is None:
                self._store.commit()
            else:
                self._store.abandon(error)
        except FAILURES as failure:
            raise_refusal(failure, self._store.path)
        if isinstance(error, FAILURES):
            raise_refusal(error, self._store.path)


_NOBODY = -1  # no process: a store that a child inherited and may not use


class Store(ABC):
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
        self._connected = False
        self._clerk = Clerk()
        self.serve: Callable[[bytes], Link] | None = None  # how to write what another process asks for
        self.identity = (0, 0)
        self._liveness = Liveness(None)
        self._log: Log | None = None
        self._connections = 0
        self._state = self._confirmed = (0, 0, 0)  # nothing is known, and what others wrote not confirmed
        self._held = False
        with self._lock, translated(path):  # no fork in between
            forks.join(self)
            if path is None:
                self._connection = in_memory()
                self._connection.execute(insert, first)
            else:
                if create and not os.path.lexists(path):
                    create_file(path, insert, *first)
                self.identity = identity_of(path)
                self._connect(path)

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
            self._turns = Turns()
            self._clerk = Clerk()
            self._process = os.getpid() if ready else _NOBODY
            self.forget()
            if self._connected:
                forks.keep_for_ever(self._connection)
        else:
            self._lock.release()  # raises where it was not held, which nobody hears

    # -- transactions -------------------------------------------------------------------------

    def writing(self, *, at_once: bool = False) -> AbstractContextManager[bool]:
        """Hold the only right to append; on leaving, what was appended is on the disk or nothing is.

        Whoever finds another at work waits; `at_once`, it enters without that right and is told so: False.
        """
        return _Transaction(self, "BEGIN IMMEDIATE", at_once=at_once)

    def write(self, section: Callable[[], _T], ask: Ask | None = None) -> _T:
        """Run a section that appends, with those of others in one transaction; return what it returns.

        With an `ask`, which says the same in words, another process may write it. When this returns, what was
        appended is on the disk; where it raises, nothing of this section is, unless the disk did not
        confirm it, or another process did not say so.
        """
        result: _T = self._turns.run(Errand(section, ask), self._write, self.wait)
        return result

    def _write(self, errands: list[Errand]) -> None:
        self._clerk.write(self, errands)

    def reading(self) -> AbstractContextManager[bool]:
        """See one state of the store, whatever others append meanwhile; on leaving, it is on the disk."""
        return _Transaction(self, "BEGIN DEFERRED")

    def begin(self, kind: str, *, at_once: bool = False) -> bool:
        """Take the turn and begin a transaction; where that fails, the turn is given back.

        Return whether it was begun: `at_once`, it is not while others are at work.
        """
        deadline = time.monotonic() + (0 if at_once else self.wait)
        self._take_turn()
        try:
            connection = self._own_connection()
            try:
                begin(connection, kind, deadline)
                self._look(connection)
            except BaseException as error:
                self._undo(error)
                if not (at_once and isinstance(error, sqlite3.OperationalError) and busy(error)):
                    raise
                self._lock.release()
                return False
        except BaseException:
            self._lock.release()
            raise
        return True

    def commit(self) -> None:
        """Commit, give the turn back, and return when the disk holds what was read and written."""
        if self._process != os.getpid():
            raise forks.refusal()
        try:
            try:
                self._connection.execute("COMMIT")
            except BaseException as error:
                self._undo(error)
                raise
            state = self._state = (*self._state[:2], self._connection.total_changes)
            log = self._log
        finally:
            self._lock.release()
        if log is not None and state != self._confirmed:  # others are at work already
            self._confirm(log, state)

    def abandon(self, error: BaseException) -> None:
        """Take back what was written since `begin`, and give the turn back."""
        if self._process != os.getpid():
            return  # it is the parent's
        try:
            self._undo(error)
        finally:
            self._lock.release()

    def _undo(self, error: BaseException) -> None:
        self.forget()
        if isinstance(error, sqlite3.Error) and unreliable(error):
            self.close()  # a disk that failed once to write may claim success next time
        elif self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def check_usable(self) -> None:
        """Refuse to go on with a store that could not be written to."""
        with translated(self.path):
            self._take_turn()
            try:
                self._own_connection()
            finally:
                self._lock.release()

    def _take_turn(self) -> None:
        if not self._lock.acquire(timeout=self.wait):
            raise LedgerError(
                "other threads used the ledger for longer than the stated wait",
                code="SF604",
                hints=("nothing was charged by this call; try again",),
            )

    def _look(self, connection: sqlite3.Connection) -> None:
        """Note which state this is: by what others committed, and by what was changed here."""
        version = connection.execute("PRAGMA data_version").fetchone()[0]
        state = (self._connections, version, connection.total_changes)
        if state != self._state:
            self.forget()
            self._state = state

    def execute(self, statement: str) -> None:
        """Execute a statement; inside writing()."""
        self._connection.execute(statement)

    @abstractmethod
    def forget(self) -> None:
        """Forget what was read: the store has changed since, or did not change as expected."""

    @abstractmethod
    def keeps(self, link: Link) -> bool:
        """Return whether a record is in the store; inside writing()."""

    def _confirm(self, log: Log, state: tuple[int, int, int]) -> None:
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
            raise forks.refusal()
        if self.path is not None and identity_of(self.path) != self.identity:
            raise LedgerError(
                "the ledger's file was moved or replaced while it was open",
                code="SF601",
                hints=("put it back; what is charged must be found by whoever looks next",),
            )
        if self.path is not None and not self._connected:
            self._connect(self.path)
        return self._connection

    def close(self) -> None:
        """Let go of the file. Closing twice is harmless."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            if self._process != os.getpid():
                return  # a parent's: neither to be used nor to be closed
            self._clerk.leave()
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
    def liveness(self) -> Liveness:
        """Which reservations are being worked on."""
        return self._liveness if self.path is None else Liveness.of(self.path)
