"""Cells of groups that are not declared: only those that hold something, until groups have been selected.

How many groups there are is private, and one person can bring many. A table of every group and every
cell would take memory that depends on one person alone; this takes what the kept rows take.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.analysis.bounded import Measure
from sfumato.backends.totals import empty, sum_by_group

__all__ = ["SparseCells"]

_Array = npt.NDArray[Any]
_Integers = npt.NDArray[np.int64]


class SparseCells:
    """A row of cells per group; indexing by an array of groups makes a table.

    `places` are group * width + cell, ascending, each once; `values` what is there, of the type that
    the measure's public bounds ask for. Private, like what it holds.
    """

    __slots__ = ("_groups", "_places", "_values", "_width")

    def __init__(self, groups: int, width: int, places: _Integers, values: _Array) -> None:
        self._groups = groups
        self._width = width
        self._places = places
        self._values = values

    @staticmethod
    def summed(measure: Measure, groups: int, parts: list[tuple[_Integers, _Array]]) -> SparseCells:
        """Add up places and values; none of it wraps around."""
        width = len(measure.edges) - 1
        nothing = np.zeros(0, dtype=np.int64)
        places = np.concatenate([part[0] for part in parts] or [nothing])
        added = np.concatenate([part[1] for part in parts] or [nothing])
        there, inverse = np.unique(places, return_inverse=True)
        values: _Array = empty(measure, len(there)) + sum_by_group(inverse, added, len(there))
        return SparseCells(groups, width, there, values)

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
    def parts(self) -> tuple[_Integers, _Array]:
        """The places and what is there, to be added up with more."""
        return self._places, self._values

    def among(self, groups: _Integers) -> SparseCells:
        """Return these groups alone, ascending, numbered anew; the others hold nothing."""
        if len(groups) == self._groups:
            return self
        places = np.searchsorted(groups, self._places // self._width) * self._width
        return SparseCells(len(groups), self._width, places + self._places % self._width, self._values)

    def total(self, flags: npt.NDArray[np.bool_]) -> _Array:
        """Return the sum of the flagged groups' rows, as a table of one row, in Python's integers."""
        there = flags[self._places // self._width]
        values = self._values[there].astype(object)
        table: _Array = np.full((1, self._width), 0, dtype=object)
        np.add.at(table[0], self._places[there] % self._width, values)
        return table

    def __getitem__(self, groups: _Integers | int) -> _Array:
        """Return the rows of some groups as a table, or that of one group."""
        if not isinstance(groups, np.ndarray):
            row: _Array = self[np.array([groups])][0]
            return row
        table: _Array = np.full((len(groups), self._width), 0, dtype=self.dtype)
        begins = np.searchsorted(self._places, groups * self._width)
        counts = np.searchsorted(self._places, (groups + 1) * self._width) - begins
        rows = np.repeat(np.arange(len(groups)), counts)
        firsts = np.cumsum(counts) - counts
        found = np.arange(len(rows)) + np.repeat(begins - firsts, counts)
        table[rows, self._places[found] % self._width] = self._values[found]
        return table

    def __iter__(self) -> Iterator[_Array]:
        return (self[group] for group in range(self._groups))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> _Array:
        return self[np.arange(self._groups)].astype(self.dtype if dtype is None else dtype, copy=False)
