"""Frames of other libraries, which an answer can become where they are installed."""

from __future__ import annotations

import importlib
from typing import Any

from sfumato.errors import Unsupported

__all__ = ["frame_library"]


def frame_library(name: str) -> Any:
    """Return pandas or polars; refuse with what to install.

    >>> frame_library("pandas").DataFrame({"n": [1]}).shape
    (1, 1)
    """
    try:
        return importlib.import_module(name)
    except ImportError:
        raise Unsupported(f"{name} is not installed", hints=(f"pip install 'sfumato[{name}]'",)) from None
