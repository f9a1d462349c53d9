"""Identity: what tells one source of data from another, under whatever name it is opened.

Two facts of a file: its path, links followed, and a hash of its length, its beginning and its end;
a renamed or copied file has the second, a file with new rows the first. Of an object in memory, a hash of
its contents; it is not recognised as the file that it was read from. Tables of one DuckDB file are told
apart by their columns. The ledger keeps keyed hashes of these texts only.
"""

from __future__ import annotations

import os

from sfumato.backends.files import Files, ending
from sfumato.backends.registry import Source
from sfumato.catalog.table import Field

__all__ = ["identities", "identities_of_files", "path_identity"]


def identities(source: Source, table: str) -> tuple[str, ...]:
    """Return texts that identify where a table comes from."""
    files = source.files(table)
    if files is None:
        return (f"contents {source.digest(table)}",)
    return identities_of_files(files, source.fields(table))


def identities_of_files(files: Files, fields: tuple[Field, ...]) -> tuple[str, ...]:
    """Return texts that identify files that hold a table of these columns."""
    pairs = zip(files.paths, files.ends, strict=True)
    found = [text for path, ends in pairs for text in (path_identity(path), f"ends {ends}")]
    if any(ending(path) == "duckdb" for path in files.paths):
        columns = repr([(field.name, field.kind.value) for field in fields])
        found = [f"{text} table {columns}" for text in found]
    return tuple(found)


def path_identity(path: str) -> str:
    """Return the text that identifies a file by where it lies."""
    return f"path {os.path.realpath(path)}"
