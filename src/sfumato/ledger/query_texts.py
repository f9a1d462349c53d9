"""Query texts: what was asked and what for, kept beside a charge for the owner alone, until it is erased.

A text may name people (`WHERE name = 'Ada'`), so it is no part of the chain, which is never changed and may
be shown to outsiders. The record of the charge holds a hash of the text and of 128 random bits, the salt,
which is kept and erased with the text.

Theorem: the hash binds: no other text has it, for SHA-256 is collision resistant. The hash hides: whoever
does not know the salt can test no guess about the text, if SHA-256 of an unknown salt is as good as random.
So a text that was exchanged is found, and of one that was erased nothing is left.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from sfumato.errors import LedgerError
from sfumato.ledger.canonical import canonical
from sfumato.ledger.records import Record, as_whole, rebuilt

__all__ = ["Erased", "QueryText", "hash_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryText:
    """The text of a question, the purpose that was stated with it, or both: see `Ledger.query_texts`.

    >>> kept = QueryText.of("SELECT COUNT(*) FROM people", "the yearly report")
    >>> kept.purpose, len(kept.salt)
    ('the yearly report', 32)
    """

    question: str | None
    purpose: str | None
    salt: str

    @staticmethod
    def of(question: str | None, purpose: str | None) -> QueryText | None:
        """Return what is kept of a charge, with a new salt; None where nothing is."""
        if question is None and purpose is None:
            return None
        return QueryText(question=question, purpose=purpose, salt=os.urandom(16).hex())

    def written(self) -> str:
        """Return the text that is hashed and kept."""
        return canonical(asdict(self))

    @staticmethod
    def read(text: str, digest: str, sequence: int) -> QueryText:
        """Return what is kept of a charge; refuse what has not the hash that its record names."""
        if hash_of(text) != digest:
            raise LedgerError(
                f"the text that was kept with record {sequence} was altered", code="SF602", sequence=sequence
            )
        return QueryText(**json.loads(text))


def hash_of(text: object) -> str | None:
    """Return the hash of a text that is kept; None for what is no text."""
    return hashlib.sha256(text.encode()).hexdigest() if isinstance(text, str) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Erased(Record):
    """The owner erased the texts of these charges. A text that is missing without this record is a loss."""

    kind: ClassVar[str] = "erased"
    reservations: tuple[int, ...]

    @classmethod
    def _read(cls, said: dict[str, Any]) -> Erased:
        return rebuilt(cls, said, reservations=tuple(as_whole(one) for one in said["reservations"]))
