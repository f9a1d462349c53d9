"""Epsilon and delta in words and odds, for whoever has to choose or to sign them."""

from __future__ import annotations

import math

__all__ = ["EPSILON", "chance", "delta_in_words", "epsilon_in_words", "examples"]

EPSILON = (
    "epsilon says by what factor the odds of any conclusion about one person may change because that "
    "person's records are in the data: at most e^epsilon, by all answers together"
)
"""What epsilon is."""

_BEFORE = 0.1  # how sure somebody is of a suspicion before any answer
_EXAMPLES = (0.1, 1.0, 3.0, 10.0)


def epsilon_in_words(epsilon: float) -> str:
    """Return what an epsilon means for the odds of one person.

    >>> epsilon_in_words(1)
    'epsilon 1: odds change by a factor of up to 2.72; who is 10% sure of something ends up 23% sure at most'
    """
    factor = math.exp(min(epsilon, 700.0))
    odds = factor * _BEFORE / (1 - _BEFORE)
    return (
        f"epsilon {epsilon:g}: odds change by a factor of up to {_grouped(factor)}; "
        f"who is {_BEFORE:.0%} sure of something ends up {_sure(odds)} sure at most"
    )


def examples() -> list[str]:
    """Return a few epsilons in words, from cautious to careless."""
    return [epsilon_in_words(epsilon) for epsilon in _EXAMPLES]


def delta_in_words(delta: float, people: int | None = None) -> str:
    """Return what a delta means.

    >>> delta_in_words(1e-7)
    'delta 1e-07: the chance that this fails for a person is 1 in 10,000,000 at most'
    >>> delta_in_words(1e-7, 20_000)
    'delta 1e-07: the chance that this fails for a person is 1 in 10,000,000 at most; there are 20,000 people'
    """
    if not delta:
        return "delta 0: this never fails"
    known = "" if people is None else f"; there are {people:,} people"
    return f"delta {delta:g}: the chance that this fails for a person is {chance(delta)} at most{known}"


def chance(probability: float) -> str:
    """Return a small probability as one in so many.

    >>> chance(0.0004)
    '1 in 2,500'
    """
    return f"1 in {_grouped(1 / probability)}"


def _sure(odds: float) -> str:
    share = odds / (1 + odds)
    return f"{share:.0%}" if share < 0.995 else f"{math.floor(share * 10_000) / 100:g}%"


def _grouped(number: float) -> str:
    return f"{number:.3g}" if number < 100 or number >= 1e15 else f"{number:,.0f}"
