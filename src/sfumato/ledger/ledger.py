"""The ledger: may it run? Charge first, look afterwards, and never forget.

Budgets belong to units of protection: whoever asks, from whatever process, under whatever table
name, about the same unit draws on the same budget, for as long as the file exists.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import NoReturn

from sfumato.core.accountant import PrivacyBudget
from sfumato.core.arguments import Number
from sfumato.core.events.base import Event
from sfumato.core.rules import UNITS
from sfumato.errors import InvalidArgument, LedgerError, Unsupported
from sfumato.ledger.balance import Balance, Entry
from sfumato.ledger.canonical import canonical
from sfumato.ledger.journal import Journal, milliseconds
from sfumato.ledger.records import Head, Link, Registered, Reserved
from sfumato.ledger.reservation import Reservation
from sfumato.ledger.verification import verified

__all__ = ["Ledger"]

_LONGEST = 1024
_PAUSE = 0.01


class Ledger:
    """Budgets, charges and releases, append-only, shared by any number of threads and processes.

    >>> from sfumato.core.events import Pure
    >>> ledger = Ledger.open(None)
    >>> ledger.register("person", PrivacyBudget(epsilon=1))
    >>> hashes = {"request_hash": "r", "data_version": "1", "policy_hash": "p"}
    >>> with ledger.reserve("person", Pure(loss=0.25), 0, **hashes) as reservation:
    ...     head = reservation.commit(b"noisy")
    >>> ledger.remaining("person")
    Fraction(3, 4)
    >>> ledger
    <ledger in memory: the budget is forgotten when this process ends>
    """

    __slots__ = ("_accounts", "_journal")

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._accounts: dict[str, tuple[Registered, PrivacyBudget]] = {}  # never change once written

    @staticmethod
    def open(path: str | os.PathLike[str] | None, *, wait: float = 30, create: bool = True) -> Ledger:
        """Open a ledger file, or begin a new one; with None, one in memory that ends with the process.

        With `create=False`, a file that is not there is refused: it may have been moved, and a new
        one would start with all budgets unspent.
        Whoever has to wait for other writers is answered within `wait` seconds per step, if only with
        a refusal; nothing is charged then.
        """
        if isinstance(wait, bool) or not isinstance(wait, (int, float)) or not 0 < wait <= 3600:
            raise InvalidArgument("wait must be a number of seconds above 0, at most 3600", place="wait")
        if path is None:
            return Ledger(Journal(None, wait, create=True))
        if not isinstance(path, (str, os.PathLike)) or "\0" in os.fspath(path) or not os.fspath(path):
            raise InvalidArgument("a ledger needs the path of a file, or None", place="path")
        return Ledger(Journal(Path(path).absolute(), wait, create=create))

    # -- budgets ------------------------------------------------------------------------------

    def register(self, unit: str, budget: PrivacyBudget) -> None:
        """Fix the budget of a unit of protection, for ever.

        Again with the same budget: nothing happens, what is spent stays spent. With another: refused.
        """
        _check_text(unit, "unit")
        if not isinstance(budget, PrivacyBudget):
            raise InvalidArgument("a unit is registered with a PrivacyBudget", place="budget")
        known = self._account(unit)
        if known is None:
            with self._journal.writing():
                record = self._journal.registered(unit)
                if record is None:
                    self._journal.append(Registered.of(unit, budget, milliseconds()))
            known = self._account(unit)
        if known is None or canonical(known[0].budget) != canonical(budget.to_dict()):
            raise LedgerError(
                f"unit `{unit}` already has another budget",
                code="SF605",
                place="budget",
                hints=(
                    "a budget is fixed once: it is about the people, not about this session",
                    "leave the budget out to go on with the one on record",
                ),
            )

    def budget(self, unit: str) -> PrivacyBudget:
        """Return the budget of a unit."""
        return self._known_account(unit)[1]

    def units(self) -> tuple[str, ...]:
        """Return the units that have a budget here, in the order in which they were registered."""
        with self._journal.reading():
            rows = self._journal.rows("WHERE kind = 'registered'")
            return tuple(unit for _, _, _, _, _, unit, *_ in rows if unit is not None)

    def balance(self, unit: str) -> Balance:
        """Return what was spent and what is left."""
        account = self._known_account(unit)
        with self._journal.reading():
            return self._balance(*account)

    def remaining(self, unit: str) -> Fraction:
        """Return what may still be charged, in the currency of the budget's rule."""
        return self.balance(unit).remaining

    def spent(self, unit: str) -> Fraction:
        """Return what has been charged, in the currency of the budget's rule."""
        return self.balance(unit).spent

    # -- spending -----------------------------------------------------------------------------

    def reserve(
        self,
        unit: str,
        event: Event,
        keys_delta: Number,
        request_hash: str,
        data_version: str,
        policy_hash: str,
        idempotency_key: str | None = None,
    ) -> Reservation:
        """Charge an event to a unit; when this returns, the charge is on the disk.

        Raises `BudgetExceeded` and charges nothing where the event, or the delta of its key
        selection, does not fit. With an idempotency key that was answered before for the same
        request, data and policy, the stored release comes back and nothing is charged.
        Rounds: up.
        """
        texts = {"request_hash": request_hash, "data_version": data_version, "policy_hash": policy_hash}
        for name, text in {"unit": unit, **texts}.items():
            _check_text(text, name)
        if idempotency_key is not None:
            _check_text(idempotency_key, "idempotency_key")
        registered, budget = self._known_account(unit)
        units, keys_units = budget.charge(event, keys_delta)  # may take a while: before others wait for us
        draft = Reserved(
            at=milliseconds(),
            unit=unit,
            units=units,
            keys_units=keys_units,
            spent=0,
            keys_spent=0,
            event=event.to_dict(),
            key=idempotency_key,
            **texts,
        )
        deadline = time.monotonic() + self._journal.wait
        while True:
            reservation = self._try_reserve(draft, registered, budget)
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

    def _try_reserve(
        self, draft: Reserved, registered: Registered, budget: PrivacyBudget
    ) -> Reservation | None:
        """Reserve or replay; None where another caller is at work on the same key."""
        journal = self._journal
        if draft.key is not None:
            with journal.reading():
                earlier = journal.keyed(draft.key)
                if earlier is not None:
                    return self._replay(draft, *earlier)
        held: int | None = None
        try:
            with journal.writing():
                if draft.key is not None and journal.keyed(draft.key) is not None:
                    return None  # another caller was faster: look again
                balance = self._balance(registered, budget)
                shortage = balance.shortage(draft.units, draft.keys_units)
                if shortage is not None:
                    raise shortage
                record = draft.charged(balance.spent_units, balance.keys_spent_units)
                link = journal.append(record)
                if record.key is not None:
                    held = link.sequence
                    journal.liveness.hold(held)  # before anyone can see the reservation and think it burnt
        except BaseException:
            if held is not None:
                journal.liveness.drop(held)
            raise
        return Reservation(journal, record, link.head, None)

    def _replay(self, draft: Reserved, link: Link, earlier: Reserved) -> Reservation | None:
        if earlier.binding != draft.binding:
            raise LedgerError(
                "this idempotency key belongs to another request, version of the data or policy",
                code="SF606",
                place="idempotency_key",
                sequence=link.sequence,
                hints=("choose a new key for a new question",),
            )
        alive = self._journal.liveness.alive(link.sequence)  # before looking: it may end in between
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

    # -- looking back -------------------------------------------------------------------------

    def release(self, sequence: int) -> bytes:
        """Return the stored release of a reservation, free of charge."""
        with self._journal.reading():
            release = self._journal.release(sequence)
        if release is None:
            raise LedgerError(
                f"there is no release of reservation {sequence}", code="SF608", sequence=sequence
            )
        return release

    def history(self, unit: str | None = None) -> tuple[Entry, ...]:
        """Return the charges, oldest first: public facts only."""
        with self._journal.reading():
            return tuple(self._entries(unit))

    def _entries(self, unit: str | None) -> Iterator[Entry]:
        answered = set(self._journal.answered())
        for link, record in self._journal.charges(unit):
            yield Entry(
                sequence=link.sequence,
                at=record.at,
                unit=record.unit,
                cost=Fraction(record.units, UNITS),
                keys_delta=Fraction(record.keys_units, UNITS),
                event=record.happened(),
                request_hash=record.request_hash,
                policy_hash=record.policy_hash,
                key=record.key,
                committed=link.sequence in answered,
            )

    def head(self) -> Head:
        """Return the newest record's number and hash; kept elsewhere, it is an anchor."""
        with self._journal.reading():
            return self._journal.last().head

    def verify(self, anchor: Head | None = None) -> Head:
        """Walk the chain; refuse if any record was edited, deleted, reordered or added out of turn.

        A truncated tail, a restored old copy and a full rewrite are found with an `anchor`: a head
        that was noted before and kept where the ledger's keeper cannot reach it.
        """
        if self.path is None:
            return verified(self._journal, anchor)
        # By a connection of its own, so that other threads go on spending meanwhile.
        self.head()  # the file is still the one that was opened
        with closing(Journal(self.path, self._journal.wait, create=False)) as journal:
            return verified(journal, anchor)

    # -- the object itself --------------------------------------------------------------------

    @property
    def path(self) -> Path | None:
        """The file, None if the ledger is in memory."""
        return self._journal.path

    @property
    def durable(self) -> bool:
        """Whether what is spent outlives this process."""
        return self.path is not None

    def close(self) -> None:
        """Let go of the file. A ledger in memory is forgotten, and so is what was spent."""
        self._journal.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        if self.path is None:
            return "<ledger in memory: the budget is forgotten when this process ends>"
        return f"<ledger {str(self.path)!r}>"

    def __reduce__(self) -> NoReturn:
        raise Unsupported("a ledger cannot be copied or pickled; open its file again instead")

    # -- accounts -----------------------------------------------------------------------------

    def _account(self, unit: str) -> tuple[Registered, PrivacyBudget] | None:
        if unit not in self._accounts:
            with self._journal.reading():
                record = self._journal.registered(unit)
            if record is None:
                return None
            self._accounts[unit] = (record, record.terms())
        return self._accounts[unit]

    def _known_account(self, unit: str) -> tuple[Registered, PrivacyBudget]:
        _check_text(unit, "unit")
        account = self._account(unit)
        if account is None:
            raise LedgerError(
                f"unit `{unit}` has no budget in this ledger",
                code="SF605",
                place="unit",
                hints=("register it first",),
            )
        return account

    def _balance(self, registered: Registered, budget: PrivacyBudget) -> Balance:
        """Return the balance, inside a transaction. Rounds: down, where limits were computed differently."""
        last = self._journal.last_charge(registered.unit)
        return Balance(
            unit=registered.unit,
            budget=budget,
            limit=min(registered.limit, budget.limit),
            keys_limit=min(registered.keys_limit, budget.keys_limit),
            spent_units=0 if last is None else last.spent,
            keys_spent_units=0 if last is None else last.keys_spent,
        )


def _check_text(text: object, name: str) -> None:
    if not isinstance(text, str) or not 1 <= len(text) <= _LONGEST or not text.isprintable():
        raise InvalidArgument(f"{name} must be text of 1 to {_LONGEST} printable characters", place=name)
