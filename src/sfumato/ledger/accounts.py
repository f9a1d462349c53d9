"""Accounts: which units of protection have a budget here, who may spend from it, which data is about whom."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from sfumato.core.accountant import PrivacyBudget
from sfumato.errors import InvalidArgument, LedgerError
from sfumato.ledger.account import Account, check_text
from sfumato.ledger.balance import GrantBalance
from sfumato.ledger.journal import Journal
from sfumato.ledger.renewal import Renewal
from sfumato.ledger.terms import Bound, Granted, Registered

__all__ = ["Accounts"]


class Accounts:
    """The accounts of a journal. Terms never change once written, so they are read once."""

    __slots__ = ("_journal", "_known")

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._known: dict[str, Account] = {}

    def known(self, unit: str) -> Account:
        """Return the account of a unit; refuse one that has none."""
        check_text(unit, "unit")
        account = self._account(unit)
        if account is None:
            raise LedgerError(
                f"unit `{unit}` has no budget in this ledger",
                code="SF605",
                place="unit",
                hints=("register it first",),
            )
        return account

    def _account(self, unit: str) -> Account | None:
        if unit not in self._known:
            with self._journal.reading():
                record = self._journal.registered(unit)
            if record is None:
                return None
            self._known[unit] = Account.of(record)
        return self._known[unit]

    def register(
        self,
        unit: str,
        budget: PrivacyBudget,
        *,
        renewal: Renewal | None,
        partition: str | None,
        replace_one: bool,
        distinct: bool,
    ) -> None:
        """Fix the terms of a unit, for ever."""
        check_text(unit, "unit")
        if not isinstance(budget, PrivacyBudget):
            raise InvalidArgument("a unit is registered with a PrivacyBudget", place="budget")
        if partition is not None:
            check_text(partition, "partition")
        for name, value in (("replace_one", replace_one), ("distinct", distinct)):
            if not isinstance(value, bool):
                raise InvalidArgument(f"{name} must be True or False", place=name)
        draft = Registered.of(
            unit,
            budget,
            self._journal.now(),
            renewal=renewal,
            partition=partition,
            replace_one=replace_one,
            distinct=distinct,
        )
        account = Account.of(draft)
        if renewal is not None:
            account.check_rule(renewal.budget, "renewal")
        known = self._account(unit)
        if known is None:
            self._journal.key()
            with self._journal.writing():
                others = self._journal.units()
                if unit not in others:
                    if others and not distinct:
                        raise _second_unit(unit, others[0])
                    self._journal.append(draft)
            known = self.known(unit)
        known.check_same(draft)

    def grant(self, unit: str, analyst: str, budget: PrivacyBudget) -> None:
        """Let an analyst spend from a unit's budget, up to a limit of the same rule."""
        account = self.known(unit)
        check_text(analyst, "analyst")
        record = Granted.of(unit, analyst, account.check_rule(budget, "budget"), self._journal.now())
        with self._journal.writing():
            known = self._journal.granted(unit, analyst)
            if known is None or replace(known, at=record.at).body(1) != record.body(1):
                self._journal.append(record)

    def granted(self, account: Account, analyst: str) -> GrantBalance:
        """Return what an analyst may spend and has spent; inside writing() or reading()."""
        unit = account.registered.unit
        grant = self._journal.granted(unit, analyst)
        if grant is None:
            raise LedgerError(
                f"`{analyst}` has no grant from the budget of unit `{unit}`",
                code="SF609",
                place="analyst",
                hints=("the owner grants it: a limit of epsilon and delta under the unit's own",),
            )
        return account.granted(grant, self._journal.last_charge_of(unit, analyst))

    def bind(self, unit: str, sources: Iterable[str]) -> None:
        """Put on record that sources of data are about a unit; refuse those on record for another."""
        self.known(unit)
        blinded = self._blinded(sources)
        with self._journal.reading():
            found = {source: self._journal.bound(source) for source in blinded}
        if all(owner == unit for owner in found.values()):
            return
        with self._journal.writing():
            for source in blinded:
                owner = self._journal.bound(source)
                if owner is None:
                    self._journal.append(Bound(at=self._journal.now(), unit=unit, source=source))
                elif owner != unit:
                    raise _other_unit(unit, owner)

    def bound(self, sources: Iterable[str]) -> str | None:
        """Return the unit that one of these sources is on record for, None if there is none."""
        blinded = self._blinded(sources)
        with self._journal.reading():
            return next((owner for one in blinded if (owner := self._journal.bound(one))), None)

    def _blinded(self, sources: Iterable[str]) -> list[str]:
        key = self._journal.key()
        return list(dict.fromkeys(key.blind(f"source\n{source}") for source in sources))


def _second_unit(unit: str, first: str) -> LedgerError:
    return LedgerError(
        f"this ledger keeps the budget of unit `{first}`; `{unit}` would be a second one",
        code="SF610",
        place="unit",
        hints=(
            f"the same people have one budget: use the unit `{first}`, whatever the column or file is called",
            "if they are other people, or both may add up, say so: distinct=True; it is put on record",
        ),
    )


def _other_unit(unit: str, owner: str) -> LedgerError:
    return LedgerError(
        f"this source is on record as being about unit `{owner}`, not `{unit}`",
        code="SF610",
        place="source",
        hints=(f"use the unit `{owner}`: data is about the same people under every name",),
    )
