"""Keys of groups as an engine returns them: columns of Arrow's, in which equal keys have equal numbers.

A question may have a million groups: their keys become Python's values only where they are shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.backends.arrays import Keys, arrow_array
from sfumato.catalog.kind import Kind, Value
from sfumato.errors import Unsupported

__all__ = ["GroupKeys", "key_columns"]

_Numbers = npt.NDArray[np.int64]


def key_columns(columns: Sequence[Any], kinds: Sequence[Kind]) -> tuple[Any, ...]:
    """Return columns of keys, which an engine returns as Arrow's or as Python's values, as Arrow's.

    >>> key_columns([("south", None)], [Kind.TEXT])[0].to_pylist()
    ['south', None]
    """
    return tuple(map(_key_column, columns, kinds))


def _key_column(column: Any, kind: Kind) -> Any:
    """Return a column of keys in a type that holds each of them as it is: no two keys become one."""
    import pyarrow

    wide = {Kind.TEXT: pyarrow.large_string(), Kind.HUGEINT: pyarrow.decimal256(39, 0)}
    of_type = wide.get(kind) or arrow_array((), kind).type
    if isinstance(column, pyarrow.ChunkedArray):
        if pyarrow.types.is_floating(of_type) and column.type != of_type:
            raise Unsupported("keys that are rounded")
        return column.cast(of_type)
    if kind is Kind.FLOAT and any(one is not None and float(np.float32(one)) != one for one in column):
        raise Unsupported("keys that are rounded")
    if kind is Kind.HUGEINT:
        column = [None if value is None else Decimal(value) for value in column]
    held = pyarrow.array(column, type=of_type) if kind in wide else arrow_array(column, kind)
    return pyarrow.chunked_array([held])


class GroupKeys:
    """The groups of a grouping set: rows of keys fall into them, equal keys into one; private like the keys.

    >>> groups = GroupKeys(key_columns([("b", None, "a", "b")], [Kind.TEXT]), 4, (Kind.TEXT,))
    >>> list(groups.keys), groups.of_rows.tolist()
    ([('a',), ('b',), (None,)], [1, 2, 0, 1])
    >>> groups.places(key_columns([("c", "b", None)], [Kind.TEXT]), 3).tolist()
    [-1, 1, 2]
    """

    __slots__ = ("_columns", "_firsts", "_kinds", "of_rows")

    def __init__(self, columns: tuple[Any, ...], rows: int, kinds: tuple[Kind, ...]) -> None:
        numbers = _numbers(columns, rows)
        _, self._firsts, self.of_rows = np.unique(numbers, return_index=True, return_inverse=True)
        self._columns, self._kinds = columns, kinds

    def __repr__(self) -> str:
        return "<groups: hidden>"

    def __len__(self) -> int:
        return len(self._firsts)

    @property
    def keys(self) -> Sequence[tuple[Value, ...]]:
        """The key of each group, in their order, NULL last."""
        return Keys(self._columns, self._firsts, self._kinds)

    def places(self, columns: tuple[Any, ...], rows: int) -> _Numbers:
        """Return the place of the group that each row of other columns is in; -1: in none."""
        import pyarrow

        together = tuple(
            pyarrow.chunked_array([*own.chunks, *other.chunks], type=own.type)
            for own, other in zip(self._columns, columns, strict=True)
        )
        numbers = _numbers(together, len(self.of_rows) + rows)
        table = np.full(int(numbers.max(initial=0)) + 1, -1, dtype=np.int64)
        table[numbers[: len(self.of_rows)]] = self.of_rows
        return table[numbers[len(self.of_rows) :]]


def _numbers(columns: Sequence[Any], rows: int) -> _Numbers:
    """Return a number for each row: the same for equal keys, and in the order of keys, NULL last."""
    from pyarrow.compute import array_sort_indices

    numbers = np.zeros(rows, dtype=np.int64)
    for column in columns if rows else ():  # of no rows Arrow encodes some types only
        encoded = column.dictionary_encode().combine_chunks()
        null = len(encoded.dictionary)
        ranks = np.arange(null + 1)
        ranks[np.from_dlpack(array_sort_indices(encoded.dictionary))] = np.arange(null)
        own = ranks[np.from_dlpack(encoded.indices.fill_null(null))]
        _, numbers = np.unique(numbers * len(ranks) + own, return_inverse=True)
    return numbers
