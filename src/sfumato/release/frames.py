"""Frames of other libraries, which an answer can become where they are installed."""

from __future__ import annotations

from typing import Any, Literal

from sfumato.errors import Unsupported

__all__ = ["frame_library"]


def frame_library(name: Literal["pandas", "polars"]) -> Any:
    """Return pandas or polars; refuse with what to install.

    >>> frame_library("pandas").DataFrame({"n": [1]}).shape
    (1, 1)
    """
    try:
        if name == "pandas":
            import pandas

            return pandas
        import polars

        return polars
    except ImportError:
        raise Unsupported(f"{name} is not installed", hints=(f"pip install 'sfumato[{name}]'",)) from None
