"""sfumato: publish what the records say about the population, almost nothing about a person."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sfumato import core, errors

__all__ = ["__version__", "core", "errors"]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Import a part of the package when it is first used."""
    if name in __all__:
        return importlib.import_module(f"sfumato.{name}")
    raise AttributeError(f"module 'sfumato' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
