"""Accounts: which units of protection have a budget here, who may spend from it, which data is about whom."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from sfumato.core.accountant import PrivacyBudget
from sfumato.errors import InvalidArgument, LedgerError
from sfumato.ledger.account import Account, GrantBalance, check_budget, check_text
from sfumato.ledger.journal import Journal
from sfumato.ledger.receipts import Key
from sfumato.ledger.records import Record
from sfumato.ledger.terms import Binding, Bound, Granted, Proposal

__all__ = ["Accounts"]


class Accounts:
    """The accounts of a journal. Terms never change once written, so they are read once."""

    __slots__ = ("_journal", "_known", "_proposed")

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._known: dict[str, Account] = {}
        self._proposed: dict[Proposal, Account | None] = {}  # in order; None: under terms on record

    def known(self, unit: str) -> Account:
        """Return the account of a unit, on record or proposed; refuse one that has none.

        Proposals are read before the record. Another thread that puts them on record forgets them after that:
        what is no longer proposed is found on record.
        """
        check_text(unit, "unit")
        proposed = next((made for _, made in self._proposed_terms(unit)), None)
        account = self._account(unit) or proposed
        if account is None:
            raise _unknown(unit)
        return account

    def _proposed_terms(self, unit: str) -> Iterator[tuple[Proposal, Account]]:
        proposed = tuple(self._proposed.items())  # a copy: other threads forget proposals
        return ((one, made) for one, made in proposed if one.unit == unit and made is not None)

    def _account(self, unit: str) -> Account | None:
        if unit not in self._known:
            with self._journal.reading():
                record = self._journal.registered(unit)
            if record is None:
                return None
            self._known[unit] = Account.of(record)
        return self._known[unit]

    # -- what is proposed, and what is fixed --------------------------------------------------

    def propose(self, proposal: Proposal) -> None:
        """Refuse what contradicts the record; keep the rest until something is charged. Writes nothing."""
        _check(proposal)
        draft = proposal.registered(self._journal.now())
        made = None if draft is None else Account.of(draft)
        if draft is not None:
            for _, earlier in self._proposed_terms(proposal.unit):
                earlier.check_same(draft)
        key = self._key_for(proposal)
        with self._journal.reading():
            list(self._additions(proposal, key))
        self._proposed[proposal] = made

    def fix(self, proposal: Proposal) -> None:
        """Put a proposal on record now."""
        _check(proposal)
        key = self._key_for(proposal)
        with self._journal.reading():
            added = any(True for _ in self._additions(proposal, key)) or (proposal.private and key is None)
        if added:
            key = self._journal.key()
            with self._journal.writing():
                for record in self._additions(proposal, key):
                    self._journal.append(record)
        self._account(proposal.unit)  # read now, not while others wait for a charge

    def write_proposed(self, unit: str) -> tuple[Account, tuple[Proposal, ...]]:
        """Write what was proposed for a unit before it is charged; return its account. Inside writing().

        The journal's key must have been made before.
        """
        pending = tuple(one for one in tuple(self._proposed) if one.unit == unit)
        if not pending:
            return self._known.get(unit) or self._account_on_record(unit), ()
        for one in pending:
            for record in self._additions(one, self._journal.key()):
                self._journal.append(record)
        return self._account_on_record(unit), pending

    def _account_on_record(self, unit: str) -> Account:
        terms = self._journal.registered(unit)
        if terms is None:
            raise _unknown(unit)
        return Account.of(terms)

    def forget_proposed(self, proposals: Iterable[Proposal]) -> None:
        """Forget proposals that are on record."""
        for one in proposals:
            self._proposed.pop(one, None)

    def _additions(self, proposal: Proposal, key: Key | None) -> Iterator[Record]:
        """Yield what a proposal adds to the record; refuse what contradicts it.

        Inside reading() or writing(). Without a key no source is on record, and none can be put there yet.
        """
        journal, unit, at = self._journal, proposal.unit, self._journal.now()
        draft, known = proposal.registered(at), journal.registered(unit)
        if known is None:
            if draft is None:
                raise _unknown(unit)
            others = journal.units()
            if others and not proposal.distinct:
                raise _conflict(
                    f"this ledger keeps the budget of unit `{others[0]}`; `{unit}` would be a second one",
                    "unit",
                    f"the same people have one budget: use `{others[0]}`, whatever column or file it is",
                    "if they are other people, or both may add up, say so on record: distinct=True",
                )
        account = Account.of(known or draft)  # type: ignore[arg-type]
        if draft is not None:
            account.check_same(draft)
        if proposal.renewal is not None:
            account.check_rule(proposal.renewal.budget, "renewal")
        private = {source for binding in proposal.private for source in binding.sources}
        for binding in proposal.public:
            if private & set(binding.sources):
                raise _not_public(binding, unit)
        if known is None and draft is not None:
            yield draft
        if key is not None:
            yield from self._bindings(proposal, key, at)
        for analyst, budget in proposal.grants:
            grant = Granted.of(unit, analyst, account.check_rule(budget, "budget"), at)
            if journal.granted(unit, analyst) is None:  # a proposal seeds grants; after that the ledger rules
                yield grant

    def _bindings(self, proposal: Proposal, key: Key, at: int) -> Iterator[Bound]:
        """Yield the sources that are new; refuse those on record for others."""
        unit = proposal.unit
        first = self._journal.first_bound(unit)
        by_row = None if first is None else first.column is None
        new: dict[str, Bound] = {}
        for binding in proposal.private:
            rows = binding.column is None
            by_row = rows if by_row is None else by_row
            if rows is not by_row:
                known_as = "every row is one" if by_row else "a column says whose a row is"
                raise _conflict(
                    f"unit `{unit}` is on record with data in which {known_as}; in table `{binding.table}` "
                    "it is not so",
                    binding.table,
                    "what protects a row does not protect a person who has several",
                )
            for source in _blinded(binding, key):
                known = new.get(source) or self._journal.bound(source)
                if known is None:
                    new[source] = Bound(at=at, unit=unit, source=source, column=binding.column)
                elif known.unit != unit:
                    raise _conflict(
                        f"table `{binding.table}` is on record as about unit `{known.unit}`, not `{unit}`",
                        binding.table,
                        f"use the unit `{known.unit}`: data is about the same people under every name",
                    )
                elif known.column != binding.column:
                    before, now = _named(known.column), _named(binding.column)
                    raise _conflict(
                        f"in table `{binding.table}` the unit on record is {before}, not {now}",
                        binding.table,
                        f"use {before}: told apart in another way, the same people would be others",
                    )
        for binding in proposal.public:
            for source in _blinded(binding, key):
                known = self._journal.bound(source)
                if known is not None:
                    raise _not_public(binding, known.unit)
        yield from new.values()

    def _key_for(self, proposal: Proposal) -> Key | None:
        """Return the key, if there is anything on record that it takes to recognise a source."""
        if not proposal.private and not proposal.public:
            return None
        with self._journal.reading():
            first = self._journal.first_bound()
        return None if first is None else self._journal.key()

    # -- analysts and sources -----------------------------------------------------------------

    def grant(self, unit: str, analyst: str, budget: PrivacyBudget) -> None:
        """Let an analyst spend from a unit's budget, up to a limit of the same rule."""
        check_text(analyst, "analyst")
        grant = Granted.of(unit, analyst, self.known(unit).check_rule(budget, "budget"), self._journal.now())
        terms = next((one for one, _ in self._proposed_terms(unit)), None)
        if terms is not None and self._account(unit) is None:  # the grant fixes the terms that it lies under
            self.fix(replace(terms, private=(), public=(), grants=()))
        with self._journal.writing():
            held = self._journal.granted(unit, analyst)
            if held is None or replace(held, at=grant.at) != grant:
                self._journal.append(grant)

    def analysts(self, unit: str) -> list[str]:
        """Return who has a grant, on record or proposed, by name; inside writing() or reading()."""
        return sorted({*self._journal.analysts(unit), *(name for name, _ in self._granting(unit))})

    def granted(self, account: Account, analyst: str) -> GrantBalance:
        """Return what an analyst may spend and has spent; inside writing() or reading()."""
        unit = account.registered.unit
        grant = self._journal.granted(unit, analyst)
        for name, budget in self._granting(unit):
            if grant is None and name == analyst:
                grant = Granted.of(unit, analyst, budget, self._journal.now())
        if grant is None:
            raise LedgerError(
                f"`{analyst}` has no grant from the budget of unit `{unit}`",
                code="SF609",
                place="analyst",
                hints=("the owner grants it: a limit of epsilon and delta under the unit's own",),
            )
        return account.granted(grant, self._journal.last_charge_of(unit, analyst))

    def _granting(self, unit: str) -> Iterator[tuple[str, PrivacyBudget]]:
        return (grant for one in tuple(self._proposed) if one.unit == unit for grant in one.grants)

    def bound(self, sources: Iterable[str]) -> str | None:
        """Return the unit that one of these sources is on record for, None if there is none."""
        binding = Binding(table="", sources=tuple(sources))
        key = self._key_for(Proposal(unit="", public=(binding,)))
        if key is None:
            return None
        with self._journal.reading():
            found = (self._journal.bound(source) for source in _blinded(binding, key))
            return next((known.unit for known in found if known is not None), None)


