"""Singled out: the strongest question about one person, asked about thousands of people at once.

An attacker who knows something that is true of one person alone can ask this system to count just that
person, if a secret is true of them: 0 or 1. Each of many such people is a group of one question. Nobody is in
two groups, so each answer costs its person the whole epsilon and nobody else anything: as many experiments as
there are people, in one real release.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.attacks.attack_result import MeasuredRate, bit_bound
from sfumato.core import Proportion, bernoulli, uniform_below
from sfumato.core.arguments import count
from sfumato.session import Budget, connect

__all__ = ["TARGET", "fair_sample", "guess_bits", "shuffled"]

TARGET = "target number"
"""The column of a public table that numbers the people whom it singles out, from 0."""

_Ints = npt.NDArray[np.int64]
_Bools = npt.NDArray[np.bool_]


def shuffled(items: _Ints) -> _Ints:
    """Return the same numbers in random order."""
    return items[np.argsort(uniform_below(2**62, size=len(items)), kind="stable")]


def fair_sample(bits: _Bools, most: int) -> _Ints:
    """Draw people of whom each has the bit with probability one half, whoever was drawn before.

    A fair coin chooses the kind of the next one; it ends with the first coin that nobody is left for. So
    who guesses without looking is right half of the time, which is what `bit_bound` assumes.

    >>> people = fair_sample(np.array([True, False] * 500), 100)
    >>> len(people), len(set(people.tolist()))
    (100, 100)
    """
    coins = np.asarray(bernoulli(0.5, size=count(most, "victims")))
    chosen = np.empty(len(coins), dtype=np.int64)
    served = np.ones(len(coins), dtype=np.bool_)
    for side in (coins, ~coins):
        people = shuffled(np.flatnonzero(bits if side is coins else ~bits))
        order = np.cumsum(side) - 1
        there = side & (order < len(people))
        chosen[there] = people[order[there]]
        served &= there | ~side
    return chosen[: len(coins) if served.all() else int(np.argmin(served))]


def guess_bits(
    table: Any, text: str, bits: _Bools, epsilon: float, *, name: str, unit: str, public: Mapping[str, Any]
) -> MeasuredRate:
    """Ask this system a question whose groups are people, and guess the bit of each from its noisy count.

    The guess is "yes" where the count is above 0. Theorem: where the true count is the bit, and the noise
    discrete Laplace of scale 1/epsilon, it is right with probability exactly e^epsilon / (1 + e^epsilon)
    whatever the bit, for P(noise >= 0) = 1 / (1 + e^-epsilon): no rule does better, and the bound is met.
    """
    database = connect(
        table,
        name=name,
        unit=unit,
        public=public,
        max_groups=1,
        max_rows=1,
        budget=Budget(epsilon=epsilon, rule="pure"),
    )
    release = database.sql(text, epsilon=epsilon).release()
    guesses = np.zeros(len(bits), dtype=np.bool_)
    guesses[np.array(release.column(TARGET), dtype=np.int64)] = np.array(release.column("n")) > 0
    right = Proportion(hits=int((guesses == bits).sum()), trials=len(bits))
    return MeasuredRate(epsilon=epsilon, rate=right, bound=bit_bound(epsilon))
