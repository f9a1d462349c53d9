"""Exact laws of what is drawn: every sequence of draws that a procedure can make, with its probability."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable
from fractions import Fraction

__all__ = ["exact_law"]


class _More(Exception):
    def __init__(self, bound: int) -> None:
        self.bound = bound


def exact_law(
    procedure: Callable[[Callable[[int], int]], Hashable], longest: int = 40
) -> dict[Hashable, Fraction]:
    """Return the probability of every outcome of a procedure that draws by `below(n)`.

    Sequences of more than `longest` draws are left out: what is missing to one is their probability.
    """
    law: dict[Hashable, Fraction] = defaultdict(Fraction)
    waiting: list[tuple[tuple[int, ...], Fraction]] = [((), Fraction(1))]
    while waiting:
        draws, chance = waiting.pop()
        script = iter(draws)

        def below(bound: int, script: object = script) -> int:
            try:
                return next(script)  # type: ignore[call-overload,no-any-return]
            except StopIteration:
                raise _More(bound) from None

        try:
            law[procedure(below)] += chance
        except _More as more:
            if len(draws) < longest:
                waiting += [((*draws, drawn), chance / more.bound) for drawn in range(more.bound)]
    return dict(law)
