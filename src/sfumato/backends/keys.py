"""Keys of groups, column by column: of a million, only those that are used become Python values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from sfumato.catalog.kind import Value

__all__ = ["Keys"]


class Keys(Sequence[tuple[Value, ...]]):
    """A sequence of keys, each a tuple with one value per key column; private like its columns."""

    __slots__ = ("_columns", "_places")

    def __init__(self, columns: tuple[Any, ...], places: npt.NDArray[np.int64]) -> None:
        self._columns = columns  # Arrow arrays
        self._places = places

    def __repr__(self) -> str:
        return "<keys: hidden>"

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, index: int) -> tuple[Value, ...]: ...

    @overload
    def __getitem__(self, index: slice) -> Keys: ...

    def __getitem__(self, index: int | slice) -> tuple[Value, ...] | Keys:
        if isinstance(index, slice):
            return Keys(self._columns, self._places[index])
        place = int(self._places[index])
        return tuple(column[place].as_py() for column in self._columns)

    def __iter__(self) -> Iterator[tuple[Value, ...]]:
        if not self._columns:
            return iter([()] * len(self))
        return zip(*(column.take(self._places).to_pylist() for column in self._columns), strict=True)
