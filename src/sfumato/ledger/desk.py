"""The desk: processes that write at the same time write for each other, as threads of one process do.

A process that writes without pause attends the desk. The others lay on it what they want written; the
attendant writes it in the same transaction as its own, and waits for the disk once for all of them. The desk
is a file beside the ledger with a place for each process. Nothing depends on it but speed: it may be deleted,
cut short or scribbled on, and whoever finds nobody there writes by itself.

    asker                               who holds the right to write
    1  lays down ask and ticket         2  takes up asks and writes their records; notes each of them
                                           beside its ask *before the commit*
                                        3  commits, which gives the right to write up
    5  sees its ticket: settled         4  waits for the disk; then settles the tickets

Theorem: an ask is written once at most, and who sees it settled finds on the disk what was noted. Only who
holds SQLite's right to write takes up an ask. An asker that loses patience takes that right: then nobody else
is at work, and what the note names was committed or never will be. The chain says which, because no two
asks are for the same record: a charge has a random nonce, an answer the number of its charge. If the record
is there, the asker waits for the disk itself; if not, it withdraws the ask and writes. Tickets are random, so
what is meant for others, or of long ago, is never taken for one's own. A process that dies between any two
steps changes none of this: SQLite undoes what it had not committed, and passes the right to write on.
Assumes: what one process writes to a file is seen at once by another that reads it; and who may write the
desk may write the ledger (see `beside`).
"""

from __future__ import annotations

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
from sfumato.ledger.beside import identity_of, opened_beside
from sfumato.ledger.forks import Identity
from sfumato.ledger.records import Link

try:
    import fcntl
except ImportError:  # no such locks on this system: every process writes by itself
    fcntl = None  # type: ignore[assignment]

__all__ = ["Ask", "Desk", "Paper", "link_noted"]

_VERSION = 1  # of what follows; goes into every checksum
_PLACES = 64
_TICKET = struct.Struct("<Q")  # 64 of them at the start: the ask that lies on each place, 0 for none
_ATTENDANT_AT, _ATTENDANT = 512, struct.Struct("<Qd")  # the place of who attends, and until when
_FIRST_AT, _PLACE = 4096, 16384  # the places: the ticket that was settled last, the ask, the note
_ASK_AT, _NOTE_AT = 64, 12288
_FRAME = struct.Struct("<QQQII")  # ticket, the ledger's file, length and checksum of the words that follow
_LINKED = struct.Struct("<Q64s")  # a record's number, and the hash before it

_POLL = 0.0003  # seconds between two looks at one's ticket
_PAUSE = 0.005  # who writes again within this time is expected to go on
_PATIENCE = 0.1  # how long one waits for who attends
_DOUBT = 1.0  # nobody promises to be back for so long: it is the time of another machine, or start of it


class Ask(NamedTuple):
    """What is to be written, in words that another process can follow, and what its record means here."""

    words: Callable[[], bytes]
    result: Callable[[Link], Any]


class Paper(NamedTuple):
    """An ask as it lies on the desk, in the hands of who has the right to write."""

    desk: Desk
    place: int
    ticket: int
    words: bytes

    def note(self, link: Link) -> None:
        """Note the record that was written for it, before that is committed."""
        words = _LINKED.pack(link.sequence, link.previous.encode()) + link.body.encode()
        if len(words) > _PLACE - _NOTE_AT - _FRAME.size or not self.desk.note(self, words):
            raise LedgerError("a desk has no room for this record", code="SF601")

    def decline(self) -> None:
        """Note that nothing was written for it."""
        self.desk.note(self, b"")

    def settle(self) -> None:
        """Tell who asked: what was noted is on the disk."""
        self.desk.settle(self)


def link_noted(words: bytes) -> Link:
    """Return the record that a note names."""
    sequence, previous = _LINKED.unpack_from(words)
    return Link(sequence=sequence, previous=previous.decode(), body=words[_LINKED.size :].decode())


