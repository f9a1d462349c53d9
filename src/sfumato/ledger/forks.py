"""Forks: no connection to a ledger goes through one.

SQLite keeps the locks that a process has on a file in that process's memory, and a fork copies them. The
child then believes that it holds what the system gave to its parent alone. Whoever closes the file last
deletes the log in which the child goes on to write, and what it charged is lost.

So every connection is closed before a fork, and opened again afterwards by whoever needs it, parent or child.
A child that inherited one all the same (a fork by foreign code that does not call back, in the middle of a
transaction, or while another thread was at work for too long) is refused, and never closes it either.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections import Counter
from contextlib import suppress
from typing import Any, Protocol
from weakref import WeakSet

from sfumato.errors import LedgerError

__all__ = ["ForkObserver", "Identity", "count", "inherited", "keep_for_ever", "observe", "refusal"]

Identity = tuple[int, int]
"""Which file it is, by its device and number."""

_WAIT = 10.0  # seconds that a fork waits for other threads


class ForkObserver(Protocol):
    """What is told before and after a fork."""

    def before_fork(self, deadline: float) -> None:
        """Get ready, by the deadline if possible."""

    def after_fork(self, *, child: bool) -> None:
        """Go on, as the parent or as the child."""


_GATE = threading.RLock()  # held during a fork
_FORKER: int | None = None  # the thread that holds it for one
_OBSERVERS: WeakSet[ForkObserver] = WeakSet()
_COUNTING = threading.RLock()
_CONNECTIONS: Counter[tuple[Identity, int]] = Counter()  # by file and by the process that opened them


def observe(observer: ForkObserver) -> None:
    """Tell an observer of every fork from now on; wait for the end of a fork that is under way."""
    with _GATE:
        _OBSERVERS.add(observer)


def count(file: Identity, change: int) -> None:
    """Note that this process is about to open a connection to a file (1), or has closed one (-1)."""
    with _COUNTING:
        _CONNECTIONS[file, os.getpid()] += change
        if not _CONNECTIONS[file, os.getpid()]:
            del _CONNECTIONS[file, os.getpid()]


def inherited(file: Identity) -> bool:
    """Return whether a connection to a file was open when this process was forked."""
    with _COUNTING:
        # A copy: the collector may close a forgotten ledger, in this thread, between two of them.
        return any(known == file and opener != os.getpid() for known, opener in list(_CONNECTIONS))


def refusal() -> LedgerError:
    """Return the refusal of a child that inherited a connection."""
    return LedgerError(
        "this process was forked while the ledger was in use, in a way that the ledger was not told of",
        code="SF601",
        hints=("nothing was charged; start a fresh process, or close the ledger before the fork",),
    )


def keep_for_ever(
    thing: object,
    add: Any = ctypes.pythonapi.Py_IncRef,  # as a default: still there when the interpreter ends
    reference: Any = ctypes.py_object,
) -> None:
    """Keep something from ever being freed, also at the end of the process: to free it is to close it."""
    add(reference(thing))


def _before() -> None:
    global _FORKER
    _GATE.acquire()
    _FORKER = threading.get_ident()
    deadline = time.monotonic() + _WAIT
    for observer in list(_OBSERVERS):
        with suppress(BaseException):  # it was not ready: the child will be refused
            observer.before_fork(deadline)


def _after(*, child: bool) -> None:
    global _FORKER, _GATE, _COUNTING
    told = threading.get_ident() == _FORKER
    if child:
        _FORKER, _GATE, _COUNTING = None, threading.RLock(), threading.RLock()
    elif not told:
        return  # interrupted before it began: nobody got ready
    for observer in list(_OBSERVERS):
        with suppress(Exception):
            observer.after_fork(child=child)
    if not child:
        _FORKER = None
        _GATE.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before, after_in_parent=lambda: _after(child=False), after_in_child=lambda: _after(child=True)
    )
