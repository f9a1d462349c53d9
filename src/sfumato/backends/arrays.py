"""Arrow columns as arrays, as Python's values, and as the keys of groups.

None of it needs pandas: `to_numpy` of an Arrow column imports it, where it is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from sfumato.catalog.kind import MOST_DIGITS, Kind, Value

__all__ = ["Keys", "array_of", "arrow_array", "keys_at", "python_values"]


def arrow_array(values: Sequence[Value], kind: Kind) -> Any:
    """Return values of a kind as an Arrow array; whole numbers of 128 bits are decimals there."""
    import pyarrow

    types = {
        Kind.INTEGER: pyarrow.int64(),
        Kind.HUGEINT: pyarrow.decimal128(MOST_DIGITS, 0),
        Kind.FLOAT: pyarrow.float32(),
        Kind.REAL: pyarrow.float64(),
        Kind.TEXT: pyarrow.string(),
        Kind.BOOLEAN: pyarrow.bool_(),
        Kind.DATE: pyarrow.date32(),
        Kind.TIMESTAMP: pyarrow.timestamp("us"),
    }
    if kind.digits or kind is Kind.HUGEINT:
        values = [None if value is None else Decimal(value) for value in values]  # type: ignore[arg-type]
    of_type = pyarrow.decimal128(kind.digits, kind.scale) if kind.digits else types[kind]
    return pyarrow.array(values, type=of_type)


def array_of(column: Any) -> npt.NDArray[Any]:
    """Return an Arrow column of integers, none of them NULL, as an array."""
    chunks = [np.from_dlpack(chunk) for chunk in column.chunks]
    if len(chunks) == 1:
        return chunks[0]
    return np.concatenate(chunks) if chunks else np.zeros(0, dtype=np.int64)


def python_values(column: Any, kind: Kind | None) -> list[Value]:
    """Return an Arrow column as Python has its values; Arrow has decimals for whole numbers of 128 bits."""
    values = column.to_pylist()
    if kind is not Kind.HUGEINT:
        return values  # type: ignore[no-any-return]
    return [None if value is None else int(value) for value in values]


class Keys(Sequence[tuple[Value, ...]]):
    """A sequence of keys, each a tuple with one value per key column; private like its columns.

    Of a million keys only those that are used become Python values.
    """

    __slots__ = ("_columns", "_kinds", "_places")

    def __init__(
        self, columns: tuple[Any, ...], places: npt.NDArray[np.int64], kinds: tuple[Kind, ...]
    ) -> None:
        self._columns = columns  # Arrow arrays
        self._places = places
        self._kinds = kinds

    def __repr__(self) -> str:
        return "<keys: hidden>"

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, index: int) -> tuple[Value, ...]: ...

    @overload
    def __getitem__(self, index: slice | npt.NDArray[np.int64]) -> Keys: ...

    def __getitem__(self, index: int | slice | npt.NDArray[np.int64]) -> tuple[Value, ...] | Keys:
        if isinstance(index, slice | np.ndarray):
            return Keys(self._columns, self._places[index], self._kinds)
        place = int(self._places[index])
        return next(iter(Keys(self._columns, np.array([place]), self._kinds)))

    def __iter__(self) -> Iterator[tuple[Value, ...]]:
        if not self._columns:
            return iter([()] * len(self))
        if len(self._columns[0]) <= 2 * len(self):  # all are read: to take some, Arrow loads a module first
            places = self._places.tolist()
            values = map(python_values, self._columns, self._kinds)
            return zip(*([own[place] for place in places] for own in values), strict=True)
        import pyarrow

        buffer = pyarrow.py_buffer(np.ascontiguousarray(self._places, dtype=np.int64))
        chosen = pyarrow.Array.from_buffers(pyarrow.int64(), len(self), [None, buffer])
        taken = (column.take(chosen) for column in self._columns)
        return zip(*map(python_values, taken, self._kinds), strict=True)


def keys_at(keys: Sequence[tuple[Value, ...]], places: npt.NDArray[np.int64]) -> Iterable[tuple[Value, ...]]:
    """Return some keys: all at once, which for a column of them is much faster than one by one."""
    return keys[places] if isinstance(keys, Keys) else [keys[place] for place in places.tolist()]
