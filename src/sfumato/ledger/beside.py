"""Files beside a ledger: whoever may write the ledger may write them, and nobody else."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from sfumato.ledger.forks import Identity

__all__ = ["identity_of", "opened_beside"]


def opened_beside(path: str, ledger: Path, *, create: bool = True) -> int:
    """Open a file, and begin it, empty, where there is none. Raises OSError where that cannot be."""
    flags = os.O_RDWR | os.O_CLOEXEC
    if create:
        with suppress(FileExistsError):
            return _begun(path, flags, os.stat(ledger))
    return os.open(path, flags)


def identity_of(path: str | Path) -> Identity:
    """Return which file it is: under one name there may be another one day."""
    status = os.stat(path)
    return status.st_dev, status.st_ino


def _begun(path: str, flags: int, like: os.stat_result) -> int:
    file = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o600)
    mode = like.st_mode & 0o666
    try:
        os.fchown(file, like.st_uid if os.geteuid() == 0 else -1, like.st_gid)
    except OSError:
        mode &= 0o606  # this user may not give files to that group: the group it has is another
    os.fchmod(file, mode)
    return file
