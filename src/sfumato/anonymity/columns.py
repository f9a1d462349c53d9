"""Columns as numbers: the distinct values in order, and for each row the place of its value among them.

NULL is a value of its own, and so is NaN: two rows without an age look alike to whoever links
tables. Both come last. 0.0 and -0.0 are one value. Texts are in the order of their code points.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.backends.owned import read_owned
from sfumato.errors import InvalidArgument

__all__ = ["Coded", "Coding", "Flags", "Floats", "Integers", "OWNER", "Scale", "encode", "read", "texts_of"]

Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

OWNER = "For the owner of the table, which was read as it is: nothing here is private, nor a release."
"""What every report ends with."""


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
        known = self.known
        if self.scale is Scale.MOMENT:
            known = known.cast(pa.int32() if pa.types.is_date32(known.type) else pa.int64()).cast(pa.int64())
        return np.asarray(known.cast(pa.float64(), safe=False), dtype=np.float64)

    @property
    def known(self) -> Any:
        """The values that are not missing, an Arrow array."""
        return self.values.slice(0, self.size - self.missing)

    def known_texts(self) -> list[str]:
        """Return the values that are not missing, as texts."""
        return [str(text) for text in texts_of(self.known)]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Coding:
    """The columns in question, as numbers; `table` is what was read, an Arrow table in the same order."""

    table: Any
    quasi: tuple[Coded, ...]
    sensitive: tuple[Coded, ...]
    others: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self.quasi[0].codes)


def read(
    origin: Any, quasi: Sequence[str], sensitive: str | Sequence[str] = (), others: str | Sequence[str] = ()
) -> Coding:
    """Read columns of a table; refuse what makes no sense."""
    named = _names(quasi, "quasi"), _names(sensitive, "sensitive"), _names(others, "keep")
    if not named[0]:
        raise InvalidArgument(
            "there are no quasi-identifiers",
            place="quasi",
            hints=("name the columns that others could know of a person, such as age, sex and zip",),
        )
    everything = [name for names in named for name in names]
    for name in everything:
        if everything.count(name) > 1:
            raise InvalidArgument(
                f"column `{name}` is named twice",
                place=name,
                hints=("a column is a quasi-identifier, or sensitive, or kept as it is: one of them",),
            )
    table = read_owned(origin, everything)
    if table.num_rows == 0:
        raise InvalidArgument("the table has no rows", place="table")
    return Coding(
        table=table,
        quasi=tuple(encode(name, table.column(name)) for name in named[0]),
        sensitive=tuple(encode(name, table.column(name)) for name in named[1]),
        others=named[2],
    )


def _names(given: str | Sequence[str], place: str) -> tuple[str, ...]:
    names = (given,) if isinstance(given, str) else tuple(given)
    for name in names:
        if not isinstance(name, str) or not name:
            raise InvalidArgument("columns are given by their names", place=place)
    return names
