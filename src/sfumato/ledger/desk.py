"""The desk: processes that write at the same time write for each other, as threads of one process do.

A process that writes without pause attends the desk. The others lay on it what they want written; the
attendant writes it in the same transaction as its own and waits for the disk once for all of them. The desk
is a file beside the ledger, in memory that processes share, with a place for each. Nothing depends on it but
speed: it may be deleted, and whoever finds nobody there writes by itself.

    asker                               who holds the right to write
    1  lays down ask and ticket         2  takes up asks and writes their records; notes each of them
                                           beside its ask *before the commit*
                                        3  commits, which gives the right to write up
    5  sees its ticket: done            4  waits for the disk; then marks the tickets as done

Theorem: an ask is written once at most, and who is told that it is done finds its record on the disk.
Only who holds SQLite's right to write takes up an ask. An asker that loses patience takes that right: then
nobody else is at work, and what the note names was committed or never will be; the chain says which,
because a hash belongs to one record in one place. If the record is there, the asker waits for the disk
itself; if not, it withdraws the ask and writes. Tickets are random, so marks and notes for others, or of long
ago, are never taken for one's own. A process that dies between any two steps changes none of this: SQLite
undoes what it had not committed, and passes the right to write on.
Assumes: what was stored before the right to write was given up is seen by who has it next; and that who may
write the desk may write the ledger (it is made with the same permissions).
"""

from __future__ import annotations

import errno
import mmap
import os
import struct
import threading
import time
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from sfumato.errors import LedgerError
from sfumato.ledger.records import Link

try:
    import fcntl
except ImportError:  # no such locks on this system: every process writes by itself
    fcntl = None  # type: ignore[assignment]

__all__ = ["Ask", "Desk", "Paper"]

File = tuple[int, int]
"""Which file a ledger is, by its device and number: under one name there may be another one day."""

_PLACES = 64
_HEADER = 4096  # a byte for each place: whether an ask lies there; then who attends, and until when
_PLACE = 16384  # the ticket that is done; the ask; the note
_ASK, _NOTE = 64, 12288
_SIZE = _HEADER + _PLACES * _PLACE
_ATTENDANT = struct.Struct("<Qd")
_TICKET = struct.Struct("<Q")
_FRAME = struct.Struct("<QQQII")  # ticket, file, length and checksum of the words that follow
_LINKED = struct.Struct("<Q64s")  # a record's number, and the hash before it
_POLL, _FRESH, _PATIENCE, _LONGEST = 0.0003, 0.005, 0.1, 1.0


class Ask(NamedTuple):
    """What is to be written, in words that another process can follow, and what its record means here."""

    words: Callable[[], bytes]
    result: Callable[[Link], Any]


class Paper(NamedTuple):
    """An ask as it lies on the desk, for who holds the right to write."""

    desk: Desk
    place: int
    ticket: int
    words: bytes

    def note(self, link: Link | None) -> None:
        """Note the record that was written for it, before that is committed; None: it was declined."""
        words = b""
        if link is not None:
            words = _LINKED.pack(link.sequence, link.previous.encode()) + link.body.encode()
            if len(words) > _PLACE - _NOTE - _FRAME.size:
                raise LedgerError("the record is too long for a desk", code="SF601")
        self.desk.note(self.place, self.ticket, words)

    def done(self) -> None:
        """Mark it: its record is on the disk, or it was declined."""
        self.desk.mark(self.place, self.ticket)


