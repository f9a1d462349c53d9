"""Forms that mention a value several times, while it stands in the plan once.

DuckDB copies the arguments of its macros, and the value that BETWEEN and IN test. NULLIF is a macro: three of
them around each of n divisions were a plan of 8^n parts, which was made after the charge. So a value that is
not short is bound by the function of a list of one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

__all__ = ["NAN", "bound", "finite", "not_equal"]

NAN = "'nan'::DOUBLE"
"""Not a number, which the engine holds for larger than every other."""

_SHORT = 100  # characters of a value that is repeated


def bound(value: str, form: Callable[[str], str]) -> str:
    """Return a form of a value, which it may mention several times.

    >>> bound("x", lambda x: f"{x} * {x}")
    'x * x'
    """
    if len(value) <= _SHORT:
        return form(value)
    name = "b" + hashlib.sha256(value.encode()).hexdigest()[:12]  # no other binding has it
    return f"list_transform([{value}], lambda {name}: {form(name)})[1]"


def finite(value: str) -> str:
    """Return a binary number, NULL where it is infinite or NaN."""
    return bound(value, lambda x: f"CASE WHEN isfinite({x}) THEN {x} END")


def not_equal(value: str, other: str) -> str:
    """Return a value, NULL where it equals another one."""
    return bound(value, lambda x: f"nullif({x}, {other})")
