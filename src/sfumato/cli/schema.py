"""The columns of a file: its schema, never its values.

A Parquet or DuckDB file says the kinds of its columns; of a CSV file only the first line is read,
so that names are known and kinds are not.
"""

from __future__ import annotations

import csv
import gzip
from dataclasses import dataclass
from pathlib import Path

from sfumato.catalog.table import Field
from sfumato.errors import InvalidArgument

__all__ = ["Schema", "schema_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """The names of a table's columns; with their kinds, where the file states them."""

    names: tuple[str, ...]
    fields: tuple[Field, ...] | None
    files: tuple[str, ...]


def schema_of(name: str, paths: tuple[str, ...]) -> Schema:
    """Return the columns of the files of a table, by their paths or patterns."""
    from sfumato.backends.files import ending, found_files

    files = found_files(list(paths), name)
    if all(ending(file) == "csv" for file in files):
        return Schema(names=_header(name, Path(files[0])), fields=None, files=files)
    from sfumato.backends.source import open_tables

    source = open_tables({name: list(files)}, read=False)
    fields = source.fields(name)
    source.close()
    return Schema(names=tuple(field.name for field in fields), fields=fields, files=files)


def _header(name: str, path: Path) -> tuple[str, ...]:
    compressed = path.name.lower().endswith(".gz")
    try:
        with gzip.open(path) if compressed else path.open("rb") as file:
            first: str | None = file.readline(1_000_000).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError, EOFError):
        first = None
    if first is None:  # raised here: what a decoder stumbles over is kept in its error
        raise InvalidArgument(f"the file of table `{name}` cannot be read", place=name)
    tabs = ".tsv" in path.name.lower()
    mark = "\t" if tabs else max(",;|\t", key=first.count)
    names = tuple(cell.strip() for cell in next(csv.reader([first], delimiter=mark), []))
    if not names or not all(names):
        raise InvalidArgument(
            f"the first line of the file of table `{name}` names no columns",
            place=name,
            hints=("a CSV file needs a header",),
        )
    return names
