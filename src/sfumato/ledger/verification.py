"""Verification: walk the whole chain and believe nothing; or export it, and let an outsider do so.

Theorem: SHA-256 is collision resistant, so a chain that ends in a given hash is the chain that
was written. Assumes: that hash is known from elsewhere. Without it, a truncated tail or a chain
written afresh looks genuine; `anchor` is how to give it.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator
from typing import Any

from sfumato.errors import LedgerError, SfumatoError
from sfumato.ledger.account import Account
from sfumato.ledger.charges import Reserved, Totals
from sfumato.ledger.journal import FILED, Journal, Row
from sfumato.ledger.query_texts import Erased, hash_of
from sfumato.ledger.records import FORMAT, START, Committed, Head, Link, Opened, Record, Signer, Stepped
from sfumato.ledger.terms import Bound, Granted, Registered

__all__ = ["exported", "verified"]

_PAGE = 1000


def verified(journal: Journal, anchor: Head | None) -> Head:
    """Return the head of a journal in which every record is as it was written; else refuse."""
    with journal.reading():
        damage = journal.damage()
        if damage is not None:
            raise LedgerError(f"the ledger's file is damaged: {damage}", code="SF602")
        walk = _Walk()
        for row in journal.rows():
            walk.step(row)
            if anchor is not None and row[0] == anchor.sequence and row[2] != anchor.hash:
                raise _found(row[0], "is not the one that the anchor names")
        walk.check_texts(journal.query_texts())
        last = walk.sequence
        if last == 0:
            raise LedgerError("the ledger has no records", code="SF602")
        if journal.counted() != last:
            raise _found(last, "is the last one, but more were appended after it")
        if anchor is not None and not 1 <= anchor.sequence <= last:
            raise _found(last, f"is the last one, but the anchor names record {anchor.sequence}")
        return Head(sequence=last, hash=walk.previous)


class _Walk:
    """What the records so far add up to. A record that is refused changes nothing in it."""

    def __init__(self) -> None:
        self.sequence = 0
        self.previous = START
        self._accounts: dict[str, Account] = {}
        self._totals: dict[str, Totals] = {}
        self._grants: dict[tuple[str, str], Granted] = {}
        self._granted: dict[tuple[str, str], tuple[int, int]] = {}
        self._sources: set[str] = set()
        self._by_row: dict[str, bool] = {}  # whether rows are units, by the first source of a unit
        self._open: dict[int, tuple[Reserved, int]] = {}  # not ended; with the number of steps taken
        self._keys: set[tuple[str | None, str]] = set()
        self._texts: dict[int, str] = {}  # hashes of texts that must be there

    def step(self, row: Row | tuple[Any, ...]) -> None:
        """Check one row against all before it."""
        sequence, previous, digest, body, kind, *columns, release = row
        expected = self.sequence + 1
        if sequence != expected:
            raise _found(expected, "is missing")
        if previous != self.previous:
            raise _found(sequence, "does not follow the one before it")
        try:
            link = Link(sequence=sequence, previous=previous, body=body)
            intact = link.hash == digest
            record = link.read()
        except (SfumatoError, UnicodeError) as error:
            raise _found(sequence, "is malformed") from error
        filed = [getattr(record, name, None) for name in FILED]
        if not intact or kind != record.kind or columns != filed:
            raise _found(sequence, "was altered")
        if (sequence == 1) != isinstance(record, Opened):
            raise _found(sequence, "is out of place")
        if release is not None and not isinstance(record, Committed | Stepped):
            raise _found(sequence, "is out of place")
        if not self._admit(record, sequence, release):
            raise _found(sequence, "contradicts the records before it")
        self.sequence, self.previous = sequence, digest

    def check_texts(self, kept: Iterable[tuple[int, object]]) -> None:
        """Compare the texts beside the records with their hashes, once all records are walked."""
        missing = dict(self._texts)
        for sequence, text in kept:
            if sequence not in missing or hash_of(text) != missing.pop(sequence):
                raise _found(sequence, "has another text beside it than was kept with it")
        for sequence in missing:
            raise _found(sequence, "has lost the text that was kept with it")

    def _admit(self, record: Record, sequence: int, release: bytes | None) -> bool:
        match record:
            case Opened(format=version):
                return version == FORMAT
            case Signer():
                return True
            case Registered():
                return self._register(record)
            case Granted(unit=unit, analyst=analyst):
                account = self._accounts.get(unit)
                if account is None or record.terms().rule != account.budget.rule:
                    return False
                self._grants[unit, analyst] = record
                return True
            case Bound(unit=unit, source=source, column=column):
                by_row = self._by_row.get(unit, column is None)
                if unit not in self._accounts or source in self._sources or by_row != (column is None):
                    return False
                self._by_row[unit] = by_row
                self._sources.add(source)
                return True
            case Reserved():
                return self._charge(record, sequence)
            case Stepped():
                return self._step(record, release)
            case Committed():
                return record.names(release) and self._open.pop(record.reservation, None) is not None
            case Erased(reservations=erased):
                if not erased or len(set(erased)) < len(erased) or not self._texts.keys() >= set(erased):
                    return False
                for one in erased:
                    del self._texts[one]
                return True
        return False

    def _register(self, record: Registered) -> bool:
        if record.unit in self._accounts or (self._accounts and not record.distinct):
            return False
        account = Account.of(record)
        if account.renewal is not None and account.renewal.budget.rule != account.budget.rule:
            return False
        self._accounts[record.unit] = account
        self._totals[record.unit] = account.totals(None)
        return True

    def _charge(self, record: Reserved, sequence: int) -> bool:
        account = self._accounts.get(record.unit)
        if account is None or (record.analyst, record.key) in self._keys:
            return False
        terms = account.registered
        if record.parts is not None and (terms.partition is None or not record.parts):
            return False
        if record.steps is not None and (record.steps == 0 or record.key is None):
            return False
        if record.data_version is None and (record.steps is None or record.parts is not None):
            return False
        who = (record.unit, record.analyst or "")
        epoch = account.epoch(record.at)
        before = self._granted.get(who, (0, 0))
        expected = record.charged(self._totals[record.unit], epoch, before)
        totals = expected.totals
        within = totals.spent <= terms.limit and totals.keys_spent <= terms.keys_limit
        if account.renewal is not None:
            within &= totals.epoch_spent <= terms.epoch_limit
            within &= totals.epoch_keys_spent <= terms.epoch_keys_limit
        after = (expected.analyst_spent, expected.analyst_keys_spent)
        if record.analyst is not None:
            grant = self._grants.get(who)
            within &= grant is not None and after[0] <= grant.limit and after[1] <= grant.keys_limit
        if not within or expected.body(sequence) != record.body(sequence):
            return False
        self._totals[record.unit] = totals
        if record.analyst is not None:
            self._granted[who] = after
        self._open[sequence] = (record, 0)
        if record.key is not None:
            self._keys.add((record.analyst, record.key))
        if record.question_sha256 is not None:
            self._texts[sequence] = record.question_sha256
        return True

    def _step(self, record: Stepped, output: bytes | None) -> bool:
        reserved, taken = self._open.get(record.reservation, (None, 0))
        if reserved is None or not record.names(output):
            return False
        if reserved.steps is None or not record.step == taken + 1 <= reserved.steps:
            return False
        if reserved.data_version not in (None, record.data_version):
            return False
        self._open[record.reservation] = (reserved, record.step)
        return True


def _found(sequence: int, what: str) -> LedgerError:
    return LedgerError(
        f"record {sequence} of the ledger {what}",
        code="SF602",
        sequence=sequence,
        hints=("restore a copy and compare its head with one kept elsewhere",),
    )


def exported(journal: Journal, *, releases: bool, questions: bool) -> Iterator[str]:
    """Yield a line of JSON for each record there was when the export began; others go on spending meanwhile.

    An object of `sequence`, `previous`, `hash`, `body` (the text that is hashed, as text) and, where the
    record is that of a release, `release` (its bytes in Base64; null if they were left out). With
    `questions` also `question`, where one is kept: the text whose hash is in the body, as text.
    """
    with journal.reading():
        last = journal.last().sequence
    for start in range(1, last + 1, _PAGE):
        with journal.reading():
            page = (start, min(last, start + _PAGE - 1))
            rows = list(journal.rows("WHERE sequence BETWEEN ? AND ?", *page))
            texts = dict(journal.query_texts(*page)) if questions else {}
        for row in rows:
            line = {name: getattr(row, name) for name in ("sequence", "previous", "hash", "body")}
            if row.release is not None:
                line["release"] = base64.b64encode(row.release).decode() if releases else None
            if row.sequence in texts:
                line["question"] = texts[row.sequence]
            yield json.dumps(line, separators=(",", ":")) + "\n"