def _check(proposal: Proposal) -> None:
    """Refuse what is no proposal at all."""
    check_text(proposal.unit, "unit")
    if proposal.budget is not None:
        check_budget(proposal.budget)
    if proposal.partition is not None:
        check_text(proposal.partition, "partition")
    for name in ("replace_one", "distinct"):
        if not isinstance(getattr(proposal, name), bool):
            raise InvalidArgument(f"{name} must be True or False", place=name)
    for analyst, _ in proposal.grants:
        check_text(analyst, "analyst")


def _blinded(binding: Binding, key: Key) -> list[str]:
    return list(dict.fromkeys(key.blind(f"source\n{source}") for source in binding.sources))


def _unknown(unit: str) -> LedgerError:
    return LedgerError(
        f"unit `{unit}` has no budget in this ledger",
        code="SF605",
        place="unit",
        hints=("register it first",),
    )


def _conflict(message: str, place: str, *hints: str) -> LedgerError:
    return LedgerError(message, code="SF610", place=place, hints=hints)


def _not_public(binding: Binding, unit: str) -> LedgerError:
    return _conflict(
        f"table `{binding.table}` is on record, or opened, as being about unit `{unit}`; it cannot be public",
        "public",
        "publish what is no secret as a file of its own, without the people",
    )


def _named(column: str | None) -> str:
    return "each row" if column is None else f"column `{column}`"
