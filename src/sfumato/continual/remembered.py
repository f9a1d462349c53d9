"""What a stream remembers of people: Arrow tables, one for each period, as bytes that a state can hold.

Units are kept as the engine has them, whole numbers or whole names, so that it compares them exactly.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

__all__ = ["digest", "packed", "unpacked"]

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
