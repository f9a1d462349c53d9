"""Admission: a question waits until the memory that it declares is free, and only then is it charged.

The engine's memory limit is one for all statements that run at a time. Of several questions that each fit
alone some would fail, and what fails is charged. So a question takes its declared share of the memory before
it is reserved: of the memory of its data's engine, and of the memory of the whole process. Whoever came first
is admitted first, so a large question does not wait for ever.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sfumato.catalog.resources import memory_bytes
from sfumato.errors import EngineBusy

__all__ = ["Admission", "MemoryShares", "memory_of", "note_process_memory"]


class MemoryShares:
    """An amount of memory; questions hold shares of it while they run."""

    def __init__(self, capacity: int) -> None:
        self._capacity = self._free = capacity
        self._queue: deque[object] = deque()
        self._changed = threading.Condition()
        self._holding = threading.local()

    @contextmanager
    def held(self, amount: int, deadline: float) -> Iterator[None]:
        """Hold an amount as `taken` does; a thread that holds some already does not wait for itself."""
        if getattr(self._holding, "now", False):
            yield
            return
        with self.taken(amount, deadline):
            self._holding.now = True
            try:
                yield
            finally:
                self._holding.now = False

    @contextmanager
    def taken(self, amount: int, deadline: float) -> Iterator[None]:
        """Wait in turn until an amount is free, and hold it; a larger one than there is means all of it."""
        amount, place = min(amount, self._capacity), object()
        with self._changed:
            self._queue.append(place)
            try:
                wait = max(0.0, deadline - time.monotonic())
                if not self._changed.wait_for(lambda: self._turn(place, amount), wait):
                    raise EngineBusy
                self._free -= amount
            finally:
                self._queue.remove(place)
                self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._free += amount
                self._changed.notify_all()

    def _turn(self, place: object, amount: int) -> bool:
        return self._queue[0] is place and self._free >= amount


class Admission:
    """The memory of one engine, how much of it a question declares, and how long a question waits for it."""

    def __init__(self, memory: int, *, question: int | None, wait: float) -> None:
        self._shares = MemoryShares(memory)
        self._question = memory if question is None else min(question, memory)
        self._wait = wait

    @contextmanager
    def admitted(self) -> Iterator[None]:
        """Hold the memory of one question, of the engine's and of the process's."""
        deadline = time.monotonic() + self._wait
        with self._shares.held(self._question, deadline), _process_shares().held(self._question, deadline):
            yield


_PROCESS: MemoryShares | None = None
_GUARD = threading.Lock()


def _process_shares() -> MemoryShares:
    """Return the memory of this process: four fifths of the machine's, as the engine takes by itself."""
    global _PROCESS
    with _GUARD:
        if _PROCESS is None:
            import duckdb

            with duckdb.connect(":memory:") as connection:
                _PROCESS = MemoryShares(memory_of(connection))
        return _PROCESS


def note_process_memory(amount: int) -> None:
    """Note the limit of an engine that has none of its own, if no other did; to ask another takes a while."""
    global _PROCESS
    with _GUARD:
        _PROCESS = _PROCESS or MemoryShares(amount)


def memory_of(connection: Any) -> int:
    """Return the memory limit of an engine, in bytes."""
    [limit] = connection.execute("SELECT current_setting('memory_limit')").fetchone()
    return memory_bytes(limit)


def _begin_afresh() -> None:
    """Forget, as the child of a fork, what the threads of the parent hold."""
    global _PROCESS, _GUARD
    _PROCESS, _GUARD = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_afresh)
