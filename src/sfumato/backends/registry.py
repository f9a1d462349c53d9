"""The registry of engines: session, auditor and command line open every source through `open_tables`.

An engine is a folder here. Its module `source` says which origins it reads (`reads`) and opens them
(`open_source`); the first engine that reads all origins opens them.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from sfumato.catalog.kind import Kind
from sfumato.errors import InvalidArgument

if TYPE_CHECKING:
    from sfumato.backends.protocols import Source

__all__ = ["SourceOptions", "open_tables"]

_ENGINES = ("duckdb", "postgres", "spark")
_CURES = {  # by the type of what is not a table
    "DuckDBPyConnection": "give one of its tables: connection.table('people')",
    "Series": "one column does not say whose its rows are: give the whole frame",
    "list": "make a table of it: pyarrow.Table.from_pylist(rows), or pandas.DataFrame(rows)",
    "ndarray": "name its columns: pandas.DataFrame(array, columns=[..])",
}


class SourceOptions(TypedDict, total=False):
    """How tables are opened.

    With `read=False` only schemas are: texts are not looked through, and nothing may be asked. (A
    public CSV file is read all the same.) `kinds` has, for each private table, the kinds of columns that are
    declared: in a CSV file all others are text. Tables that are not in it are public.

    This process writes nothing private to disk; servers may write to theirs what they sort. No statement runs
    for more than `seconds`, or takes more than `memory`, by default four fifths of what the machine has. A
    question declares `question_memory` of it, by default all of it, and waits until that much is free.
    """

    threads: int | None
    memory: str | None
    question_memory: str | None
    seconds: float
    read: bool
    kinds: Mapping[str, Mapping[str, Kind]] | None


def open_tables(tables: Mapping[str, Any], **options: Unpack[SourceOptions]) -> Source:
    """Open tables by name: paths or objects."""
    if not tables:
        raise InvalidArgument("there are no tables to open", place="tables")
    if len({name.lower() for name in tables}) != len(tables):
        raise InvalidArgument("two tables have one name", place="tables")
    engines = [importlib.import_module(f"sfumato.backends.{name}.source") for name in _ENGINES]
    for name, origin in tables.items():
        if not any(engine.reads(origin) for engine in engines):
            kind = type(origin).__name__
            raise InvalidArgument(
                f"table `{name}` is neither a path nor a table, but a {kind}",
                place=name,
                hints=(
                    _CURES.get(
                        kind, "give a path, an Arrow table, or a DataFrame of pandas, polars or Spark"
                    ),
                ),
            )
    for engine in engines:
        if all(map(engine.reads, tables.values())):
            opened: Source = engine.open_source(tables, **options)
            return opened
    raise InvalidArgument("these tables are not all of one engine", place="tables")
