"""What only the owner may do: read a table as it is.

For the tools that show an owner what a careless release would give away. What they find out is the
owner's and never a release: nothing on the path to one imports this file, and a test says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sfumato.backends import open_tables
from sfumato.backends.duckdb.engine import with_engine
from sfumato.backends.duckdb.source import DuckDBTables
from sfumato.catalog.identifiers import identifier
from sfumato.errors import InvalidArgument, Unsupported

__all__ = ["read_owned"]


def read_owned(origin: Any, columns: Sequence[str] | None = None, *, name: str = "data") -> Any:
    """Return a table, or some of its columns, as an Arrow table: from a path, a frame or an Arrow table."""
    source = open_tables({name: origin})
    if not isinstance(source, DuckDBTables):
        raise Unsupported("rows of a table of a database, which stay on its server")
    try:
        known = [field.name for field in source.fields(name)]
        for column in columns or ():
            if column not in known:
                raise InvalidArgument(
                    f"table `{name}` has no column `{column}`",
                    place=column,
                    hints=(f"it has {', '.join(known)}",),
                )
        chosen = ", ".join(identifier(column) for column in columns or known)
        text = f"SELECT {chosen} FROM {identifier(name)}"
        return with_engine(source.cursor(), lambda engine: engine.table(text))
    finally:
        source.close()
