"""The files that lie beside a ledger: whoever may write the ledger may write them, and nobody else."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

__all__ = ["files_of", "open_sidecar"]


def files_of(path: Path) -> tuple[Path, ...]:
    """Return a ledger's file and those beside it: SQLite's log and index, the key, the locks."""
    real = Path(os.path.realpath(path))
    return tuple(real.with_name(real.name + more) for more in ("", "-wal", "-shm", "-key", "-live"))


def open_sidecar(path: str, ledger: Path) -> int:
    """Open a file beside a ledger; create it, empty, where there is none. Raises OSError if it cannot."""
    flags = os.O_RDWR | os.O_CLOEXEC
    with suppress(FileExistsError):
        return _created(path, flags, os.stat(ledger))
    return os.open(path, flags)


def _created(path: str, flags: int, like: os.stat_result) -> int:
    file = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o600)
    mode = like.st_mode & 0o666
    try:
        os.fchown(file, like.st_uid if os.geteuid() == 0 else -1, like.st_gid)
    except OSError:
        mode &= 0o606  # this user cannot give files to the ledger's group, so the file has another group
    os.fchmod(file, mode)
    return file
