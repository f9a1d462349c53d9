"""The ledger: may it run? Charge first, look afterwards, and never forget.

Budgets belong to units of protection: whoever asks, from whatever process, under whatever table
name, about the same unit draws on the same budget, for as long as the file exists.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, nullcontext
from fractions import Fraction
from pathlib import Path
from typing import NoReturn, TextIO

from sfumato.catalog import is_address, looks_like_address
from sfumato.core.accountant import PrivacyBudget
from sfumato.core.arguments import Number
from sfumato.core.events.base import Event
from sfumato.errors import InvalidArgument, LedgerError, Unsupported
from sfumato.ledger.account import Balance, GrantBalance, check_budget, check_text, checked_analyst
from sfumato.ledger.accounts import Accounts
from sfumato.ledger.charges import Entry, Reserved
from sfumato.ledger.journal import MOST, Journal
from sfumato.ledger.open_reservations import files_of
from sfumato.ledger.postgres import PostgresJournal
from sfumato.ledger.query_texts import QueryText, hash_of
from sfumato.ledger.records import Head
from sfumato.ledger.reservation import Reservation, reserve
from sfumato.ledger.terms import Binding, Owner, Proposal, Renewal
from sfumato.ledger.verification import exported, verified

__all__ = ["Ledger"]

_PAGE = 1000


class Ledger:
    """Budgets, charges and releases, append-only, shared by any number of threads and processes.

    >>> from sfumato.core.events import Pure
    >>> from sfumato.ledger import OWNER
    >>> ledger = Ledger.open(None)
    >>> ledger.register("person", PrivacyBudget(epsilon=1))
    >>> asked = {"request_hash": "r", "data_version": "1", "policy_hash": "p", "analyst": OWNER}
    >>> with ledger.reserve("person", Pure(loss=0.25), 0, **asked) as reservation:
    ...     head = reservation.commit(b"noisy")
    >>> ledger.remaining("person")
    Fraction(3, 4)
    >>> ledger
    <ledger in memory: the budget is forgotten when this process ends>
    """

    __slots__ = ("_accounts", "_journal")

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._accounts = Accounts(journal)

    @staticmethod
    def open(
        path: str | os.PathLike[str] | None,
        *,
        wait: float = 30,
        create: bool = True,
        clock: Callable[[], int] | None = None,
    ) -> Ledger:
        """Open a ledger file, or begin a new one; with None, one in memory that ends with the process.

        A `postgresql://` address names a database that several hosts share: see docs/ledger.md.
        With `create=False`, a file that is not there is refused: it may have been moved. Whoever waits for
        other writers is refused after `wait` seconds per step, and not charged. `clock` returns milliseconds
        since 1970: for tests.
        """
        if isinstance(wait, bool) or not isinstance(wait, (int, float)) or not 0 < wait <= 3600:
            raise InvalidArgument("wait must be a number of seconds above 0, at most 3600", place="wait")
        if path is None:
            return Ledger(Journal(None, wait, create=True, clock=clock))
        if not isinstance(path, (str, os.PathLike)) or "\0" in os.fspath(path) or not os.fspath(path):
            raise InvalidArgument("a ledger needs the path of a file, or None", place="path")
        if isinstance(path, str) and is_address(path):
            return Ledger(PostgresJournal(path, wait, create=create, clock=clock))
        if isinstance(path, str) and looks_like_address(path):  # a file of this name would be this host's own
            raise InvalidArgument(
                "the ledger is neither a file nor an address that is known",
                place="ledger",
                hints=("an address begins so: postgresql://host/database, postgresql:///?service=name",),
            )
        # One name for one file: what lies beside it, its log and its key, is found under every link to it.
        given = os.path.abspath(path)
        create = create and not os.path.islink(given)
        return Ledger(Journal(Path(os.path.realpath(given)), wait, create=create, clock=clock))

    # -- budgets ------------------------------------------------------------------------------

    def register(
        self,
        unit: str,
        budget: PrivacyBudget,
        *,
        renewal: Renewal | None = None,
        partition: str | None = None,
        replace_one: bool = False,
        distinct: bool = False,
    ) -> None:
        """Fix the budget of a unit of protection, for ever.

        A `renewal` says how much of it each epoch may use. `partition` names the attribute that divides units
        into parts, one for each unit; with `replace_one` a neighbouring dataset has one unit replaced,
        which touches two: events must be priced for that, and questions are not.

        Again with the same terms: nothing happens. With others: refused. So is a second unit, a fresh budget
        for the same people, without `distinct`: the owner's word, put on record, that it is not.
        """
        check_budget(budget)
        self._accounts.fix(
            Proposal(
                unit=unit,
                budget=budget,
                renewal=renewal,
                partition=partition,
                replace_one=replace_one,
                distinct=distinct,
            )
        )

    def propose(self, proposal: Proposal) -> None:
        """Say what data is opened, about whom, under which terms; nothing is written until the first charge.

        What contradicts the record is refused. The first charge to the unit puts the rest on record, in one
        transaction with itself. Until then the balance is that of the proposed budget.
        """
        self._accounts.propose(proposal)

    def fix(self, proposal: Proposal) -> None:
        """Put a proposal on record now, without a charge."""
        self._accounts.fix(proposal)

    def grant(self, unit: str, analyst: str, budget: PrivacyBudget) -> None:
        """Let an analyst spend from a unit's budget, up to a limit of the same rule.

        Grants may add up to more than the budget: it holds for all of them together. A later grant
        replaces the limit, up or down; what the analyst has spent stays spent.
        """
        self._accounts.grant(unit, analyst, budget)

    def bind(self, unit: str, sources: Iterable[str], *, column: str | None) -> None:
        """Put on record that sources of data (paths, hashes: whatever identifies them) are about a unit.

        `column` says whose each row is; None: every row is a unit by itself. A source that is on record for
        another unit or column is refused: it would be a fresh budget. Only keyed hashes are recorded.
        """
        binding = Binding(table="data", sources=tuple(sources), column=column)
        self._accounts.fix(Proposal(unit=unit, private=(binding,)))

    def bound(self, sources: Iterable[str]) -> str | None:
        """Return the unit that one of these sources is on record for, None if there is none."""
        return self._accounts.bound(sources)

    def budget(self, unit: str) -> PrivacyBudget:
        """Return the budget of a unit; with a renewal, that of the lifetime."""
        return self._accounts.known(unit).budget

    def partition(self, unit: str) -> str | None:
        """Return the attribute by which a unit is divided into parts, None if it is not."""
        return self._accounts.known(unit).registered.partition

    def replace_one(self, unit: str) -> bool:
        """Return whether neighbours of a unit's data have one unit replaced; else one is added or removed."""
        return self._accounts.known(unit).registered.replace_one

    def units(self) -> tuple[str, ...]:
        """Return the units that have a budget here, in the order in which they were registered."""
        with self._journal.reading():
            return self._journal.units()

    def balance(self, unit: str) -> Balance:
        """Return what was spent and what is left, of the lifetime and of this epoch."""
        account = self._accounts.known(unit)
        with self._journal.reading():
            return account.balance(self._journal.last_charge(unit), self._journal.now())

    def grants(self, unit: str) -> tuple[GrantBalance, ...]:
        """Return what each analyst may spend and has spent, by name."""
        account = self._accounts.known(unit)
        with self._journal.reading():
            names = self._accounts.analysts(unit)
            return tuple(self._accounts.granted(account, name) for name in names)

    def grant_balance(self, unit: str, analyst: str) -> GrantBalance:
        """Return what one analyst may spend and has spent."""
        account = self._accounts.known(unit)
        check_text(analyst, "analyst")
        with self._journal.reading():
            return self._accounts.granted(account, analyst)

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
        data_version: str | None,
        policy_hash: str,
        idempotency_key: str | None = None,
        *,
        analyst: str | Owner,
        parts: Iterable[str] | None = None,
        steps: int | None = None,
        question: str | None = None,
        purpose: str | None = None,
    ) -> Reservation:
        """Charge an event to a unit; when this returns, the charge is on the disk.

        Raises `BudgetExceeded` and charges nothing where the event, or the delta of its key selection, does
        not fit into the budget, this epoch's allowance or the analyst's grant. `OWNER` asks under the budget
        alone. `parts` names the parts that the event is about; None: it concerns every unit. Rounds: up.

        If an analyst's idempotency key was answered before for the same request, data and policy, the stored
        release comes back and nothing is charged. With `steps` the event is that of all looks together: see
        `Reservation.step`; with `data_version=None` each step names its own.

        The text of the `question` and its `purpose` are kept with the charge for the owner: `query_texts`.
        """
        who = checked_analyst(analyst)
        texts = {"unit": unit, "request_hash": request_hash, "policy_hash": policy_hash}
        for name, text in texts.items():
            check_text(text, name)
        optionals = {"idempotency_key": idempotency_key, "data_version": data_version, "purpose": purpose}
        for name, optional in optionals.items():
            if optional is not None:
                check_text(optional, name)
        _check_steps(steps, idempotency_key, data_version, parts)
        account = self._accounts.known(unit)
        named = account.checked_parts(None if parts is None else tuple(parts))
        units, keys_units = account.budget.charge(event, keys_delta)  # may take a while: before others wait
        kept = QueryText.of(question, purpose)
        self._journal.key()  # made now, if there is none: the transaction of the charge needs it
        draft = Reserved(
            at=0,
            unit=unit,
            units=units,
            keys_units=keys_units,
            event=event.to_dict(),
            key=idempotency_key,
            nonce=os.urandom(8).hex(),
            analyst=who,
            parts=named,
            request_hash=request_hash,
            data_version=None if data_version is None else self._journal.blinded_version(data_version),
            policy_hash=policy_hash,
            steps=steps,
            question_sha256=None if kept is None else hash_of(kept.written()),
        )
        return reserve(draft, kept, self._journal, self._accounts)

    # -- looking back -------------------------------------------------------------------------

    def release(self, sequence: int, *, step: int | None = None) -> bytes:
        """Return the stored release of a reservation, or the output of one of its steps, free of charge."""
        release = None
        if 0 < sequence <= MOST and (step is None or 0 < step <= MOST):
            with self._journal.reading():
                if step is None:
                    release = self._journal.release(sequence)
                elif (found := self._journal.step(sequence, step)) is not None:
                    release = found[1]
        if release is None:
            what = "release" if step is None else f"output of step {step}"
            raise LedgerError(
                f"there is no {what} of reservation {sequence}",
                code="SF608",
                sequence=sequence,
                hints=("`history` lists the reservations; one that was burnt has no answer",),
            )
        return release

    def outputs(self, sequence: int, last: int) -> dict[int, bytes]:
        """Return the outputs of a reservation's first steps, by number, without burnt ones: free."""
        with self._journal.reading():
            return self._journal.outputs(min(sequence, MOST), min(last, MOST))

    def releases(
        self,
        unit: str,
        *,
        data_version: str,
        policy_hash: str,
        analyst: str | Owner,
        mark: str,
        limit: int = 100,
    ) -> tuple[tuple[int, bytes], ...]:
        """Return what was released about a unit's data as it is, under a policy as it is, the newest first.

        Of those answers that hold the text `mark`, at most `limit`, with the numbers of their charges. Free:
        they were paid for. The owner sees what anybody was told, an analyst what that analyst was told: a
        grant bounds what one analyst learns.
        """
        self._accounts.known(unit)
        if self.last_entry(unit) is None:
            return ()
        version = self._journal.blinded_version(data_version)
        with self._journal.reading():
            to = checked_analyst(analyst)
            return tuple(self._journal.releases(unit, version, policy_hash, to, mark, limit=min(limit, MOST)))

    def history(
        self, unit: str | None = None, *, analyst: str | None = None, after: int = 0, limit: int | None = None
    ) -> tuple[Entry, ...]:
        """Return charges, oldest first: public facts only.

        In pages: `limit` of them, and the next page `after` the sequence of the last one.
        """
        with self._journal.reading():
            most = MOST if limit is None else min(limit, MOST)
            return tuple(self._journal.charges(unit, analyst, after=min(after, MOST), limit=most))

    def newest(self, limit: int, unit: str | None = None, *, analyst: str | None = None) -> tuple[Entry, ...]:
        """Return the newest charges, oldest first; they are looked up, however long the ledger is."""
        with self._journal.reading():
            found = self._journal.charges(unit, analyst, after=0, limit=min(limit, MOST), newest=True)
        return tuple(reversed(found))

    def last_entry(self, unit: str | None = None, *, analyst: str | None = None) -> Entry | None:
        """Return the newest charge, None if there is none."""
        return next(iter(self.newest(1, unit, analyst=analyst)), None)

    def entries(self, unit: str | None = None, *, analyst: str | None = None) -> Iterator[Entry]:
        """Yield charges, oldest first, a page at a time: others go on spending between pages."""
        after = 0
        while page := self.history(unit, analyst=analyst, after=after, limit=_PAGE):
            yield from page
            after = page[-1].sequence

    def query_texts(self, entries: Iterable[Entry]) -> dict[int, QueryText]:
        """Return the texts and purposes that are kept of charges, by their numbers. For the owner alone.

        A charge whose text was erased is not in it; one whose `question_sha256` is None had none.
        """
        self._journal.check_owner()
        hashes = {entry.sequence: entry.question_sha256 for entry in entries if entry.question_sha256}
        if not hashes:
            return {}
        with self._journal.reading():
            kept = dict(self._journal.query_texts(min(hashes), max(hashes)))
        return {one: QueryText.read(kept[one], hashes[one], one) for one in hashes if one in kept}

    def erase_query_texts(self, numbers: Iterable[int] | None = None) -> int:
        """Erase the texts of charges, or with None of all; return how many there were. For the owner alone.

        Numbers of charges that have no text are passed over. That they were erased is put on record; their
        hashes stay, and tell nothing. What was charged stays charged.
        """
        self._journal.check_owner()
        wanted = None if numbers is None else set(numbers)
        with self._journal.writing():
            found = [one for one, _ in self._journal.query_texts() if wanted is None or one in wanted]
            for start in range(0, len(found), _PAGE):
                self._journal.erase_texts(found[start : start + _PAGE])
        self._journal.empty_log()
        return len(found)

    def head(self) -> Head:
        """Return the newest record's number and hash; kept elsewhere, it is an anchor."""
        with self._journal.reading():
            return self._journal.last().head

    def anchor(self) -> str:
        """Return the head as text, `sequence:hash`, to be kept where the ledger's keeper cannot write."""
        return str(self.head())

    @property
    def public_key(self) -> str:
        """The key that receipts are signed with, in hexadecimal."""
        return self._journal.key().public

    def public_keys(self) -> tuple[str, ...]:
        """Return all keys on record that receipts were signed with, oldest first."""
        with self._journal.reading():
            return tuple(self._journal.signers())

    def export(
        self, file: str | os.PathLike[str] | TextIO, *, releases: bool = True, questions: bool = False
    ) -> int:
        """Write all records as JSON Lines; return how many. Without `releases`, their hashes only.

        With `questions`, the texts of questions too, which may name people: for the owner alone.
        """
        if questions:
            self._journal.check_owner()
        if isinstance(file, (str, os.PathLike)):
            own = () if self.path is None else files_of(self.path)
            if os.path.realpath(file) in map(str, own):
                raise InvalidArgument(
                    "an export is not written over the ledger or its key",
                    place=str(file),
                    hints=("name another file",),
                )
            opened = open(file, "w", encoding="ascii", newline="\n")  # noqa: SIM115
        else:
            opened = nullcontext(file)  # type: ignore[assignment]
        count = 0
        with opened as out:
            for line in exported(self._journal, releases=releases, questions=questions):
                out.write(line)
                count += 1
        return count

    def verify(self, anchor: Head | str | None = None) -> Head:
        """Walk the chain; refuse if any record was edited, deleted, reordered or added out of turn.

        A truncated tail, a restored old copy and a full rewrite are found with an `anchor`: a head
        that was noted before and kept where the ledger's keeper cannot reach it.
        """
        noted = Head.parse(anchor) if isinstance(anchor, str) else anchor
        if self._journal.in_memory:
            return verified(self._journal, noted)
        # By a connection of its own, so that other threads go on spending meanwhile.
        self.head()  # the file is still the one that was opened
        with closing(self._journal.reopened()) as journal:
            return verified(journal, noted)

    # -- the object itself --------------------------------------------------------------------

    @property
    def path(self) -> Path | None:
        """The file, None if the ledger is in memory or on a server."""
        return self._journal.path

    @property
    def place(self) -> str:
        """Where the ledger is, without secrets: a file, a server's address, memory."""
        return self._journal.place

    @property
    def on_server(self) -> bool:
        """Whether the ledger is in a database on a server, so that nothing can lie beside it."""
        return self.path is None and not self._journal.in_memory

    def close(self) -> None:
        """Let go of the file. A ledger in memory is forgotten, and so is what was spent."""
        self._journal.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        if self._journal.in_memory:
            return "<ledger in memory: the budget is forgotten when this process ends>"
        return f"<ledger {self._journal.place!r}>"

    def __reduce__(self) -> NoReturn:
        raise Unsupported("a ledger cannot be copied or pickled; open its file again instead")


def _check_steps(
    steps: object, key: str | None, data_version: str | None, parts: Iterable[str] | None
) -> None:
    """Refuse steps that could not be resumed, and data whose version is not known."""
    if steps is None:
        if data_version is None:
            raise InvalidArgument("one look is at one version of the data", place="data_version")
        return
    if isinstance(steps, bool) or not isinstance(steps, int) or not 1 <= steps <= MOST:
        raise InvalidArgument("steps must be a whole number of 1 or more", place="steps")
    if key is None:
        raise InvalidArgument(
            "several steps need an idempotency key: it is how they are resumed", place="idempotency_key"
        )
    if data_version is None and parts is not None:
        raise InvalidArgument(
            "a charge to parts is for one version of the data, in which each unit has one part", place="parts"
        )
