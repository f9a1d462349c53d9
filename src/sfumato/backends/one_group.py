"""All rows in one group: cells are counted, and only units with more rows than count are sorted.

A unit whose rows all count enters every cell with weight 1 for each of them. So do all such units
together: nothing tells them apart, and their cells can be counted in one go. Where there is one group, that
leaves only the units with more rows than `max_rows` to be looked at one by one. Where units are numbers from
a wide range, such as hashes, they are dealt out to buckets, and the rows of those buckets are left that have
more rows than count; then it is not known how many units there are, so it must not be asked.

Theorem: the result is that of `contributions`: with n <= m the weight min(n, m)/n is 1, and a sum over
units of c * weight * 1 is the count over their rows, times weight. A unit has no more rows than its bucket.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.backends.packing import Kept, PackedChoice, PackedRows, Packing
from sfumato.backends.row_weights import RowWeights

__all__ = ["count_one_group"]

_BLOCK = 1 << 17  # rows that fit into a cache
_TABLE = 1 << 16  # cells that are counted in a table
_SPARSE = 4  # numbers that units may span, for each row there is
_ODD = np.uint64(0x9E3779B97F4A7C15)  # spreads numbers evenly over the upper bits of a product

_Integers = npt.NDArray[np.int64]


def count_one_group(
    rows: PackedRows, packing: Packing, choice: PackedChoice
) -> tuple[Kept, PackedRows] | None:
    """Count the units all of whose rows count; return the rows of the others. None: it does not apply.

    It applies to rows of one group of which nothing but cells is asked; where the numbers of units are dense,
    also how many units and rows there are.
    """
    if len(choice.key_hashes) != 1 or choice.sums or rows.values or 1 << packing.low_bits > _TABLE:
        return None
    least = int(rows.units.min())
    dense = int(rows.units.max()) - least < _SPARSE * len(rows.units)
    if dense:
        owners = rows.units if least == 0 else rows.units - least
    elif choice.only_cells:
        owners = _buckets(rows.units)
    else:
        return None
    counts = np.bincount(owners)
    everybody = np.arange(len(counts))
    light = RowWeights.of(everybody, counts, most=choice.max_rows, total=choice.max_total).light
    left = np.flatnonzero((~light)[owners])
    runs = {}
    for run in choice.runs:
        word = rows.words[run.slot.word]
        table = _cells(word, packing) - _cells(word[left], packing)
        cells = table[1 : run.width + 1]
        places = np.flatnonzero(cells)
        runs[run.slot] = (places, cells[places] * run.weight)
    there = np.flatnonzero((counts > 0) & light) if dense else everybody[:0]
    kept = Kept(
        unit=np.arange(len(there)),
        code=np.zeros(len(there), dtype=np.int64),
        rows=counts[there],
        sums={},
        runs=runs,
        values=(),
    )
    return kept, rows.some(left)


def _buckets(units: npt.NDArray[Any]) -> _Integers:
    """Deal units out to about as many buckets as there are rows."""
    bits = len(units).bit_length()
    spread = units.view(np.uint64) * _ODD
    spread >>= np.uint64(64 - bits)
    return spread.view(np.int64)


def _cells(word: npt.NDArray[np.uint64], packing: Packing) -> _Integers:
    """Count what stands in the lower bits of a word; there is one code, and it is zero."""
    table = np.zeros(1 << packing.low_bits, dtype=np.int64)
    mask = np.uint64((1 << packing.low_bits) - 1)
    for start in range(0, len(word), _BLOCK):
        below = word[start : start + _BLOCK] & mask
        table += np.bincount(below.view(np.int64), minlength=len(table))
    return table
