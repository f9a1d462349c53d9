"""A reservation: the right to look at data once, paid for in full before looking.

`reserve` is the whole charge, in the order in which it happens. Whoever is refused was not charged.
"""

from __future__ import annotations

import time
from types import TracebackType
from typing import NoReturn

from sfumato.catalog.table import MOST_PARTS
from sfumato.errors import InvalidArgument, LedgerError, Unsupported
from sfumato.ledger.account import Account
from sfumato.ledger.accounts import Accounts
from sfumato.ledger.charges import Reserved
from sfumato.ledger.journal import Journal
from sfumato.ledger.receipts import signed
from sfumato.ledger.records import Committed, Head, Link
from sfumato.ledger.terms import Proposal

__all__ = ["Reservation", "reserve"]

_PAUSE = 0.01


def reserve(draft: Reserved, journal: Journal, accounts: Accounts) -> Reservation:
    """Charge a draft, whose time and totals are still open, or replay what its key was answered."""
    deadline = time.monotonic() + journal.wait
    while True:
        earlier = None
        if draft.key is not None:
            with journal.reading():
                earlier = journal.keyed(draft.key, draft.analyst)
        made = _charge(draft, journal, accounts) if earlier is None else _replay(draft, *earlier, journal)
        if made is not None:
            return made
        if time.monotonic() >= deadline:
            raise LedgerError(
                "the request with this idempotency key is still being answered",
                code="SF604",
                place="idempotency_key",
                hints=("nothing was charged by this call; try again",),
            )
        time.sleep(_PAUSE)


def _charge(draft: Reserved, journal: Journal, accounts: Accounts) -> Reservation | None:
    """Write the charge to the disk; None where another caller has just used the same key."""
    held: list[int] = []

    def section() -> tuple[Reserved, Link, tuple[Proposal, ...]] | None:
        if draft.key is not None and journal.keyed(draft.key, draft.analyst) is not None:
            return None
        account, proposals = accounts.settle(draft.unit)  # the first charge fixes what was proposed
        record = _fitting(draft, account, journal, accounts)
        link = journal.append(record)
        if record.key is not None and journal.open_reservations.hold(link.sequence):
            held.append(link.sequence)  # before anyone can see the record and think it burnt
        return record, link, proposals

    try:
        charged = journal.write(section)
    except BaseException:
        for sequence in held:
            journal.open_reservations.drop(sequence)
        raise
    if charged is None:
        return None
    record, link, proposals = charged
    accounts.settled(proposals)
    return Reservation(journal, record, link.head, None)


def _fitting(draft: Reserved, account: Account, journal: Journal, accounts: Accounts) -> Reserved:
    """Return the record of a charge on top of all before it, if it fits everywhere; else refuse."""
    at = journal.now()
    balance = account.balance(journal.last_charge(draft.unit), at)
    charge = draft.charge(account.epoch(at))
    after = balance.totals.charged(charge)
    if len(after.parts) > MOST_PARTS:
        raise InvalidArgument(f"a unit has at most {MOST_PARTS} parts", place="parts")
    shortage = balance.shortage(charge, after)
    spent = (0, 0)
    if shortage is None and draft.analyst is not None:
        grant = accounts.granted(account, draft.analyst)
        spent = (grant.spent_units, grant.keys_spent_units)
        shortage = grant.shortage(charge)
    if shortage is not None:
        raise shortage
    return draft.recorded(at, after, spent)


def _replay(draft: Reserved, link: Link, earlier: Reserved, journal: Journal) -> Reservation | None:
    """Return the stored release of a key; None where another caller is still working on it."""
    if earlier.binding != draft.binding:
        raise LedgerError(
            "this idempotency key belongs to another request, version of the data or policy",
            code="SF606",
            place="idempotency_key",
            sequence=link.sequence,
            hints=("choose a new key for a new question",),
        )
    # First whether it is alive, and only then a fresh look: it may be answered, and end, in between.
    alive = journal.open_reservations.alive(link.sequence)
    with journal.reading():
        release = journal.release(link.sequence)
    if release is not None:
        return Reservation(journal, earlier, link.head, release)
    if alive:
        return None
    raise LedgerError(
        "this idempotency key is burnt: its cost was charged, but no release was ever stored",
        code="SF607",
        place="idempotency_key",
        sequence=link.sequence,
        hints=("what was charged stays charged; ask again under a new key",),
    )


class Reservation:
    """A charge that is on the disk. Commit what it paid for before leaving, or it is burnt.

        with ledger.reserve(...) as reservation:
            if reservation.replayed is not None:
                return reservation.replayed
            release = ...
            reservation.commit(release)

    Nothing gives the charge back: not an error, not a timeout, not a crash. Answer only after
    `commit` has returned.
    """

    __slots__ = ("_head", "_journal", "_ledger", "_open", "_record", "_replayed")

    def __init__(self, journal: Journal, record: Reserved, head: Head, replayed: bytes | None) -> None:
        self._journal = journal
        self._record = record
        self._head = head
        self._ledger: str | None = None
        self._replayed = replayed
        self._open = replayed is None

    @property
    def sequence(self) -> int:
        """The number of the reservation in the ledger."""
        return self._head.sequence

    @property
    def head(self) -> Head:
        """The reservation's place in the chain; a receipt that carries it is an anchor."""
        return self._head

    @property
    def record(self) -> Reserved:
        """What was charged, to whom, for what."""
        return self._record

    @property
    def replayed(self) -> bytes | None:
        """The stored release, where the idempotency key was answered before; nothing was charged now."""
        return self._replayed

    def receipt(self, answer: str) -> dict[str, str]:
        """Return the signed receipt of this charge; `answer` is a hash of what it paid for."""
        if self._ledger is None:
            with self._journal.reading():
                self._ledger = self._journal.name()
        return signed(self._record, self._head, ledger=self._ledger, answer=answer, key=self._journal.key())

    def commit(self, release: bytes) -> Head:
        """Store the release durably; it may be answered once this returns. Only once, and in time.

        After `SF604`, the ledger being busy, it may be tried again; after any other failure not.
        """
        if not isinstance(release, bytes):
            raise InvalidArgument(f"a release is bytes, got {type(release).__name__}", place="release")
        if not self._open:
            happened = "was answered before" if self._replayed is not None else "is over"
            raise LedgerError(
                f"the reservation {happened}; nothing can be committed to it",
                code="SF608",
                sequence=self.sequence,
                hints=("reserve again; each answer is paid for by itself",),
            )
        record = Committed.of(self.sequence, release, self._record.at)  # hashed before others wait
        try:
            link = self._journal.write(lambda: self._journal.append(record, release))
        except BaseException as error:
            if not (isinstance(error, LedgerError) and error.code == "SF604"):
                self._end()  # only after waiting in vain is it certain that nothing was written
            raise
        self._end()
        return link.head

    def _end(self) -> None:
        self._open = False
        if self._record.key is not None and self._replayed is None:
            self._journal.open_reservations.drop(self.sequence)

    def __enter__(self) -> Reservation:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._open:
            self._end()

    def __repr__(self) -> str:
        state = "replayed" if self._replayed is not None else "open" if self._open else "over"
        return f"<reservation {self.sequence} of {self._record.unit!r}: {state}>"

    def __reduce__(self) -> NoReturn:
        raise Unsupported("a reservation cannot be copied or pickled: it would be answered twice")
