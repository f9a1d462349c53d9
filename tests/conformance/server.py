"""A PostgreSQL of the tests' own: in a temporary folder, behind a socket, with settings nobody would expect.

`python -m tests.conformance.server` finds the server's programs or installs them, and prints where they are.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import quote

from tests import debian_packages

PACKAGES = ("postgresql",)
ABSENT = (
    "no PostgreSQL was found: install it (Debian: apt-get install postgresql), or say where its programs are:"
    " SFUMATO_POSTGRES=/path/to/bin"
)
# What a dialect must not depend on: the zone, the order of texts, how dates and numbers are written.
SETTINGS = {
    "listen_addresses": "",
    "fsync": "off",
    "shared_buffers": "32MB",
    "max_connections": "80",
    "autovacuum": "off",
    "timezone": "Asia/Kolkata",
    "datestyle": "SQL, DMY",
    "extra_float_digits": "0",
    "bytea_output": "escape",
    "default_transaction_isolation": "read committed",
}


def find() -> Path | None:
    """Return the folder of the server's programs, None if there is none."""
    named = os.environ.get("SFUMATO_POSTGRES")
    if named:
        return Path(named) if (Path(named) / "initdb").exists() else None
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    on_path = shutil.which("initdb")
    return found[-1].parent if found else Path(on_path).parent if on_path else None


def find_or_install() -> Path | None:
    """Return the folder of the programs, which are installed where they may be."""
    return debian_packages.find_or_install(find, "SFUMATO_POSTGRES", *PACKAGES)


@contextmanager
def crash_awaited(address: str) -> Iterator[None]:
    """Wait, after a process of a server was killed, until the server takes connections that stay.

    Until it notices, it still takes some, and then it ends them all: so one from before must end first.
    """
    import psycopg

    before = psycopg.connect(address, autocommit=True)
    try:
        yield
    finally:
        deadline = time.monotonic() + 60
        with suppress(psycopg.OperationalError):
            while before.execute("SELECT 1"):
                assert time.monotonic() < deadline
                time.sleep(0.005)
        before.close()
        while time.monotonic() < deadline:
            with suppress(psycopg.OperationalError), psycopg.connect(address):
                break


class Server:
    """A server that is running, as another user where the tests are root's: it refuses to be root's."""

    def __init__(self, programs: Path, *, standby_of: Server | None = None, **settings: str) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="sfumato-pg-", ignore_cleanup_errors=True)
        folder, self._programs = Path(self._folder.name), programs
        self._user: dict[str, Any] = {}
        if os.getuid() == 0:
            shutil.chown(folder, "postgres", "postgres")
            self._user = {"user": "postgres", "group": "postgres", "extra_groups": []}
        self.address = f"host={folder} user=postgres dbname=postgres"
        self._data = folder / "data"
        if standby_of is None:
            texts = ("-E", "UTF8", "--locale=C.UTF-8", "--locale-provider=icu", "--icu-locale=en-US")
            self._run("initdb", "-D", str(self._data), "-U", "postgres", "-A", "trust", "--no-sync", *texts)
        else:
            self._run("pg_basebackup", "-D", str(self._data), "-d", standby_of.address, "-R", "-c", "fast")
        options = " ".join(f"-c {name}='{value}'" for name, value in {**SETTINGS, **settings}.items())
        self._run("pg_ctl", "-D", str(self._data), "-w", "-l", str(folder / "log"), "start",
                  "-o", f"{options} -k {folder}")  # fmt: skip

    @property
    def url(self) -> str:
        """The address of the owner, as users write it."""
        return f"postgresql://postgres@/postgres?host={quote(str(self._data.parent), safe='')}"

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [self._programs / program, *arguments], cwd=self._folder.name, check=False,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **self._user,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"{program}: {done.stderr.decode()}")

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._run("pg_ctl", "-D", str(self._data), "-m", "immediate", "-w", "stop")
        self._folder.cleanup()


if __name__ == "__main__":
    debian_packages.tell(find_or_install(), ABSENT, "ask PostgreSQL")
