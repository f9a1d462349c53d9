"""Open reservations: whether somebody still works on a reservation that has no release yet, or it is burnt.

While a reservation under an idempotency key is open, its process holds a lock on one byte (the reservation's
number) of a file beside the ledger. The operating system drops the lock when the process ends, however it
ends. The file is empty and may be deleted. Nothing is granted because of it: at worst a caller is told
"burnt" early or waits in vain.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # no such locks on this system: a process knows of its own reservations only
    fcntl = None  # type: ignore[assignment]

__all__ = ["OpenReservations", "files_of"]


def files_of(path: Path) -> tuple[Path, ...]:
    """Return a ledger's file and those beside it: SQLite's log and index, the key, the locks."""
    real = Path(os.path.realpath(path))
    return tuple(real.with_name(real.name + more) for more in ("", "-wal", "-shm", "-key", "-live"))


def _open_beside(path: str, ledger: Path) -> int:
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


class OpenReservations:
    """The open reservations of one ledger. One object per file and process: locks are per process."""

    _known: dict[str, OpenReservations] = {}  # noqa: RUF012  # by path; closing a file would drop its locks
    _guard = threading.Lock()

    def __init__(self, path: Path | None) -> None:  # None: a ledger in memory, known to this process only
        self._held: set[int] = set()
        self._lock = threading.Lock()
        self._file: int | None = None
        if path is not None and fcntl is not None:
            self._file = _open_beside(f"{path}-live", path)

    @staticmethod
    def of(path: Path) -> OpenReservations:
        """Return this process's object for a ledger's file."""
        name = os.path.realpath(path)
        with OpenReservations._guard:
            known = OpenReservations._known.get(name)
            if known is None:
                known = OpenReservations._known[name] = OpenReservations(Path(name))
            return known

    @staticmethod
    def forget_all() -> None:
        """Begin afresh, as the child of a fork: it has none of its parent's locks."""
        for known in OpenReservations._known.values():
            if known._file is not None:
                os.close(known._file)
        OpenReservations._guard = threading.Lock()
        OpenReservations._known = {}

    def hold(self, sequence: int) -> bool:
        """Say that this caller works on a reservation; return False where another one does."""
        with self._lock:
            if sequence in self._held or not self._locked(sequence):
                return False
            self._held.add(sequence)
            return True

    def drop(self, sequence: int) -> None:
        """Say that this caller no longer works on it."""
        with self._lock:
            if sequence in self._held:
                self._held.discard(sequence)
                self._unlock(sequence)

    def alive(self, sequence: int) -> bool:
        """Return whether anybody works on a reservation."""
        with self._lock:
            if sequence in self._held:
                return True
            if not self._locked(sequence):
                return True
            self._unlock(sequence)
            return False

    def _locked(self, sequence: int) -> bool:
        """Lock the byte of a reservation for this process; return False where another process has it."""
        if self._file is not None:
            try:
                fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, sequence)
            except OSError:
                return False
        return True

    def _unlock(self, sequence: int) -> None:
        if self._file is not None:
            fcntl.lockf(self._file, fcntl.LOCK_UN, 1, sequence)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=OpenReservations.forget_all)
