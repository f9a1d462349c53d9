"""sfumato: publish what the records say about the population, almost nothing about a person."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sfumato import core, errors
    from sfumato.catalog import between, one_of
    from sfumato.plan.values import col
    from sfumato.release import Release
    from sfumato.session import Budget, Database, Question, connect

__all__ = [
    "Budget",
    "Database",
    "Question",
    "Release",
    "__version__",
    "between",
    "col",
    "connect",
    "core",
    "errors",
    "one_of",
]

__version__ = "0.1.0"

_HOMES = {
    "Budget": "session",
    "Database": "session",
    "Question": "session",
    "Release": "release",
    "between": "catalog",
    "col": "plan.values",
    "connect": "session",
    "one_of": "catalog",
}


def __getattr__(name: str) -> Any:
    """Import a part of the package when it is first used."""
    if name in _HOMES:
        return getattr(importlib.import_module(f"sfumato.{_HOMES[name]}"), name)
    if name in __all__:
        return importlib.import_module(f"sfumato.{name}")
    raise AttributeError(f"module 'sfumato' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
