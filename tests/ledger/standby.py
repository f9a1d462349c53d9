"""A standby of the tests' PostgreSQL: it follows the primary until it is cut off, and may take over."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from types import TracebackType

import psycopg

from tests.conformance.server import SETTINGS, Server


class Standby:
    """A standby that is running, behind a socket in a folder of its own."""

    def __init__(self, primary: Server) -> None:
        self._primary = primary
        self._folder = tempfile.TemporaryDirectory(prefix="sfumato-standby-", ignore_cleanup_errors=True)
        self.host = self._folder.name
        if primary._user:
            shutil.chown(self.host, "postgres", "postgres")
        self._data = str(Path(self.host) / "data")
        host = primary.address.split()[0].removeprefix("host=")
        primary._run("pg_basebackup", "-h", host, "-U", "postgres", "-D", self._data, "-R", "-c", "fast")
        options = " ".join(f"-c {name}='{value}'" for name, value in SETTINGS.items())
        primary._run("pg_ctl", "-D", self._data, "-w", "-l", f"{self.host}/log", "start",
                     "-o", f"{options} -k {self.host}")  # fmt: skip

    def cut(self) -> None:
        """Receive nothing more from the primary, once all that it has by now is here."""
        with psycopg.connect(self._primary.address, autocommit=True) as primary:
            (wanted,) = primary.execute("SELECT pg_current_wal_flush_lsn()::text").fetchone() or ("",)
        with psycopg.connect(f"host={self.host} user=postgres dbname=postgres", autocommit=True) as own:
            received = "SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn"
            while own.execute(received, (wanted,)).fetchone() != (True,):
                pass
            own.execute("ALTER SYSTEM SET primary_conninfo = ''")
            own.execute("SELECT pg_reload_conf()")
            while own.execute("SELECT 1 FROM pg_stat_wal_receiver").fetchone():
                pass

    def take_over(self) -> None:
        """Become a primary."""
        self._primary._run("pg_ctl", "-D", self._data, "-w", "promote")

    def __enter__(self) -> Standby:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._primary._run("pg_ctl", "-D", self._data, "-m", "immediate", "-w", "stop")
        self._folder.cleanup()
