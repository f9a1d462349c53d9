"""Open reservations: whether somebody still works on a reservation that has no release yet, or it is burnt.

While a reservation under an idempotency key is open, its process holds a lock on one byte (the reservation's
number) of a file beside the ledger. The operating system drops the lock when the process ends, however it
ends. The file is empty and may be deleted. Nothing is granted because of it: at worst a caller is told
"burnt" early or waits in vain.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path

from sfumato.ledger.sidecar_files import open_sidecar

try:
    import fcntl
except ImportError:  # no such locks on this system: a process knows of its own reservations only
    fcntl = None  # type: ignore[assignment]

__all__ = ["OpenReservations"]


class OpenReservations:
    """The open reservations of one ledger. One object per file and process: locks are per process."""

    _known: dict[str, OpenReservations] = {}  # noqa: RUF012  # by path; closing a file would drop its locks
    _guard = threading.Lock()

    def __init__(self, path: Path | None) -> None:  # None: a ledger in memory, known to this process only
        self._held: set[int] = set()
        self._lock = threading.Lock()
        self._file: int | None = None
        if path is not None and fcntl is not None:
            self._file = open_sidecar(f"{path}-live", path)

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
                if self._file is not None:
                    fcntl.lockf(self._file, fcntl.LOCK_UN, 1, sequence)

    def alive(self, sequence: int) -> bool:
        """Return whether anybody works on a reservation."""
        with self._lock:
            if sequence in self._held:
                return True
            if not self._locked(sequence):
                return True
            if self._file is not None:
                fcntl.lockf(self._file, fcntl.LOCK_UN, 1, sequence)
            return False

    def _locked(self, sequence: int) -> bool:
        """Lock the byte of a reservation for this process; return False where another process has it."""
        if self._file is not None:
            try:
                fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, sequence)
            except OSError:
                return False
        return True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=OpenReservations.forget_all)
