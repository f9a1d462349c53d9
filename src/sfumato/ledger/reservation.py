"""A reservation: the right to look at data, once or in several steps, paid for in full before looking.

`reserve` is the whole charge, in the order in which it happens. Whoever is refused was not charged.

Theorem: every step of a reservation publishes one output at most. `Reservation.step` returns only bytes that
the ledger holds as the output of that step, and the ledger holds one output per step (a unique index, inside
the one transaction of a writer). So whatever is killed, resumed or raced, what is published is one run of the
mechanism whose event was charged at the beginning. A step whose computation fails is burnt, for a second try
would publish a law under the condition that it succeeds.
Assumes: the event covers all steps together, also where a step is chosen after the outputs before it; and
whatever kills a process between computing and storing an output does not look at the output.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn

from sfumato.catalog.table import MOST_PARTS
from sfumato.errors import InvalidArgument, LedgerError, Unsupported
from sfumato.ledger.account import Account, check_text
from sfumato.ledger.accounts import Accounts
from sfumato.ledger.charges import Reserved
from sfumato.ledger.journal import Journal
from sfumato.ledger.query_texts import QueryText
from sfumato.ledger.receipts import signed
from sfumato.ledger.records import Committed, Head, Link, Stepped
from sfumato.ledger.terms import Proposal

__all__ = ["Reservation", "reserve"]

_PAUSE = 0.01


def reserve(draft: Reserved, text: QueryText | None, journal: Journal, accounts: Accounts) -> Reservation:
    """Charge a draft, whose time and totals are still open, or replay what its key was answered.

    The `text` is kept together with the charge, or neither is.
    """
    deadline = time.monotonic() + journal.wait
    while True:
        earlier = None
        if draft.key is not None:
            with journal.reading():
                earlier = journal.keyed(draft.key, draft.analyst)
        made = _replay(draft, *earlier, journal) if earlier else _charge(draft, text, journal, accounts)
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


def _charge(
    draft: Reserved, text: QueryText | None, journal: Journal, accounts: Accounts
) -> Reservation | None:
    """Write the charge to the disk; None where another caller has just used the same key."""
    held: list[int] = []

    def section() -> tuple[Reserved, Link, tuple[Proposal, ...]] | None:
        if draft.key is not None and journal.keyed(draft.key, draft.analyst) is not None:
            return None
        account, proposals = accounts.write_proposed(draft.unit)  # the first charge fixes what was proposed
        record = _fitting(draft, account, journal, accounts)
        link = journal.append(record)
        if text is not None:
            journal.keep_text(link.sequence, text)
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
    accounts.forget_proposed(proposals)
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
    """Return what a key was answered, or its steps to go on with; None where another caller works on it."""
    if earlier.binding != draft.binding:
        raise LedgerError(
            "this idempotency key belongs to another request, version of the data or policy",
            code="SF606",
            place="idempotency_key",
            sequence=link.sequence,
            hints=("choose a new key for a new question",),
        )
    # First whether anybody works on it, and only then a fresh look: it may be answered, and end, in between.
    resumable = earlier.steps is not None
    others = journal.open_reservations
    busy = not others.hold(link.sequence) if resumable else others.alive(link.sequence)
    with journal.reading():
        release = journal.release(link.sequence)
    if resumable and release is not None and not busy:
        others.drop(link.sequence)
    if release is not None:
        return Reservation(journal, earlier, link.head, release)
    if busy:
        return None
    if resumable:
        return Reservation(journal, earlier, link.head, None)
    raise LedgerError(
        "this idempotency key is burnt: its cost was charged, but no release was ever stored",
        code="SF607",
        place="idempotency_key",
        sequence=link.sequence,
        hints=("what was charged stays charged; ask again under a new key",),
    )


@contextmanager
def _after_charge() -> Iterator[None]:
    """Say what is true after a charge where the ledger is busy: what the ledger says is true before one."""
    refused: LedgerError | None = None
    try:
        yield
    except LedgerError as error:
        if error.code != "SF604":
            raise
        refused = error
    if refused is not None:
        hints = ("what was reserved before stays charged, and nothing was answered",)
        raise LedgerError(refused.message, code="SF604", place=refused.place, hints=hints)


class Reservation:
    """A charge that is on the disk. Commit what it paid for before leaving, or it is burnt.

        with ledger.reserve(...) as reservation:
            if reservation.replayed is not None:
                return reservation.replayed
            reservation.commit(release)

    Nothing gives the charge back: not an error, not a timeout, not a crash. Answer only after `commit` has
    returned. One that was reserved with `steps` pays for several looks. It is not burnt by leaving: whoever
    reserves the same again, under the same key, goes on with the next `step`.

    >>> from sfumato.core import PrivacyBudget, events
    >>> from sfumato.ledger import OWNER, Ledger
    >>> ledger = Ledger.open(None)
    >>> ledger.register("person", PrivacyBudget(epsilon=1))
    >>> asked = {"request_hash": "5f1c", "data_version": "2026-11", "policy_hash": "77ab", "analyst": OWNER}
    >>> with ledger.reserve("person", events.Pure(loss=0.1), 0, **asked) as reservation:
    ...     head = reservation.commit(b"the release")
    >>> ledger.remaining("person")
    Fraction(9, 10)
    """

    __slots__ = ("_journal", "_open", "head", "record", "replayed")

    def __init__(self, journal: Journal, record: Reserved, head: Head, replayed: bytes | None) -> None:
        self._journal = journal
        self._open = replayed is None
        self.record = record  # what was charged, to whom, for what
        self.head = head  # its place in the chain; a receipt that carries it is an anchor
        self.replayed = replayed  # the stored release, if the key was answered before: nothing is charged now

    @property
    def sequence(self) -> int:
        """The number of the reservation in the ledger."""
        return self.head.sequence

    @property
    def taken(self) -> int:
        """How many steps were taken, now or before."""
        with _after_charge(), self._journal.reading():
            return self._journal.steps_taken(self.sequence)

    def receipt(
        self, answer: str, *, step: int | None = None, unprotected: Sequence[str] = ()
    ) -> dict[str, str]:
        """Return the signed receipt of this charge, or of a step; `answer` is a hash of what it paid for.

        `unprotected` says what the answer shows exactly, because the policy declares it public.
        """
        journal = self._journal
        with _after_charge():
            with journal.reading():
                ledger = journal.name()
            key = journal.key()
        return signed(
            self.record,
            self.head,
            ledger=ledger,
            answer=answer,
            key=key,
            step=step,
            unprotected=unprotected,
        )

    def step(
        self, number: int, compute: Callable[[], bytes], *, request_hash: str, data_version: str
    ) -> bytes:
        """Return the output of a step: as it is stored, or as `compute` makes it, once that is stored.

        Steps are numbered from 1 and taken in order. What a step asks, and the version of its data, is bound:
        a stored output comes back for the same request only, whatever the data is by now. A reservation for
        one version of the data takes steps on that version only. If `compute` raises, the step is burnt.
        """
        check_text(request_hash, "request_hash")
        check_text(data_version, "data_version")
        steps = self.record.steps
        if steps is None:
            raise self._over("it pays for one look, which its commit ends")
        if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= steps:
            raise self._over(f"it pays for steps 1 to {steps}")
        journal = self._journal
        with _after_charge():
            version = journal.blinded_version(data_version)
        with _after_charge(), journal.reading():
            stored = self._stored(number, request_hash)
            if stored is not None:
                return stored
            self._check_next(number, version)
        if not self._open:
            raise self._over("no further step is taken")
        draft = Stepped(
            at=journal.now(),
            reservation=self.sequence,
            step=number,
            request_hash=request_hash,
            data_version=version,
        )
        try:
            output = compute()
            if not isinstance(output, bytes):
                raise InvalidArgument(f"an output is bytes, got {type(output).__name__}", place="compute")
            record = draft.with_output(output)
        except BaseException:
            self._store(draft, None)
            raise
        return self._store(record, output)

    def _store(self, record: Stepped, output: bytes | None) -> bytes:
        """Store an output, or that there is none; return the stored one, if another caller was faster."""

        def section() -> bytes:
            stored = self._stored(record.step, record.request_hash)
            if stored is not None:
                return stored
            self._check_next(record.step, record.data_version)
            self._journal.append(record, output)
            return output or b""

        with _after_charge():
            return self._journal.write(section)

    def _stored(self, number: int, request_hash: str) -> bytes | None:
        """Return the stored output of a step, None if it was not taken; inside writing() or reading()."""
        found = self._journal.step(self.sequence, number)
        if found is None:
            return None
        record, output = found
        if record.request_hash != request_hash:
            raise LedgerError(
                f"step {number} was taken for another request",
                code="SF606",
                place="request_hash",
                sequence=self.sequence,
                hints=("ask the same again: a step is answered once",),
            )
        if output is None:
            raise LedgerError(
                f"step {number} is burnt: it failed, and its cost was charged with the others",
                code="SF607",
                sequence=self.sequence,
                hints=("go on with the next step",),
            )
        return output

    def _check_next(self, number: int, version: str) -> None:
        """Refuse a step that is not the next one; inside writing() or reading()."""
        if self._journal.release(self.sequence) is not None:
            raise self._over("no further step is taken")
        if number != self._journal.steps_taken(self.sequence) + 1:
            raise self._over("steps are taken in order, each once")
        if self.record.data_version not in (None, version):
            raise LedgerError(
                "the reservation is for another version of the data",
                code="SF606",
                place="data_version",
                sequence=self.sequence,
                hints=("where data comes in between steps, reserve with data_version=None",),
            )

    def _over(self, why: str) -> LedgerError:
        return LedgerError(
            f"reservation {self.sequence} does not allow this: {why}",
            code="SF608",
            sequence=self.sequence,
            hints=("reserve again; each answer is paid for by itself",),
        )

    def commit(self, release: bytes) -> Head:
        """Store the release durably; it may be answered once this returns. Only once, and in time.

        After `SF604`, the ledger being busy, it may be tried again; after any other failure not.
        """
        if not isinstance(release, bytes):
            raise InvalidArgument(f"a release is bytes, got {type(release).__name__}", place="release")
        if not self._open:
            raise self._over("it was answered before" if self.replayed is not None else "it is over")
        at = self.record.at if self.record.steps is None else self._journal.now()
        record = Committed.of(self.sequence, release, at)  # hashed before others wait
        try:
            with _after_charge():
                link = self._journal.store(record, release)
        except BaseException as error:
            if not (isinstance(error, LedgerError) and error.code == "SF604"):
                self._end()  # only after waiting in vain is it certain that nothing was written
            raise
        self._end()
        return link.head

    def _end(self) -> None:
        self._open = False
        if self.record.key is not None and self.replayed is None:
            self._journal.open_reservations.drop(self.sequence)

    def __enter__(self) -> Reservation:
        return self

    def __exit__(self, *_: object) -> None:
        if self._open:
            self._end()

    def __repr__(self) -> str:
        state = "replayed" if self.replayed is not None else "open" if self._open else "over"
        return f"<reservation {self.sequence} of {self.record.unit!r}: {state}>"

    def __reduce__(self) -> NoReturn:
        raise Unsupported("a reservation cannot be copied or pickled: it would be answered twice")
