"""A connection to a ledger's database: durable commits, one writer, and errors that repeat nothing.

What the server says may hold values, and an address may hold a password, so neither is repeated: errors are
built from the server's five-letter code alone, and raised outside of the handler of the server's own.

A writer must not keep the others waiting while the disk confirms its commit. So it commits without waiting
(`synchronous_commit` off, for this one transaction), which lets the next writer in, and then commits an
empty message with `synchronous_commit` on (`CONFIRMED`). The server syncs its log once for all who wait.

Theorem: when `CONFIRMED` has returned, all that its session has seen before is on the server's disk, and on
that of a synchronous standby. The log is written in order. A commit is in the log before others see it; the
message is in the log behind all that was seen; its commit returns when the log is synced up to it. A server
that crashes before keeps a beginning of its log: whoever was not confirmed was not answered, and no record is
kept without those before it.
Assumes: `fsync` is on, and the server's disk keeps its word. A standby that takes over without the last
commits has lost them; an anchor shows it.
"""

from __future__ import annotations

import os
import re
import sqlite3
import time
from contextlib import suppress
from functools import lru_cache
from typing import Any

from sfumato.errors import LedgerError, Unsupported
from sfumato.ledger import forks
from sfumato.ledger.postgres.address import check, shown
from sfumato.ledger.postgres.schema import SCHEMA

__all__ = ["CONFIRMED", "ServerConnection", "Unreachable", "WITHOUT_FSYNC", "WRITER"]

CONFIRMED = "SELECT pg_logical_emit_message(true, 'sfumato', '')"
"""Returns when the server's disk holds all that was seen before; outside of a transaction."""

WITHOUT_FSYNC = "SFUMATO_TEST_LEDGER_WITHOUT_FSYNC"
"""The setting of tests: a server that does not wait for its disk is accepted. It loses charges."""

WRITER = -0x7366756D
"""The number of the lock of whoever appends; a reservation's lock has its own number, above 0."""

_SETTINGS = f"""SET search_path = pg_catalog, {SCHEMA}, pg_temp; SET synchronous_commit = on;
SET client_encoding = 'UTF8'; SET standard_conforming_strings = on; SET statement_timeout = 0;
SET idle_in_transaction_session_timeout = 60000; SET row_security = on; SET jit = off"""  # a host that froze
_ALIVE = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3, "tcp_user_timeout": 60_000}
_CLOCK = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
_WITHOUT_RESULT = ("SAVEPOINT request", "RELEASE request")
_PREPARED = f"""
PREPARE newest AS
    SELECT {_CLOCK}, sequence, previous, hash, body FROM records ORDER BY sequence DESC LIMIT 1;
PREPARE last_charge (text) AS
    SELECT sequence, previous, hash, body FROM records WHERE kind = 'reserved' AND unit = $1
    ORDER BY sequence DESC LIMIT 1;
PREPARE append (bigint, text, text, text, text, text, text, text, text, bigint, bigint, bytea) AS
    INSERT INTO records
        (sequence, previous, hash, body, kind, unit, analyst, source, key, reservation, step, release)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12);
PREPARE answer (text, text, bigint, bytea) AS
    INSERT INTO records (sequence, previous, hash, body, kind, reservation, release)
    SELECT n.sequence, n.hash, encode(sha256(convert_to(n.hash || chr(10) || n.body, 'UTF8')), 'hex'), n.body,
        'committed', $3, $4
    FROM (
        SELECT sequence + 1 AS sequence, hash, $1 || '"sequence":"' || (sequence + 1) || '"' || $2 AS body,
            encode(sha256(convert_to(previous || chr(10) || body, 'UTF8')), 'hex') = hash AS sound
        FROM records ORDER BY records.sequence DESC LIMIT 1
    ) AS n WHERE n.sound
    RETURNING sequence, previous, hash, body"""  # planned once, not with every charge


class Unreachable(LedgerError):
    """The server is gone, or ended the connection."""


