"""The columns of a file or of a table of a database: its schema, never its values.

A Parquet or DuckDB file says the kinds of its columns; of a CSV file only the first line is read,
so that names are known and kinds are not.
"""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.catalog.database_table import DatabaseTable
from sfumato.catalog.table import Field, UnsupportedColumn

__all__ = ["Schema", "schema_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """The names of a table's columns; with their kinds, where the file states them."""

    names: tuple[str, ...]
    fields: tuple[Field, ...] | None
    files: tuple[str, ...]
    unsupported: tuple[UnsupportedColumn, ...] = ()
    sources: tuple[str, ...] = ()  # what identifies a table of a database


def schema_of(name: str, place: tuple[str, ...] | DatabaseTable) -> Schema:
    """Return the columns of the files of a table, by their paths or patterns, or of a table of a database."""
    from sfumato.backends import open_tables
    from sfumato.backends.files import ending, found_files, headers_of

    if isinstance(place, DatabaseTable):
        source = open_tables({name: place}, read=False)
        fields, unsupported = source.fields(name), source.left_out(name)
        return Schema(
            names=tuple(field.name for field in fields),
            fields=fields,
            files=(),
            unsupported=unsupported,
            sources=source.identities(name),
        )

    files = found_files(list(place), name)
    if all(ending(file) == "csv" for file in files):
        names = tuple(column for column in headers_of(files, name)[0][0] if column)
        return Schema(names=names, fields=None, files=files)
    source = open_tables({name: list(files)}, read=False, kinds={name: {}})  # as private: no value is read
    fields, unsupported = source.fields(name), source.left_out(name)
    source.close()
    names = tuple(field.name for field in fields)
    return Schema(names=names, fields=fields, files=files, unsupported=unsupported)
