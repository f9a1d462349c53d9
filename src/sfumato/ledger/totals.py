"""Totals: what the charges to one unit of protection add up to, for the person who bears most.

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

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

__all__ = ["Charge", "Totals"]


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
            "parts": {part: list(pair) for part, pair in self.parts.items()},
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


def _largest(values: Any, number: int) -> int:
    return sum(sorted(values, reverse=True)[:number])
