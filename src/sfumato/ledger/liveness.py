"""Liveness: whether a reservation that has no release yet is still being worked on, or burnt.

While a reservation under an idempotency key is open, its process holds a lock on one byte (its
number) of a file beside the ledger. The operating system drops the lock when the process ends,
however it ends. The file is empty and may be deleted; nothing is granted because of it: at worst
a caller is told "burnt" early or waits in vain.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path

from sfumato.ledger.beside import opened_beside

try:
    import fcntl
except ImportError:  # no such locks on this system: only this process's own work is known to be alive
    fcntl = None  # type: ignore[assignment]

__all__ = ["Liveness"]


class Liveness:
    """The open reservations of one ledger. One object per file and process: locks are per process."""

    _known: dict[str, Liveness] = {}  # noqa: RUF012  # by path; closing a file would drop all its locks
    _guard = threading.Lock()

    def __init__(self, path: Path | None) -> None:  # None: a ledger in memory, known to this process only
        self._held: set[int] = set()
        self._lock = threading.Lock()
        self._file: int | None = None
        if path is not None and fcntl is not None:
            self._file = opened_beside(f"{path}-live", path)

    @staticmethod
    def of(path: Path) -> Liveness:
        """Return this process's object for a ledger's file."""
        name = os.path.realpath(path)
        with Liveness._guard:
            known = Liveness._known.get(name)
            if known is None:
                known = Liveness._known[name] = Liveness(Path(name))
            return known

    @staticmethod
    def forget_all() -> None:
        """Begin afresh, as the child of a fork: it has none of its parent's locks."""
        for known in Liveness._known.values():
            if known._file is not None:
                os.close(known._file)
        Liveness._guard = threading.Lock()
        Liveness._known = {}

    def hold(self, sequence: int) -> None:
        """Say that a reservation is being worked on."""
        with self._lock:
            if self._file is not None:
                fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, sequence)
            self._held.add(sequence)

    def drop(self, sequence: int) -> None:
        """Say that it no longer is."""
        with self._lock:
            if sequence in self._held:
                self._held.discard(sequence)
                if self._file is not None:
                    fcntl.lockf(self._file, fcntl.LOCK_UN, 1, sequence)

    def alive(self, sequence: int) -> bool:
        """Return whether any process is working on a reservation."""
        with self._lock:
            if sequence in self._held:
                return True
            if self._file is None:
                return False
            try:
                fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, sequence)
            except OSError:
                return True
            fcntl.lockf(self._file, fcntl.LOCK_UN, 1, sequence)
            return False


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=Liveness.forget_all)
