"""Identity: what tells one source of data from another, under whatever name it is opened.

Two facts of a file: its path, links followed, and a hash of its length, its beginning and its end;
a renamed or copied file has the second, a file with new rows the first. Of an object in memory, a hash of
its contents. Tables of one DuckDB file are told apart by their columns. The ledger keeps keyed
hashes of these texts only.
"""

from __future__ import annotations

import hashlib
import os

from sfumato.backends.source import Source
from sfumato.errors import InvalidArgument

__all__ = ["identities"]

_ENDS = 1 << 16


def identities(source: Source, table: str) -> tuple[str, ...]:
    """Return texts that identify where a table comes from."""
    paths = source.paths(table)
    if not paths:
        return (f"contents {source.digest(table)}",)
    try:
        found = [text for path in paths for text in (f"path {os.path.realpath(path)}", _ends(path))]
    except OSError:
        raise InvalidArgument(f"the file of table `{table}` is gone", place=table) from None
    if any(path.lower().endswith((".duckdb", ".ddb", ".db")) for path in paths):
        columns = repr([(field.name, field.kind.value) for field in source.fields(table)])
        found = [f"{text} table {columns}" for text in found]
    return tuple(found)


def _ends(path: str) -> str:
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        beginning = file.read(_ENDS)
        file.seek(max(0, size - _ENDS))
        digest = hashlib.sha256(b"%d\n" % size + beginning + b"\n" + file.read(_ENDS))
    return f"ends {digest.hexdigest()}"
