"""Memory of prices: a question is priced once for each epsilon, while what it depends on stays."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Generic, TypeVar

from sfumato.core.steps import spend, steps_taken

__all__ = ["PriceMemory"]

_MOST = 8  # epsilons of one question: advice keeps its own prices
_Priced = TypeVar("_Priced")


class PriceMemory(Generic[_Priced]):
    """What one question costs, by epsilon and by the state of the public tables it was priced with.

    A price that is remembered counts as many steps as it did when it was made. So whether a question is
    refused depends on the question, and not on what was shown before.

    >>> from fractions import Fraction
    >>> prices = PriceMemory()
    >>> prices.found(Fraction(1), "monday", lambda: "a price")
    'a price'
    >>> prices.found(Fraction(1), "monday", lambda: "another")
    'a price'
    >>> prices.found(Fraction(1), None, lambda: "anew")
    'anew'
    """

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: dict[tuple[Fraction | None, str], tuple[_Priced, int]] = {}

    def found(self, epsilon: Fraction | None, state: str | None, plan: Callable[[], _Priced]) -> _Priced:
        """Return the price that is remembered for a state, or make it; of an unknown state (None) make it."""
        if state is None:
            return plan()
        known = self._kept.get((epsilon, state))
        if known is not None:
            spend(known[1])
            return known[0]
        before = steps_taken()
        priced = plan()
        same = [(key, one) for key, one in self._kept.items() if key[1] == state]
        self._kept = {  # a new dictionary: threads see all of it or none
            **dict(same[1 - _MOST :]),
            (epsilon, state): (priced, steps_taken() - before),
        }
        return priced
