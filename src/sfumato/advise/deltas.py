"""Delta: how small, and why. At 1/n, publishing a few records whole would count as private."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sfumato.core.arguments import Number, count, delta_quantity
from sfumato.core.coins import bernoulli
from sfumato.errors import InvalidArgument

__all__ = ["WholeRecords", "about_delta", "publish_whole_records", "usual_delta"]

_LARGEST = Fraction(1, 10**7)
_EXPECTED = Fraction(1, 10)  # of people whose promise may fail, in all
_MOST_DRAWS = 10**8


def usual_delta(people: int | None = None) -> float:
    """Return a delta to begin with: 1e-7, and at most a tenth of 1/n where the number of people is public.

    It rests on this: if each promise failed with chance delta, one in ten such datasets at most would have
    a single person whose promise fails.

    >>> usual_delta(), usual_delta(20_000), usual_delta(30_000_000)
    (1e-07, 1e-07, 1e-09)
    """
    if people is None:
        return float(_LARGEST)
    digits = len(str(count(people, "people")))
    return float(min(_LARGEST, Fraction(1, 10 ** (digits + 1))))


def about_delta(delta: Number, people: int | None = None) -> str:
    """Return what a delta means among so many people, and a usual one with what it rests on; refuse 1/n.

    >>> about_delta(1e-7, 20_000)
    'delta 1e-07 among 20,000 people: at most 0.002 of them are expected to have no promise at all'
    """
    chance = delta_quantity(delta, people=people)
    if not chance:
        return "delta 0: the promise never fails"
    if people is None:
        return (
            f"delta {float(chance):g}: is that far below 1/n? Nobody says how many people there are, which"
            f" may be public (people=20000, --people 20000); up to a million, {usual_delta():g} is usual"
        )
    expected, usual = chance * people, usual_delta(people)
    said = (
        f"delta {float(chance):g} among {people:,} people:"
        f" at most {float(expected):.2g} of them are expected to have no promise at all"
    )
    rests = f"{usual:g} is usual, for then it is {usual * people:.2g}"
    return said if expected <= _EXPECTED else f"{said}; {rests}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeRecords:
    """How many whole records a mechanism without any noise published, in each of its runs."""

    people: int
    delta: Fraction
    published: tuple[int, ...]

    def __str__(self) -> str:
        shown = ", ".join(map(str, self.published))
        return (
            f"A mechanism that publishes each of {self.people:,} records whole with chance"
            f" {float(self.delta):g}, and adds no noise, is (0, {float(self.delta):g})-private."
            f" Run {len(self.published)} times, it published so many people's records: {shown}."
        )


def publish_whole_records(*, people: int, delta: Number, runs: int = 10) -> WholeRecords:
    """Run the mechanism that shows why delta must be far below 1/n: it publishes records drawn by lot.

    Theorem: with the person and without, its output differs only if the person is drawn: with chance delta.
    So it is (0, delta)-private, and at delta = 1/n it publishes somebody's record in about 63% of all runs.

    >>> found = publish_whole_records(people=1000, delta=0.002, runs=20)
    >>> sum(found.published) > 0
    True
    """
    number, times = count(people, "people"), count(runs, "runs")
    chance = delta_quantity(delta)
    if number * times > _MOST_DRAWS:
        hint = "fewer people or fewer runs show the same"
        raise InvalidArgument("that takes more than 1e8 draws", place="runs", hints=(hint,))
    drawn = [int(np.count_nonzero(bernoulli(chance, size=number))) for _ in range(times)]
    return WholeRecords(people=number, delta=chance, published=tuple(drawn))
