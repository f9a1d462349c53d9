"""The Spark backend: executors bound contributions, and the driver collects totals of groups alone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any, ClassVar

from sfumato.backends.engine_backend import EngineBackend
from sfumato.backends.spark.compile import SparkStatements
from sfumato.backends.spark.source import SparkTables
from sfumato.backends.statements import Statements
from sfumato.errors import Unsupported

__all__ = ["DEEPEST", "SparkBackend"]

DEEPEST = 200
"""How deep a statement may be nested. On a stack of 1 MB, which is usual, calls in calls fail from 270 on."""

_NESTING = re.compile(r"'[^']*'|`[^`]*`|[(\[]|[)\]]|\bCASE\b|\bEND\b")


class SparkBackend(EngineBackend):
    """Computes bounded queries over open tables of a Spark session."""

    statements: ClassVar[type[Statements]] = SparkStatements
    _tables: SparkTables

    def check_statement(self, text: str) -> None:
        """Refuse a statement that is nested too deep: the parser needs stack for each level."""
        super().check_statement(text)
        if _depth(text) > DEEPEST:
            raise Unsupported("expressions that are nested so deep")

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


def _depth(text: str) -> int:
    """Return how deep parentheses and CASEs of a statement are nested; no text in it has an escape."""
    steps = (
        1 if part in ("(", "[", "CASE") else -1 for part in _NESTING.findall(text) if part[0] not in "'`"
    )
    return max(accumulate(steps), default=0)
