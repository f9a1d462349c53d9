"""Verification: walk the whole chain and believe nothing.

Theorem: SHA-256 is collision resistant, so a chain that ends in a given hash is the chain that
was written. Assumes: that hash is known from elsewhere. Without it, a truncated tail or a chain
written afresh looks genuine; `anchor` is how to give it.
"""

from __future__ import annotations

import hashlib

from sfumato.errors import LedgerError, SfumatoError
from sfumato.ledger.journal import Journal, Row
from sfumato.ledger.records import FORMAT, START, Committed, Head, Link, Opened, Registered, Reserved

__all__ = ["verified"]


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
        last = walk.sequence
        if last == 0:
            raise LedgerError("the ledger has no records", code="SF602")
        if journal.counted() != last:
            raise _found(last, "is the last one, but more were appended after it")
        if anchor is not None and not 1 <= anchor.sequence <= last:
            raise _found(last, f"is the last one, but the anchor names record {anchor.sequence}")
        return Head(sequence=last, hash=walk.previous)


class _Walk:
    """What the records so far add up to."""

    def __init__(self) -> None:
        self.sequence = 0
        self.previous = START
        self._budgets: dict[str, Registered] = {}
        self._totals: dict[str, tuple[int, int]] = {}
        self._unanswered: set[int] = set()
        self._keys: set[str] = set()

    def step(self, row: Row) -> None:
        """Check one row against all before it."""
        sequence, previous, digest, body, kind, *columns, release = row
        expected = self.sequence + 1
        if sequence != expected:
            raise _found(expected, "is missing")
        link = Link(sequence=sequence, previous=previous, body=body)
        if previous != self.previous:
            raise _found(sequence, "does not follow the one before it")
        try:
            intact = link.hash == digest
            record = link.read()
        except (SfumatoError, UnicodeError) as error:
            raise _found(sequence, "is malformed") from error
        filed = [getattr(record, name, None) for name in ("unit", "key", "reservation")]
        if not intact or kind != record.kind or columns != filed:
            raise _found(sequence, "was altered")
        if (sequence == 1) != isinstance(record, Opened) or (release is None) == isinstance(
            record, Committed
        ):
            raise _found(sequence, "is out of place")
        match record:
            case Opened(format=version):
                sound = version == FORMAT
            case Registered():
                sound = self._register(record)
            case Reserved():
                sound = self._charge(record, sequence)
            case Committed():
                sound = self._answer(record, release)
            case _:
                sound = False
        if not sound:
            raise _found(sequence, "contradicts the records before it")
        self.sequence, self.previous = sequence, digest

    def _register(self, record: Registered) -> bool:
        known = record.unit in self._budgets
        self._budgets[record.unit] = record
        self._totals[record.unit] = (0, 0)
        return not known

    def _charge(self, record: Reserved, sequence: int) -> bool:
        budget = self._budgets.get(record.unit)
        if budget is None or record.key in self._keys:
            return False
        spent, keys_spent = self._totals[record.unit]
        totals = (spent + record.units, keys_spent + record.keys_units)
        self._totals[record.unit] = totals
        self._unanswered.add(sequence)
        if record.key is not None:
            self._keys.add(record.key)
        within = totals[0] <= budget.limit and totals[1] <= budget.keys_limit
        return within and totals == (record.spent, record.keys_spent)

    def _answer(self, record: Committed, release: bytes | None) -> bool:
        if record.reservation not in self._unanswered or not isinstance(release, bytes):
            return False
        self._unanswered.discard(record.reservation)
        digest = hashlib.sha256(release).hexdigest()
        return digest == record.release_sha256 and len(release) == record.release_length


def _found(sequence: int, what: str) -> LedgerError:
    return LedgerError(
        f"record {sequence} of the ledger {what}",
        code="SF602",
        sequence=sequence,
        hints=("restore a copy and compare its head with one kept elsewhere",),
    )
