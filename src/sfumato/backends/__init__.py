"""Touches data: bounded plans become total SQL and exact integers."""

from sfumato.backends.duckdb import DuckDBBackend
from sfumato.backends.exact import Exact, ExactGroups, Members
from sfumato.backends.source import Source, open_tables

__all__ = ["DuckDBBackend", "Exact", "ExactGroups", "Members", "Source", "open_tables"]
