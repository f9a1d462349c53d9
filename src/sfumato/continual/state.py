"""The state of a stream: its noise so far, what was published, keys not shown yet, who was counted when.

It is a SQLite file beside the ledger, in a folder that its owner alone may enter. Whoever reads it can take
the noise off what was published: protect it as you protect the data. Whoever loses it ends the stream: fresh
noise for periods to come would not be the noise that was priced.

One transaction commits a period: its noise, its output and the people that it counted, and only then is the
output handed to the ledger. So a period that was computed is never computed again, whatever is killed. Each
period has a hash over itself and the one before, the first over the charge's place in the ledger: a state
that is shortened inside, altered, or that of another stream or ledger, is refused. Noise, people and outputs
enter by their hashes, so that they can go when they are needed no more: an output when the next period has
one, the noise of a stream with buffers when they have changed.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy.typing as npt

from sfumato.continual.remembered import digest, packed, packed_integers, unpacked, unpacked_integers
from sfumato.errors import LedgerError

__all__ = ["CommittedPeriod", "StreamState", "states_of"]

_Integers = npt.NDArray[Any]

_FORMAT = 2
_DAMAGES = {
    sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CONSTRAINT,
    sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_FORMAT,
}  # fmt: skip
_WAIT = 5.0  # seconds, for another process that has the state open
_SCHEMA = f"""
PRAGMA user_version = {_FORMAT};
CREATE TABLE period (
    number INTEGER PRIMARY KEY, noise BLOB NOT NULL, keys BLOB NOT NULL, people BLOB NOT NULL, output BLOB,
    digest TEXT NOT NULL
);
CREATE TABLE noise (period INTEGER PRIMARY KEY, content BLOB NOT NULL);
CREATE TABLE output (period INTEGER PRIMARY KEY, content BLOB NOT NULL);
CREATE TABLE remembered (
    kind TEXT NOT NULL, period INTEGER NOT NULL, part INTEGER NOT NULL, content BLOB NOT NULL,
    PRIMARY KEY (kind, period, part)
) WITHOUT ROWID;
"""

_KINDS = ("people", "rows", "parts")  # of what is remembered, in the order of its hashes

_IN_MEMORY: dict[str, sqlite3.Connection] = {}  # of ledgers in memory, by their streams' charges


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CommittedPeriod:
    """A period as the state holds it; without an output it was skipped."""

    number: int
    noise: _Integers  # what `CorrelatedNoise.kept` says
    output: bytes | None
    people: Any | None = None  # an Arrow table of `__unit`: who was counted, where that is remembered
    rows: Any | None = None  # an Arrow table of `__unit` and `__row`: rows that are remembered
    parts: tuple[str, ...] = ()  # hashes of the files that it was computed from, where that is remembered
    keys: bytes = b""  # of a stream whose keys appear over time (`appearing_keys`)

    def remembered(self) -> dict[str, Any | None]:
        """Return what is remembered as tables, by kind."""
        import pyarrow

        return {"people": self.people, "rows": self.rows, "parts": pyarrow.table({"part": self.parts})}


class StreamState:
    """The state of one stream; `charge` is the place of its charge in the ledger, a number and a hash."""

    def __init__(self, connection: sqlite3.Connection, charge: str, place: str) -> None:
        self._connection = connection
        self._place = place
        self._remembered: dict[tuple[str, int], Any] = {}  # what was read, by kind and period
        with _refusing(place):
            if connection.execute("PRAGMA user_version").fetchone() != (_FORMAT,):
                raise _ended("is of another format", place, hint="go on with the version that began it")
            self._digest, self.last = self._verified(charge)

    @staticmethod
    def open(ledger: Path | None, sequence: int, charge: str, *, create: bool) -> StreamState:
        """Open the state of a stream, or with `create` begin one where there is none."""
        if ledger is None:
            if charge not in _IN_MEMORY and create:
                _IN_MEMORY[charge] = sqlite3.connect(
                    ":memory:", check_same_thread=False, isolation_level=None
                )
                _IN_MEMORY[charge].executescript(_SCHEMA)
            if charge not in _IN_MEMORY:
                raise _ended("is missing", "memory")
            return StreamState(_IN_MEMORY[charge], charge, "memory")
        folder = states_of(ledger)
        path = folder / f"{sequence}.sqlite"
        with _refusing(str(path)):
            if create and not path.exists():
                folder.mkdir(mode=0o700, exist_ok=True)
                _begin(path)
            if not path.exists():
                raise _ended("is missing", str(path))
            connection = _exclusive(path)
        try:
            return StreamState(connection, charge, str(path))
        except BaseException:
            connection.close()  # or the stream would seem to be busy
            raise

    def check(self, taken: int, published: tuple[int, bytes] | None) -> None:
        """Refuse a state that does not hold the newest output that was published, or that is further on.

        It may be one period ahead of those that the ledger has taken, and no more: that one was committed,
        and is not published yet. If it is further, the ledger is an older one than the state's.
        """
        if self.last > taken + 1:
            raise _ended("is of periods that the ledger does not have", self._place)
        if published is None:
            return
        number, content = published
        with _refusing(self._place):
            found = self._connection.execute("SELECT output FROM period WHERE number = ?", (number,))
            if found.fetchone() != (digest([content]),):
                raise _ended("is older than what was published, or not of it", self._place)

    def output(self, number: int) -> bytes | None:
        """Return the output of the newest period, None where there is no such period yet."""
        return next(iter(self._contents("output", number)), None)

    def noises(self, *, newest: bool) -> list[_Integers]:
        """Return what is kept of the noise of all periods, or of the newest one if that replaces all."""
        found = self._contents("noise", 1)
        if len(found) != (min(1, self.last) if newest else self.last):
            raise _ended("is damaged", self._place)
        return [unpacked_integers(content) for content in found]

    def _contents(self, kind: str, since: int) -> list[bytes]:
        """Return noise or outputs that are still there, in order, if they are those that were committed."""
        joined = f"SELECT period.{kind}, content FROM period JOIN {kind} ON number = {kind}.period"
        with _refusing(self._place):
            rows = self._connection.execute(
                f"{joined} WHERE number >= ? ORDER BY number", (since,)
            ).fetchall()
        if any(known != digest([content]) for known, content in rows):
            raise _ended("is damaged, or that of another stream", self._place)
        return [content for _, content in rows]

    def keys(self) -> list[bytes]:
        """Return what is kept of the keys of all periods so far."""
        with _refusing(self._place):
            rows = self._connection.execute("SELECT keys FROM period ORDER BY number").fetchall()
            return [keys for (keys,) in rows]

    def people(self, since: int) -> list[Any]:
        """Return who was counted in each period from one on: Arrow tables of `__unit`."""
        tables = [self._read("people", number) for number in range(max(1, since), self.last + 1)]
        return [one for one in tables if one is not None]

    def rows(self, period: int) -> Any | None:
        """Return the rows that a period has seen: an Arrow table of `__unit` and `__row`; None: no row."""
        return self._read("rows", period) if period <= self.last else None

    def parts(self, period: int) -> frozenset[str]:
        """Return hashes of the files that a period was computed from; none, if it was skipped."""
        table = self._read("parts", period) if 0 < period <= self.last else None
        return frozenset() if table is None else frozenset(table.column("part").to_pylist())

    def _read(self, kind: str, period: int) -> Any | None:
        """Return what is remembered of a period, if it is what was committed."""
        if (kind, period) not in self._remembered:
            with _refusing(self._place):
                select = "SELECT content FROM remembered WHERE kind = ? AND period = ? ORDER BY part"
                parts = [content for (content,) in self._connection.execute(select, (kind, period))]
                hashes = self._connection.execute("SELECT people FROM period WHERE number = ?", (period,))
                place = 32 * _KINDS.index(kind)
                if digest(parts) != hashes.fetchone()[0][place : place + 32]:
                    raise _ended("is damaged, or that of another stream", self._place)
                table = unpacked(parts)
            self._remembered[kind, period] = table
        return self._remembered[kind, period]

    def commit(
        self, periods: Sequence[CommittedPeriod], *, forget: bool, needed: Mapping[str, int] | None = None
    ) -> None:
        """Put periods on the disk: all of it, or nothing.

        `forget` the noise of all but the last of them. People, rows and parts are remembered of those periods
        on that are `needed`; by default of all.
        """
        oldest = {**dict.fromkeys(_KINDS, 1), **(needed or {})}
        head, rows, remembered, noises = self._digest, [], [], []
        for one in periods:
            noise, hashes = packed_integers(one.noise), b""
            noises.append((one.number, noise))
            for kind, table in one.remembered().items():
                contents = packed(table)
                hashes += digest(contents)
                remembered += [(kind, one.number, place, part) for place, part in enumerate(contents)]
            output = None if one.output is None else digest([one.output])
            parts = (digest([noise]), one.keys, hashes, output)
            head = _link(head, *parts)
            rows.append((one.number, *parts, head))
        newest = periods[-1]
        outputs = [] if newest.output is None else [(newest.number, newest.output)]
        with _refusing(self._place):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                self._connection.executemany("INSERT INTO period VALUES (?, ?, ?, ?, ?, ?)", rows)
                self._connection.executemany("INSERT INTO remembered VALUES (?, ?, ?, ?)", remembered)
                older = "DELETE FROM remembered WHERE kind = ? AND period < ?"
                self._connection.executemany(older, oldest.items())
                if forget:
                    self._connection.execute("DELETE FROM noise")
                    noises = noises[-1:]
                self._connection.executemany("INSERT INTO noise VALUES (?, ?)", noises)
                self._connection.execute("DELETE FROM output")
                self._connection.executemany("INSERT INTO output VALUES (?, ?)", outputs)
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
        self._digest, self.last = head, newest.number
        for one in periods:
            self._remembered |= {(kind, one.number): table for kind, table in one.remembered().items()}
        for kind, period in list(self._remembered):
            if period < oldest[kind]:
                del self._remembered[kind, period]

    def close(self) -> None:
        """Let go of the file; a state in memory stays."""
        if self._place != "memory":
            self._connection.close()

    def _verified(self, charge: str) -> tuple[str, int]:
        """Return the newest hash and number; refuse where one does not follow from the one before."""
        head, last = hashlib.sha256(charge.encode()).hexdigest(), 0
        rows = self._connection.execute("SELECT * FROM period ORDER BY number")
        for number, noise, keys, people, output, found in rows:
            head, last = _link(head, noise, keys, people, output), last + 1
            if number != last or head != found:
                raise _ended("is damaged, or that of another stream", self._place)
        return head, last

    def __repr__(self) -> str:
        return "<state of a stream: hidden>"


def states_of(ledger: Path) -> Path:
    """Return the folder with the states of the streams of a ledger.

    >>> states_of(Path("visits.ledger")).name
    'visits.ledger-streams'
    """
    return ledger.with_name(f"{ledger.name}-streams")


def _begin(path: Path) -> None:
    """Write an empty state under another name, and link it to its own when it is complete."""
    draft = path.with_name(f"{path.name}.{os.urandom(8).hex()}.new")
    try:
        os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        connection = sqlite3.connect(draft, isolation_level=None)
        connection.execute("PRAGMA synchronous = EXTRA")
        connection.executescript(_SCHEMA)
        connection.close()
        os.link(draft, path)
    finally:
        draft.unlink(missing_ok=True)
    for folder in (path.parent, path.parent.parent):
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def _exclusive(path: Path) -> sqlite3.Connection:
    """Open a state for this process alone, until it is closed; the system closes it when the process ends.

    The locks of a ledger lie in a file that may be deleted. Without them two processes could advance a stream
    at once, and each would find that the state is not the one that it has read of.
    """
    connection = sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True, isolation_level=None, timeout=_WAIT)
    try:
        connection.execute("PRAGMA synchronous = EXTRA")
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("BEGIN EXCLUSIVE")
        connection.execute("COMMIT")
    except BaseException:
        connection.close()
        raise
    return connection


def _link(before: str, *parts: bytes | None) -> str:
    """Return the hash of a period and of the hash before it."""
    said = [b"" if part is None else hashlib.sha256(part).digest() for part in parts]
    return hashlib.sha256(b"".join([before.encode(), *said])).hexdigest()


def _ended(why: str, place: str, hint: str = "") -> LedgerError:
    return LedgerError(
        f"the state of this stream {why}: the stream has ended",
        code="SF613",
        place=place,
        hints=(
            hint or "put the newest state back, if it was moved; what was published stays",
            "a stream never goes on with fresh noise: begin another one, for a charge of its own",
        ),
    )


def _unreached(why: str, code: str, place: str) -> LedgerError:
    hints = ("the stream has not ended, and what was reserved stays charged: try again",)
    return LedgerError(f"the state of this stream {why}", code=code, place=place, hints=hints)


@contextmanager
def _refusing(place: str) -> Iterator[None]:
    """Turn what SQLite reports into the refusal; its text could tell what the file holds."""
    try:
        yield
    except sqlite3.Error as error:
        number = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
        if number in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise _unreached("is open in another process", "SF604", place) from None
        if number in _DAMAGES:
            raise _ended("cannot be read", place) from None
        raise _unreached("cannot be read or written now", "SF601", place) from None
    except (ValueError, TypeError):
        raise _ended("cannot be read", place) from None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise _unreached(f"cannot be opened: {reason}", "SF601", place) from None
