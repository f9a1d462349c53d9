"""The screen: colours only on a terminal, and progress that says nothing about the data."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["bar", "say", "screen", "shows", "silence", "working"]


def screen(*, error: bool = False) -> Console:
    """Return where text goes. A terminal has colours, unless NO_COLOR is set, and lines end between words."""
    from rich.console import Console

    class _Screen(Console):
        def on_broken_pipe(self) -> None:
            silence()
            raise BrokenPipeError

    shown = (sys.stderr if error else sys.stdout).isatty()
    return _Screen(stderr=error, highlight=False, soft_wrap=not shown, markup=False)


def say(record: Any, text: str, *, as_json: bool) -> None:
    """Print a report on standard output: as JSON, or as text."""
    screen().print(json.dumps(record) if as_json else text, soft_wrap=as_json or None)


@contextmanager
def working(step: str) -> Iterator[Callable[[str], object]]:
    """Show, on a terminal, what is going on and for how long: never how much, for that is the data's.

    What is yielded is told of further steps.
    """
    if not sys.stderr.isatty():
        yield lambda step: None
        return
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=screen(error=True), transient=True) as progress:
        shown = progress.add_task(step, total=None)
        yield lambda step: progress.update(shown, description=step)


def silence() -> None:
    """Let the rest of standard output go nowhere: the interpreter writes it out once more when it ends."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def bar(share: float, width: int = 24) -> str:
    """Return a bar filled to a share; it is full only at the very end.

    >>> bar(0.5, 8) in ("████░░░░", "####....")   # by what the screen can show
    True
    """
    full = min(width, max(0, int(share * width)))
    filled, empty = ("█", "░") if shows("█░") else ("#", ".")
    return filled * full + empty * (width - full)


def shows(text: str) -> bool:
    """Return whether standard output has letters for a text."""
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "ascii")
    except UnicodeEncodeError:
        return False
    return True
