"""The limits of time and memory at an opening, and what the engine's errors are called there."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from sfumato.catalog.resources import large_opening, late_opening
from sfumato.errors import InvalidArgument

__all__ = ["within_limits"]

_T = TypeVar("_T")


def within_limits(action: Callable[[], _T], unreadable: InvalidArgument | None = None) -> _T:
    """Return what an action makes. What takes too long or too much memory is refused by that name.

    Other errors of the engine are refused as `unreadable`; without it they pass. The refusal is raised
    outside of the handler, and not in a context manager: the engine's own text may quote the data, and an
    exception's context would keep it.
    """
    import duckdb

    found: Exception
    try:
        return action()
    except duckdb.InterruptException:
        found = late_opening()
    except duckdb.OutOfMemoryException:
        found = large_opening()
    except duckdb.Error as error:
        found = unreadable or error
    raise found
