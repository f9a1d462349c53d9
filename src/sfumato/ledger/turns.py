"""Turns: threads that write at the same time share one transaction and one sync.

Who finds nobody at work writes: for itself, and for all who came meanwhile. So a sync, which takes longer
than everything else, is waited for once by all of them together, and the more there are the less each costs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from sfumato.errors import LedgerError
from sfumato.ledger.desk import Ask

__all__ = ["Errand", "Turns"]

_MOST = 64  # errands in one transaction


class Errand:
    """What one thread wants to write, and what came of it."""

    __slots__ = ("ask", "error", "leads", "ready", "result", "section")

    def __init__(self, section: Callable[[], Any], ask: Ask | None = None) -> None:
        self.section = section
        self.ask = ask
        self.result: Any = None
        self.error: BaseException | None = None
        self.leads = False
        self.ready: threading.Lock | None = None  # for who has to wait: held until it may go on


class Turns:
    """The threads of one process that wait to write to one store."""

    __slots__ = ("_busy", "_lock", "_waiting")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[Errand] = []
        self._busy = False

    def run(self, errand: Errand, write: Callable[[list[Errand]], None], wait: float) -> Any:
        """Have an errand written by `write`, with those of other threads; return what came of it.

        `write` runs every section, and says of each errand what came of it. Whoever waits longer than `wait`
        for its turn is refused, and nothing of it was written.
        """
        with self._lock:
            self._waiting.append(errand)
            errand.leads, self._busy = not self._busy, True
            if not errand.leads:
                errand.ready = threading.Lock()
                errand.ready.acquire()
        if errand.ready is not None:
            self._wait(errand, errand.ready, wait)
        if errand.leads:
            self._lead(errand, write)
        if errand.error is not None:
            raise errand.error
        return errand.result

    def _wait(self, errand: Errand, ready: threading.Lock, wait: float) -> None:
        try:
            if ready.acquire(timeout=wait):
                return
            error: BaseException = LedgerError(
                "other threads used the ledger for longer than the stated wait",
                code="SF604",
                hints=("nothing was charged by this call; try again",),
            )
        except BaseException as interruption:
            error = interruption
        with self._lock:
            if errand in self._waiting and not errand.leads:
                self._waiting.remove(errand)
                raise error
        if not errand.leads:
            ready.acquire()  # it is being written: what comes of it has to be known

    def _lead(self, errand: Errand, write: Callable[[list[Errand]], None]) -> None:
        with self._lock:
            batch, self._waiting = self._waiting[:_MOST], self._waiting[_MOST:]
        try:
            write(batch)
        except BaseException as error:
            for each in batch:
                if isinstance(error, Exception):
                    each.error = each.error or error
                else:
                    each.error = error if each is errand else each.error or _interrupted()
        finally:
            with self._lock:
                self._busy = bool(self._waiting)
                if self._busy:
                    self._waiting[0].leads = True
                    batch.append(self._waiting[0])
            for each in batch:
                if each is not errand and each.ready is not None:
                    each.ready.release()


def _interrupted() -> LedgerError:
    return LedgerError(
        "the thread that wrote for several was interrupted",
        code="SF601",
        hints=("nothing was answered; what may have been charged stays charged",),
    )
