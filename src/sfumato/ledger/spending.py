"""Spending: from a question's cost to a charge on the disk, or to the answer that was paid for before."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from weakref import WeakMethod

from sfumato.catalog.table import MOST_PARTS
from sfumato.errors import InvalidArgument, LedgerError
from sfumato.ledger.account import Account
from sfumato.ledger.accounts import Accounts
from sfumato.ledger.charges import Reserved
from sfumato.ledger.desk import Ask
from sfumato.ledger.journal import Journal
from sfumato.ledger.proposal import Proposal
from sfumato.ledger.records import START, Committed, Link
from sfumato.ledger.reservation import Reservation

__all__ = ["Spending"]

_PAUSE = 0.01


class Spending:
    """The one way to take from the budgets of a journal."""

    __slots__ = ("__weakref__", "_accounts", "journal")

    def __init__(self, journal: Journal, accounts: Accounts) -> None:
        self.journal = journal
        self._accounts = accounts
        if journal.shares:
            journal.serve = _weak(self._serve)

    def reserve(self, draft: Reserved) -> Reservation:
        """Charge a draft, whose time and totals are still open, or replay what its key was answered."""
        deadline = time.monotonic() + self.journal.wait
        while True:
            reservation = self._try_reserve(draft)
            if reservation is not None:
                return reservation
            if time.monotonic() >= deadline:
                raise LedgerError(
                    "the request with this idempotency key is still being answered",
                    code="SF604",
                    place="idempotency_key",
                    hints=("nothing was charged by this call; try again",),
                )
            time.sleep(_PAUSE)

    def _try_reserve(self, draft: Reserved) -> Reservation | None:
        """Reserve or replay; None where another caller is at work on the same key.

        The first charge fixes what was proposed when the data was opened, with itself or not at all.
        """
        journal = self.journal
        if draft.key is not None:
            with journal.reading():
                earlier = journal.keyed(draft.key)
            if earlier is not None:
                return self._replay(draft, *earlier)
        held: list[int] = []

        def charge() -> tuple[Reserved, Link, tuple[Proposal, ...]] | None:
            if draft.key is not None and journal.keyed(draft.key) is not None:
                return None  # another caller was faster: look again
            terms, proposals = self._accounts.settle(draft.unit)
            record = self._charged(draft, terms)
            link = journal.append(record)
            if record.key is not None:
                held.append(link.sequence)
                journal.liveness.hold(link.sequence)  # before anyone can see it and think it burnt
            return record, link, proposals

        try:
            charged = journal.write(charge, self._ask(draft))
        except BaseException:
            for sequence in held:
                journal.liveness.drop(sequence)
            raise
        if charged is None:
            return None
        record, link, proposals = charged
        self._accounts.settled(proposals)
        return Reservation(self, record, link.head, None)

    def _ask(self, draft: Reserved) -> Ask | None:
        """Return the draft for another process to charge; None where only this one can.

        It alone knows what it proposed, and only who works on a key can be seen to be at work.
        """
        if draft.key is not None or self._accounts.proposes(draft.unit):
            return None
        return Ask(lambda: draft.body(0).encode(), lambda link: (_made_of(draft, link), link, ()))

    def store(self, record: Committed, release: bytes) -> Link:
        """Store what a reservation paid for."""
        ask = Ask(lambda: record.body(0).encode() + b"\n" + release, lambda link: link)
        return self.journal.write(lambda: self.journal.append(record, release), ask)

    def _serve(self, words: bytes) -> Link:
        """Write down a charge or an answer of another process; inside writing().

        What is refused here is refused without a word: who asked will try by itself, and be told.
        """
        body, _, release = words.partition(b"\n")
        record = Link(sequence=0, previous=START, body=body.decode()).read(strict=False)
        match record:
            case Reserved(key=None):
                account = self._accounts.on_record(record.unit)
                return self.journal.append(self._charged(record, account, proposed=False))
            case Committed() if Committed.of(record.reservation, release, record.at) == record:
                return self.journal.append(record, release)
        raise LedgerError(f"a {record.kind} record cannot be asked for", code="SF601")

    def _charged(self, draft: Reserved, account: Account, *, proposed: bool = True) -> Reserved:
        """Return the record of a charge on top of all before it, if it fits everywhere; inside writing().

        Grants count that were `proposed` here and are not on record yet.
        """
        at = self.journal.now()
        epoch = account.epoch(at)
        balance = account.balance(self.journal.last_charge(draft.unit), at)
        charge = draft.charge(epoch)
        after = balance.totals.charged(charge)
        if len(after.parts) > MOST_PARTS:
            raise InvalidArgument(f"a unit has at most {MOST_PARTS} parts", place="parts")
        shortage = balance.shortage(charge, after)
        spent = (0, 0)
        if shortage is None and draft.analyst is not None:
            grant = self._accounts.granted(account, draft.analyst, proposed=proposed)
            spent = (grant.spent_units, grant.keys_spent_units)
            shortage = grant.shortage(charge)
        if shortage is not None:
            raise shortage
        return draft.recorded(at, after, spent)

    def _replay(self, draft: Reserved, link: Link, earlier: Reserved) -> Reservation | None:
        if earlier.binding != draft.binding:
            raise LedgerError(
                "this idempotency key belongs to another request, version of the data or policy",
                code="SF606",
                place="idempotency_key",
                sequence=link.sequence,
                hints=("choose a new key for a new question",),
            )
        # First whether it is alive, and only then a fresh look: it may be answered, and end, in between.
        alive = self.journal.liveness.alive(link.sequence)
        with self.journal.reading():
            release = self.journal.release(link.sequence)
        if release is not None:
            return Reservation(self, earlier, link.head, release)
        if alive:
            return None
        raise LedgerError(
            "this idempotency key is burnt: its cost was charged, but no release was ever stored",
            code="SF607",
            place="idempotency_key",
            sequence=link.sequence,
            hints=("what was charged stays charged; ask again under a new key",),
        )


def _weak(method: Callable[[bytes], Link]) -> Callable[[bytes], Link]:
    """Return a method that does not keep its object: a journal closes when nobody uses it any more."""
    known = WeakMethod(method)

    def call(words: bytes) -> Link:
        found = known()
        assert found is not None, "whoever writes does so for it"
        return found(words)

    return call


def _made_of(draft: Reserved, link: Link) -> Reserved:
    """Return the charge that another process made of a draft; refuse any other."""
    record = link.read(strict=False)
    if isinstance(record, Reserved):
        made = replace(
            draft,
            at=record.at,
            totals=record.totals,
            analyst_spent=record.analyst_spent,
            analyst_keys_spent=record.analyst_keys_spent,
        )
        if made.body(link.sequence) == link.body:
            return made
    raise LedgerError(
        "another process wrote something else than it was asked for", code="SF602", sequence=link.sequence
    )
