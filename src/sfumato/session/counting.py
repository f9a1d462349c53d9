"""Counting: a door counts the steps of what it prices, and refuses what takes more than the owner allows."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from sfumato.core.steps import limited

__all__ = ["counted"]

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")


def counted(door: Callable[_Given, _Result]) -> Callable[_Given, _Result]:
    """Count the steps of a function whose first argument is a database, or has one.

    Doors that call each other count together. None of them is open while a charged question is answered.
    """

    @wraps(door)
    def counting(*given: _Given.args, **options: _Given.kwargs) -> _Result:
        first: Any = given[0]
        with limited(getattr(first, "database", first).steps):
            return door(*given, **options)

    return counting
