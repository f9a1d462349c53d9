"""Seen: which reports were counted before, by their numbers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sfumato.local.arrays import Flags

__all__ = ["Seen"]

_Numbers = npt.NDArray[np.uint64]


class Seen:
    """A set of 64-bit numbers that only grows, in sorted runs, each at most half as long as the next.

    Eight bytes for each number, and no more than a logarithm of them to look through.
    """

    __slots__ = ("_runs",)

    def __init__(self) -> None:
        self._runs: list[_Numbers] = []

    def __len__(self) -> int:
        return sum(len(run) for run in self._runs)

    def new(self, numbers: _Numbers) -> Flags:
        """Flag the numbers that are not in, each where it first occurs.

        >>> seen = Seen()
        >>> seen.put(np.array([3, 5], dtype=np.uint64))
        >>> seen.new(np.array([5, 7, 7], dtype=np.uint64)).tolist()
        [False, True, False]
        """
        distinct, first = np.unique(numbers, return_index=True)
        new = np.ones(len(distinct), dtype=np.bool_)
        for run in self._runs:
            places = np.minimum(np.searchsorted(run, distinct), len(run) - 1)
            new &= run[places] != distinct
        flags = np.zeros(len(numbers), dtype=np.bool_)
        flags[first[new]] = True
        return flags

    def put(self, numbers: _Numbers) -> None:
        """Take in numbers that are new."""
        run = np.sort(numbers)
        while self._runs and len(self._runs[-1]) <= 2 * len(run):
            run = np.sort(np.concatenate([self._runs.pop(), run]), kind="stable")
        if len(run):
            self._runs.append(run)
