"""Progress: a line that names the step a long question is at; it says how long, never how much.

How much of the data is done would tell how much data there is.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from sfumato.errors import InvalidArgument

__all__ = ["Progress", "not_charged_yet", "shown"]

Progress = bool | Callable[[str], object] | None
"""True: a line on standard error; a function is called with each step; None: a line, if somebody looks."""

_PATIENCE = 2.0  # seconds before a question is a long one
_PAUSE = 0.5


@contextmanager
def shown(progress: object) -> Iterator[Callable[[str], object]]:
    """Yield what hears the steps of a question, and show them meanwhile; `progress` is a `Progress`."""
    if callable(progress):
        yield progress
    elif progress is True or (progress is None and hasattr(sys, "ps1")):  # a prompt, or a notebook
        with _Line(sys.stderr) as line:
            yield line.tell
    elif progress is False or progress is None:
        yield _silent
    else:
        hint = "progress=True, progress=False or progress=print"
        raise InvalidArgument(
            "progress is True, False or a function of a text", place="progress", hints=(hint,)
        )


@contextmanager
def not_charged_yet() -> Iterator[None]:
    """Let Ctrl-C say that nothing was charged."""
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt("interrupted: nothing was charged") from None


def _silent(step: str) -> None:
    """Show nothing."""


class _Line:
    """One line of a stream, written anew until the question is over, and then cleared."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._step = "beginning"
        self._width = 0
        self._began = time.monotonic()
        self._over = threading.Event()
        self._writer = threading.Thread(target=self._write, daemon=True)

    def tell(self, step: str) -> None:
        """Go on to a step."""
        self._step = step

    def _write(self) -> None:
        pause = _PATIENCE
        while not self._over.wait(pause):
            self._show(f"{self._step}, {time.monotonic() - self._began:.0f} s")
            pause = _PAUSE

    def _show(self, text: str) -> None:
        self._stream.write(f"\r{text.ljust(self._width)}")
        self._stream.flush()
        self._width = max(self._width, len(text))

    def __enter__(self) -> _Line:
        self._writer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._writer.join()
        if self._width:
            self._show("")
            self._stream.write("\r")
