"""Totals of groups: what units contribute becomes exact integers, which cannot wrap around."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.analysis.bounded import Measure
from sfumato.backends.bounding.priorities import different_pairs
from sfumato.backends.bounding.row_weights import RowWeights
from sfumato.backends.exact import Members
from sfumato.backends.integers import RowInteger
from sfumato.backends.totals import empty, sum_by_group

__all__ = ["GroupTotals", "GroupingSet", "contribution", "distinct_by_group"]

_Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GroupingSet:
    """Which group of a set each of the finest groups belongs to."""

    chosen: tuple[int, ...]  # the keys that are grouped by
    parents: _Integers  # of each finest group
    firsts: _Integers  # one finest group of each group

    @property
    def size(self) -> int:
        """The number of groups."""
        return len(self.firsts)


@dataclass(slots=True, kw_only=True, eq=False)
class GroupTotals:
    """Exact integers of the groups of a set."""

    units: _Integers
    measures: dict[str, Any]  # arrays; of CELLS measures `SparseCells`
    members: Members | None = None


def contribution(
    measure: Measure,
    integer: RowInteger | None,
    rows: _Integers,
    limbs: Iterable[tuple[int, _Integers]],
    weights: RowWeights,
) -> npt.NDArray[Any]:
    """Return what each unit adds to each group it is kept in, for a MOMENT.

    `limbs` are the sums over rows of parts of the row's integer above its lowest value, each with
    the number of bits below it.
    """
    if integer is None:
        sums: npt.NDArray[Any] = rows
    else:
        furthest = max(abs(integer.low), abs(integer.high)) * abs(integer.scale)
        wide = 4 * furthest * int(rows.max(initial=0)) >= 2**63
        of_type = object if wide else np.int64
        sums = rows.astype(of_type) * integer.low
        for lower, limb in limbs:
            sums = sums + limb.astype(of_type) * 2**lower
        sums = sums * integer.scale
    if measure.clamp is not None:
        low, high = measure.clamp
        return _narrow(np.clip(sums, low, high))
    return _narrow(weights.applied(sums))


def distinct_by_group(
    measure: Measure, groups: _Integers, values: _Integers, size: int, addends: _Integers | None = None
) -> npt.NDArray[Any]:
    """Return the number of distinct values of each group, or the sum of what the values stand for."""
    groups, values = different_pairs(groups, values)
    added = np.bincount(groups, minlength=size)
    if addends is not None:
        added = sum_by_group(groups, addends[values], size)
    total: npt.NDArray[Any] = empty(measure, size) + added
    return total


def _narrow(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if values.dtype != object:
        return values
    fits = all(-(2**62) < value < 2**62 for value in values.tolist())
    return values.astype(np.int64) if fits else values
