"""The DuckDB engine: reads files and objects in place, and computes exact integers from them."""

from sfumato.backends.duckdb.backend import DuckDBBackend
from sfumato.backends.duckdb.source import DuckDBTables

__all__ = ["DuckDBBackend", "DuckDBTables"]
