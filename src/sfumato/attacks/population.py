"""Invented people: in firms, in ZIP codes, in census blocks, and as viewers of films.

Nobody here exists. What decides how well an attack works is drawn to be like what was counted of real
people, and each docstring says where it is: sizes of areas, ages, how popular films are. All else is coarse.
It is drawn from the same exact bits as the noise, so there is no seed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sfumato.anonymity.columns import Flags, Floats, Integers
from sfumato.attacks.victims import one_row_each
from sfumato.catalog import between, one_of
from sfumato.core import bernoulli, uniform_below
from sfumato.core.arguments import count
from sfumato.core.scientific import scientific
from sfumato.session import Database

__all__ = [
    "DIAGNOSES",
    "Firms",
    "MOST_SALARY",
    "Population",
    "VICTIM",
    "choose",
    "invent_blocks",
    "invent_firms",
    "invent_people",
    "invent_ratings",
    "uniforms",
]


# Shares of people by age, in steps of five years up to 100: about the United States in 2000.
_PYRAMID = (
    6.8, 7.3, 7.3, 7.2, 6.7, 6.9, 7.3, 8.1, 8.0, 7.1, 6.2, 4.8, 3.8, 3.4, 3.1, 2.6, 1.8, 1.0, 0.4, 0.1,
)  # fmt: skip
_AGES = np.repeat(np.array(_PYRAMID) / 5, 5)
_TODAY = np.datetime64("2026-01-01")

DIAGNOSES = {
    "none found": 0.30,
    "hypertension": 0.18,
    "injury": 0.14,
    "depression": 0.12,
    "diabetes": 0.10,
    "asthma": 0.08,
    "cancer": 0.05,
    "HIV": 0.03,
}
"""What people are in hospital for, and how many of a hundred."""


def uniforms(size: int) -> Floats:
    """Draw numbers evenly between 0 and 1, neither of them included."""
    return np.asarray((uniform_below(2**52, size=size) + 0.5) / 2.0**52, dtype=np.float64)


def choose(weights: npt.ArrayLike, size: int) -> Integers:
    """Draw places in a list of weights, each as often as it weighs.

    >>> choose([0, 3, 0], 4)
    array([1, 1, 1, 1])
    """
    steps = np.cumsum(np.asarray(weights, dtype=np.float64))
    return np.asarray(np.searchsorted(steps, uniforms(size) * steps[-1], side="right"), dtype=np.int64)


def _normal(size: int) -> Floats:
    return np.asarray(scientific("special").ndtri(uniforms(size)))


def _lognormal_sizes(total: int, mean: float, spread: float) -> Integers:
    """Divide `total` among areas whose sizes are evenly spaced quantiles of a lognormal law."""
    areas = max(1, round(total / mean))
    relative = np.exp(spread * scientific("special").ndtri((np.arange(areas) + 0.5) / areas))
    ends = np.rint(np.cumsum(relative) / relative.sum() * total).astype(np.int64)
    return np.asarray(np.diff(ends, prepend=0))


# -- people in firms ---------------------------------------------------------------------------

VICTIM = "Steven"
MOST_SALARY = 200_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Firms:
    """Firms of people, one row for each firm; the first of each is the victim.

    `sick` is a fair coin for everyone, so that guessing a victim's is right half the time. Each firm is one
    experiment, and one question grouped by firm runs them all: everyone works in one firm, so each firm's
    answer has its own noise and costs each person the same epsilon.
    """

    sick: Flags
    salary: Integers

    counting = "SELECT firm, COUNT(*) AS n FROM staff WHERE sick GROUP BY firm"

    def open(self, epsilon: float, *, without: bool = False) -> Database:
        """Open the people, or all but the victims, in this system, with a budget."""
        firms, people = self.sick.shape
        rows = {
            "firm": np.repeat(np.arange(firms), people).reshape(firms, people),
            "person": np.arange(firms * people).reshape(firms, people),
            "name": np.tile([VICTIM, *["somebody else"] * (people - 1)], (firms, 1)),
            "sick": self.sick,
            "salary": self.salary,
        }
        return one_row_each(
            pa.table({name: row[:, int(without) :].ravel() for name, row in rows.items()}),
            name="staff",
            unit="person",
            epsilon=epsilon,
            columns={"firm": one_of(*range(firms)), "salary": between(0, MOST_SALARY)},
        )


def invent_firms(firms: int, people: int) -> Firms:
    """Invent firms: a fair coin decides who is sick, salaries are lognormal around 45,000."""
    shape = count(firms, "firms"), count(people, "people", least=2)
    salary = np.minimum(np.exp(np.log(45_000) + 0.45 * _normal(firms * people)), MOST_SALARY)
    sick = np.asarray(bernoulli(0.5, size=firms * people), dtype=bool)
    return Firms(sick=sick.reshape(shape), salary=salary.astype(np.int64).reshape(shape))


# -- people in ZIP codes -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Population:
    """Everybody who lives in a region; one row each, numbered from 0."""

    zip: Integers
    born: npt.NDArray[np.datetime64]
    sex: Integers
    diagnosis: Integers

    @property
    def adults(self) -> Flags:
        """Who is 18 or older."""
        return np.asarray(self.born <= _TODAY - np.timedelta64(18 * 365 + 5, "D"))

    def table(self, who: Integers, *, sick: bool = False, moved: Flags | None = None) -> Any:
        """Return some people as a table: number, ZIP code, birth date, sex, and what ails them.

        Whoever has `moved` is listed in the ZIP code after their own.
        """
        areas = int(self.zip.max()) + 1
        at = self.zip[who] if moved is None else np.where(moved, (self.zip[who] + 1) % areas, self.zip[who])
        columns = {
            "person": pa.array(who),
            "zip": _named([f"{37_000 + 3 * area}" for area in range(areas)], at),
            "birth_date": pa.array(self.born[who]),
            "sex": _named(["F", "M"], self.sex[who]),
        }
        if sick:
            columns["diagnosis"] = _named(list(DIAGNOSES), self.diagnosis[who])
        return pa.table(columns)

    def patients(self, share: float = 0.25) -> Any:
        """Return a hospital's table: a random share of everybody, with what ails them."""
        return self.table(np.flatnonzero(bernoulli(share, size=len(self.zip))), sick=True)

    def voters(self, share: float = 0.7, *, moved: float = 0.02) -> Any:
        """Return a voter roll: a random share of adults, a few of them where they no longer live."""
        who = np.flatnonzero(self.adults & bernoulli(share, size=len(self.zip)))
        return self.table(who, moved=np.asarray(bernoulli(moved, size=len(who))))


