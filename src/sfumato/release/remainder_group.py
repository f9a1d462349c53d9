"""The remainder group: the exact numbers of all groups that were not selected. Proof: `analysis`."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.analysis.bounded import BoundedQuery, MeasureKind
from sfumato.backends.exact import ExactGroups, Members
from sfumato.backends.sparse_histogram import SparseCells
from sfumato.errors import Unsupported

__all__ = ["rest_of"]

_Integers = npt.NDArray[Any]


def rest_of(groups: ExactGroups, shown: _Integers, query: BoundedQuery) -> dict[str, _Integers]:
    """Return the sum of each measure over the groups that are not shown; of units, how many are there."""
    rest = np.ones(len(groups.keys), dtype=np.bool_)
    rest[shown] = False
    found: dict[str, _Integers] = {}
    for measure in query.measures:
        values = groups.measures[measure.name]
        if measure.kind is MeasureKind.UNITS and query.max_groups is not None:
            if groups.members is None:
                raise Unsupported("units of everything else, and the engine did not say who is where")
            found[measure.name] = np.array([_units(groups.members, rest)], dtype=np.int64)
        elif isinstance(values, SparseCells):
            found[measure.name] = values.total(rest)
        else:  # Python's integers: no sum wraps around
            found[measure.name] = values[rest].astype(object).sum(axis=0, keepdims=True)
    return found


def _units(members: Members, rest: npt.NDArray[np.bool_]) -> int:
    if not len(members.sizes):
        return 0
    starts = np.concatenate(([0], np.cumsum(members.sizes[:-1], dtype=np.int64)))
    return int(np.count_nonzero(np.add.reduceat(rest[members.groups], starts, dtype=np.int64)))
