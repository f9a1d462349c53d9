"""The journal: records appended to a SQLite file, durably, by one writer at a time.

Every record that is read is checked against its hash first. What SQLite reports becomes a
`LedgerError`: whoever cannot write down a cost does not get to look at data.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeVar

from sfumato.errors import LedgerError
from sfumato.ledger import schema
from sfumato.ledger.charges import Entry, Reserved
from sfumato.ledger.query_texts import Erased, QueryText
from sfumato.ledger.receipts import Key, has_key, key_beside
from sfumato.ledger.records import START, Committed, Link, Opened, Record, Signer, Stepped
from sfumato.ledger.store import Store
from sfumato.ledger.terms import Bound, Granted, Registered

__all__ = ["FILED", "Journal", "MOST", "Row", "checked", "expect"]


class Row(NamedTuple):
    """A row of the table, as it is stored."""

    sequence: int
    previous: str
    hash: str
    body: str
    kind: str
    unit: str | None
    analyst: str | None
    source: str | None
    key: str | None
    reservation: int | None
    step: int | None
    release: bytes | None


FILED = ("unit", "analyst", "source", "key", "reservation", "step")
"""The columns that repeat what a body says, to look it up."""

_MOST_BYTES = 1 << 26  # of an answer that is looked through for others that follow from it
MOST = 2**63 - 1
"""The largest number of a record."""

_COLUMNS = ", ".join(Row._fields)
_INSERT = f"INSERT INTO records ({_COLUMNS}) VALUES ({', '.join('?' * len(Row._fields))})"

_NEWEST = "ORDER BY sequence DESC LIMIT 1"
_HOUR = 3_600_000  # in milliseconds

_T = TypeVar("_T", bound=Record)
_Found = TypeVar("_Found")
_Output = TypeVar("_Output", Committed, Stepped)


class Journal(Store):
    """A chain of records, in a file or, with `path=None`, in the memory of this process alone."""

    holds = "instr(c.release, ?) > 0"  # whether an answer holds some bytes

    def __init__(
        self, path: Path | None, wait: float, *, create: bool, clock: Callable[[], int] | None = None
    ) -> None:
        self._clock = clock or (lambda: time.time_ns() // 1_000_000)
        self._key: Key | None = None
        self._newest: Link | None = None
        self._charges: dict[str, Reserved] = {}
        opened = Opened(at=self.now(), ledger=os.urandom(16).hex())
        link = Link(sequence=1, previous=START, body=opened.body(1))
        super().__init__(path, wait, _INSERT, _row(link, opened, None), create=create)

    def now(self) -> int:
        """Return the hour, in milliseconds since 1970; a finer date would tell how long the data took."""
        return max(0, self._clock() // _HOUR * _HOUR)  # no record is from before 1970

    def forget(self) -> None:
        self._newest = None
        self._charges.clear()

    def blinded_version(self, version: str) -> str:
        """Return a version of the data as it is recorded: a keyed hash, so that nobody can test guesses."""
        return self.key().blind(f"version\n{version}")

    def key(self) -> Key:
        """Return the key of this ledger; make it, or put it on record, where that was not done yet."""
        if self._key is None:
            with self.writing():
                known = self.signers()[-1:]
                found = self._found_key(needed=bool(known) and self.first_bound() is not None)
                if known != [found.public]:
                    self.append(Signer(at=self.now(), public_key=found.public))
            self._key = found
        return self._key

    def _found_key(self, *, needed: bool) -> Key:
        """Return the key beside the file, or a new one; with `needed`, none but the one on record.

        Under another key no source would be recognised: private data could be opened as public, and the
        same people under another unit.
        """
        if self.path is None:
            return Key(os.urandom(32))
        found = None if needed and not has_key(self.path) else key_beside(self.path)
        if found is not None and not (needed and self.signers()[-1] != found.public):
            return found
        raise LedgerError(
            "the key beside the ledger is not the one on record, so no data can be recognised",
            code="SF602",
            place=f"{self.path}-key",
            hints=(
                "restore it from a backup: it lay beside the ledger, under this name",
                "without it the ledger can be verified and read, but no data can be opened with it again",
            ),
        )

    # -- appending, inside writing() ----------------------------------------------------------

    def append(self, record: Record, release: bytes | None = None) -> Link:
        """Add a record to the end of the chain."""
        before = self.last()
        link = Link(sequence=before.sequence + 1, previous=before.hash, body=record.body(before.sequence + 1))
        try:
            self._insert(_row(link, record, release))
        except sqlite3.IntegrityError:
            self._check_unanswered(record)
            raise
        self._newest = link
        if isinstance(record, Reserved):
            self._charges[record.unit] = record
        return link

    def store(self, record: Committed, release: bytes) -> Link:
        """Append the answer to a reservation, outside of writing(); on return it is on the disk."""
        return self.write(lambda: self.append(record, release))

    def _check_unanswered(self, record: Record) -> None:
        """Refuse a second answer to a reservation."""
        if isinstance(record, Committed) and self.release(record.reservation) is not None:
            raise LedgerError(
                "the reservation was answered before, by another process that had it",
                code="SF608",
                sequence=record.reservation,
                hints=("reserve again; each answer is paid for by itself",),
            ) from None

    def _insert(self, row: Row) -> None:
        """Write a row; raises IntegrityError where it contradicts those that are there."""
        self._connection.execute(_INSERT, row)

    def keep_text(self, sequence: int, text: QueryText) -> None:
        """Keep the text of a charge that was just appended."""
        self._connection.execute("INSERT INTO query_texts VALUES (?, ?)", (sequence, text.written()))

    def erase_texts(self, sequences: list[int]) -> None:
        """Erase the texts of charges, which must be there, and put it on record."""
        self.append(Erased(at=self.now(), reservations=tuple(sequences)))
        erased = ((sequence,) for sequence in sequences)
        self._connection.executemany("DELETE FROM query_texts WHERE sequence = ?", erased)

    # -- looking up, inside writing() or reading() --------------------------------------------

    def last(self) -> Link:
        """Return the newest record."""
        if self._newest is None:
            self._newest = _present(self._one(_NEWEST))
        return self._newest

    def registered(self, unit: str) -> Registered | None:
        """Return the registration of a unit."""
        return self._record(Registered, "WHERE kind = 'registered' AND unit = ?", unit)

    def last_charge(self, unit: str) -> Reserved | None:
        """Return the newest charge to a unit; it carries the totals."""
        if unit in self._charges:
            return self._charges[unit]
        return self._record(Reserved, f"WHERE kind = 'reserved' AND unit = ? {_NEWEST}", unit)

    def last_charge_of(self, unit: str, analyst: str) -> Reserved | None:
        """Return an analyst's newest charge to a unit; it carries that analyst's totals."""
        wanted = f"WHERE kind = 'reserved' AND unit = ? AND analyst = ? {_NEWEST}"
        return self._record(Reserved, wanted, unit, analyst)

    def granted(self, unit: str, analyst: str) -> Granted | None:
        """Return the newest grant of an analyst."""
        wanted = f"WHERE kind = 'granted' AND unit = ? AND analyst = ? {_NEWEST}"
        return self._record(Granted, wanted, unit, analyst)

    def analysts(self, unit: str) -> list[str]:
        """Return who was granted something, by name."""
        query = "SELECT DISTINCT analyst FROM records WHERE kind = 'granted' AND unit = ?"
        found = self._connection.execute(f"{query} AND analyst IS NOT NULL ORDER BY analyst", (unit,))
        return [analyst for (analyst,) in found]

    def units(self) -> tuple[str, ...]:
        """Return the units that have a budget, in the order in which they were registered."""
        found = self._connection.execute(
            "SELECT unit FROM records INDEXED BY one_budget WHERE kind = 'registered' ORDER BY sequence"
        )
        return tuple(unit for (unit,) in found)

    def bound(self, source: str) -> Bound | None:
        """Return what is on record about a source."""
        return self._record(Bound, "WHERE source = ?", source)

    def first_bound(self, unit: str | None = None) -> Bound | None:
        """Return the first source that was put on record, of a unit or of any."""
        tests, values = ("", ()) if unit is None else ("AND unit = ?", (unit,))
        wanted = f"INDEXED BY bindings WHERE kind = 'bound' {tests} ORDER BY sequence LIMIT 1"
        return self._record(Bound, wanted, *values)

    def signers(self) -> list[str]:
        """Return the public keys on record, oldest first."""
        query = "SELECT sequence, previous, hash, body FROM records WHERE kind = 'signer' ORDER BY sequence"
        return [expect(checked(*row), Signer).public_key for row in self._connection.execute(query)]

    def name(self) -> str:
        """Return the random name that the ledger was given when it was begun."""
        return _present(self._record(Opened, "WHERE sequence = 1")).ledger

    def keyed(self, key: str, analyst: str | None) -> tuple[Link, Reserved] | None:
        """Return the reservation that an analyst (None: the owner) made under an idempotency key."""
        link = self._one("WHERE key = ? AND ifnull(analyst, '') = ?", key, analyst or "")
        return None if link is None else (link, expect(link, Reserved))

    def release(self, reservation: int) -> bytes | None:
        """Return the bytes that a reservation paid for, None if they were never committed."""
        return next((kept for _, kept in self._stored(Committed, reservation, 0, 0)), None)

    def step(self, reservation: int, number: int) -> tuple[Stepped, bytes | None] | None:
        """Return a step that was taken, with its output (None: it is burnt); None if it was not taken."""
        return next(self._stored(Stepped, reservation, number, number), None)

    def outputs(self, reservation: int, last: int) -> dict[int, bytes]:
        """Return the outputs of steps up to one, by number; those that are burnt are left out."""
        found = self._stored(Stepped, reservation, 1, last)
        return {record.step: kept for record, kept in found if kept is not None}

    def steps_taken(self, reservation: int) -> int:
        """Return how many steps of a reservation were taken."""
        query = "SELECT count(*) FROM records WHERE reservation = ? AND ifnull(step, 0) > 0"
        return int(self._connection.execute(query, (reservation,)).fetchone()[0])

    def _stored(
        self, kind: type[_Output], reservation: int, first: int, last: int
    ) -> Iterator[tuple[_Output, bytes | None]]:
        """Yield what a reservation stored, in order, with the bytes that records name; step 0 is its end."""
        found = self._connection.execute(
            "SELECT release, sequence, previous, hash, body FROM records "
            "WHERE reservation = ? AND ifnull(step, 0) BETWEEN ? AND ? ORDER BY ifnull(step, 0)",
            (reservation, first, last),
        ).fetchall()
        for kept, *stored in found:
            link = checked(*stored)
            record = expect(link, kind)
            if not record.names(kept):
                raise LedgerError(
                    f"the release in record {link.sequence} was altered", code="SF602", sequence=link.sequence
                )
            yield record, kept

    def charges(
        self, unit: str | None, analyst: str | None, *, after: int, limit: int, newest: bool = False
    ) -> list[Entry]:
        """Return charges after a record, oldest or newest first, and whether each was answered."""
        tests = ["kind = 'reserved'", "sequence > ?"]
        values: list[str | int] = [after]
        for column, wanted in (("unit", unit), ("analyst", analyst)):
            if wanted is not None:
                tests.append(f"{column} = ?")
                values.append(wanted)
        outputs = "FROM records AS c WHERE c.reservation = r.sequence AND ifnull(c.step, 0)"
        answered = f"EXISTS (SELECT 1 {outputs} = 0), (SELECT count(*) {outputs} > 0)"
        found = self._connection.execute(
            f"SELECT sequence, previous, hash, body, {answered} FROM records AS r "
            f"WHERE {' AND '.join(tests)} ORDER BY sequence {'DESC' if newest else ''} LIMIT ?",
            (*values, limit),
        )
        entries = []
        for *stored, committed, taken in found:
            link = checked(*stored)
            record = expect(link, Reserved)
            entries.append(Entry.of(link.sequence, record, committed=bool(committed), taken=taken))
        return entries

    def releases(
        self, unit: str, version: str, policy_hash: str, analyst: str | None, mark: str, *, limit: int
    ) -> Iterator[tuple[int, bytes]]:
        """Yield the answers that hold a text, about one version of the data and policy, newest first.

        Those to one analyst, or to anybody.
        """
        to, values = ("", (unit,)) if analyst is None else ("AND r.analyst = ?", (unit, analyst))
        found = self._connection.execute(
            "SELECT r.sequence, r.previous, r.hash, r.body FROM records AS r JOIN records AS c "
            "ON c.reservation = r.sequence AND ifnull(c.step, 0) = 0 "
            f"WHERE r.kind = 'reserved' AND r.unit = ? {to} "
            f"AND length(c.release) <= ? AND {self.holds} ORDER BY r.sequence DESC LIMIT ?",
            (*values, _MOST_BYTES, mark.encode(), limit),
        ).fetchall()
        for stored in found:
            link = checked(*stored)
            record = expect(link, Reserved)
            same = (record.data_version, record.policy_hash) == (version, policy_hash)
            if same and (release := self.release(link.sequence)) is not None:
                yield link.sequence, release

    def query_texts(self, first: int = 1, last: int = MOST) -> Iterator[tuple[int, str]]:
        """Yield the texts that are kept of charges with these numbers, unchecked, in order."""
        query = "SELECT sequence, text FROM query_texts WHERE sequence BETWEEN ? AND ? ORDER BY sequence"
        return self._connection.execute(query, (first, last))

    def rows(self, condition: str = "", *values: str | int) -> Iterator[Row]:
        """Yield rows as they are stored, unchecked, in order."""
        query = f"SELECT {_COLUMNS} FROM records {condition} ORDER BY sequence"
        for row in self._connection.execute(query, values):
            yield Row(*row)

    def reopened(self) -> Journal:
        """Return the same journal with a connection of its own; one in memory is itself."""
        return self if self.path is None else Journal(self.path, self.wait, create=False)

    def counted(self) -> int:
        """Return how many records were ever appended, by the count that SQLite keeps apart from them."""
        found = self._connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'records'").fetchone()
        return 0 if found is None else int(found[0])

    def damage(self) -> str | None:
        """Return what SQLite finds wrong with its own pages and indexes, None if all is well."""
        schema.check(self._connection)
        found = str(self._connection.execute("PRAGMA integrity_check(1)").fetchone()[0])
        return None if found == "ok" else found

    def _record(self, kind: type[_T], condition: str, *values: str | int) -> _T | None:
        link = self._one(condition, *values)
        return None if link is None else expect(link, kind)

    def _one(self, condition: str, *values: str | int) -> Link | None:
        query = f"SELECT sequence, previous, hash, body FROM records {condition}"
        row = self._connection.execute(query, values).fetchone()
        return None if row is None else checked(*row)


def _present(found: _Found | None) -> _Found:
    if found is None:
        raise LedgerError("the ledger has lost its first record", code="SF602")
    return found


def checked(sequence: int, previous: str, digest: str, body: str) -> Link:
    """Return a stored record in its place; refuse one that has not its hash."""
    link = Link(sequence=sequence, previous=previous, body=body)
    if link.hash != digest:
        raise LedgerError(
            f"record {sequence} of the ledger was altered",
            code="SF602",
            sequence=sequence,
            hints=("`verify` shows whether it is the only one",),
        )
    return link


def expect(link: Link, kind: type[_T]) -> _T:
    """Return a record; refuse one of another kind than it is filed under."""
    record = link.read(strict=False)
    if not isinstance(record, kind):
        raise LedgerError(f"record {link.sequence} is filed wrongly", code="SF602", sequence=link.sequence)
    return record


def _row(link: Link, record: Record, release: bytes | None) -> Row:
    filed = [getattr(record, name, None) for name in FILED]
    return Row._make((link.sequence, link.previous, link.hash, link.body, record.kind, *filed, release))
