"""The columns of a file: its schema, never its values.

A Parquet or DuckDB file says the kinds of its columns; of a CSV file only the first line is read,
so that names are known and kinds are not.
"""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.catalog.table import Field, UnsupportedColumn

__all__ = ["Schema", "schema_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """The names of a table's columns; with their kinds, where the file states them."""

    names: tuple[str, ...]
    fields: tuple[Field, ...] | None
    files: tuple[str, ...]
    unsupported: tuple[UnsupportedColumn, ...] = ()


def schema_of(name: str, paths: tuple[str, ...]) -> Schema:
    """Return the columns of the files of a table, by their paths or patterns."""
    from sfumato.backends.files import ending, found_files, headers_of

    files = found_files(list(paths), name)
    if all(ending(file) == "csv" for file in files):
        names = tuple(column for column in headers_of(files, name)[0][0] if column)
        return Schema(names=names, fields=None, files=files)
    from sfumato.backends import open_tables

    source = open_tables({name: list(files)}, read=False, kinds={name: {}})  # as private: no value is read
    fields, unsupported = source.fields(name), source.left_out(name)
    source.close()
    names = tuple(field.name for field in fields)
    return Schema(names=names, fields=fields, files=files, unsupported=unsupported)
