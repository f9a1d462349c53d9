"""Group commit: threads that write at the same time share one transaction and one wait for the disk.

A thread that finds nobody writing becomes the leader. It writes its own request, and the requests of all
threads that came meanwhile. The wait for the disk takes longer than all else; they wait once, together.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from sfumato.errors import LedgerError

__all__ = ["GroupCommit", "WriteRequest", "busy"]

_MOST = 64  # requests in one transaction


def busy() -> LedgerError:
    """Return the refusal of a thread that waited in vain for the other threads of its process."""
    return LedgerError(
        "other threads used the ledger for longer than the stated wait",
        code="SF604",
        hints=("nothing was charged by this call; try again",),
    )


class WriteRequest:
    """What one thread wants to write, and what came of it."""

    __slots__ = ("error", "leads", "ready", "result", "section", "written")

    def __init__(self, section: Callable[[], Any]) -> None:
        self.section = section
        self.result: Any = None
        self.error: BaseException | None = None
        self.written: bool | None = None  # True: committed. False: rolled back. None: not known
        self.leads = False
        self.ready: threading.Lock | None = None  # held while this thread has to wait for the leader


class GroupCommit:
    """The threads of one process that want to write to one store."""

    __slots__ = ("_busy", "_lock", "_waiting")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[WriteRequest] = []
        self._busy = False

    def run(
        self,
        request: WriteRequest,
        write: Callable[[list[WriteRequest]], None],
        confirm: Callable[[], None],
        wait: float,
    ) -> Any:
        """Have a request written by `write`, together with those of other threads; return its result.

        `write` runs the section of every request, commits, and returns when the disk has confirmed. `confirm`
        only waits for the disk. A thread that waits longer than `wait` for the leader before it is refused,
        and nothing of its request was written.
        """
        with self._lock:
            self._waiting.append(request)
            request.leads, self._busy = not self._busy, True
            if not request.leads:
                request.ready = threading.Lock()
                request.ready.acquire()
        if request.ready is not None:
            self._wait(request, request.ready, wait)
        if request.leads:
            self._lead(request, write)
        elif isinstance(request.error, _LeaderInterrupted) and request.written:
            confirm()  # the leader committed this request, and was interrupted before the disk confirmed
            request.error = None
        if request.error is not None:
            raise request.error
        return request.result

    def _wait(self, request: WriteRequest, ready: threading.Lock, wait: float) -> None:
        try:
            if ready.acquire(timeout=wait):
                return
            error: BaseException = busy()
        except BaseException as interruption:
            error = interruption
        with self._lock:
            if request in self._waiting and not request.leads:
                self._waiting.remove(request)
                raise error
        if not request.leads:
            ready.acquire()  # the leader is writing this request: its result has to be known

    def _lead(self, request: WriteRequest, write: Callable[[list[WriteRequest]], None]) -> None:
        with self._lock:
            batch, self._waiting = self._waiting[:_MOST], self._waiting[_MOST:]
        try:
            write(batch)
        except BaseException as error:
            for each in batch:
                if isinstance(error, Exception):
                    each.error = each.error or error
                else:
                    each.error = error if each is request else each.error or _LeaderInterrupted(each.written)
        finally:
            with self._lock:
                self._busy = bool(self._waiting)
                if self._busy:
                    self._waiting[0].leads = True
                    batch.append(self._waiting[0])
            for each in batch:
                if each is not request and each.ready is not None:
                    each.ready.release()


class _LeaderInterrupted(LedgerError):
    """The leader was interrupted, as by Ctrl-C, while it wrote for this thread too."""

    def __init__(self, written: bool | None) -> None:
        certain = "nothing was charged by this call; try again"
        unknown = "nothing was answered; the history shows whether this call was charged"
        super().__init__(
            "the thread that wrote for several was interrupted",
            code="SF604" if written is False else "SF601",
            hints=(certain if written is False else unknown,),
        )
