"""Objects that hold a table, copied when they are opened: nobody can change the copy.

A data frame shares its memory with Arrow tables made of it, and with whoever holds it: a number that is
changed in place later would be another version of the data under the name of the first.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from sfumato.errors import InvalidArgument

__all__ = ["Copied", "arrow_of", "copied", "not_text"]

_ROWS = 122_880  # of a batch: what the engine gives to one thread


@dataclass(frozen=True, slots=True)
class Copied:
    """An Arrow table in memory of its own, and a hash of its contents."""

    table: Any
    digest: str


def copied(table: Any, name: str) -> Copied:
    """Return a copy of an Arrow table, however it was cut into pieces; refuse texts that are not UTF-8."""
    import pyarrow

    sink = pyarrow.BufferOutputStream()
    combined = table.combine_chunks()
    with pyarrow.ipc.new_stream(sink, combined.schema) as writer:
        writer.write_table(combined, max_chunksize=_ROWS)
    held = sink.getvalue()
    copy = pyarrow.ipc.open_stream(held).read_all()
    try:
        copy.validate(full=True)
    except pyarrow.ArrowInvalid:  # its text may quote the data
        raise not_text(name) from None
    return Copied(table=copy, digest=hashlib.sha256(held).hexdigest())


def not_text(name: str) -> InvalidArgument:
    """Return the refusal of a table with a text that is none."""
    return InvalidArgument(
        f"table `{name}` has a text that is not UTF-8",
        place=name,
        hints=("write it anew as UTF-8, or leave the column out",),
    )


def arrow_of(origin: Any, name: str) -> Any:
    """Return an object as an Arrow table."""
    import pyarrow

    if isinstance(origin, pyarrow.Table):
        return origin
    if isinstance(origin, pyarrow.RecordBatch):
        return pyarrow.Table.from_batches([origin])
    module = type(origin).__module__.split(".")[0]
    if module in ("pandas", "polars"):
        return _framed(origin, name, module)
    raise InvalidArgument(
        f"table `{name}` is neither a path nor a table",
        place=name,
        hints=("give a path, an Arrow table, or a pandas or polars DataFrame",),
    )


def _framed(frame: Any, name: str, module: str) -> Any:
    import pyarrow

    try:
        if module == "pandas":
            made = pyarrow.Table.from_pandas(frame, preserve_index=False)
        else:
            made = (frame.collect() if hasattr(frame, "collect") else frame).to_arrow()
    except (pyarrow.ArrowException, TypeError, ValueError):
        made = None
    if made is None:  # raised here: their texts may quote the data, and a context keeps them
        raise InvalidArgument(
            f"table `{name}` has a column whose values are of different types",
            place=name,
            hints=("give every column one type",),
        )
    return made
