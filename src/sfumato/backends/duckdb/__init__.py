"""The DuckDB engine: reads files and objects in place, and computes exact integers from them."""

from sfumato.backends.duckdb.backend import Backend
from sfumato.backends.duckdb.source import Source

__all__ = ["Backend", "Source"]
