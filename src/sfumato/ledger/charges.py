"""Charges: the record that is on the disk before any data is read."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from sfumato.core.events.base import Event
from sfumato.ledger.canonical import restored
from sfumato.ledger.records import Record, as_dict, as_text, as_whole
from sfumato.ledger.totals import Charge, Totals

__all__ = ["Reserved"]


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
    data_version: str  # as a keyed hash: a reader of the ledger cannot test guesses about the data
    policy_hash: str
    key: str | None  # the idempotency key
    nonce: str  # random: no two charges are the same
    analyst: str | None = None
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
        return (self.unit, self.analyst, self.request_hash, self.data_version, self.policy_hash)

    def _fields(self) -> dict[str, Any]:
        names = (
            "unit",
            "units",
            "keys_units",
            "event",
            "request_hash",
            "data_version",
            "policy_hash",
            "key",
            "nonce",
        )
        analyst = {"name": self.analyst, "spent": self.analyst_spent, "keys_spent": self.analyst_keys_spent}
        return {
            **{name: getattr(self, name) for name in names},
            **self.totals.to_dict(),
            "parts": None if self.parts is None else list(self.parts),
            "analyst": None if self.analyst is None else analyst,
        }

    @classmethod
    def _read(cls, at: int, fields: dict[str, Any]) -> Reserved:
        analyst = None if fields["analyst"] is None else as_dict(fields["analyst"])
        parts = fields["parts"]
        return Reserved(
            at=at,
            unit=as_text(fields["unit"]),
            units=as_whole(fields["units"]),
            keys_units=as_whole(fields["keys_units"]),
            event=as_dict(fields["event"]),
            request_hash=as_text(fields["request_hash"]),
            data_version=as_text(fields["data_version"]),
            policy_hash=as_text(fields["policy_hash"]),
            key=None if fields["key"] is None else as_text(fields["key"]),
            nonce=as_text(fields["nonce"]),
            analyst=None if analyst is None else as_text(analyst["name"]),
            parts=None if parts is None else tuple(as_text(part) for part in parts),
            totals=_totals(fields),
            analyst_spent=0 if analyst is None else as_whole(analyst["spent"]),
            analyst_keys_spent=0 if analyst is None else as_whole(analyst["keys_spent"]),
        )


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
