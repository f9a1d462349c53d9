"""The kinds of values that columns and expressions have; engines' many types map onto these."""

from __future__ import annotations

import datetime
from enum import Enum

__all__ = ["Kind", "Value", "kind_of"]

Value = None | bool | int | float | str | datetime.date | datetime.datetime
"""A constant, as Python holds it."""


class Kind(Enum):
    """The kind of a value."""

    INTEGER = "integer"
    REAL = "real"
    TEXT = "text"
    BOOLEAN = "boolean"
    DATE = "date"
    TIMESTAMP = "timestamp"

    @property
    def numeric(self) -> bool:
        """Whether values are numbers."""
        return self in (Kind.INTEGER, Kind.REAL)


def kind_of(value: Value) -> Kind | None:
    """Return the kind of a constant, None for NULL.

    >>> kind_of(3), kind_of(None)
    (<Kind.INTEGER: 'integer'>, None)
    """
    match value:
        case None:
            return None
        case bool():
            return Kind.BOOLEAN
        case int():
            return Kind.INTEGER
        case float():
            return Kind.REAL
        case str():
            return Kind.TEXT
        case datetime.datetime():
            return Kind.TIMESTAMP
        case datetime.date():
            return Kind.DATE
