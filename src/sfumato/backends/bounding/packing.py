"""Packing: rows as 64-bit words, what is asked of them, and what comes back."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Kept", "PackedChoice", "PackedRows", "Packing", "Run", "Slot", "joined"]

_Words = npt.NDArray[np.uint64]
_Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """Where an integer of a row lies: in which word, how far up, how many bits."""

    word: int
    shift: int
    bits: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A slot with the number of a cell plus one, or 0; c of n rows there add c * weight * min(n, m) / n."""

    slot: Slot
    width: int  # the number of cells
    weight: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Packing:
    """How rows are packed: the bits of a code, and the bits of integers below it in every word."""

    code_bits: int
    value_bits: int

    @property
    def low_bits(self) -> int:
        """The bits below the unit's fingerprint."""
        return self.code_bits + self.value_bits


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedChoice:
    """What is chosen and added up.

    `runs` are slots that are each the only one of their word. `distinct` are the numbers of distinct
    values of each column that one unit may bring to a group.
    """

    max_groups: int | None
    max_rows: int | None = None
    max_total: int | None = None  # rows over all groups
    salt: int
    key_hashes: _Words  # of each code's key
    sums: tuple[Slot, ...] = ()
    runs: tuple[Run, ...] = ()
    distinct: tuple[int, ...] = ()
    value_hashes: tuple[_Words, ...] = ()  # of each value of each such column
    only_cells: bool = False  # nothing but `runs` is asked: neither rows nor units are counted


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PackedRows:
    """Private rows: their units, their packed words (without the unit), columns of distinct values.

    Units are whole numbers that stand for themselves; or, with `unit_hashes`, numbers 0, 1, .. of
    units that have these hashes; or nothing, where the words name them too. A distinct value is a
    number 0, 1, .., or -1 where there is none.
    """

    units: npt.NDArray[Any]
    words: tuple[_Words, ...]
    values: tuple[_Integers, ...] = ()
    unit_hashes: _Words | None = None

    def some(self, places: _Integers | slice) -> PackedRows:
        """Return the rows at some places."""
        units = self.units[places] if len(self.units) else self.units
        words = tuple(word[places] for word in self.words)
        return replace(self, units=units, words=words, values=tuple(column[places] for column in self.values))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Kept:
    """The units and groups that count, one entry each, ordered by unit."""

    unit: _Integers  # a number of the unit, its own among these entries
    code: _Integers
    rows: _Integers
    sums: dict[Slot, _Integers]
    runs: dict[Slot, tuple[_Integers, _Integers]]  # code * width + cell, and what is added to it
    values: tuple[tuple[_Integers, _Integers], ...]  # for each column: entry, value


def joined(blocks: list[Kept], choice: PackedChoice) -> Kept:
    """Join blocks: units and entries are counted on."""
    if len(blocks) == 1:
        return blocks[0]
    units = np.cumsum([0, *(int(block.unit[-1]) + 1 if len(block.unit) else 0 for block in blocks[:-1])])
    entries = np.cumsum([0, *(len(block.code) for block in blocks[:-1])])

    def pair(pairs: list[tuple[_Integers, _Integers]]) -> tuple[_Integers, _Integers]:
        return np.concatenate([one for one, _ in pairs]), np.concatenate([other for _, other in pairs])

    return Kept(
        unit=np.concatenate([block.unit + first for block, first in zip(blocks, units, strict=True)]),
        code=np.concatenate([block.code for block in blocks]),
        rows=np.concatenate([block.rows for block in blocks]),
        sums={slot: np.concatenate([block.sums[slot] for block in blocks]) for slot in choice.sums},
        runs={run.slot: pair([block.runs[run.slot] for block in blocks]) for run in choice.runs},
        values=tuple(
            pair([(entry + first, value) for first, (entry, value) in zip(entries, column, strict=True)])
            for column in zip(*(block.values for block in blocks), strict=True)
        ),
    )
