"""Columns as numbers: the distinct values in order, and for each row the place of its value among them.

NULL is a value of its own, and so is NaN: two rows without an age look alike to whoever links
tables. Both come last. 0.0 and -0.0 are one value. Texts are in the order of their code points.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.errors import InvalidArgument

__all__ = ["Coded", "Floats", "Integers", "Scale", "encode", "texts_of"]

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class Scale(Enum):
    """What can be said of two values: how far apart they are, or only that they differ."""

    NUMBER = "number"
    MOMENT = "moment"
    CATEGORY = "category"


@dataclass(frozen=True, kw_only=True)
class Coded:
    """A column: `values` are its distinct values in order, an Arrow array; `codes` the place of each row's.

    The last `missing` of the values are NaN or NULL.
    """

    name: str
    scale: Scale
    values: Any
    codes: Integers
    missing: int

    @property
    def size(self) -> int:
        """How many distinct values there are."""
        return len(self.values)

    @cached_property
    def counts(self) -> Integers:
        """How many rows have each value."""
        return np.bincount(self.codes, minlength=self.size)

    @cached_property
    def places(self) -> Floats | None:
        """Where the values lie between the smallest, 0, and the largest, 1; None if that means nothing.

        It means nothing for categories, and where a value or the range is not finite.
        """
        known = self.size - self.missing
        if self.scale is Scale.CATEGORY or known == 0:
            return None
        numbers = self.numbers
        with np.errstate(over="ignore", invalid="ignore"):
            width = numbers[-1] - numbers[0]
            if not np.isfinite(width):
                return None
            return (numbers - numbers[0]) / width if width > 0 else np.zeros(known)

    @cached_property
    def numbers(self) -> Floats:
        """The values that are not missing, as floats: numbers, or moments in their own unit."""
        import pyarrow as pa

        known = self.values.slice(0, self.size - self.missing)
        if self.scale is Scale.MOMENT:
            known = known.cast(pa.int32() if pa.types.is_date32(known.type) else pa.int64()).cast(pa.int64())
        return np.asarray(known.cast(pa.float64(), safe=False), dtype=np.float64)

    def texts(self) -> list[str | None]:
        """Return the values as texts; None for NULL."""
        return texts_of(self.values)


def texts_of(values: Any) -> list[str | None]:
    """Return an Arrow array as texts; None for NULL, and NaN is written as it is here."""
    plain = values.to_pylist()
    return [None if value is None else "NaN" if value != value else str(value) for value in plain]


def encode(name: str, column: Any) -> Coded:
    """Return an Arrow column as numbers.

    >>> import pyarrow as pa
    >>> ages = encode("age", pa.chunked_array([[31, None, 17, 31]]))
    >>> ages.values.to_pylist(), ages.codes.tolist()
    ([17, 31, None], [1, 2, 0, 1])
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):  # of several chunks still: texts beyond two gigabytes
        array = pa.chunked_array(array.chunks, array.type).cast(pa.large_string()).combine_chunks()
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_floating(array.type):
        array = pc.add(array, pa.scalar(0.0, array.type))  # -0.0 becomes 0.0
    scale = _scale(name, array.type)
    coded = array.dictionary_encode(null_encoding="encode")
    order = np.asarray(pc.sort_indices(coded.dictionary))  # NaN and then NULL come last
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    values = coded.dictionary.take(pa.array(order))
    return Coded(
        name=name,
        scale=scale,
        values=values,
        codes=rank[np.asarray(coded.indices)],
        missing=pc.sum(values.is_null(nan_is_null=True)).as_py() or 0,
    )


def _scale(name: str, of_type: Any) -> Scale:
    import pyarrow as pa

    types = pa.types
    if types.is_integer(of_type) or types.is_floating(of_type) or types.is_decimal(of_type):
        return Scale.NUMBER
    if types.is_date(of_type) or types.is_timestamp(of_type):
        return Scale.MOMENT
    if types.is_string(of_type) or types.is_large_string(of_type) or types.is_boolean(of_type):
        return Scale.CATEGORY
    raise InvalidArgument(
        f"column `{name}` is neither of numbers, moments, texts nor truth values",
        place=name,
        hints=("leave it out, or write it as text",),
    )
