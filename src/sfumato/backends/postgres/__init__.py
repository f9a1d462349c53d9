"""PostgreSQL: the engine itself bounds contributions, and only integers of groups leave it."""

from sfumato.backends.postgres.backend import PostgresBackend
from sfumato.backends.postgres.source import PostgresTables

__all__ = ["PostgresBackend", "PostgresTables"]