class ServerConnection:
    """A connection to the server, used like one to a file."""

    def __init__(self, address: str, wait: float) -> None:
        try:
            import psycopg
        except ImportError:
            raise Unsupported(
                "a ledger on a server needs psycopg", hints=('pip install "sfumato[postgres]"',)
            ) from None
        check(address)
        self._place = shown(address)
        self._psycopg = psycopg
        self._connection: Any = None
        self._waiting: list[tuple[str, tuple[Any, ...]]] = []
        self.ahead = 0  # how far the server's clock is ahead of this host's, in milliseconds
        given: dict[str, Any] = {"connect_timeout": max(2, int(wait)), **_ALIVE}
        given |= psycopg.conninfo.conninfo_to_dict(address)
        with suppress(psycopg.Error):
            self._connection = psycopg.connect(
                **given,
                autocommit=True,
                application_name="sfumato ledger",
                cursor_factory=psycopg.ClientCursor,  # several statements go to the server at once
            )
        if self._connection is None:
            raise self._gone("the server of the ledger cannot be reached, or does not let this role in")
        try:
            self.execute(_SETTINGS)
            if self._connection.info.server_version >= 140_000:  # else reservations that take long look burnt
                self.execute("SET idle_session_timeout = 0")
            self._check()
        except BaseException:
            self.close()
            raise

    def _check(self) -> None:
        """Refuse a server that could lose a charge after it confirmed it."""
        values = self.execute(
            "SELECT pg_is_in_recovery(), current_setting('fsync'), current_setting('full_page_writes'),"
            " current_setting('server_encoding'), current_setting('default_transaction_read_only'),"
            f" {_CLOCK}"
        ).fetchone()
        standby, fsync, pages, encoding, read_only, clock = values
        self._note_clock(clock)
        wrong = None
        if standby or read_only == "on":
            wrong = "it can only be read: name the primary server"
        elif "off" in (fsync, pages) and os.environ.get(WITHOUT_FSYNC) != "1":
            wrong = "it does not wait for its disk: `fsync` and `full_page_writes` must be on"
        elif encoding != "UTF8":
            wrong = "it does not hold its texts in UTF-8"
        if wrong is not None:
            raise LedgerError(f"the server cannot keep a ledger; {wrong}", code="SF601", place=self._place)

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction was begun and not ended, as far as is known."""
        idle = self._psycopg.pq.TransactionStatus.IDLE
        return not self.lost and self._connection.info.transaction_status != idle

    @property
    def lost(self) -> bool:
        """Whether the connection ended."""
        return bool(self._connection.closed)

    def prepare(self) -> None:
        """Have the server plan what every charge asks; the tables are there."""
        self.execute(_PREPARED)

    def begin(self, kind: str, deadline: float, unit: str) -> list[Any]:
        """Begin a transaction: one that sees one state, or one that alone may append.

        Return the newest record and, to append, the newest charge to a unit; None where there is none.
        """
        if kind == "BEGIN DEFERRED":
            found = _results(self.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; EXECUTE newest"))
        else:
            query = f"{_alone(deadline)}; EXECUTE newest; EXECUTE last_charge(?)"
            found = _results(self.execute(query, (unit,)))[1:]
        rows = [one[0] if one else None for one in found]
        if rows[0] is not None:
            self._note_clock(rows[0][0])
            rows[0] = rows[0][1:]
        return rows

    def answer(self, values: tuple[Any, ...], deadline: float) -> Any:
        """Append an answer behind the newest record, in one journey; return its row, None if there is none.

        The server puts its number and the hash before it into the body, and hashes it.
        """
        query = f"{_alone(deadline)}; EXECUTE answer(?, ?, ?, ?); COMMIT; {CONFIRMED}"
        rows = _results(self.execute(query, values))[1]
        return rows[0] if rows else None

    def commit(self, *, confirm: bool) -> None:
        """End a transaction; with `confirm`, return when the disk holds all that was seen in it."""
        ended = self.execute(f"COMMIT; {CONFIRMED}" if confirm else "COMMIT")
        if ended.statusmessage != "COMMIT":  # a transaction in which a statement failed is rolled back
            raise LedgerError("the server of the ledger did not commit", code="SF601", place=self._place)

    def _note_clock(self, clock: int) -> None:
        self.ahead = clock - time.time_ns() // 1_000_000

    def later(self, statement: str, values: tuple[Any, ...] = ()) -> None:
        """Run a statement without a result together with the next one that has one: one journey for both."""
        self._waiting.append((statement, values))

    def execute(self, statement: str, values: tuple[Any, ...] = ()) -> Any:
        """Run a statement of the journal, spelled for this server; the last of several has the result."""
        if statement in _WITHOUT_RESULT:
            return self.later(statement)
        before, self._waiting = self._waiting, []
        if statement == "ROLLBACK":
            before = []
        together = "; ".join(_spelled(one) for one, _ in (*before, (statement, values)))
        every = tuple(value for _, given in (*before, (statement, values)) for value in given)
        code: str | None = None
        try:
            cursor = self._connection.execute(together, every or None)
            for _ in before:
                cursor.nextset()
            return cursor
        except self._psycopg.Error as error:
            code = error.sqlstate
        raise self._refusal(code)

    def executemany(self, statement: str, values: Any) -> None:
        """Run a statement for several rows."""
        for row in values:
            self.execute(statement, row)

    def leave(self) -> None:
        """Leave the connection to the parent of this process, and say nothing to the server.

        The server would take it for open as long as this process has it, after the parent's end too.
        """
        forks.keep_for_ever(self._connection)  # to free it is to end the parent's
        if not self.lost:
            nowhere = os.open(os.devnull, os.O_RDWR)
            os.dup2(nowhere, self._connection.fileno())
            os.close(nowhere)

    def close(self) -> None:
        """End the connection."""
        if self._connection is not None:
            self._connection.close()

    def _gone(self, message: str) -> Unreachable:
        hints = ("nothing was answered; no answer is given while a cost cannot be written down",)
        return Unreachable(message, code="SF601", place=self._place, hints=hints)

    def _refusal(self, code: str | None) -> Exception:
        if self.lost:
            return self._gone("the server of the ledger ended the connection")
        known = {
            "55P03": ("SF604", "the ledger was busy for longer than the stated wait"),
            "42501": ("SF601", "this role may not do this to the ledger"),
            "53100": ("SF601", "the server's disk is full"),
            "25006": ("SF601", "the server of the ledger can only be read"),
            "42P01": ("SF602", "the tables of the ledger are not those of its format"),
        }
        if code is not None and code.startswith("23"):
            return sqlite3.IntegrityError("a record contradicts those that are there")
        number, message = known.get(code or "", ("SF601", f"the server of the ledger failed (code {code})"))
        hint = "nothing was charged by this call; try again" if number == "SF604" else "nothing was answered"
        return LedgerError(message, code=number, place=self._place, hints=(hint,))


def _alone(deadline: float) -> str:
    """Return statements that begin a transaction which alone may append."""
    left = max(1, int((deadline - time.monotonic()) * 1000))
    # Read committed: each statement after the lock sees all that the holder before committed.
    return (
        "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL synchronous_commit = off; "
        f"SET LOCAL lock_timeout = {left}; SELECT pg_advisory_xact_lock({WRITER})"
    )


def _results(cursor: Any) -> list[list[Any]]:
    """Return the rows of all results of several statements."""
    found = []
    while True:
        if cursor.description is not None:
            found.append(cursor.fetchall())
        if not cursor.nextset():
            return found


@lru_cache(256)
def _spelled(statement: str) -> str:
    """Return a statement of the journal as this server spells it."""
    spelled = re.sub(r"INDEXED BY \w+ ", "", statement)
    return spelled.replace("ifnull(", "coalesce(").replace("?", "%s")
