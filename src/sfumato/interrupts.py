"""Ctrl-C: it stops the engine at once, and never falls between a charge and the knowledge of it.

Python notes a signal while other code runs, and raises `KeyboardInterrupt` in the main thread when that code
returns. The engine runs for minutes without returning, and a charge must be known to have happened or not.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar

__all__ = ["deferred", "interruptible"]

_T = TypeVar("_T")

_AGAIN = 0.05  # seconds until an action that goes on after it was stopped is stopped again


def interruptible(action: Callable[[], _T], stop: Callable[[], object]) -> _T:
    """Return what an action returns; on Ctrl-C `stop` it, wait for its end, and pass the interrupt on.

    The action runs in a thread of its own while the main thread, which alone is interrupted, waits. Other
    threads run it themselves.
    """
    if threading.current_thread() is not threading.main_thread():
        return action()
    with ThreadPoolExecutor(max_workers=1) as pool:
        running = None
        try:
            with deferred():  # an action that runs is known to run
                running = pool.submit(action)
            wait([running])
        except BaseException:
            while running is not None and not running.done():
                stop()
                wait([running], timeout=_AGAIN)
            raise
    return running.result()


@contextmanager
def deferred() -> Iterator[None]:
    """Let Ctrl-C wait until the end of a block that must not stop halfway; it is raised there.

    >>> with deferred():
    ...     "charge"
    'charge'
    """
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    noted: list[tuple[int, FrameType | None]] = []
    signal.signal(signal.SIGINT, lambda number, frame: noted.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
    if noted:
        handler(*noted[0])
