"""The PostgreSQL backend: one transaction for all statements of a question."""

from __future__ import annotations

from typing import Any, ClassVar

from sfumato.backends.engine_backend import EngineBackend
from sfumato.backends.postgres.compile import PostgresStatements
from sfumato.backends.postgres.source import PostgresTables
from sfumato.backends.statements import Statements

__all__ = ["PostgresBackend"]


class PostgresBackend(EngineBackend):
    """Computes bounded queries over open tables of a database."""

    statements: ClassVar[type[Statements]] = PostgresStatements
    _tables: PostgresTables

    def _before(self, text: str) -> list[tuple[Any, ...]]:
        return self._tables.before_charge(lambda cursor: cursor.execute(text).fetchall())

    def data_version(self) -> str:
        """Return what tells this data from an earlier or later state of it: see `source`.

        Where units are divided into parts, no change may go unnoticed: questions about two parts cost as much
        as one of them only as long as nobody has gone from one part to the other.
        """
        return self._tables.version(exact=any(table.partition for table in self._catalog.tables))
