"""Entries: rows that an engine has added up by unit and group, and which of them count.

Theorem: what is kept is what `contributions` keeps of the rows themselves. There, too, a unit's groups are
chosen by their priorities alone, and each enters with its number of rows and the sums of their integers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sfumato.backends.bounding.packing import Kept, PackedChoice, Slot
from sfumato.backends.bounding.priorities import mixed, most_per_owner, starts_of

__all__ = ["Entries", "bound_entries", "kept_rows"]

_Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Entries:
    """Units in groups, each pair once: the code of the group, the number of rows, sums of their integers.

    Units are whole numbers that stand for themselves, or, with `unit_hashes`, for units of these hashes.
    """

    units: _Integers
    codes: _Integers
    rows: _Integers
    sums: dict[Slot, _Integers]
    unit_hashes: npt.NDArray[np.uint64] | None = None


def bound_entries(entries: Entries, choice: PackedChoice) -> Kept:
    """Choose the groups of each unit that count."""
    order, unit = _chosen(entries, choice)
    return Kept(
        unit=unit,
        code=entries.codes[order],
        rows=entries.rows[order],
        sums={slot: column[order] for slot, column in entries.sums.items()},
        runs={},
        values=(),
    )


def kept_rows(
    units: _Integers, codes: _Integers, unit_hashes: npt.NDArray[np.uint64] | None, choice: PackedChoice
) -> npt.NDArray[np.bool_]:
    """Flag the rows, each of a unit and in a group, that are in groups of their units that count."""
    if choice.max_groups is None:
        return np.ones(len(units), dtype=np.bool_)
    rows = Entries(units=units, codes=codes, rows=units, sums={}, unit_hashes=unit_hashes)
    order = _ordered(rows)
    units, codes = units[order], codes[order]
    first = np.ones(len(order), dtype=np.bool_)
    first[1:] = (units[1:] != units[:-1]) | (codes[1:] != codes[:-1])
    pairs = Entries(
        units=units[first], codes=codes[first], rows=units[first], sums={}, unit_hashes=unit_hashes
    )
    chosen = np.zeros(len(pairs.units), dtype=np.bool_)
    chosen[_chosen(pairs, choice)[0]] = True
    flags = np.zeros(len(order), dtype=np.bool_)
    flags[order] = chosen[np.cumsum(first) - 1]
    return flags


def _chosen(entries: Entries, choice: PackedChoice) -> tuple[_Integers, _Integers]:
    """Return the places of the entries that count, by unit and code, and a number of the unit of each."""
    order = _ordered(entries)
    units, codes = entries.units[order], entries.codes[order]
    starts = starts_of(units) if len(units) else order
    groups = np.diff(starts, append=len(units))
    unit = np.repeat(np.arange(len(starts)), groups)
    if choice.max_groups is not None and int(groups.max(initial=0)) > choice.max_groups:
        own = units[starts]
        hashes = own.view(np.uint64) if entries.unit_hashes is None else entries.unit_hashes[own]
        hashes = mixed(hashes ^ np.uint64(choice.salt))
        priorities = mixed(np.repeat(hashes, groups) ^ choice.key_hashes[codes])
        keep = most_per_owner(priorities, starts, choice.max_groups)
        order, unit = order[keep], unit[keep]
    return order, unit


def _ordered(entries: Entries) -> _Integers:
    """Return the places of entries by unit and code."""
    units, codes = entries.units, entries.codes
    if not len(units):
        return np.zeros(0, dtype=np.int64)
    least, bits = int(units.min()), int(codes.max()).bit_length()
    if (int(units.max()) - least).bit_length() + bits < 64:  # then a pair is one number
        return np.argsort(((units - least) << bits) | codes)
    return np.lexsort((codes, units))
