"""Open reservations of a ledger on a server: locks of a session, which the server drops when it ends."""

from __future__ import annotations

from contextlib import suppress

from sfumato.errors import LedgerError
from sfumato.ledger.open_reservations import OpenReservations
from sfumato.ledger.postgres.connection import ServerConnection, Unreachable

__all__ = ["ServerReservations"]


class ServerReservations(OpenReservations):
    """The reservations that one journal works on, by a connection that is opened for the first of them.

    Nothing is granted because of them: where the session was lost, another caller is told "burnt" early.
    """

    def __init__(self, address: str, wait: float) -> None:
        super().__init__(None)
        self._address = address
        self._wait = wait
        self._session: ServerConnection | None = None

    def close(self) -> None:
        """Let go of all reservations."""
        with self._lock:
            if self._session is not None:
                self._session.close()
                self._session = None

    def leave(self) -> None:
        """Leave them to the parent of this process."""
        if self._session is not None:
            self._session.leave()

    def _locked(self, sequence: int) -> bool:
        if self._session is not None and not self._session.lost:
            with suppress(Unreachable):  # it was idle when the server went
                return _taken(self._session, sequence)
        self._session = ServerConnection(self._address, self._wait)
        return _taken(self._session, sequence)

    def _unlock(self, sequence: int) -> None:
        if self._session is not None:
            with suppress(LedgerError):  # a session that ended has dropped its locks
                self._session.execute("SELECT pg_advisory_unlock(?::bigint)", (sequence,))


def _taken(session: ServerConnection, sequence: int) -> bool:
    found = session.execute("SELECT pg_try_advisory_lock(?::bigint)", (sequence,)).fetchone()
    return bool(found[0])