def invent_people(people: int) -> Population:
    """Invent a region of ZIP codes.

    In the census of 2000 about 32,000 ZIP code areas shared 281 million people, 8,800 each. A lognormal
    law of that mean and of spread 1.5 stands for them: most areas are small, and most people live in large
    ones. So 200,000 people live in 23 areas, and about 63% of them are unique by ZIP code, birth date and
    sex, which is what Golle (2006) found for the whole country.
    """
    n = count(people, "people", least=100)
    sizes = _lognormal_sizes(n, 8_800, 1.5)
    days = choose(_AGES, n) * 365.25 + uniforms(n) * 365.25
    return Population(
        zip=np.repeat(np.arange(len(sizes)), sizes),
        born=_TODAY - np.ceil(days).astype("timedelta64[D]"),
        sex=uniform_below(2, size=n),
        diagnosis=choose(list(DIAGNOSES.values()), n),
    )


# -- people in census blocks -------------------------------------------------------------------

_RACES = {"white": 0.62, "Black": 0.13, "Asian": 0.06, "Native": 0.02, "other or several": 0.17}


def invent_blocks(blocks: int, tract: int) -> Any:
    """Invent census blocks of 5 to 60 people, `tract` of them to a tract; return a table of their people.

    Blocks differ from each other in who lives there, as they do: each has weights of its own for race, and
    a share of Hispanic people of its own.
    """
    number = count(blocks, "blocks")
    sizes = np.clip(np.exp(np.log(25) + 0.6 * _normal(number)), 5, 60).astype(np.int64)
    block = np.repeat(np.arange(number), sizes)
    n = len(block)
    weights = np.array(list(_RACES.values())) * np.exp(
        1.2 * _normal(number * len(_RACES)).reshape(number, -1)
    )
    steps = np.cumsum(weights, axis=1) / weights.sum(axis=1, keepdims=True)
    race = np.minimum((uniforms(n)[:, None] > steps[block]).sum(axis=1), len(_RACES) - 1)
    hispanic = np.minimum(0.16 * np.exp(_normal(number)), 0.8)
    return pa.table(
        {
            "tract": pa.array(block // count(tract, "tract")),
            "block": pa.array(block),
            "sex": _named(["F", "M"], uniform_below(2, size=n)),
            "age": pa.array(choose(_AGES, n)),
            "race": _named(list(_RACES), race),
            "ethnicity": _named(["Hispanic", "not Hispanic"], (uniforms(n) > hispanic[block]).astype(int)),
        }
    )


# -- viewers of films --------------------------------------------------------------------------

_DAYS = 730


def invent_ratings(viewers: int, films: int) -> Any:
    """Invent ratings: who, which film, how many stars, on which day of two years.

    The films' popularity falls like a power of their rank, a few viewers rate very much (lognormal), stars
    depend on the film and the viewer, and ratings come several a day, on days when a viewer sits down to it.
    """
    people, titles = count(viewers, "viewers", least=10), count(films, "films", least=50)
    wanted = np.minimum(4 + np.exp(3.2 + 1.0 * _normal(people)), titles / 2).astype(np.int64)
    drawn = np.repeat(np.arange(people), wanted)
    popularity = 1 / (np.arange(titles) + 3.0) ** 0.9
    pairs = np.unique(drawn * titles + choose(popularity, len(drawn)))  # a film is rated once
    who, film = pairs // titles, pairs % titles
    n = len(pairs)
    liked = 3.6 + 0.5 * _normal(titles)[film] + 0.4 * _normal(people)[who] + 0.9 * _normal(n)
    sittings = -(-np.bincount(who, minlength=people) // 3)
    first = np.cumsum(sittings) - sittings
    joined = np.repeat(uniforms(people) * 0.8 * _DAYS, sittings)
    days = (joined + uniforms(len(joined)) * (_DAYS - joined)).astype(np.int64)
    sitting = first[who] + (uniforms(n) * sittings[who]).astype(np.int64)
    start = _TODAY - np.timedelta64(_DAYS, "D")
    return pa.table(
        {
            "viewer": pa.array(who),
            "film": pa.array(film),
            "stars": pa.array(np.clip(np.rint(liked), 1, 5).astype(np.int64)),
            "day": pa.array(start + days[sitting].astype("timedelta64[D]")),
        }
    )


def _named(names: list[str], codes: npt.NDArray[Any]) -> Any:
    return pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(names)).cast(pa.string())
