"""The registry of engines: session, auditor and command line open every source through `open_tables`.

An engine is a folder here. Its module `source` says which origins it reads (`reads`) and opens them
(`open_source`); an engine is imported when a source is for it.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from sfumato.backends.files import Files
from sfumato.catalog.catalog import Catalog
from sfumato.catalog.kind import Kind
from sfumato.catalog.table import Field, UnsupportedColumn
from sfumato.errors import InvalidArgument

__all__ = ["Source", "open_tables"]

_SECONDS = 3600  # how long one statement may take, unless said otherwise
_ENGINES = ("duckdb",)  # the first that reads all origins opens them


class Source(Protocol):
    """Open tables. All but `backend` and `cursor` are facts about them, and no values."""

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables."""
        ...

    def fields(self, table: str) -> tuple[Field, ...]:
        """Return the columns of a table and their kinds, as far as there is a kind for their type."""
        ...

    def left_out(self, table: str) -> tuple[UnsupportedColumn, ...]:
        """Return the columns of a table that cannot be asked about: no kind is known for their types."""
        ...

    def version(self) -> str:
        """Return a hash that differs where the data may differ; refuse files that have changed since."""
        ...

    def check(self) -> None:
        """Refuse an engine that has stopped, and files that are no longer those that were opened."""
        ...

    def files(self, table: str) -> Files | None:
        """Return the files of a table; None if it came as an object."""
        ...

    def digest(self, table: str) -> str:
        """Return a hash of the contents of a table that came as an object."""
        ...

    def backend(self, catalog: Catalog, *, threads: int | None = None) -> Any:
        """Return what computes bounded queries from these tables: a `pipeline.Backend`."""
        ...

    def admitted(self) -> AbstractContextManager[None]:
        """Hold the memory that one question declares; wait for it while others run."""
        ...

    def cursor(self) -> Any:
        """Return a connection of its own to the tables, for the engine and for the owner's tools alone."""
        ...

    def close(self) -> None:
        """Close the tables."""
        ...


def open_tables(
    tables: Mapping[str, Any],
    *,
    threads: int | None = None,
    memory: str | None = None,
    question_memory: str | None = None,
    spill: str | Path | None = None,
    seconds: float = _SECONDS,
    read: bool = True,
    kinds: Mapping[str, Mapping[str, Kind]] | None = None,
) -> Source:
    """Open tables by name: paths or objects. `spill` names a directory for what exceeds the memory limit.

    With `read=False` only schemas are: texts are not looked through, and nothing may be asked. (A CSV file
    is read all the same.) `kinds` has, for each private table, the kinds of columns that are declared: in a
    CSV file all others are text. Tables that are not in it are public.

    Without `spill` nothing private is ever written to disk. No statement runs for more than `seconds`, or
    takes more than `memory`, by default four fifths of what the machine has. A question declares
    `question_memory` of it, by default all of it, and waits until that much is free.
    """
    if not tables:
        raise InvalidArgument("there are no tables to open", place="tables")
    if len({name.lower() for name in tables}) != len(tables):
        raise InvalidArgument("two tables have one name", place="tables")
    engines = [importlib.import_module(f"sfumato.backends.{name}.source") for name in _ENGINES]
    for name, origin in tables.items():
        if not any(engine.reads(origin) for engine in engines):
            raise InvalidArgument(
                f"table `{name}` is neither a path nor a table",
                place=name,
                hints=("give a path, an Arrow table, or a pandas or polars DataFrame",),
            )
    for engine in engines:
        if all(map(engine.reads, tables.values())):
            opened: Source = engine.open_source(
                tables,
                threads=threads,
                memory=memory,
                question_memory=question_memory,
                spill=spill,
                seconds=seconds,
                read=read,
                kinds=kinds,
            )
            return opened
    raise InvalidArgument("these tables are not all of one engine", place="tables")
