"""The kinds of values that columns and expressions have; engines' many types map onto these.

    integer         whole numbers of 64 bits; narrower types of a table are read as these
    hugeint         whole numbers of 128 bits: what 64 signed bits cannot hold
    decimal(w,s)    numbers of w digits, s of them behind the point, exactly; w is at most 38
    float, real     binary numbers of 32 and of 64 bits
    text, boolean, date, timestamp

There is one object per kind, so that kinds are compared with `is`.
"""

from __future__ import annotations

import datetime
import re
from decimal import Decimal
from typing import ClassVar

__all__ = ["Kind", "MOST_DIGITS", "Value", "kind_of"]

Value = None | bool | int | float | Decimal | str | datetime.date | datetime.datetime
"""A constant, as Python holds it."""

MOST_DIGITS = 38
"""A decimal has no more digits."""

_DECIMAL = re.compile(r"decimal\((\d{1,2}),(\d{1,2})\)")


class Kind:
    """The kind of a value, by its name.

    >>> Kind("decimal(15,2)") is Kind.decimal(15, 2)
    True
    """

    __slots__ = ("binary", "digits", "exact", "numeric", "scale", "value", "whole")

    value: str
    digits: int  # of a decimal, all of them; 0 for other kinds
    scale: int  # of a decimal, those behind the point
    whole: bool
    """Whether values are whole numbers."""
    exact: bool
    """Whether values are whole numbers or decimals, which arithmetic does not round."""
    binary: bool
    """Whether values are binary numbers, which arithmetic rounds."""
    numeric: bool
    """Whether values are numbers."""

    INTEGER: ClassVar[Kind]
    HUGEINT: ClassVar[Kind]
    FLOAT: ClassVar[Kind]
    REAL: ClassVar[Kind]
    TEXT: ClassVar[Kind]
    BOOLEAN: ClassVar[Kind]
    DATE: ClassVar[Kind]
    TIMESTAMP: ClassVar[Kind]

    _found: ClassVar[dict[str, Kind]] = {}

    def __new__(cls, value: str) -> Kind:
        if value not in cls._found:
            parts = _DECIMAL.fullmatch(value)
            digits, scale = map(int, parts.groups()) if parts else (0, 0)
            if not 1 <= digits <= MOST_DIGITS or scale > digits:
                raise ValueError(f"there is no kind `{value}`")
            cls._add(f"decimal({digits},{scale})", digits, scale)
        return cls._found[value]

    @classmethod
    def _add(cls, value: str, digits: int = 0, scale: int = 0) -> Kind:
        kind = object.__new__(cls)
        whole, binary = value in ("integer", "hugeint"), value in ("float", "real")
        exact = whole or digits > 0
        given = {"value": value, "digits": digits, "scale": scale, "whole": whole, "exact": exact}
        for name, one in (given | {"binary": binary, "numeric": exact or binary}).items():
            object.__setattr__(kind, name, one)
        return cls._found.setdefault(value, kind)  # one of two threads wins

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a kind cannot be changed")

    def __repr__(self) -> str:
        return f"Kind('{self.value}')"

    def __reduce__(self) -> tuple[type[Kind], tuple[str]]:
        return Kind, (self.value,)

    @classmethod
    def decimal(cls, digits: int, scale: int) -> Kind:
        """Return the kind of decimals with this many digits, `scale` of them behind the point."""
        return cls(f"decimal({digits},{scale})")


for _name in ("integer", "hugeint", "float", "real", "text", "boolean", "date", "timestamp"):
    setattr(Kind, _name.upper(), Kind._add(_name))


def kind_of(value: Value) -> Kind | None:
    """Return the kind of a constant, None for NULL; whole numbers and decimals that no kind holds are REAL.

    >>> kind_of(3), kind_of(2**63), kind_of(Decimal("0.06")), kind_of(None)
    (Kind('integer'), Kind('hugeint'), Kind('decimal(3,2)'), None)
    """
    match value:
        case None:
            return None
        case bool():
            return Kind.BOOLEAN
        case int() if -(2**63) <= value < 2**63:
            return Kind.INTEGER
        case int():
            return Kind.HUGEINT if -(2**127) <= value < 2**127 else Kind.REAL
        case Decimal():
            return _kind_of_decimal(value)
        case float():
            return Kind.REAL
        case str():
            return Kind.TEXT
        case datetime.datetime():
            return Kind.TIMESTAMP
        case datetime.date():
            return Kind.DATE


def _kind_of_decimal(value: Decimal) -> Kind:
    """Count the digits as they are written: 0.06 has three, two of them behind the point."""
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int) or exponent > 0:
        return Kind.REAL
    width = max(len(digits), 1 - exponent)
    return Kind.decimal(width, -exponent) if width <= MOST_DIGITS else Kind.REAL
