"""Keys of groups, column by column: of a million, only those that are used become Python values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from sfumato.catalog.kind import Kind, Value

__all__ = ["Keys", "python_values"]


def python_values(column: Any, kind: Kind | None = None) -> list[Value]:
    """Return an Arrow column as Python has its values; Arrow has decimals for whole numbers of 128 bits."""
    values = column.to_pylist()
    if kind is not Kind.HUGEINT:
        return values  # type: ignore[no-any-return]
    return [None if value is None else int(value) for value in values]


class Keys(Sequence[tuple[Value, ...]]):
    """A sequence of keys, each a tuple with one value per key column; private like its columns."""

    __slots__ = ("_columns", "_kinds", "_places")

    def __init__(
        self, columns: tuple[Any, ...], places: npt.NDArray[np.int64], kinds: tuple[Kind | None, ...] = ()
    ) -> None:
        self._columns = columns  # Arrow arrays
        self._places = places
        self._kinds = kinds or (None,) * len(columns)

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
            return Keys(self._columns, self._places[index], self._kinds)
        place = int(self._places[index])
        return next(iter(Keys(self._columns, np.array([place]), self._kinds)))

    def __iter__(self) -> Iterator[tuple[Value, ...]]:
        if not self._columns:
            return iter([()] * len(self))
        taken = (column.take(self._places) for column in self._columns)
        return zip(*map(python_values, taken, self._kinds), strict=True)
