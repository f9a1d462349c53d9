"""A reservation: the right to look at data once, paid for in full before looking."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, NoReturn

from sfumato.errors import InvalidArgument, LedgerError, Unsupported
from sfumato.ledger.charges import Reserved
from sfumato.ledger.receipts import signed
from sfumato.ledger.records import Committed, Head

if TYPE_CHECKING:
    from sfumato.ledger.spending import Spending

__all__ = ["Reservation"]


class Reservation:
    """A charge that is on the disk. Commit what it paid for before leaving, or it is burnt.

        with ledger.reserve(...) as reservation:
            if reservation.replayed is not None:
                return reservation.replayed
            release = ...
            reservation.commit(release)

    Nothing gives the charge back: not an error, not a timeout, not a crash. Answer only after
    `commit` has returned.
    """

    __slots__ = ("_head", "_ledger", "_open", "_record", "_replayed", "_spending")

    def __init__(self, spending: Spending, record: Reserved, head: Head, replayed: bytes | None) -> None:
        self._spending = spending
        self._record = record
        self._head = head
        self._ledger: str | None = None
        self._replayed = replayed
        self._open = replayed is None

    @property
    def sequence(self) -> int:
        """The number of the reservation in the ledger."""
        return self._head.sequence

    @property
    def head(self) -> Head:
        """The reservation's place in the chain; a receipt that carries it is an anchor."""
        return self._head

    @property
    def record(self) -> Reserved:
        """What was charged, to whom, for what."""
        return self._record

    @property
    def replayed(self) -> bytes | None:
        """The stored release, where the idempotency key was answered before; nothing was charged now."""
        return self._replayed

    def receipt(self, answer: str) -> dict[str, str]:
        """Return the signed receipt of this charge; `answer` is a hash of what it paid for."""
        if self._ledger is None:
            with self._spending.journal.reading():
                self._ledger = self._spending.journal.name()
        key = self._spending.journal.key()
        return signed(self._record, self._head, ledger=self._ledger, answer=answer, key=key)

    def commit(self, release: bytes) -> Head:
        """Store the release durably; it may be answered once this returns. Only once, and in time.

        After `SF604`, the ledger being busy, it may be tried again; after any other failure not.
        """
        if not isinstance(release, bytes):
            raise InvalidArgument(f"a release is bytes, got {type(release).__name__}", place="release")
        if not self._open:
            happened = "was answered before" if self._replayed is not None else "is over"
            raise LedgerError(
                f"the reservation {happened}; nothing can be committed to it",
                code="SF608",
                sequence=self.sequence,
                hints=("reserve again; each answer is paid for by itself",),
            )
        record = Committed.of(
            self.sequence, release, self._spending.journal.now()
        )  # hashed before others wait
        try:
            link = self._spending.store(record, release)
        except BaseException as error:
            if not (isinstance(error, LedgerError) and error.code == "SF604"):
                self._end()  # only after waiting in vain is it certain that nothing was written
            raise
        self._end()
        return link.head

    def _end(self) -> None:
        self._open = False
        if self._record.key is not None and self._replayed is None:
            self._spending.journal.liveness.drop(self.sequence)

    def __enter__(self) -> Reservation:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._open:
            self._end()

    def __repr__(self) -> str:
        state = "replayed" if self._replayed is not None else "open" if self._open else "over"
        return f"<reservation {self.sequence} of {self._record.unit!r}: {state}>"

    def __reduce__(self) -> NoReturn:
        raise Unsupported("a reservation cannot be copied or pickled: it would be answered twice")