class Desk:
    """The desk of one ledger. One object per file and process: locks are per process."""

    _known: dict[str, Desk] = {}  # noqa: RUF012  # by path; closing a file would drop all its locks
    _inherited: list[Desk] = []  # noqa: RUF012  # a parent's; closing them would drop the child's own
    _guard = threading.Lock()

    def __init__(self, file: int) -> None:
        self._process = os.getpid()
        self._file = file
        self._map = mmap.mmap(file, _SIZE)
        self._own: set[int] = set()
        self._wrote: dict[int, float] = {}
        self._lock = threading.Lock()

    @staticmethod
    def at(path: str, ledger: Path, *, create: bool) -> Desk | None:
        """Return this process's object for a desk; None where there is none, and none can be made."""
        with Desk._guard:
            known = Desk._known.get(path)
            if known is not None and known._process != os.getpid():
                Desk._inherited.append(Desk._known.pop(path))
                known = None
            if known is None and fcntl is not None:
                with suppress(OSError):
                    if create:
                        _make(path, ledger)
                    known = Desk._known[path] = Desk(_opened(path))
            return known

    def take_place(self) -> int | None:
        """Return the number of a place that nobody else has; None if all are taken."""
        with self._lock:
            for place in range(_PLACES):
                if place not in self._own and self._lock_place(place):
                    self._own.add(place)
                    self._map[place] = 0
                    return place
        return None

    def leave_place(self, place: int) -> None:
        """Give a place back."""
        with self._lock:
            self._map[place] = 0
            self._own.discard(place)
            self._wrote.pop(place, None)
            self._unlock_place(place)

    # -- who attends ----------------------------------------------------------------------------

    def attend(self, place: int, began: float) -> None:
        """Say that who has this place wrote since `began`; if it also did just before, it will again."""
        now = time.monotonic()
        if began - self._wrote.get(place, 0) < _FRESH:
            _ATTENDANT.pack_into(self._map, _PLACES, place, now + _FRESH + 2 * (now - began))
        self._wrote[place] = now

    def attended(self, place: int) -> bool:
        """Return whether somebody else is expected to take up soon what is asked."""
        who, until = _ATTENDANT.unpack_from(self._map, _PLACES)
        return bool(who != place and 0 < until - time.monotonic() < _LONGEST)

    # -- asking ---------------------------------------------------------------------------------

    def ask(self, place: int, words: bytes, ledger: File) -> int | None:
        """Lay down an ask; return its ticket, None if it is too long for a desk."""
        if len(words) > _NOTE - _ASK - _FRAME.size:
            return None
        ticket = int.from_bytes(os.urandom(8), "little")
        self._write(place, _ASK, ticket, ledger, words)
        self._map[place] = 1
        return ticket

    def withdraw(self, place: int) -> None:
        """Take an ask back. Only who holds the right to write can be certain that nobody has taken it up."""
        self._map[place] = 0

    def wait(self, place: int, ticket: int, deadline: float) -> bool:
        """Return True as soon as an ask is done; False when there is no more reason to wait for it."""
        patience = min(deadline, time.monotonic() + _PATIENCE)
        while _TICKET.unpack_from(self._map, _HEADER + place * _PLACE)[0] != ticket:
            if not self.attended(place) or time.monotonic() >= patience:
                return False
            time.sleep(_POLL)
        return True

    def noted(self, place: int, ticket: int) -> bytes | None:
        """Return what was noted for an ask, which `Desk.link` reads; empty: declined; None: no note."""
        found = self._read(place, _NOTE)
        return found[2] if found is not None and found[0] == ticket else None

    @staticmethod
    def link(note: bytes) -> Link:
        """Return the record that a note names."""
        sequence, previous = _LINKED.unpack_from(note)
        return Link(sequence=sequence, previous=previous.decode(), body=note[_LINKED.size :].decode())

    # -- writing for others, with the right to write ----------------------------------------------

    def asked(self, ledger: File) -> list[Paper]:
        """Return what lies on the desk about a ledger's file, but for what the dead have left."""
        marks = self._map[:_PLACES]
        papers = []
        for place in (place for place, mark in enumerate(marks) if mark) if any(marks) else ():
            found = self._read(place, _ASK)
            if found is not None and found[1] == ledger and self._alive(place):
                papers.append(Paper(self, place, found[0], found[2]))
        return papers

    def note(self, place: int, ticket: int, words: bytes) -> None:
        """Answer an ask, and take it off the desk."""
        self._write(place, _NOTE, ticket, (0, 0), words)
        self._map[place] = 0

    def mark(self, place: int, ticket: int) -> None:
        """Mark an ask as done."""
        _TICKET.pack_into(self._map, _HEADER + place * _PLACE, ticket)

    # -- the file -------------------------------------------------------------------------------

    def _write(self, place: int, part: int, ticket: int, ledger: File, words: bytes) -> None:
        start = _HEADER + place * _PLACE + part
        _FRAME.pack_into(self._map, start, ticket, *ledger, len(words), zlib.crc32(words))
        start += _FRAME.size
        self._map[start : start + len(words)] = words

    def _read(self, place: int, part: int) -> tuple[int, File, bytes] | None:
        """Return the ticket of a part, the file it is about, and its words; None if it is half written."""
        start = _HEADER + place * _PLACE + part
        ticket, device, number, length, checksum = _FRAME.unpack_from(self._map, start)
        start += _FRAME.size
        words = self._map[start : start + length]
        return (ticket, (device, number), words) if zlib.crc32(words) == checksum else None

    def _alive(self, place: int) -> bool:
        """Return whether anybody has a place."""
        with self._lock:
            if place in self._own or not self._lock_place(place):
                return True
            self._unlock_place(place)
            return False

    def _lock_place(self, place: int) -> bool:
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
        except OSError:
            return False
        return True

    def _unlock_place(self, place: int) -> None:
        fcntl.lockf(self._file, fcntl.LOCK_UN, 1, place)


def _make(path: str, ledger: Path) -> None:
    """Make the file, unless there is one: whoever may write the ledger may write it.

    It is written in full under another name first: nobody meets half a desk, or a disk too full for it.
    """
    draft = f"{path}.{os.urandom(8).hex()}.new"
    made = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.fchmod(made, os.stat(ledger).st_mode & 0o666)
        if os.write(made, bytes(_SIZE)) != _SIZE:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        with suppress(FileExistsError):
            os.link(draft, path)
    finally:
        os.close(made)
        os.unlink(draft)


def _opened(path: str) -> int:
    file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    if os.fstat(file).st_size != _SIZE:
        os.close(file)
        raise OSError(errno.EINVAL, "a desk of another version")
    return file
