"""Totals: exact integers of groups, which cannot wrap around, and those of their cells."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.analysis.bounded import Measure

__all__ = ["SparseCells", "empty", "sum_by_group"]

_Integers = npt.NDArray[np.int64]

_UNITS = 2**32  # more than a machine holds: what reaches less than 2^31 adds up in 64 bits
_EXACT = 2**53
_TABLE = 2**20  # cells that are summed in a table


def empty(measure: Measure, size: int) -> npt.NDArray[Any]:
    """Return zeros: Python's integers where totals may be beyond 64 bits, a fact of public bounds."""
    wide = max(1, abs(measure.sensitivity)) * _UNITS >= 2**63
    return np.full(size, 0, dtype=object) if wide else np.zeros(size, dtype=np.int64)


def sum_by_group(groups: _Integers, values: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
    """Return the exact sum of the values of each group.

    >>> sum_by_group(np.array([1, 1]), np.array([2**62, 2**62]), 2).tolist()
    [0, 9223372036854775808]
    """
    if values.dtype == object:
        totals = np.full(size, 0, dtype=object)
        np.add.at(totals, groups, values)
        return totals
    largest = max(int(values.max()), -int(values.min())) if len(values) else 0
    if largest * len(values) < _EXACT:  # then every partial sum is exact in a double
        return np.bincount(groups, weights=values, minlength=size).astype(np.int64)
    # Three limbs of 21 bits and the sign: each sum is exact, for fewer than 2^32 values.
    low, middle, high = values & 0x1FFFFF, (values >> 21) & 0x1FFFFF, values >> 42
    counted = (np.bincount(groups, weights=limb, minlength=size) for limb in (low, middle, high))
    narrow = largest * len(values) < 2**62
    sums = [limb.astype(np.int64).astype(np.int64 if narrow else object) for limb in counted]
    total: npt.NDArray[Any] = sums[0] + sums[1] * 2**21 + sums[2] * 2**42
    return total


class SparseCells:
    """A row of cells per group, only those that hold something; indexing by an array of groups makes a table.

    How many groups there are is private, and one person can bring many. A table of every group and every
    cell would take memory that depends on one person alone; this takes what the kept rows take.

    `places` are group * width + cell, ascending, each once; `values` what is there, of the type that
    the measure's public bounds ask for. Private, like what it holds.
    """

    __slots__ = ("_groups", "_places", "_values", "_width")

    def __init__(self, groups: int, width: int, places: _Integers, values: npt.NDArray[Any]) -> None:
        self._groups = groups
        self._width = width
        self._places = places
        self._values = values

    @staticmethod
    def summed(measure: Measure, groups: int, parts: list[tuple[_Integers, npt.NDArray[Any]]]) -> SparseCells:
        """Add up places and values; none of it wraps around."""
        width = len(measure.edges) - 1
        nothing = np.zeros(0, dtype=np.int64)
        places = np.concatenate([part[0] for part in parts] or [nothing])
        added = np.concatenate([part[1] for part in parts] or [nothing])
        if groups * width <= max(_TABLE, len(places)):
            sums = sum_by_group(places, added, groups * width)
            there = np.flatnonzero(sums)
            sums = sums[there]
        else:
            there, inverse = np.unique(places, return_inverse=True)
            sums = sum_by_group(inverse, added, len(there))
        return SparseCells(groups, width, there, empty(measure, len(there)) + sums)

    def __repr__(self) -> str:
        return "<cells: hidden>"

    def __len__(self) -> int:
        return self._groups

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the integers."""
        return self._values.dtype

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of groups and of cells."""
        return self._groups, self._width

    @property
    def parts(self) -> tuple[_Integers, npt.NDArray[Any]]:
        """The places and what is there, to be added up with more."""
        return self._places, self._values

    def among(self, groups: _Integers) -> SparseCells:
        """Return these groups alone, ascending, numbered anew; the others hold nothing."""
        if len(groups) == self._groups:
            return self
        places = np.searchsorted(groups, self._places // self._width) * self._width
        return SparseCells(len(groups), self._width, places + self._places % self._width, self._values)

    def total(self, flags: npt.NDArray[np.bool_]) -> npt.NDArray[Any]:
        """Return the sum of the flagged groups' rows, as a table of one row, in Python's integers."""
        there = flags[self._places // self._width]
        values = self._values[there].astype(object)
        table: npt.NDArray[Any] = np.full((1, self._width), 0, dtype=object)
        np.add.at(table[0], self._places[there] % self._width, values)
        return table

    def __getitem__(self, groups: _Integers | int) -> npt.NDArray[Any]:
        """Return the rows of some groups as a table, or that of one group."""
        if not isinstance(groups, np.ndarray):
            row: npt.NDArray[Any] = self[np.array([groups])][0]
            return row
        table: npt.NDArray[Any] = np.full((len(groups), self._width), 0, dtype=self.dtype)
        begins = np.searchsorted(self._places, groups * self._width)
        counts = np.searchsorted(self._places, (groups + 1) * self._width) - begins
        rows = np.repeat(np.arange(len(groups)), counts)
        firsts = np.cumsum(counts) - counts
        found = np.arange(len(rows)) + np.repeat(begins - firsts, counts)
        table[rows, self._places[found] % self._width] = self._values[found]
        return table

    def __iter__(self) -> Iterator[npt.NDArray[Any]]:
        return (self[group] for group in range(self._groups))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return self[np.arange(self._groups)].astype(self.dtype if dtype is None else dtype, copy=False)
