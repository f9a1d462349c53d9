"""All rows in one group: cells are counted, and only units with more rows than count are sorted.

A unit whose rows all count enters every cell with weight 1 for each of them. So do all such units
together: nothing tells them apart, and their cells can be counted in one go. Where there is one group, that
leaves only the units with more rows than `max_rows` to be looked at one by one. Where units are numbers from
a wide range, such as hashes, they are dealt out to buckets, twice, and the rows are left of those buckets
that have more rows than count; then it is not known how many units there are, so it must not be asked. Nor
is it where the rows are known whose units may have more: those that have more in the whole table.

Theorem: the result is that of `contributions`: with n <= m the weight min(n, m)/n is 1, and a sum over
units of c * weight * 1 is the count over their rows, times weight. A unit has no more rows than its bucket,
and no more in a question than in the whole table.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.backends.bounding.packing import Kept, PackedChoice, PackedRows, Packing
from sfumato.backends.bounding.row_weights import RowWeights

__all__ = ["count_light_rows", "count_one_group"]

_BLOCK = 1 << 17  # rows that fit into a cache
_TABLE = 1 << 16  # cells that are counted in a table
_SPARSE = 4  # numbers that units may span, for each row there is
_ODDS = tuple(map(np.uint64, (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F)))  # spread numbers over the upper bits

_Integers = npt.NDArray[np.int64]

_NOBODY = np.zeros(0, dtype=np.int64)


def count_one_group(
    rows: PackedRows, packing: Packing, choice: PackedChoice
) -> tuple[Kept, PackedRows] | None:
    """Count the units all of whose rows count; return the rows of the others. None: it does not apply.

    It applies to rows of one group of which nothing but cells is asked; where the numbers of units are dense,
    also how many units and rows there are.
    """
    if not _applies(packing, choice) or rows.values:
        return None
    least = int(rows.units.min())
    counts = _NOBODY
    if int(rows.units.max()) - least < _SPARSE * len(rows.units):
        owners = rows.units if least == 0 else rows.units - least
        counts = np.bincount(owners)
        everybody = np.arange(len(counts))
        light = RowWeights.of(everybody, counts, most=choice.max_rows, total=choice.max_total).light
        left = np.flatnonzero((~light)[owners])
        counts = counts[(counts > 0) & light]
    elif choice.only_cells:
        left = _crowded(rows.units, choice)
    else:
        return None
    tables = [_cells(word, packing) - _cells(word[left], packing) for word in rows.words]
    return _kept(tables, counts, choice), rows.some(left)


def count_light_rows(
    batches: Iterable[list[npt.NDArray[Any]]],
    heavy: npt.NDArray[np.bool_],
    packing: Packing,
    choice: PackedChoice,
) -> tuple[Kept, list[npt.NDArray[Any]]] | None:
    """Count the rows that no cap can touch, and return the columns of the others; None: it does not apply.

    Of each batch the first column has numbers of rows, and the others are words. `heavy` flags the numbers of
    rows that may not count in full.
    """
    if not _applies(packing, choice) or not choice.only_cells:
        return None
    tables = [np.zeros(1 << packing.low_bits, dtype=np.int64) for _ in choice.runs]
    others = []
    for columns in batches:
        left = np.flatnonzero(heavy[columns[0]])
        others.append([column[left] for column in columns])
        for table, word in zip(tables, columns[1:], strict=True):
            table += _cells(word, packing) - _cells(word[left], packing)
    return _kept(tables, _NOBODY, choice), [np.concatenate(some) for some in zip(*others, strict=True)]


def _applies(packing: Packing, choice: PackedChoice) -> bool:
    return len(choice.key_hashes) == 1 and not choice.sums and 1 << packing.low_bits <= _TABLE


def _kept(tables: list[_Integers], counts: _Integers, choice: PackedChoice) -> Kept:
    """Return units with these numbers of rows, from the table of what stands in each word."""
    runs = {}
    for run in choice.runs:
        cells = tables[run.slot.word][1 : run.width + 1]
        places = np.flatnonzero(cells)
        runs[run.slot] = (places, cells[places] * run.weight)
    return Kept(
        unit=np.arange(len(counts)),
        code=np.zeros(len(counts), dtype=np.int64),
        rows=counts,
        sums={},
        runs=runs,
        values=(),
    )


def _crowded(units: npt.NDArray[Any], choice: PackedChoice) -> _Integers:
    """Return the places of rows whose buckets have more rows than count of one unit, in every round."""
    caps = [cap for cap in (choice.max_rows, choice.max_total) if cap is not None]
    left = np.arange(len(units) if caps else 0)
    for odd in _ODDS:
        bits = (len(left) // 4).bit_length()
        if not bits:
            break
        owners = units[left].view(np.uint64) * odd
        owners >>= np.uint64(64 - bits)
        full = np.bincount(owners.view(np.int64)) > min(caps)
        left = left[full[owners]]
    return left


def _cells(word: npt.NDArray[Any], packing: Packing) -> _Integers:
    """Count what stands in the lower bits of a word; there is one code, and it is zero."""
    table = np.zeros(1 << packing.low_bits, dtype=np.int64)
    mask = np.uint64((1 << packing.low_bits) - 1)
    for start in range(0, len(word), _BLOCK):
        below = word[start : start + _BLOCK].view(np.uint64) & mask
        table += np.bincount(below.view(np.int64), minlength=len(table))
    return table
