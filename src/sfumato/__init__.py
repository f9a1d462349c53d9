"""sfumato: publish what the records say about the population, almost nothing about a person."""

from __future__ import annotations

__all__ = ["__version__", "core", "errors"]

__version__ = "0.1.0"

from sfumato import core, errors
