"""Forks: no connection to a ledger goes through one.

SQLite keeps the locks that a process has on a file in that process's memory, and a fork copies them. The
child then believes that it holds what the system gave to its parent alone. Whoever closes the file last
deletes the log in which the child goes on to write, and what it charged is lost.

So every connection is closed before a fork, and opened again afterwards by whoever needs it, parent or child.
A child that inherited one all the same (a fork by foreign code that does not call back, or in the middle of
a transaction) is refused: nothing that it does with SQLite's memory would be safe.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from typing import Protocol
from weakref import WeakSet

from sfumato.errors import LedgerError

__all__ = ["Identity", "Party", "count", "inherited", "join", "refusal"]

Identity = tuple[int, int]
"""Which file it is, by its device and number."""


class Party(Protocol):
    """What has to know of forks."""

    def before_fork(self) -> None:
        """Get ready: no other thread may be at work until one of the following is called."""

    def after_fork(self, *, child: bool) -> None:
        """Go on, as the parent or as the child."""


_GATE = threading.RLock()  # held during a fork
_PARTIES: WeakSet[Party] = WeakSet()
_CONNECTIONS: Counter[tuple[Identity, int]] = (
    Counter()
)  # open ones, by file and by the process that opened it


def join(party: Party) -> None:
    """Have a party told of every fork from now on; wait for the end of one that is under way."""
    with _GATE:
        _PARTIES.add(party)


def count(file: Identity, change: int) -> None:
    """Note that this process opened a connection to a file (1) or closed one (-1)."""
    _CONNECTIONS[file, os.getpid()] += change


def inherited(file: Identity) -> bool:
    """Return whether a connection to a file was open when this process was forked."""
    open_ones = ((known, opener) for (known, opener), number in _CONNECTIONS.items() if number > 0)
    return any(known == file and opener != os.getpid() for known, opener in open_ones)


def refusal() -> LedgerError:
    """Return the refusal of a child that inherited a connection."""
    return LedgerError(
        "this process was forked while the ledger was in use, in a way that the ledger was not told of",
        code="SF601",
        hints=("nothing was charged; start a fresh process, or close the ledger before the fork",),
    )


def _before() -> None:
    _GATE.acquire()
    for party in list(_PARTIES):
        party.before_fork()


def _after(*, child: bool) -> None:
    global _GATE
    for party in list(_PARTIES):
        party.after_fork(child=child)
    if child:
        _GATE = threading.RLock()
    else:
        _GATE.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before, after_in_parent=lambda: _after(child=False), after_in_child=lambda: _after(child=True)
    )
