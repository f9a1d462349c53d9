"""The Spark backend: executors bound contributions, and the driver collects totals of groups alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

from sfumato.backends.engine_backend import EngineBackend
from sfumato.backends.spark.compile import SparkStatements
from sfumato.backends.spark.source import SparkTables
from sfumato.backends.statements import Statements

__all__ = ["SparkBackend"]


class SparkBackend(EngineBackend):
    """Computes bounded queries over open tables of a Spark session."""

    statements: ClassVar[type[Statements]] = SparkStatements
    _tables: SparkTables

    def _hold(self, cursor: Any, written: Statements) -> Statements:
        """Let executors keep what is kept of units, for all statements of one question."""
        return replace(written, held=self._tables.share(cursor, written.kept()))

    def _columns(self, cursor: Any, text: str) -> Sequence[Any]:
        """Run a statement, and return its columns."""
        columns: list[Any] = cursor.execute(text).columns
        return columns

    def public_copies(self, name: str, columns: tuple[str, ...]) -> int:
        """Return how many rows of a public table have the same values, at most; without columns, all."""
        self._tables.check_copies(name)
        return super().public_copies(name, columns)

    def data_version(self) -> str:
        """Return what tells this data from an earlier or later state of it: see `source`."""
        if any(table.partition for table in self._catalog.tables):
            self._tables.check_parts()
        return self._tables.version()
