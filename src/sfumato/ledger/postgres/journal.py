"""The journal in a database: whoever appends holds one lock of the server, and nobody else appends meanwhile.

A charge takes two journeys to the server. One takes the lock and fetches the newest record and the newest
charge; the other inserts, commits, which frees the lock, and waits for the disk: see `connection`. An answer
takes one journey: nothing in its record depends on the others but its number and the hash before it.

Theorem: a charge whose commit was interrupted is known to be written, or not, or nothing is answered.
The transaction holds the writer's lock until the server has ended it. Whoever gets the lock afterwards sees
it whole or never will. So this process connects again, takes the lock and looks for the hash of its newest
record, in which there are random bits. Where that fails too, the error says that it is not known.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from sfumato.errors import LedgerError
from sfumato.ledger import forks
from sfumato.ledger.charges import Reserved
from sfumato.ledger.connection import closed, translated
from sfumato.ledger.group_commit import WriteRequest
from sfumato.ledger.journal import Journal, Row, checked, expect
from sfumato.ledger.postgres import schema
from sfumato.ledger.postgres.address import shown
from sfumato.ledger.postgres.connection import WRITER, ServerConnection, Unreachable
from sfumato.ledger.postgres.open_reservations import ServerReservations
from sfumato.ledger.query_texts import QueryText
from sfumato.ledger.receipts import Key
from sfumato.ledger.records import Committed, Head, Link, Record

__all__ = ["PostgresJournal"]

_PAGE = 1000
_PAUSE = 0.05
_APPEND = f"EXECUTE append({', '.join('?' * len(Row._fields))})"


class PostgresJournal(Journal):
    """A chain of records in a PostgreSQL database, shared by hosts that share nothing else."""

    holds = "position(?::bytea IN c.release) > 0"

    def __init__(
        self, address: str, wait: float, *, create: bool, clock: Callable[[], int] | None = None
    ) -> None:
        self._address = address
        self._ahead = 0  # the server's clock, in milliseconds
        self._unit = ""  # whose newest charge is fetched when writing begins
        self._head: Any = None  # the newest record when the transaction began, as it is stored
        self._fetched: Any = None  # that charge, as it is stored
        self._appended: list[tuple[Link, Record]] = []  # in this transaction
        self._alone = True  # whether a failure may take back the whole transaction
        self._durable = 0  # the newest record that the disk is known to hold
        self._reservations = ServerReservations(address, wait)
        self._seen: Head | None = None
        super().__init__(None, wait, create=create, clock=clock or self._server_time)

    @property
    def place(self) -> str:
        return shown(self._address)

    @property
    def in_memory(self) -> bool:
        return False

    @property
    def open_reservations(self) -> ServerReservations:
        return self._reservations

    def _server_time(self) -> int:
        """Return the time by the server's clock: those of hosts differ."""
        return time.time_ns() // 1_000_000 + self._ahead

    # -- connecting ---------------------------------------------------------------------------

    def _open(self, insert: str, first: tuple[object, ...], *, create: bool) -> None:
        connection = ServerConnection(self._address, self.wait)
        try:
            if not schema.exists(connection):
                if not create:
                    raise LedgerError("there is no ledger in this database", code="SF601")
                if not schema.may_create(connection):
                    raise LedgerError(
                        "there is no ledger in this database, and this role may not make one",
                        code="SF601",
                        hints=(
                            "whoever owns the database runs `sfumato ledger create`",
                            "or lets this role own it: GRANT CREATE ON DATABASE .. TO ..",
                        ),
                    )
                self._create(connection, insert, first)
            schema.check(connection)
        except BaseException:
            connection.close()
            raise
        self._use(connection)

    def _create(self, connection: ServerConnection, insert: str, first: tuple[object, ...]) -> None:
        """Make the tables, the key and the first record at once, or nothing; another may be faster."""
        left = int(self.wait * 1000) or 1
        connection.execute(f"BEGIN; SET LOCAL lock_timeout = {left}; SELECT pg_advisory_xact_lock({WRITER})")
        if not schema.exists(connection):
            for statement in schema.STATEMENTS:
                connection.execute(statement)
                connection.execute(f"SET LOCAL search_path = {schema.SCHEMA}, pg_catalog, pg_temp")
            connection.execute("INSERT INTO signing_key VALUES (?)", (os.urandom(32),))
            connection.execute(insert, first)
        connection.commit(confirm=True)

    def _use(self, connection: Any) -> None:
        connection.prepare()
        self._connection = connection
        self._connected = True
        self._ahead = connection.ahead
        self._durable = 0  # another server may have taken over

    def _own_connection(self) -> sqlite3.Connection:
        if self._closed:
            raise closed()
        if self._process != os.getpid():
            raise forks.refusal()
        connection: Any = self._connection
        if not self._connected or connection.lost:
            self._use(self._again())
        return self._connection

    def _again(self) -> ServerConnection:
        """Connect again; refuse a server that has lost what was seen before, as an old copy has."""
        connection = ServerConnection(self._address, self.wait)
        try:
            schema.check(connection)
            if (seen := self._seen) is not None:
                query = "SELECT hash FROM records WHERE sequence = ?"
                if connection.execute(query, (seen.sequence,)).fetchone() != (seen.hash,):
                    raise LedgerError(
                        f"the server has lost record {seen.sequence} of the ledger, which was seen before",
                        code="SF602",
                        sequence=seen.sequence,
                        hints=(
                            "it may be an old copy, or a standby that took over without the last commits",
                        ),
                    )
        except BaseException:
            connection.close()
            raise
        return connection

    def _disconnect(self) -> None:
        self._connected = False
        self._connection.close()

    def before_fork(self, deadline: float) -> None:
        self._held = self._lock.acquire(timeout=max(0, deadline - time.monotonic()))
        if self._held and self._connected and not self._connection.in_transaction:
            self._disconnect()

    def after_fork(self, *, child: bool) -> None:
        ready = self._held and not self._connected
        super().after_fork(child=child)
        if child:
            self._process = os.getpid() if ready else self._process
            self._reservations.leave()
            if self._connected:
                connection: Any = self._connection
                connection.leave()
            self._reservations = ServerReservations(self._address, self.wait)

    def close(self) -> None:
        with self._lock:
            if self._closed:
                return
            self._closed = True
            if self._process == os.getpid():
                self._reservations.close()
                if self._connected:
                    self._disconnect()

    def reopened(self) -> Journal:
        return PostgresJournal(self._address, self.wait, create=False)

    # -- transactions -------------------------------------------------------------------------

    def _begin(self, connection: Any, kind: str, deadline: float) -> None:
        try:
            found = connection.begin(kind, deadline, self._unit)
        except Unreachable:  # it was idle when the server went: nothing was begun
            connection = self._again()
            self._use(connection)
            found = connection.begin(kind, deadline, self._unit)
        self.forget()
        self._ahead = connection.ahead
        self._appended, self._alone = [], True
        self._head, self._fetched = found[0], found[1] if len(found) > 1 else None

    def forget(self) -> None:
        super().forget()
        self._fetched = None  # of what was appended since, something may stay

    def last(self) -> Link:
        if self._newest is None and self._appended:
            self._newest = self._appended[-1][0]
        elif self._newest is None and self._head is not None:
            self._newest = checked(*self._head)
        return super().last()

    def last_charge(self, unit: str) -> Reserved | None:
        if self._fetched is not None and unit == self._unit and unit not in self._charges:
            return expect(checked(*self._fetched), Reserved)
        self._unit = unit
        return super().last_charge(unit)

    def _run(self, request: WriteRequest, *, alone: bool) -> None:
        self._alone, before = alone, len(self._appended)
        super()._run(request, alone=alone)
        if request.error is not None:
            del self._appended[before:]  # taken back

    def _end_transaction(self) -> None:
        connection: Any = self._connection
        appended = self._appended
        sequence, _, head, _ = self._head or (0, "", "", "")
        if appended:
            sequence, head = appended[-1][0].sequence, appended[-1][0].hash
        try:
            connection.commit(confirm=sequence > self._durable)
        except Unreachable:
            if not appended:
                raise  # nothing is lost
            self._resolve(Head(sequence=sequence, hash=head))
        except sqlite3.IntegrityError:
            connection.execute("ROLLBACK")
            for _, record in appended:
                self._check_unanswered(record)
            raise
        if sequence > self._durable:
            self._durable, self._seen = sequence, Head(sequence=sequence, hash=head)

    def _resolve(self, newest: Head) -> None:
        """Return where the newest record was committed before the server went; else refuse."""
        found = self._found_again("sequence = ?", newest.sequence)
        if found is None or found[2] != newest.hash:
            raise LedgerError(
                "the server of the ledger went away before the commit",
                code="SF604",
                hints=("nothing was charged by this call; try again",),
            )

    def _found_again(self, condition: str, number: int) -> Any:
        """Return a record that is in the chain and on the disk, once the server is there again; else None.

        Where that cannot be known, refuse: whoever is interrupted here does not know either.
        """
        try:
            return self._looked_up(condition, number)
        except BaseException as error:
            with suppress(Exception):
                self._disconnect()  # it may be within a transaction
            if isinstance(error, LedgerError) and error.code == "SF602":
                raise
        raise LedgerError(
            "the server of the ledger went away during a commit",
            code="SF601",
            hints=("nothing was answered; the history shows whether this call was charged",),
        )

    def _looked_up(self, condition: str, number: int) -> Any:
        """Look for a record. What was under way has ended, one way or the other, when the lock is free."""
        query = f"SELECT sequence, previous, hash, body FROM records WHERE {condition}"
        deadline = time.monotonic() + self.wait
        while True:
            try:
                again: Any = self._again()
                self._use(again)
                again.begin("BEGIN IMMEDIATE", deadline, "")
                found = again.execute(query, (number,)).fetchone()
                again.commit(confirm=True)
            except Unreachable:
                if time.monotonic() >= deadline:
                    raise
                time.sleep(_PAUSE)
            else:
                return found

    def _undo(self, error: BaseException) -> bool:
        """Take back what was written; what a lost connection did not commit, the server takes back."""
        self.forget()
        if not self._connected:
            return True
        if self._connection.in_transaction:
            with suppress(Unreachable):
                self._connection.execute("ROLLBACK")
            return True
        return isinstance(error, Unreachable) or (isinstance(error, LedgerError) and error.code == "SF604")

    def _note_commit(self) -> tuple[int, int, int]:
        return self._state  # nothing is known of later states: others write too

    def append(self, record: Record, release: bytes | None = None) -> Link:
        link = super().append(record, release)
        self._appended.append((link, record))
        return link

    def store(self, record: Committed, release: bytes) -> Link:
        if self._lock.acquire(
            blocking=False
        ):  # no other thread is at work: nobody to share a transaction with
            try:
                with translated(self.place):
                    link = self._answer(record, release)
            finally:
                self._lock.release()
            if link is not None:
                return link
        return super().store(record, release)

    def _answer(self, record: Committed, release: bytes) -> Link | None:
        """Append an answer in one journey; None where nothing was appended, for whatever reason."""
        connection: Any = self._own_connection()
        if connection.in_transaction:
            return None
        start, end = record.body(0).split('"sequence":"0"')
        try:
            row = connection.answer((start, end, record.reservation, release), time.monotonic() + self.wait)
        except Unreachable:
            row = self._found_again("reservation = ? AND coalesce(step, 0) = 0", record.reservation)
        except BaseException as error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            if isinstance(error, sqlite3.IntegrityError):
                return None
            raise
        if row is None:
            return None
        link = checked(*row)
        if link.body != record.body(link.sequence):
            return None  # another's
        self._durable, self._seen = link.sequence, link.head
        return link

    def _insert(self, row: Row) -> None:
        connection: Any = self._connection
        if self._alone:  # sent with the commit; where it fails, nothing of the transaction stays
            connection.later(_APPEND, row)
            return
        connection.later("SAVEPOINT appending")
        try:
            connection.later(_APPEND, row)
            connection.execute("RELEASE appending")
        except sqlite3.IntegrityError:
            connection.execute("ROLLBACK TO appending")
            raise

    def keep_text(self, sequence: int, text: QueryText) -> None:
        connection: Any = self._connection
        (connection.later if self._alone else connection.execute)(
            "INSERT INTO query_texts VALUES (?, ?)", (sequence, text.written())
        )

    # -- what lies beside a file --------------------------------------------------------------

    def _found_key(self, *, needed: bool) -> Key:
        rows = self._connection.execute("SELECT secret FROM signing_key").fetchall()
        if len(rows) == 1 and len(rows[0][0]) == 32:
            key = Key(bytes(rows[0][0]))
            if not needed or self.signers()[-1] == key.public:
                return key
        raise LedgerError(
            "the key of the ledger is not the one on record, so no data can be recognised",
            code="SF602",
            hints=("restore the table `signing_key` from a backup",),
        )

    def check_owner(self) -> None:
        with self.reading():
            found = self._connection.execute(
                "SELECT pg_has_role(relowner, 'MEMBER') FROM pg_class WHERE oid = 'query_texts'::regclass"
            ).fetchone()
        if found != (True,):
            raise LedgerError(
                "the texts of questions are for the owner of the ledger's tables",
                code="SF612",
                hints=("whatever else the ledger says can be seen without them",),
            )

    def empty_log(self) -> None:
        """Do nothing: what was erased stays in the server's log and pages until the server reuses them."""

    def rows(self, condition: str = "", *values: str | int) -> Iterator[Row]:
        if condition:
            yield from super().rows(condition, *values)
            return
        after = 0
        while page := list(super().rows("WHERE sequence BETWEEN ? AND ?", after + 1, after + _PAGE)):
            yield from page
            after += _PAGE
        yield from super().rows("WHERE sequence > ? OR sequence < 1", after)  # after a gap, or before all

    def counted(self) -> int:
        return int(self._connection.execute("SELECT records FROM counted").fetchone()[0])

    def damage(self) -> str | None:
        schema.check(self._connection)
        return None
