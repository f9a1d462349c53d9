"""The screen: colours only on a terminal, and progress that says nothing about the data."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["bar", "screen", "working"]


def screen(*, error: bool = False) -> Console:
    """Return where text goes. Colours on a terminal only, and not if NO_COLOR is set."""
    from rich.console import Console

    return Console(stderr=error, highlight=False, soft_wrap=True, markup=False)


@contextmanager
def working(step: str) -> Iterator[None]:
    """Show, on a terminal, what is going on and for how long: never how much, for that is the data's."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=screen(error=True), transient=True) as progress:
        progress.add_task(step, total=None)
        yield


def bar(share: float, width: int = 24) -> str:
    """Return a bar of which a share is full; full only at the very end.

    >>> bar(0.5, 8)
    '████░░░░'
    """
    full = min(width, max(0, int(share * width)))
    return "█" * full + "░" * (width - full)
