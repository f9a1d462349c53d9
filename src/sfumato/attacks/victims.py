"""Whose bits an attacker wants to know, and the strongest question about each of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.anonymity.columns import Flags, Integers
from sfumato.attacks.attack_result import MeasuredRate
from sfumato.backends.owned import read_owned
from sfumato.core import bernoulli, uniform_below
from sfumato.core.arguments import count
from sfumato.errors import InvalidArgument
from sfumato.session import Budget, Database, connect

__all__ = [
    "TARGET",
    "Victims",
    "count_of_use",
    "enough",
    "fair_sample",
    "flags_of",
    "guess_bits",
    "one_row_each",
    "shuffled",
]

TARGET = "target number"
"""The column of a public table that numbers the people whom it singles out, from 0."""

_FEWEST = 20


def one_row_each(table: Any, *, name: str, unit: str, epsilon: float, **declared: Any) -> Database:
    """Open a table in which everyone has one row, with a budget of epsilon."""
    budget = Budget(epsilon=epsilon, rule="pure")
    return connect(table, name=name, unit=unit, max_groups=1, max_rows=1, budget=budget, **declared)


def flags_of(table: Any, name: str, *, place: str) -> Flags:
    """Return a column of an Arrow table that is of true and false, or of 1 and 0; NULL is false."""
    column = table.column(name)
    if pa.types.is_boolean(column.type) or pa.types.is_integer(column.type):
        nothing = pa.scalar(0).cast(column.type)
        values = np.asarray(column.fill_null(nothing))
        if np.isin(values, (0, 1)).all():
            return values.astype(bool)
    raise InvalidArgument(
        f"column `{name}` is not one of true and false",
        place=place,
        hints=("0 and 1 will do; or add a column that says what you ask: income > 50000",),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Victims:
    """A column of true and false of somebody's own table; each row is a person."""

    trait: str
    bits: Flags

    counting = "SELECT COUNT(*) AS n FROM people WHERE secret"

    @classmethod
    def read(cls, data: Any, trait: str | None) -> Victims:
        """Read the column; NULL counts as false."""
        if trait is None:
            raise InvalidArgument(
                "which column of true and false is the secret?",
                place="trait",
                hints=("name it: trait='sick'",),
            )
        bits = flags_of(read_owned(data, [trait]), trait, place="trait")
        if bits.all() or not bits.any():
            raise InvalidArgument(
                f"column `{trait}` is the same for everyone: there is nothing to guess", place="trait"
            )
        return cls(trait=trait, bits=bits)

    def draw(self, victims: int) -> Integers:
        """Draw victims: half of them with, half without, so that guessing is right half the time."""
        half = count(victims, "trials", least=2) // 2
        kinds = ((np.flatnonzero(self.bits), half), (np.flatnonzero(~self.bits), victims - half))
        return np.concatenate([people[uniform_below(len(people), size=many)] for people, many in kinds])

    def open(self, epsilon: float) -> Database:
        """Open the people in this system, with a budget."""
        table = pa.table({"person": np.arange(len(self.bits)), "secret": self.bits})
        return one_row_each(table, name="people", unit="person", epsilon=epsilon)


def shuffled(items: Integers) -> Integers:
    """Return the same numbers in random order."""
    return items[np.argsort(uniform_below(2**62, size=len(items)), kind="stable")]


def fair_sample(bits: Flags, most: int) -> Integers:
    """Draw people of whom each has the bit with probability one half, whoever was drawn before.

    A fair coin chooses the kind of the next one; it ends with the first coin that nobody is left for. So
    who guesses without looking is right half of the time, which is what `bit_bound` assumes. Where all are
    of one kind there is nothing to guess, and nobody is drawn.

    >>> people = fair_sample(np.array([True, False] * 500), 100)
    >>> len(people), len(set(people.tolist()))
    (100, 100)
    """
    coins = np.asarray(bernoulli(0.5, size=count(most, "victims")))
    if bits.all() or not bits.any():
        return np.empty(0, dtype=np.int64)
    chosen = np.empty(len(coins), dtype=np.int64)
    served = np.ones(len(coins), dtype=np.bool_)
    for side in (coins, ~coins):
        people = shuffled(np.flatnonzero(bits if side is coins else ~bits))
        order = np.cumsum(side) - 1
        there = side & (order < len(people))
        chosen[there] = people[order[there]]
        served &= there | ~side
    return chosen[: len(coins) if served.all() else int(np.argmin(served))]


def enough(chosen: Integers, who: str, *hints: str) -> None:
    """Refuse an experiment with too few victims."""
    if len(chosen) < _FEWEST:
        raise InvalidArgument(f"fewer than {_FEWEST} {who} can be asked about", place="data", hints=hints)


def guess_bits(
    table: Any, text: str, bits: Flags, epsilon: float, *, name: str, unit: str, public: Mapping[str, Any]
) -> MeasuredRate:
    """Ask this system a question whose groups are people, and guess the bit of each from its noisy count.

    Who knows something that is true of one person alone can count just that person, if a secret is true of
    them: 0 or 1. Nobody is in two groups, so each answer costs its person the whole epsilon and nobody else
    anything: as many experiments as there are people, in one real release.

    The guess is "yes" where the count is above 0. Theorem: where the true count is the bit, and the noise
    discrete Laplace of scale 1/epsilon, it is right with probability exactly e^epsilon / (1 + e^epsilon)
    whatever the bit, for P(noise >= 0) = 1 / (1 + e^-epsilon): no rule does better, and the bound is met.
    """
    database = one_row_each(table, name=name, unit=unit, epsilon=epsilon, public=public)
    release = database.sql(text, epsilon=epsilon).release()
    guesses = np.zeros(len(bits), dtype=np.bool_)
    guesses[np.array(release.column(TARGET), dtype=np.int64)] = np.array(release.column("n")) > 0
    return MeasuredRate.of_bits(epsilon, guesses, bits)


def count_of_use(table: Any, text: str, truth: int, **declared: Any) -> str:
    """Ask what a table is for, one count at epsilon 1; say how near to the truth the answer is."""
    database = connect(table, budget=Budget(epsilon=1, rule="pure"), **declared)
    release = database.sql(text, epsilon=1).release()
    low, high = release.intervals(0.95)["n"][0] or (0, 0)
    return f"{release.column('n')[0]:,} ±{(high - low) / 2:.0f}; the truth is {truth:,}"
