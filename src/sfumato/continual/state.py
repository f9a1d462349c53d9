"""The state of a stream: its noise so far, what was published, and who was counted when.

It is a SQLite file beside the ledger, in a folder that its owner alone may enter. Whoever reads it can take
the noise off what was published: protect it as you protect the data. Whoever loses it ends the stream: fresh
noise for periods to come would not be the noise that was priced.

One transaction commits a period: its noise, its output and the people that it counted, and only then is the
output handed to the ledger. So a period that was computed is never computed again, whatever is killed. Each
period has a hash over itself and the one before, the first over the charge's place in the ledger: a state
that is shortened inside, altered, or that of another stream or ledger, is refused.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.continual.participation import Participation
from sfumato.errors import LedgerError

__all__ = ["Admitted", "CommittedPeriod", "StreamState"]

_Integers = npt.NDArray[Any]

_SCHEMA = """
CREATE TABLE period (
    number INTEGER PRIMARY KEY, noise BLOB NOT NULL, people BLOB NOT NULL, output BLOB, digest TEXT NOT NULL
);
"""

_IN_MEMORY: dict[str, sqlite3.Connection] = {}  # of ledgers in memory, by their streams' charges


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CommittedPeriod:
    """A period as the state holds it; without an output it was skipped."""

    number: int
    noise: _Integers
    output: bytes | None


@dataclass(slots=True, kw_only=True, repr=False)
class Admitted:
    """Decides whose rows count in one period, and remembers it until the period is committed.

    Theorem: whether a person is admitted is a function of that person's own earlier periods, so that another
    person more or less changes nothing for this one; and nobody is admitted to periods that `Participation`
    does not allow.
    """

    participation: Participation
    period: int
    earlier: Mapping[str, tuple[int, int]]  # by unit: in how many periods, and in which one last
    found: list[str] = field(default_factory=list)

    def __call__(self, units: Any) -> Any:
        """Return for each unit of an Arrow column whether its rows count."""
        import pyarrow

        names, admits, period = (
            units.cast(pyarrow.string()).to_pylist(),
            self.participation.admits,
            self.period,
        )
        seen = map(self.earlier.get, names)
        flags = [before is None or admits(*before, period) for before in seen]
        self.found = [name for name, admitted in zip(names, flags, strict=True) if admitted]
        return pyarrow.array(flags, pyarrow.bool_())


class StreamState:
    """The state of one stream; `charge` is the place of its charge in the ledger, a number and a hash."""

    def __init__(self, connection: sqlite3.Connection, charge: str, place: str) -> None:
        self._connection = connection
        self._place = place
        self._participants: dict[str, tuple[int, int]] | None = None  # read when first needed
        with _refusing(place):
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
        folder = ledger.with_name(f"{ledger.name}-streams")
        path = folder / f"{sequence}.sqlite"
        with _refusing(str(path)):
            if create and not path.exists():
                folder.mkdir(mode=0o700, exist_ok=True)
                _begin(path)
            if not path.exists():
                raise _ended("is missing", str(path))
            connection = sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True, isolation_level=None)
            connection.execute("PRAGMA synchronous = EXTRA")
        return StreamState(connection, charge, str(path))

    def check(self, published: Mapping[int, bytes]) -> None:
        """Refuse a state that does not hold what was published, by period."""
        if published and self.output(max(published)) != published[max(published)]:
            raise _ended("is older than what was published, or not of it", self._place)

    def output(self, number: int) -> bytes | None:
        """Return the output of a period, None where it was skipped or not computed yet."""
        with _refusing(self._place):
            found = self._connection.execute("SELECT output FROM period WHERE number = ?", (number,))
            row = found.fetchone()
        return None if row is None else row[0]

    def noises(self) -> list[_Integers]:
        """Return the noise of all periods so far."""
        with _refusing(self._place):
            rows = self._connection.execute("SELECT noise FROM period ORDER BY number").fetchall()
            return [np.array(json.loads(noise), dtype=object) for (noise,) in rows]

    def admitted(self, participation: Participation, period: int) -> Admitted:
        """Return who may be counted in a period."""
        if self._participants is None:
            self._participants = {}
            with _refusing(self._place):
                rows = self._connection.execute(
                    "SELECT number, people FROM period ORDER BY number"
                ).fetchall()
                for number, people in rows:
                    self._count(json.loads(people), number)
        return Admitted(participation=participation, period=period, earlier=self._participants)

    def _count(self, people: Sequence[str], period: int) -> None:
        """Remember that people were counted in a period."""
        if self._participants is not None:
            known = self._participants
            known.update({unit: (known.get(unit, (0, 0))[0] + 1, period) for unit in people})

    def commit(self, periods: Sequence[CommittedPeriod], admitted: Admitted | None) -> None:
        """Put periods on the disk, and who was counted in the last of them: all of it, or nothing."""
        digest, rows = self._digest, []
        counted = [] if admitted is None else admitted.found
        for one in periods:
            noise = json.dumps(one.noise.tolist()).encode()
            people = json.dumps(counted if one is periods[-1] else []).encode()
            digest = _link(digest, noise, people, one.output)
            rows.append((one.number, noise, people, one.output, digest))
        with _refusing(self._place):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                self._connection.executemany("INSERT INTO period VALUES (?, ?, ?, ?, ?)", rows)
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
        self._digest, self.last = digest, periods[-1].number
        self._count(counted, self.last)

    def close(self) -> None:
        """Let go of the file; a state in memory stays."""
        if self._place != "memory":
            self._connection.close()

    def _verified(self, charge: str) -> tuple[str, int]:
        """Return the newest hash and number; refuse where one does not follow from the one before."""
        digest, last = hashlib.sha256(charge.encode()).hexdigest(), 0
        rows = self._connection.execute("SELECT * FROM period ORDER BY number")
        for number, noise, people, output, found in rows:
            digest, last = _link(digest, noise, people, output), last + 1
            if number != last or digest != found:
                raise _ended("is damaged, or that of another stream", self._place)
        return digest, last

    def __repr__(self) -> str:
        return "<state of a stream: hidden>"


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


def _link(before: str, noise: bytes, people: bytes, output: bytes | None) -> str:
    """Return the hash of a period and of the hash before it."""
    said = [b"" if part is None else hashlib.sha256(part).digest() for part in (noise, people, output)]
    return hashlib.sha256(b"".join([before.encode(), *said])).hexdigest()


def _ended(why: str, place: str) -> LedgerError:
    return LedgerError(
        f"the state of this stream {why}: the stream has ended",
        code="SF613",
        place=place,
        hints=(
            "put the newest state back, if it was moved; what was published stays",
            "a stream never goes on with fresh noise: begin another one, for a charge of its own",
        ),
    )


@contextmanager
def _refusing(place: str) -> Iterator[None]:
    """Turn what SQLite reports into the refusal; its text could tell what the file holds."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if getattr(error, "sqlite_errorcode", None) in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_BUSY):
            raise LedgerError("the state cannot be written now", code="SF601", place=place) from None
        raise _ended("cannot be read", place) from None
    except (sqlite3.Error, ValueError, TypeError):
        raise _ended("cannot be read", place) from None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise LedgerError(f"the state cannot be opened: {reason}", code="SF601", place=place) from None