class Desk:
    """The desk of one ledger. One object per file and process: locks are per process."""

    _known: dict[Identity, Desk] = {}  # noqa: RUF012  # kept: closing a file would drop all its locks
    _guard = threading.RLock()

    def __init__(self, file: int) -> None:
        self._file = file
        self._own: set[int] = set()
        self._wrote: dict[int, float] = {}
        self._lock = threading.RLock()  # a ledger may be closed by the collector at any moment

    @staticmethod
    def at(path: str, ledger: Path, *, create: bool) -> Desk | None:
        """Return this process's object for a desk; None where there is none, and none can be made."""
        if not create and not os.path.exists(path):
            return None
        with Desk._guard, suppress(OSError):
            known = Desk._known.get(identity_of(path)) if os.path.exists(path) else None
            if known is None and fcntl is not None:
                known = Desk(opened_beside(path, ledger, create=create))
                Desk._known[identity_of(path)] = known
            return known
        return None

    @staticmethod
    def forget_all() -> None:
        """Begin afresh, as the child of a fork: it has none of its parent's locks."""
        for known in Desk._known.values():
            os.close(known._file)
            known._file = -1  # whoever still has it writes nowhere
            known._own.clear()
        Desk._guard = threading.RLock()
        Desk._known = {}

    def take_place(self) -> int | None:
        """Return the number of a place that nobody else has; None if all are taken."""
        with self._lock:
            for place in range(_PLACES):
                if place not in self._own and self._lock_place(place):
                    if self._clear(place):
                        self._own.add(place)
                        return place
                    self._unlock_place(place)
        return None

    def leave_place(self, place: int) -> None:
        """Give a place back."""
        with self._lock:
            if place in self._own:
                self._clear(place)
                self._own.discard(place)
                self._wrote.pop(place, None)
                self._unlock_place(place)

    # -- who attends ----------------------------------------------------------------------------

    def tell_of_writing(self, place: int, began: float) -> None:
        """Say that who has this place wrote since `began`. Who does so without pause attends the desk."""
        now = time.monotonic()
        if began - self._wrote.get(place, 0) < _PAUSE:
            self._put(_ATTENDANT_AT, _ATTENDANT.pack(place, now + _PAUSE + 2 * (now - began)))
        self._wrote[place] = now

    def attended(self, place: int) -> bool:
        """Return whether somebody else is expected to take up soon what is asked."""
        who, until = _ATTENDANT.unpack(self._get(_ATTENDANT_AT, _ATTENDANT.size))
        return bool(who != place and 0 < until - time.monotonic() < _DOUBT)

    # -- asking ---------------------------------------------------------------------------------

    def ask(self, place: int, words: bytes, ledger: Identity) -> int | None:
        """Lay down an ask; return its ticket, None if there is no room for it."""
        ticket = int.from_bytes(os.urandom(8), "little") | 1
        room = _NOTE_AT - _ASK_AT - _FRAME.size
        if place not in self._own or len(words) > room:
            return None
        if not self._put_words(place, _ASK_AT, ticket, ledger, words):
            return None
        return ticket if self._put(place * _TICKET.size, _TICKET.pack(ticket)) else None

    def withdraw(self, place: int) -> None:
        """Take back what was asked. Whether it was written is certain only to who has the right to write.

        Where the disk does not let it, the place is given up: nobody writes for one who is gone.
        """
        if not self._clear(place):
            self.leave_place(place)

    def wait(self, place: int, ticket: int, deadline: float) -> bool:
        """Return True as soon as an ask is settled; False when there is no more reason to wait for it."""
        patience = min(deadline, time.monotonic() + _PATIENCE)
        while _TICKET.unpack(self._get(_start(place), _TICKET.size))[0] != ticket:
            if not self.attended(place) or time.monotonic() >= patience:
                return False
            time.sleep(_POLL)
        return True

    def noted(self, place: int, ticket: int) -> bytes | None:
        """Return what was noted for an ask, for `link_noted`; empty: it was declined; None: nothing."""
        found = self._get_words(place, _NOTE_AT)
        return found[2] if found is not None and found[0] == ticket else None

    # -- writing for others, with the right to write ----------------------------------------------

    def papers(self, ledger: Identity) -> list[Paper]:
        """Return what lies on the desk about a ledger's file, but for what the dead have left."""
        laid = self._get(0, _PLACES * _TICKET.size)
        if not any(laid):
            return []
        found = []
        for place, (ticket,) in enumerate(_TICKET.iter_unpack(laid)):
            ask = self._get_words(place, _ASK_AT) if ticket else None
            if ask is not None and ask[:2] == (ticket, ledger) and self._taken(place):
                found.append(Paper(self, place, ticket, ask[2]))
        return found

    def note(self, paper: Paper, words: bytes) -> bool:
        """Take an ask off the desk, and note something beside its place; return whether both were done."""
        return self._clear(paper.place) and self._put_words(
            paper.place, _NOTE_AT, paper.ticket, (0, 0), words
        )

    def settle(self, paper: Paper) -> None:
        """Say that an ask was written and is on the disk, or that it was declined."""
        self._put(_start(paper.place), _TICKET.pack(paper.ticket))

    # -- the file -------------------------------------------------------------------------------

    def _put_words(self, place: int, part: int, ticket: int, ledger: Identity, words: bytes) -> bool:
        frame = _FRAME.pack(ticket, *ledger, len(words), zlib.crc32(words, _VERSION))
        return self._put(_start(place) + part, frame + words)

    def _get_words(self, place: int, part: int) -> tuple[int, Identity, bytes] | None:
        """Return the ticket of a part, the file it is about, and its words; None if it is not whole."""
        start = _start(place) + part
        ticket, device, number, length, checksum = _FRAME.unpack(self._get(start, _FRAME.size))
        words = self._get(start + _FRAME.size, min(length, _PLACE))
        return (ticket, (device, number), words) if zlib.crc32(words, _VERSION) == checksum else None

    def _clear(self, place: int) -> bool:
        """Take off the desk what lies on a place."""
        return self._put(place * _TICKET.size, _TICKET.pack(0))

    def _put(self, at: int, data: bytes) -> bool:
        try:
            return os.pwrite(self._file, data, at) == len(data)
        except OSError:  # the disk is full
            return False

    def _get(self, at: int, length: int) -> bytes:
        try:
            return os.pread(self._file, length, at).ljust(length, b"\0")
        except OSError:
            return bytes(length)

    def _taken(self, place: int) -> bool:
        """Return whether anybody alive has a place."""
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


def _start(place: int) -> int:
    return _FIRST_AT + place * _PLACE


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=Desk.forget_all)
