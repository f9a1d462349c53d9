"""Exactness is a type: a secret before noise, which cannot be printed and which only noise may open."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NoReturn, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from sfumato.backends.totals import sum_by_group
from sfumato.catalog.kind import Value
from sfumato.errors import Unsupported

__all__ = ["Exact", "ExactGroups", "Members", "Membership", "UnitRows"]

_T = TypeVar("_T")
_Flags = npt.NDArray[np.bool_]


class Exact(Generic[_T]):
    """A private value. `release.noise` reveals it, to add noise, and `audit.laboratory`, of invented rows.

    A test looks at all of the package: no other module calls `reveal`.
    """

    __slots__ = ("__secret",)

    def __init__(self, secret: _T) -> None:
        self.__secret = secret

    def __repr__(self) -> str:
        return "<exact: hidden>"

    __str__ = __repr__

    def __format__(self, specification: str) -> str:
        return repr(self)

    def __reduce__(self) -> NoReturn:
        raise Unsupported("an exact value cannot be copied or stored")

    def reveal(self) -> _T:
        """Return the secret, to add noise to it."""
        return self.__secret


class Membership(Protocol):
    """What selections ask about which groups each unit is kept in; whose they are is not in it."""

    def weights(self, found: _Flags, weight: Callable[[int], int]) -> npt.NDArray[np.int64]:
        """Return the weight of every group: a unit of which d are not found has weight(d) in each of them."""
        ...

    def units_outside(self, shown: _Flags) -> int:
        """Return how many units are kept in some group that is not shown."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Members:
    """Which groups each unit is kept in; whose they are is not in it. Units are in no order."""

    groups: npt.NDArray[np.integer[Any]]  # places of groups, a unit's own beside each other, each once
    sizes: npt.NDArray[np.integer[Any]]  # in how many groups each unit is, at least one

    def __repr__(self) -> str:
        return "<members: hidden>"

    def weights(self, found: _Flags, weight: Callable[[int], int]) -> npt.NDArray[np.int64]:
        """Return the weight of every group: a unit of which d are not found has weight(d) in each of them."""
        if not len(self.groups):
            return np.zeros(len(found), dtype=np.int64)
        groups: npt.NDArray[Any] = self.groups
        most = int(self.sizes.max())
        table = np.array([0, *map(weight, range(1, most + 1))], dtype=np.int64)
        if found.any():
            left = ~found[groups]
            each = np.repeat(table[np.add.reduceat(left, self._starts(), dtype=np.int64)], self.sizes)
            each *= left
        else:
            each = np.repeat(table[self.sizes], self.sizes)
        total: npt.NDArray[np.int64] = sum_by_group(groups, each, len(found)).astype(np.int64)
        return total

    def units_outside(self, shown: _Flags) -> int:
        """Return how many units are kept in some group that is not shown."""
        if not len(self.sizes):
            return 0
        return int(np.count_nonzero(np.add.reduceat(~shown[self.groups], self._starts(), dtype=np.int64)))

    def _starts(self) -> npt.NDArray[np.int64]:
        return np.concatenate(([0], np.cumsum(self.sizes[:-1], dtype=np.int64)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ExactGroups:
    """What the engine computed, for one grouping set: one entry per group, in the order of the keys.

    Keys that are not declared are themselves private until they have been selected.
    """

    grouping_set: tuple[int, ...]
    keys: Sequence[tuple[Value, ...]]  # one tuple per group, of the set's key columns
    measures: dict[str, Any]  # int64 or object; CELLS: a row of cells per group, sparse if keys are private
    units: npt.NDArray[np.int64] | None  # units kept in each group, where keys must be selected
    members: Membership | None = None  # where they are selected by weights

    def __repr__(self) -> str:
        return "<exact groups: hidden>"  # also where a crash reporter shows the variables of noise


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class UnitRows:
    """Rows of numbers, those of a unit beside each other; whose they are is not in it. Units are in no order.

    NULL is NaN. `sizes` says how many rows each unit has, at least one.
    """

    columns: Mapping[str, npt.NDArray[np.float64]]
    sizes: npt.NDArray[np.int64]

    def of_units(self, chosen: npt.NDArray[np.bool_]) -> UnitRows:
        """Return the rows of some units: `chosen` has a flag for each."""
        kept = np.repeat(chosen, self.sizes)
        columns = {name: values[kept] for name, values in self.columns.items()}
        return UnitRows(columns=columns, sizes=self.sizes[chosen])

    def __repr__(self) -> str:
        return "<rows of units: hidden>"
