"""What a ledger holds: four kinds of records, each chained to the one before it by its hash.

    Opened       the first record: which format, which ledger
    Registered   a unit of protection and its budget, fixed for ever
    Reserved     a charge, before any data is read; the running totals include it
    Committed    the release that a reservation paid for

A reservation without a commit is burnt: charged, never answered. There is no record of a
refund, because there are none.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from sfumato.core.accountant import PrivacyBudget
from sfumato.core.events.base import Event
from sfumato.errors import LedgerError
from sfumato.ledger.canonical import canonical, restored

__all__ = ["Committed", "FORMAT", "Head", "Link", "Opened", "Record", "Registered", "Reserved", "START"]

FORMAT = 1
"""The version of the format of records; a newer one is refused."""

START = "0" * 64
"""What the first record names as the hash before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record(ABC):
    """One fact. Its body, canonical JSON, is what is hashed."""

    kind: ClassVar[str]
    registry: ClassVar[dict[str, type[Record]]] = {}

    at: int  # milliseconds since 1970, by this machine's clock; nothing is decided by it

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super(Record, cls).__init_subclass__(**kwargs)
        Record.registry[cls.kind] = cls

    def body(self, sequence: int) -> str:
        """Return the canonical text of this record as number `sequence` of a ledger."""
        fixed = {"kind": self.kind, "sequence": sequence, "at": self.at}
        return canonical({**fixed, **self._fields()})

    @abstractmethod
    def _fields(self) -> dict[str, Any]:
        """Return what this kind of record says, JSON-ready."""

    @classmethod
    @abstractmethod
    def _read(cls, at: int, fields: dict[str, Any]) -> Record:
        """Rebuild the record; any exception means that it is malformed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened(Record):
    """The first record of a ledger. The random name keeps two ledgers from sharing a chain."""

    kind: ClassVar[str] = "opened"
    ledger: str
    format: int = FORMAT

    def _fields(self) -> dict[str, Any]:
        return {"ledger": self.ledger, "format": self.format}

    @classmethod
    def _read(cls, at: int, fields: dict[str, Any]) -> Opened:
        return Opened(at=at, ledger=_text(fields["ledger"]), format=_whole(fields["format"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered(Record):
    """A unit of protection and what may ever be learned about one of them.

    The limits, in units of 10^-20, are those computed on the day: a later version that
    computes a larger one does not widen a budget.
    """

    kind: ClassVar[str] = "registered"
    unit: str
    budget: dict[str, Any]  # as PrivacyBudget.to_dict wrote it
    limit: int
    keys_limit: int

    @staticmethod
    def of(unit: str, budget: PrivacyBudget, at: int) -> Registered:
        """Return the record of a new budget."""
        limits = {"limit": budget.limit, "keys_limit": budget.keys_limit}
        return Registered(at=at, unit=unit, budget=budget.to_dict(), **limits)

    def terms(self) -> PrivacyBudget:
        """Return the budget."""
        return PrivacyBudget.from_dict(restored(self.budget))

    def _fields(self) -> dict[str, Any]:
        limits = {"limit": self.limit, "keys_limit": self.keys_limit}
        return {"unit": self.unit, "budget": self.budget, **limits}

    @classmethod
    def _read(cls, at: int, fields: dict[str, Any]) -> Registered:
        limits = {name: _whole(fields[name]) for name in ("limit", "keys_limit")}
        return Registered(at=at, unit=_text(fields["unit"]), budget=_dict(fields["budget"]), **limits)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserved(Record):
    """A charge to a unit, in units of 10^-20, and the totals of that unit including it."""

    kind: ClassVar[str] = "reserved"
    unit: str
    units: int
    keys_units: int
    spent: int
    keys_spent: int
    event: dict[str, Any]  # as Event.to_dict wrote it
    request_hash: str
    data_version: str
    policy_hash: str
    key: str | None  # the idempotency key

    def _fields(self) -> dict[str, Any]:
        names = ("unit", "units", "keys_units", "spent", "keys_spent", "event")
        hashes = ("request_hash", "data_version", "policy_hash")
        return {name: getattr(self, name) for name in (*names, *hashes, "key")}

    @classmethod
    def _read(cls, at: int, fields: dict[str, Any]) -> Reserved:
        return Reserved(
            at=at,
            unit=_text(fields["unit"]),
            units=_whole(fields["units"]),
            keys_units=_whole(fields["keys_units"]),
            spent=_whole(fields["spent"]),
            keys_spent=_whole(fields["keys_spent"]),
            event=_dict(fields["event"]),
            request_hash=_text(fields["request_hash"]),
            data_version=_text(fields["data_version"]),
            policy_hash=_text(fields["policy_hash"]),
            key=None if fields["key"] is None else _text(fields["key"]),
        )

    def charged(self, spent: int, keys_spent: int) -> Reserved:
        """Return this charge on top of earlier totals."""
        return replace(self, spent=spent + self.units, keys_spent=keys_spent + self.keys_units)

    def happened(self) -> Event:
        """Return the event that was charged; one of an unknown kind is refused."""
        return Event.from_dict(restored(self.event))

    @property
    def binding(self) -> tuple[str, str, str, str]:
        """What an idempotency key stands for."""
        return (self.unit, self.request_hash, self.data_version, self.policy_hash)


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed(Record):
    """The release of a reservation: its hash and length; the bytes are kept beside the record."""

    kind: ClassVar[str] = "committed"
    reservation: int
    release_sha256: str
    release_length: int

    @staticmethod
    def of(reservation: int, release: bytes, at: int) -> Committed:
        """Return the record of a release."""
        digest = hashlib.sha256(release).hexdigest()
        return Committed(at=at, reservation=reservation, release_sha256=digest, release_length=len(release))

    def _fields(self) -> dict[str, Any]:
        names = ("reservation", "release_sha256", "release_length")
        return {name: getattr(self, name) for name in names}

    @classmethod
    def _read(cls, at: int, fields: dict[str, Any]) -> Committed:
        numbers = {name: _whole(fields[name]) for name in ("reservation", "release_length")}
        return Committed(at=at, release_sha256=_text(fields["release_sha256"]), **numbers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The newest record of a ledger: its number and hash. Kept elsewhere, it is an anchor."""

    sequence: int
    hash: str

    def __str__(self) -> str:
        return f"{self.sequence}:{self.hash}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A record in its place in the chain.

    The hash is SHA-256 of the hash before it (64 hexadecimal digits), a newline and the body.
    """

    sequence: int
    previous: str
    body: str

    @property
    def hash(self) -> str:
        """The hash that the next record will name."""
        return hashlib.sha256(f"{self.previous}\n{self.body}".encode()).hexdigest()

    @property
    def head(self) -> Head:
        """The head of a ledger that ends here."""
        return Head(sequence=self.sequence, hash=self.hash)

    def read(self) -> Record:
        """Return the record; refuse a body that is not exactly what this version would write."""
        try:
            fields = json.loads(self.body)
            record = Record.registry[fields.get("kind")]._read(_whole(fields["at"]), fields)
            sound = record.body(self.sequence) == self.body
        except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
            raise _malformed(self.sequence) from error
        if not sound:
            raise _malformed(self.sequence)
        return record


def _malformed(sequence: int) -> LedgerError:
    """Return the refusal of a record that makes no sense."""
    return LedgerError(f"record {sequence} of the ledger is malformed", code="SF602", sequence=sequence)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("text expected")
    return value


def _dict(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError("an object expected")
    return value


def _whole(value: Any) -> int:
    if not isinstance(value, str) or not (value.isascii() and value.isdecimal()):
        raise ValueError("decimal digits expected")
    return int(value)
