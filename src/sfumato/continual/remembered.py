"""What a stream remembers, as bytes that a state can hold: Arrow tables of people, and integers of noise.

Units are kept as the engine has them, whole numbers or whole names, so that it compares them exactly.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.continual.correlated_noise import narrowed
from sfumato.errors import Unsupported

__all__ = ["digest", "packed", "packed_integers", "unpacked", "unpacked_integers"]

_PART = 1 << 28  # bytes, about: a state holds no value of more than 10^9


def packed(table: Any | None) -> list[bytes]:
    """Return an Arrow table as a few values of bytes, none of which is too large for a state.

    >>> import pyarrow
    >>> unpacked(packed(pyarrow.table({"__unit": [3, 5]}))).column("__unit").to_pylist()
    [3, 5]
    """
    import pyarrow

    if table is None or not len(table):
        return []
    rows = max(1, _PART * len(table) // max(1, table.nbytes))
    parts = []
    for first in range(0, len(table), rows):
        sink = pyarrow.BufferOutputStream()
        with pyarrow.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table.slice(first, rows).combine_chunks())
        parts.append(sink.getvalue().to_pybytes())
    return parts


def unpacked(parts: Sequence[bytes]) -> Any | None:
    """Return the table that was packed; None where it was empty."""
    import pyarrow

    tables = [pyarrow.ipc.open_stream(part).read_all() for part in parts]
    return pyarrow.concat_tables(tables) if tables else None


def digest(parts: Sequence[bytes]) -> bytes:
    """Return a hash of what was packed."""
    return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).digest()


def packed_integers(values: npt.NDArray[Any]) -> bytes:
    """Return integers as 8 bytes each, or 16 where that is too few; the first byte says which.

    >>> [unpacked_integers(packed_integers(np.array([-1, 1 << many]))).tolist() for many in (3, 70)]
    [[-1, 8], [-1, 1180591620717411303424]]
    """
    narrow = narrowed(values, 63)
    if narrow.dtype != object:
        return b"\x08" + narrow.astype("<i8").tobytes()
    if narrowed(narrow >> 64, 63).dtype == object:
        raise Unsupported("noise of more than 127 bits")
    low, high = (narrow & (1 << 64) - 1).astype("<u8"), (narrow >> 64).astype("<i8")
    return b"\x10" + low.tobytes() + high.tobytes()


def unpacked_integers(content: bytes) -> npt.NDArray[Any]:
    """Return the integers that were packed."""
    if content[:1] == b"\x08":
        return np.frombuffer(content, "<i8", offset=1).astype(np.int64)
    many = len(content) // 16
    low, high = np.frombuffer(content, "<u8", many, 1), np.frombuffer(content, "<i8", many, 1 + 8 * many)
    return np.asarray((high.astype(object) << 64) + low.astype(object))
