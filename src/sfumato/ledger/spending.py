"""Spending: from a question's cost to a charge on the disk, or to the answer that was paid for before."""

from __future__ import annotations

import time

from sfumato.catalog.table import MOST_PARTS
from sfumato.errors import InvalidArgument, LedgerError
from sfumato.ledger.account import Account
from sfumato.ledger.accounts import Accounts
from sfumato.ledger.charges import Reserved
from sfumato.ledger.journal import Journal
from sfumato.ledger.proposal import Proposal
from sfumato.ledger.records import Link
from sfumato.ledger.reservation import Reservation

__all__ = ["Spending"]

_PAUSE = 0.01


class Spending:
    """The one way to take from the budgets of a journal."""

    __slots__ = ("_accounts", "_journal")

    def __init__(self, journal: Journal, accounts: Accounts) -> None:
        self._journal = journal
        self._accounts = accounts

    def reserve(self, draft: Reserved) -> Reservation:
        """Charge a draft, whose time and totals are still open, or replay what its key was answered."""
        deadline = time.monotonic() + self._journal.wait
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
        journal = self._journal
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
            charged = journal.write(charge)
        except BaseException:
            for sequence in held:
                journal.liveness.drop(sequence)
            raise
        if charged is None:
            return None
        record, link, proposals = charged
        self._accounts.settled(proposals)
        return Reservation(journal, record, link.head, None)

    def _charged(self, draft: Reserved, account: Account) -> Reserved:
        """Return the record of a charge on top of all before it, if it fits everywhere; inside writing()."""
        at = self._journal.now()
        epoch = account.epoch(at)
        balance = account.balance(self._journal.last_charge(draft.unit), at)
        charge = draft.charge(epoch)
        after = balance.totals.charged(charge)
        if len(after.parts) > MOST_PARTS:
            raise InvalidArgument(f"a unit has at most {MOST_PARTS} parts", place="parts")
        shortage = balance.shortage(charge, after)
        spent = (0, 0)
        if shortage is None and draft.analyst is not None:
            grant = self._accounts.granted(account, draft.analyst)
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
        alive = self._journal.liveness.alive(link.sequence)
        with self._journal.reading():
            release = self._journal.release(link.sequence)
        if release is not None:
            return Reservation(self._journal, earlier, link.head, release)
        if alive:
            return None
        raise LedgerError(
            "this idempotency key is burnt: its cost was charged, but no release was ever stored",
            code="SF607",
            place="idempotency_key",
            sequence=link.sequence,
            hints=("what was charged stays charged; ask again under a new key",),
        )
