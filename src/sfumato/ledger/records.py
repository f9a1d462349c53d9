"""What a ledger holds: nine kinds of records, each chained to the one before it by its hash.

    Opened       the first record: which format, which ledger
    Signer       the public key of the receipts that follow
    Registered   a unit of protection and its budget, fixed for ever        (terms)
    Granted      how much of a budget one analyst may spend                 (terms)
    Bound        a source of data, the unit it is about, and what names one (terms)
    Reserved     a charge, before any data is read; the running totals include it   (charges)
    Stepped      the output of one step of a reservation that looks several times
    Committed    the release that a reservation paid for, and the end of it
    Erased       whose texts of questions the owner erased                  (query_texts)

A reservation without a commit is burnt: charged, never answered. One of several steps can be resumed
until its end. There is no record of a refund, because there are none.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Any, ClassVar, TypeVar

from sfumato.errors import InvalidArgument, LedgerError
from sfumato.ledger.canonical import canonical

__all__ = [
    "Committed",
    "FORMAT",
    "Head",
    "Link",
    "Opened",
    "Record",
    "START",
    "Signer",
    "Stepped",
    "as_dict",
    "as_text",
    "as_whole",
    "rebuilt",
]

FORMAT = 6
"""The version of the format of records; any other is refused."""

START = "0" * 64
"""What the first record names as the hash before it."""

_ANCHOR = re.compile(r"([1-9][0-9]{0,18}):([0-9a-fA-F]{64})", re.ASCII)
_T = TypeVar("_T", bound="Record")


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One fact. Its body, canonical JSON, is what is hashed."""

    kind: ClassVar[str]
    registry: ClassVar[dict[str, type[Record]]] = {}

    at: int  # the hour, in milliseconds since 1970, by this machine's clock; only renewals go by it

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super(Record, cls).__init_subclass__(**kwargs)
        Record.registry[cls.kind] = cls

    def body(self, sequence: int) -> str:
        """Return the canonical text of this record as number `sequence` of a ledger."""
        return canonical({"kind": self.kind, "sequence": sequence, **self._fields()})

    def _fields(self) -> dict[str, Any]:
        """Return what this record says, JSON-ready: its fields by their names."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    @classmethod
    def _read(cls, said: dict[str, Any]) -> Record:
        """Rebuild the record; any exception means that it is malformed."""
        return rebuilt(cls, said)


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened(Record):
    """The first record of a ledger. The random name keeps two ledgers from sharing a chain."""

    kind: ClassVar[str] = "opened"
    ledger: str
    format: int = FORMAT


@dataclass(frozen=True, slots=True, kw_only=True)
class Signer(Record):
    """The public key with which receipts are signed from here on."""

    kind: ClassVar[str] = "signer"
    public_key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed(Record):
    """The release of a reservation: its hash and length; the bytes are kept beside the record.

    Its date is that of the reservation: the time between them would tell how long the data took.
    """

    kind: ClassVar[str] = "committed"
    reservation: int
    release_sha256: str
    release_length: int

    @staticmethod
    def of(reservation: int, release: bytes, at: int) -> Committed:
        """Return the record of a release."""
        digest = hashlib.sha256(release).hexdigest()
        return Committed(at=at, reservation=reservation, release_sha256=digest, release_length=len(release))

    def names(self, release: object) -> bool:
        """Return whether these are the bytes that the record is about."""
        return isinstance(release, bytes) and Committed.of(self.reservation, release, self.at) == self


@dataclass(frozen=True, slots=True, kw_only=True)
class Stepped(Record):
    """One step of a reservation: what was asked, the version of the data, and the hash of its output.

    A step without an output is burnt: it failed, and is not taken again. The date is the hour in which the
    step began.
    """

    kind: ClassVar[str] = "stepped"
    reservation: int
    step: int
    request_hash: str
    data_version: str  # as a keyed hash
    output_sha256: str | None = None

    def with_output(self, output: bytes) -> Stepped:
        """Return the record of this step with its output."""
        return replace(self, output_sha256=hashlib.sha256(output).hexdigest())

    def names(self, output: object) -> bool:
        """Return whether these are the bytes that the record is about."""
        if isinstance(output, bytes):
            return self.with_output(output) == self
        return output is None and self.output_sha256 is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The newest record of a ledger: its number and hash. Kept elsewhere, it is an anchor.

    >>> Head.parse("7:" + "0" * 64).sequence
    7
    """

    sequence: int
    hash: str

    def __str__(self) -> str:
        return f"{self.sequence}:{self.hash}"

    @staticmethod
    def parse(text: str) -> Head:
        """Read an anchor that was printed or noted: `sequence:hash`.

        >>> Head.parse("7:" + "ab" * 32).sequence
        7
        """
        found = _ANCHOR.fullmatch(text.strip()) if isinstance(text, str) else None
        if found is None:
            raise InvalidArgument(
                "an anchor is a record's number, a colon and its hash in 64 hexadecimal digits",
                place="anchor",
                hints=("copy the whole of what `anchor` printed",),
            )
        return Head(sequence=int(found[1]), hash=found[2].lower())


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A record in its place in the chain.

    The hash is SHA-256 of the hash before it (64 hexadecimal digits), a newline and the body.
    """

    sequence: int
    previous: str
    body: str
    hash: str = field(init=False)
    """The hash that the next record will name."""

    def __post_init__(self) -> None:
        digest = hashlib.sha256(f"{self.previous}\n{self.body}".encode()).hexdigest()
        object.__setattr__(self, "hash", digest)

    @property
    def head(self) -> Head:
        """The head of a ledger that ends here."""
        return Head(sequence=self.sequence, hash=self.hash)

    def read(self, *, strict: bool = True) -> Record:
        """Return the record; refuse a body that is not exactly what this version would write.

        Not `strict` leaves the comparison out: for bodies whose hash was just checked.
        """
        try:
            said = json.loads(self.body)
            record = Record.registry[said.get("kind")]._read(said)
            if strict and record.body(self.sequence) != self.body:
                raise ValueError("written in another way")
        except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
            raise LedgerError(
                f"record {self.sequence} of the ledger is malformed", code="SF602", sequence=self.sequence
            ) from error
        return record


def rebuilt(kind: type[_T], said: dict[str, Any], **known: Any) -> _T:
    """Return a record from what it says: each field by its type, but for those that are known."""
    found = dict(known)
    for name, annotation in _annotations(kind.kind):
        if name not in known:
            plain, value = annotation.removesuffix(" | None"), said[name]
            found[name] = None if value is None and plain != annotation else _READERS[plain](value)
    return kind(**found)


@cache
def _annotations(kind: str) -> tuple[tuple[str, str], ...]:
    return tuple((one.name, str(one.type)) for one in fields(Record.registry[kind]))


def as_text(value: Any) -> str:
    """Return a field that is text; else the record is malformed."""
    if not isinstance(value, str):
        raise ValueError("text expected")
    return value


def as_dict(value: Any) -> dict[str, Any]:
    """Return a field that is an object; else the record is malformed."""
    if not isinstance(value, dict):
        raise ValueError("an object expected")
    return value


def as_whole(value: Any) -> int:
    """Return a field that is a whole number; else the record is malformed."""
    if not isinstance(value, str) or not (value.isascii() and value.isdecimal()):
        raise ValueError("decimal digits expected")
    return int(value)


def _as_truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("true or false expected")
    return value


_READERS = {"str": as_text, "int": as_whole, "bool": _as_truth, "dict[str, Any]": as_dict}
