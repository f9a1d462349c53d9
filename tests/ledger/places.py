"""Places for ledgers: files in a folder, or databases on a server that the tests started."""

from __future__ import annotations

import os
from pathlib import Path

from sfumato.ledger.postgres.connection import WITHOUT_FSYNC
from sfumato.ledger.postgres.schema import SCHEMA

PREFIX = "postgresql://"


class Databases:
    """A server, used like a folder: `databases / "a"` is the address of a database of that name."""

    def __init__(self, address: str) -> None:
        self.address = address  # postgresql://postgres@/%s?host=..

    def __truediv__(self, name: str) -> str:
        import psycopg

        os.environ[WITHOUT_FSYNC] = "1"
        with psycopg.connect(self.address.replace("%s", "postgres"), autocommit=True) as connection:
            query = "SELECT 1 FROM pg_database WHERE datname = %s"
            if connection.execute(query, (f"ledger_{name}",)).fetchone() is None:
                connection.execute(f'CREATE DATABASE "ledger_{name}"')
        return self.address.replace("%s", f"ledger_{name}")

    def clear(self) -> None:
        """End whoever is still connected, and delete the ledgers; the databases are used again."""
        import psycopg

        with psycopg.connect(self.address.replace("%s", "postgres"), autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
                " WHERE starts_with(datname, 'ledger_')"
            )
            query = "SELECT datname FROM pg_database WHERE starts_with(datname, 'ledger_')"
            names = [name for (name,) in connection.execute(query).fetchall()]
            for name in names:
                connection.execute(f'ALTER DATABASE "{name}" RESET ALL')
        for name in names:
            with psycopg.connect(self.address.replace("%s", name), autocommit=True) as connection:
                connection.execute(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE")

    def __str__(self) -> str:
        return self.address


def folder_of(text: str) -> Path | Databases:
    """Return the folder or server that a text names, in another process."""
    return Databases(text) if text.startswith(PREFIX) else Path(text)
