"""Steps: how much work pricing a question takes, counted the same on every machine, and where it ends.

Pricing is free, so anybody may ask for a price again and again. Limits on single numbers (`plan.limits`)
do not bound their products: a hundred sums by sixty-four grouping sets are 6,400 noises. So the loops of
planning and pricing count what they do. What takes more steps than the owner allows is refused.

Theorem: whether a question is refused depends on no private row. Assumes: loops spend numbers that follow
from the question, the declarations, public tables, and releases that the asker was given. Proof: the count is
a sum of such numbers, taken before the charge, and no clock is read.

A step stands for at most `CALLS` calls of functions in Python or C: `tests/engine/test_steps.py` compares the
two counts.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar

from sfumato.errors import QueryRefused

__all__ = ["CALLS", "MOST_STEPS", "Steps", "limited", "remembered", "spend", "steps_taken"]

_Function = TypeVar("_Function", bound=Callable[..., Any])

MOST_STEPS = 100_000
"""How many steps one question may take unless its owner says otherwise: about a second of a core."""

CALLS = 100
"""How many calls of functions one step stands for at most."""

_EVERY = 2**62  # no limit, where steps are only counted


@dataclass(slots=True, kw_only=True)
class Steps:
    """The steps that were taken so far, and how many there may be."""

    most: int
    taken: int = 0

    def spend(self, number: int) -> None:
        """Count more steps; refuse what takes too many."""
        self.taken += number
        if self.taken > self.most:
            raise QueryRefused(
                f"pricing this takes at least {self.taken:,} steps, and {self.most:,} are allowed",
                code="SF410",
                text="",
                hints=(
                    "ask for fewer columns, groups, conditions, questions or periods at a time",
                    "the owner can allow more: connect(.., steps=1_000_000), or `steps` under [engine]",
                ),
            )


_COUNTED: ContextVar[Steps | None] = ContextVar("steps", default=None)


@contextmanager
def limited(most: int) -> Iterator[Steps]:
    """Count the steps of a block, and refuse it above `most`; inside another such block, go on with that.

    >>> with limited(10) as steps:
    ...     spend(4)
    >>> steps.taken
    4
    """
    outer = _COUNTED.get()
    if outer is not None:
        yield outer
        return
    steps = Steps(most=most)
    token = _COUNTED.set(steps)
    try:
        yield steps
    finally:
        _COUNTED.reset(token)


def spend(number: int = 1) -> None:
    """Count steps of the question that is being priced; elsewhere, such as after a charge, do nothing."""
    steps = _COUNTED.get()
    if steps is not None:
        steps.spend(number)


def steps_taken() -> int:
    """Return how many steps of the question that is being priced were counted so far."""
    steps = _COUNTED.get()
    return 0 if steps is None else steps.taken


def remembered(most: int) -> Callable[[_Function], _Function]:
    """Keep up to `most` results of a function, each with the steps that it took.

    A result that is known takes the same steps again: what is refused does not depend on what was asked
    before. Assumes: the result follows from the arguments alone, and equal arguments have equal results.

    >>> @remembered(8)
    ... def squared(number: int) -> int:
    ...     spend(3)
    ...     return number * number
    >>> with limited(10) as steps:
    ...     squared(4), squared(4)
    (16, 16)
    >>> steps.taken
    6
    """

    def remembering(function: _Function) -> _Function:
        known: dict[tuple[Hashable, ...], tuple[Any, int]] = {}

        @wraps(function)
        def called(*given: Hashable) -> Any:
            if (found := known.get(given)) is not None:
                result, taken = found
                spend(taken)
                return result
            with limited(_EVERY) as steps:  # inside another block, this is the count of that one
                before = steps.taken
                result = function(*given)
                taken = steps.taken - before
            if len(known) >= most:
                known.clear()
            known[given] = result, taken
            return result

        return called  # type: ignore[return-value]

    return remembering
