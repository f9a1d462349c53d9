"""Charges: the record that is on the disk before any data is read, and what charges add up to.

    common   charges that concern every unit
    parts    charges that concern only the units of one part; a unit is in one part
    epoch    charges since the last renewal

Theorem (parallel composition, add/remove): let every unit have one value of an attribute, and let an
answer about the parts P be computed from units whose value is in P only. Between two datasets that
differ in one unit of part p, an answer about parts without p has the same law, so it adds nothing
to the loss; the loss is that of the common charges and of those that name p. A filter that stops
before `common + parts[p]` passes the limit for *any* p is therefore valid for every unit, also
where questions are chosen after seeing answers. Replacing one unit by another is removing one
and adding one: two parts are touched, and the two largest count (events must then be priced for a
replacement, which covers one within a part).

Assumes: the attribute's one value per unit, which the engine enforces within one version of data and
policy. Between versions a person's value may have changed; then what the parts hold is moved to
`common` at its worst, and all parts begin again. Epochs count every charge in full. Rounds: up.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar

from sfumato.core.events.base import Event
from sfumato.core.rules import UNITS
from sfumato.ledger.canonical import restored
from sfumato.ledger.records import Record, as_dict, as_text, as_whole, rebuilt

__all__ = ["Charge", "Entry", "Reserved", "Totals"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """What is to be added: to everyone, or with `parts` to the units of these parts."""

    units: int
    keys_units: int
    parts: tuple[str, ...] | None = None
    version: str = ""  # of data and policy
    epoch: int | None = None  # by the clock; None: the budget is not renewed


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """What has been charged so far, in units of 10^-20."""

    common: int = 0
    keys_common: int = 0
    parts: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    version: str = ""
    touched: int = 1  # how many parts a change of one unit can touch
    epoch: int | None = None
    epoch_spent: int = 0
    epoch_keys_spent: int = 0

    @property
    def spent(self) -> int:
        """The total of the unit that bears most."""
        return self.common + _largest((units for units, _ in self.parts.values()), self.touched)

    @property
    def keys_spent(self) -> int:
        """The delta for keys of the unit that bears most."""
        return self.keys_common + _largest((keys for _, keys in self.parts.values()), self.touched)

    def at(self, epoch: int | None) -> Totals:
        """Return the totals when the clock says `epoch`: numbers only grow, and a new one begins at zero."""
        if epoch is None or (self.epoch is not None and epoch <= self.epoch):
            return self
        return replace(self, epoch=epoch, epoch_spent=0, epoch_keys_spent=0)

    def charged(self, charge: Charge) -> Totals:
        """Return the totals with one more charge."""
        now = self.at(charge.epoch)
        if now.epoch is not None:
            now = replace(
                now,
                epoch_spent=now.epoch_spent + charge.units,
                epoch_keys_spent=now.epoch_keys_spent + charge.keys_units,
            )
        if charge.parts is None:
            return replace(
                now, common=now.common + charge.units, keys_common=now.keys_common + charge.keys_units
            )
        if now.parts and now.version != charge.version:
            now = replace(now, common=now.spent, keys_common=now.keys_spent, parts={})
        parts = dict(now.parts)
        for part in charge.parts:
            units, keys = parts.get(part, (0, 0))
            parts[part] = (units + charge.units, keys + charge.keys_units)
        return replace(now, parts=parts, version=charge.version)

    def to_dict(self) -> dict[str, Any]:
        """Return what a record says of the totals, JSON-ready."""
        partition = {
            "common": self.common,
            "keys_common": self.keys_common,
            "parts": dict(self.parts),
            "version": self.version,
            "touched": self.touched,
        }
        epoch = {"number": self.epoch, "spent": self.epoch_spent, "keys_spent": self.epoch_keys_spent}
        return {
            "spent": self.spent,
            "keys_spent": self.keys_spent,
            "partition": partition if self.parts else None,
            "epoch": None if self.epoch is None else epoch,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserved(Record):
    """A charge to a unit, in units of 10^-20, and the totals of that unit including it.

    With an analyst, also the totals of that analyst, in which every charge counts in full.
    """

    kind: ClassVar[str] = "reserved"
    unit: str
    units: int
    keys_units: int
    event: dict[str, Any]  # as Event.to_dict wrote it
    request_hash: str
    data_version: str | None  # a keyed hash, so that nobody can test guesses; None: each step names its own
    policy_hash: str
    key: str | None  # the idempotency key
    nonce: str  # random: a ledger that was set back and charged for the same again has another chain
    analyst: str | None = None
    question_sha256: str | None = (
        None  # of the text that is kept beside it (`query_texts`); None: there is none
    )
    steps: int | None = None  # how many looks it pays for; None: one, which its commit ends
    parts: tuple[str, ...] | None = None
    totals: Totals = field(default_factory=Totals)
    analyst_spent: int = 0
    analyst_keys_spent: int = 0

    def charge(self, epoch: int | None) -> Charge:
        """Return what this charge adds, when the clock says `epoch`."""
        version = ""
        if self.parts is not None:
            version = hashlib.sha256(f"{self.data_version}\n{self.policy_hash}".encode()).hexdigest()
        return Charge(
            units=self.units, keys_units=self.keys_units, parts=self.parts, version=version, epoch=epoch
        )

    def charged(self, totals: Totals, epoch: int | None, analyst: tuple[int, int] = (0, 0)) -> Reserved:
        """Return this charge on top of earlier totals."""
        return self.recorded(self.at, totals.charged(self.charge(epoch)), analyst)

    def recorded(self, at: int, totals: Totals, analyst: tuple[int, int]) -> Reserved:
        """Return this charge at a time, with the totals that include it and those of the analyst before."""
        return replace(
            self,
            at=at,
            totals=totals,
            analyst_spent=0 if self.analyst is None else analyst[0] + self.units,
            analyst_keys_spent=0 if self.analyst is None else analyst[1] + self.keys_units,
        )

    def happened(self) -> Event:
        """Return the event that was charged; one of an unknown kind is refused."""
        return Event.from_dict(restored(self.event))

    @property
    def binding(self) -> tuple[str | None, ...]:
        """What an idempotency key stands for."""
        steps = None if self.steps is None else str(self.steps)
        return (self.unit, self.analyst, self.request_hash, self.data_version, self.policy_hash, steps)

    def _fields(self) -> dict[str, Any]:
        said = Record._fields(self)
        del said["totals"]
        spent, keys_spent = said.pop("analyst_spent"), said.pop("analyst_keys_spent")
        if self.analyst is not None:
            said["analyst"] = {"name": self.analyst, "spent": spent, "keys_spent": keys_spent}
        return {**said, **self.totals.to_dict()}

    @classmethod
    def _read(cls, said: dict[str, Any]) -> Reserved:
        analyst = None if said["analyst"] is None else as_dict(said["analyst"])
        parts = said["parts"]
        return rebuilt(
            cls,
            said,
            analyst=None if analyst is None else as_text(analyst["name"]),
            parts=None if parts is None else tuple(as_text(part) for part in parts),
            totals=_totals(said),
            analyst_spent=0 if analyst is None else as_whole(analyst["spent"]),
            analyst_keys_spent=0 if analyst is None else as_whole(analyst["keys_spent"]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One charge, as an owner or an analyst may see it: public facts only.

    >>> from sfumato.core import PrivacyBudget, events
    >>> from sfumato.ledger import OWNER, Ledger
    >>> ledger = Ledger.open(None)
    >>> ledger.register("person", PrivacyBudget(epsilon=1))
    >>> asked = {"request_hash": "5f1c", "data_version": "2026-11", "policy_hash": "77ab", "analyst": OWNER}
    >>> with ledger.reserve("person", events.Pure(loss=0.1), 0, **asked) as reservation:
    ...     head = reservation.commit(b"the release")
    >>> [(entry.cost, entry.committed) for entry in ledger.history("person")]
    [(Fraction(1, 10), True)]
    """

    sequence: int
    at: int  # the hour, in milliseconds since 1970, by the clock of the machine that wrote it
    unit: str
    cost: Fraction  # in the currency of the budget's rule
    keys_delta: Fraction
    event: Event
    request_hash: str
    policy_hash: str
    key: str | None
    committed: bool  # False: still being answered, or burnt; of several steps, not ended
    analyst: str | None = None
    parts: tuple[str, ...] | None = None  # None: charged to every part
    steps: int | None = None  # how many looks it pays for; None: one
    taken: int = 0  # how many of the steps were taken
    question_sha256: str | None = (
        None  # a salted hash of the text, which is for the owner: `Ledger.query_texts`
    )

    @staticmethod
    def of(sequence: int, record: Reserved, *, committed: bool, taken: int) -> Entry:
        """Return a charge on record as the history shows it."""
        return Entry(
            sequence=sequence,
            cost=Fraction(record.units, UNITS),
            keys_delta=Fraction(record.keys_units, UNITS),
            event=record.happened(),
            committed=committed,
            taken=taken,
            **{name: getattr(record, name) for name in _SHOWN},
        )


_SHOWN = ("at", "unit", "request_hash", "policy_hash", "key", "analyst", "parts", "steps", "question_sha256")


def _totals(fields: dict[str, Any]) -> Totals:
    """Return the totals on record. That they are sums is not believed here: `verify` adds them up again."""
    spent, keys_spent = as_whole(fields["spent"]), as_whole(fields["keys_spent"])
    totals = Totals(common=spent, keys_common=keys_spent)
    partition = fields["partition"]
    if partition is not None:
        parts = {
            part: (as_whole(pair[0]), as_whole(pair[1])) for part, pair in as_dict(partition["parts"]).items()
        }
        totals = Totals(
            common=as_whole(partition["common"]),
            keys_common=as_whole(partition["keys_common"]),
            parts=parts,
            version=as_text(partition["version"]),
            touched=as_whole(partition["touched"]),
        )
    epoch = fields["epoch"]
    if epoch is not None:
        totals = replace(
            totals,
            epoch=as_whole(epoch["number"]),
            epoch_spent=as_whole(epoch["spent"]),
            epoch_keys_spent=as_whole(epoch["keys_spent"]),
        )
    return totals


def _largest(values: Any, number: int) -> int:
    return sum(sorted(values, reverse=True)[:number])
