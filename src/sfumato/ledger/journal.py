"""The journal: records appended to a SQLite file, durably, by one writer at a time.

Every record that is read is checked against its hash first. What SQLite reports becomes a
`LedgerError`: whoever cannot write down a cost does not get to look at data.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from sfumato.errors import LedgerError
from sfumato.ledger import schema
from sfumato.ledger.connection import connect, create_file, in_memory, translated, unreliable
from sfumato.ledger.liveness import Liveness
from sfumato.ledger.records import START, Committed, Link, Opened, Record, Registered, Reserved

__all__ = ["Journal", "Row", "milliseconds"]

Row = tuple[int, str, str, str, str, str | None, str | None, int | None, bytes | None]
"""A row of the table: sequence, previous, hash, body, kind, unit, key, reservation, release."""

_COLUMNS = "sequence, previous, hash, body, kind, unit, key, reservation, release"
_INSERT = f"INSERT INTO records ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
_INHERITED: list[sqlite3.Connection] = []
"""Connections of a parent process. A child may neither use nor close them; here they are kept from both."""


_T = TypeVar("_T", bound=Record)


class Journal:
    """A chain of records, in a file or, with `path=None`, in the memory of this process alone."""

    def __init__(self, path: Path | None, wait: float, *, create: bool) -> None:
        self.path = path
        self.wait = wait
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._closed = False
        self._liveness = Liveness(None)
        insert, first = _INSERT, _row(None, Opened(at=milliseconds(), ledger=os.urandom(16).hex()), None)
        with translated(path):
            if path is None:
                self._connection = in_memory()
                self._connection.execute(insert, first)
            else:
                if create and not os.path.lexists(path):
                    create_file(path, insert, *first)
                self._connection = connect(path, wait)
                self._identity = _identity(path)

    # -- transactions -------------------------------------------------------------------------

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the only right to append; on leaving, what was appended is on the disk or nothing is."""
        with self._transaction("BEGIN IMMEDIATE"):
            yield

    @contextmanager
    def reading(self) -> Iterator[None]:
        """See one state of the journal, whatever others append meanwhile."""
        with self._transaction("BEGIN"):
            yield

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[None]:
        with self._locked(), translated(self.path):
            connection = self._own_connection()
            try:
                connection.execute(begin)
                yield
                connection.execute("COMMIT")
            except BaseException as error:
                if isinstance(error, sqlite3.Error) and unreliable(error):
                    self.close()  # a disk that failed once to confirm a write may claim success next time
                elif connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    @contextmanager
    def _locked(self) -> Iterator[None]:
        if not self._lock.acquire(timeout=self.wait):
            raise LedgerError(
                "other threads used the ledger for longer than the stated wait",
                code="SF604",
                hints=("nothing was charged by this call; try again",),
            )
        try:
            yield
        finally:
            self._lock.release()

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
            _INHERITED.append(self._connection)
            self._connection, self._process = connect(self.path, self.wait), os.getpid()
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
            if self._process == os.getpid():
                self._connection.close()
            else:
                _INHERITED.append(self._connection)

    def __del__(self) -> None:
        with suppress(Exception):  # half-built, or the interpreter is ending
            self.close()

    @property
    def liveness(self) -> Liveness:
        """Which reservations are being worked on."""
        return self._liveness if self.path is None else Liveness.of(self.path)

    # -- appending, inside writing() ----------------------------------------------------------

    def append(self, record: Record, release: bytes | None = None) -> Link:
        """Add a record to the end of the chain."""
        row = _row(self.last(), record, release)
        self._connection.execute(_INSERT, row)
        return Link(sequence=row[0], previous=row[1], body=row[3])

    # -- looking up, inside writing() or reading() --------------------------------------------

    def last(self) -> Link:
        """Return the newest record."""
        link = self._one("ORDER BY sequence DESC LIMIT 1")
        if link is None:
            raise LedgerError("the ledger has lost its first record", code="SF602")
        return link

    def registered(self, unit: str) -> Registered | None:
        """Return the registration of a unit."""
        link = self._one("WHERE kind = 'registered' AND unit = ?", unit)
        return None if link is None else _expect(link, Registered)

    def last_charge(self, unit: str) -> Reserved | None:
        """Return the newest charge to a unit; it carries the totals."""
        link = self._one("WHERE kind = 'reserved' AND unit = ? ORDER BY sequence DESC LIMIT 1", unit)
        return None if link is None else _expect(link, Reserved)

    def keyed(self, key: str) -> tuple[Link, Reserved] | None:
        """Return the reservation made under an idempotency key."""
        link = self._one("WHERE key = ?", key)
        return None if link is None else (link, _expect(link, Reserved))

    def release(self, reservation: int) -> bytes | None:
        """Return the bytes that a reservation paid for, None if they were never committed."""
        link = self._one("WHERE reservation = ?", reservation)
        if link is None:
            return None
        query = "SELECT release FROM records WHERE sequence = ?"
        kept = self._connection.execute(query, (link.sequence,)).fetchone()[0]
        record = _expect(link, Committed)
        if not isinstance(kept, bytes) or Committed.of(reservation, kept, record.at) != record:
            raise LedgerError(
                f"the release in record {link.sequence} was altered", code="SF602", sequence=link.sequence
            )
        return kept

    def charges(self, unit: str | None) -> Iterator[tuple[Link, Reserved]]:
        """Yield the charges to a unit, or to all, in order."""
        wanted = (
            ("WHERE kind = 'reserved'",) if unit is None else ("WHERE kind = 'reserved' AND unit = ?", unit)
        )
        for sequence, previous, digest, body, *_ in self.rows(*wanted):
            link = _checked(sequence, previous, digest, body)
            yield link, _expect(link, Reserved)

    def answered(self) -> Iterator[int]:
        """Yield the reservations that have a release."""
        query = "SELECT reservation FROM records WHERE reservation IS NOT NULL"
        yield from (row[0] for row in self._connection.execute(query))

    def rows(self, condition: str = "", *values: str | int) -> Iterator[Row]:
        """Yield rows as they are stored, unchecked, in order."""
        query = f"SELECT {_COLUMNS} FROM records {condition} ORDER BY sequence"
        yield from self._connection.execute(query, values)

    def counted(self) -> int:
        """Return how many records were ever appended, by the count that SQLite keeps apart from them."""
        found = self._connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'records'").fetchone()
        return 0 if found is None else int(found[0])

    def damage(self) -> str | None:
        """Return what SQLite finds wrong with its own pages and indexes, None if all is well."""
        schema.check(self._connection)
        found = str(self._connection.execute("PRAGMA integrity_check(1)").fetchone()[0])
        return None if found == "ok" else found

    def _one(self, condition: str, *values: str | int) -> Link | None:
        query = f"SELECT sequence, previous, hash, body FROM records {condition}"
        row = self._connection.execute(query, values).fetchone()
        return None if row is None else _checked(*row)


def milliseconds() -> int:
    """Return the time for a record."""
    return time.time_ns() // 1_000_000


def _identity(path: Path) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_dev, status.st_ino


def _checked(sequence: int, previous: str, digest: str, body: str) -> Link:
    link = Link(sequence=sequence, previous=previous, body=body)
    if link.hash != digest:
        raise LedgerError(
            f"record {sequence} of the ledger was altered",
            code="SF602",
            sequence=sequence,
            hints=("`verify` shows whether it is the only one",),
        )
    return link


def _expect(link: Link, kind: type[_T]) -> _T:
    record = link.read()
    if not isinstance(record, kind):
        raise LedgerError(f"record {link.sequence} is filed wrongly", code="SF602", sequence=link.sequence)
    return record


def _row(before: Link | None, record: Record, release: bytes | None) -> Row:
    sequence, previous = (1, START) if before is None else (before.sequence + 1, before.hash)
    link = Link(sequence=sequence, previous=previous, body=record.body(sequence))
    unit, key, reservation = (getattr(record, name, None) for name in ("unit", "key", "reservation"))
    return (sequence, previous, link.hash, link.body, record.kind, unit, key, reservation, release)
