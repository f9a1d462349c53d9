"""The scoreboard: published ratings without names, and how well each record fits what is known of somebody.

The idea, the weights and the threshold are those of Narayanan and Shmatikov (2008).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.anonymity.columns import Flags, Floats, Integers
from sfumato.attacks.attack_result import right
from sfumato.attacks.population import choose
from sfumato.attacks.victims import enough, fair_sample, shuffled
from sfumato.backends.owned import read_owned
from sfumato.core import Proportion, bernoulli, uniform_below
from sfumato.core.arguments import probability
from sfumato.errors import InvalidArgument

__all__ = ["Ratings", "Scoreboard", "Tried"]

_STARS, _DAYS, _STANDS_OUT = 1.5, 30.0, 1.5  # the scales of the scoreboard, as in the paper
_OFF_STARS, _OFF_DAYS = 1, 14  # how far off what the attacker knows may be
_FEWEST = 20


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ratings:
    """Who rated what: viewers and films numbered from 0, ordered by film."""

    viewer: Integers
    film: Integers
    stars: Floats
    day: Integers
    viewers: int
    films: int
    titles: Any

    @classmethod
    def read(cls, data: Any, columns: Sequence[str], least: int) -> Ratings:
        """Read them; rows with something missing are left out, and what a viewer rates a second time."""
        if len(columns) != 4 or len(set(columns)) != 4:
            raise InvalidArgument(
                "four different columns are needed: who, what, how many stars, when",
                place="columns",
                hints=("columns=('user', 'film', 'stars', 'day')",),
            )
        table = read_owned(data, list(columns)).drop_null()
        if table.num_rows == 0:
            raise InvalidArgument("there are no ratings", place="data")
        who, what, stars, day = (table.column(i).combine_chunks() for i in range(4))
        people, titles = who.dictionary_encode(), what.dictionary_encode()
        viewer, film = (np.asarray(each.indices, dtype=np.int64) for each in (people, titles))
        _, first = np.unique(film * len(people.dictionary) + viewer, return_index=True)
        if np.bincount(viewer[first]).max() < least:
            raise InvalidArgument(
                f"nobody has rated {least} films",
                place="known",
                hints=("let the attacker know less: known=(2, 4)",),
            )
        return cls(
            viewer=viewer[first],
            film=film[first],
            stars=_numbers(stars, columns[2])[first],
            day=np.rint(_numbers(day, columns[3])).astype(np.int64)[first],
            viewers=len(people.dictionary),
            films=len(titles.dictionary),
            titles=titles.dictionary,
        )

    @property
    def levels(self) -> Integers:
        """The stars, numbered from the fewest: whole numbers, whatever the stars are."""
        return np.unique(self.stars, return_inverse=True)[1]

    def film_list(self, wanted: Sequence[Any] | None) -> Integers:
        """Return the numbers of the films that are sought: those named, or some that a third rated."""
        if wanted is not None:
            places = pc.index_in(pa.array(list(wanted), type=self.titles.type), self.titles)
            if not len(places) or places.null_count:
                raise InvalidArgument(
                    "a film of the list was never rated, or there is none",
                    place="sought",
                    hints=("write them as they are in the table",),
                )
            return np.asarray(places, dtype=np.int64)
        rated = np.bincount(self.film, minlength=self.films)
        rare = shuffled(np.flatnonzero(rated <= max(1, self.viewers // 20)))
        taken: list[int] = []
        covered = np.zeros(self.viewers, dtype=np.bool_)
        for film in rare if len(rare) else np.argsort(rated)[:1]:
            taken.append(int(film))
            covered[self.viewer[self._of(int(film))]] = True
            if 3 * int(covered.sum()) >= self.viewers:
                break
        return np.array(taken)

    def _of(self, film: int) -> slice:
        begin, end = np.searchsorted(self.film, (film, film + 1))
        return slice(int(begin), int(end))

    def seen(self, films: Integers) -> Flags:
        """Return which viewers have rated one of some films."""
        found = np.zeros(self.viewers, dtype=np.bool_)
        found[self.viewer[np.isin(self.film, films)]] = True
        return found

    def singled(self, seen: Flags, sought: Integers, most: int) -> tuple[Integers, Integers]:
        """Draw viewers, half of them with the secret, and of each a rating that nobody else gave.

        Its film is not on the list, else it would tell the secret by itself.
        """
        days, levels = self.day - self.day.min(), self.levels
        cell = (self.film * (int(days.max()) + 1) + days) * (int(levels.max()) + 1) + levels
        _, place, times = np.unique(cell, return_index=True, return_counts=True)
        alone = place[times == 1]
        alone = shuffled(alone[~np.isin(self.film[alone], sought)])
        who, first = np.unique(self.viewer[alone], return_index=True)
        chosen = fair_sample(seen[who], most)
        enough(
            chosen,
            "viewers",
            "the attack needs viewers with a rating that nobody else gave",
            "some with, some without a film of the list: sought=[..]",
        )
        return who[chosen], alone[first[chosen]]


def _numbers(column: Any, name: str) -> Floats:
    """Return numbers; of dates and timestamps the number of days."""
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.date32(), safe=False)
    if pa.types.is_date32(column.type):
        column = column.cast(pa.int32())
    try:
        values = np.asarray(column.cast(pa.float64(), safe=False), dtype=np.float64)
    except pa.ArrowException:
        raise InvalidArgument(
            f"column `{name}` holds neither numbers nor dates",
            place=name,
            hints=("columns= names who, what, how many stars, when: in this order",),
        ) from None
    return np.nan_to_num(values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """What the scoreboard found: records found, secrets told, and claims about people who are not there."""

    found: Proportion
    told: Proportion
    false: Proportion | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scoreboard:
    """The published records, by film, and what a rating of each film weighs."""

    table: Ratings
    there: Flags
    viewer: Integers
    stars: Floats
    day: Integers
    starts: Integers
    weight: Floats
    open_rows: Integers  # ratings of films outside the list, ordered by viewer: what may be known
    open_starts: Integers

    @classmethod
    def of(cls, table: Ratings, sought: Integers, share: float) -> Scoreboard:
        """Publish a random share of the viewers, without their names."""
        there = np.asarray(bernoulli(probability(share, "published"), size=table.viewers))
        rows = there[table.viewer]
        if there.sum() < _FEWEST:
            raise InvalidArgument("hardly anybody is published", place="published")
        rated = np.bincount(table.film[rows], minlength=table.films)
        known = np.flatnonzero(~np.isin(table.film, sought))
        known = known[np.argsort(table.viewer[known], kind="stable")]
        return cls(
            table=table,
            there=there,
            viewer=table.viewer[rows],
            stars=table.stars[rows],
            day=table.day[rows],
            starts=np.concatenate([[0], np.cumsum(rated)]),
            weight=1 / np.log(np.maximum(rated, 2)),
            open_rows=known,
            open_starts=np.searchsorted(table.viewer[known], np.arange(table.viewers + 1)),
        )

    def attack(self, seen: Flags, known: int, targets: int) -> Tried:
        """Look for the records of viewers of whom a few ratings are known, and read the secret off them.

        As many again who are not published are looked for: a claim about one of them is false.
        """
        able = np.diff(self.open_starts) >= known
        present = np.flatnonzero(able & self.there)
        chosen = present[fair_sample(seen[present], targets)]
        absent = shuffled(np.flatnonzero(able & ~self.there))[: len(chosen)]
        if not len(chosen):
            raise InvalidArgument("nobody can be looked for", place="data", hints=("give more viewers",))
        found = np.array([self.claim(*self._about(viewer, known)) for viewer in chosen])
        # Where the record does not stand out the attacker guesses.
        guesses = np.where(found >= 0, seen[found], np.asarray(bernoulli(0.5, size=len(chosen))))
        false = sum(self.claim(*self._about(viewer, known)) >= 0 for viewer in absent)
        return Tried(
            found=right(found, chosen),
            told=right(guesses, seen[chosen]),
            false=Proportion(hits=int(false), trials=len(absent)) if len(absent) else None,
        )

    def _about(self, viewer: int, known: int) -> tuple[Integers, Floats, Floats]:
        """Return what is known of a viewer: films, stars and days, each somewhat off, a quarter all wrong."""
        table = self.table
        rows = shuffled(self.open_rows[self.open_starts[viewer] : self.open_starts[viewer + 1]])[:known]
        film = table.film[rows]
        stars = table.stars[rows] + uniform_below(2 * _OFF_STARS + 1, size=known) - _OFF_STARS
        day = table.day[rows] + uniform_below(2 * _OFF_DAYS + 1, size=known) - _OFF_DAYS
        wrong = known // 4
        film[:wrong] = choose(np.diff(self.starts) + 1.0, wrong)
        stars[:wrong] = table.stars[uniform_below(len(table.stars), size=wrong)]
        day[:wrong] = table.day[uniform_below(len(table.day), size=wrong)]
        return film, stars, day.astype(np.float64)

    def claim(self, films: Integers, stars: Floats, days: Floats) -> int:
        """Return the viewer whose published record fits best, or -1 if it does not stand out.

        A record scores, for each film that it shares, the more the closer stars and days are, divided by
        the logarithm of how many have rated it. The best stands out if it is further above the second best
        than 1.5 standard deviations of all scores.
        """
        scores = np.zeros(self.table.viewers)
        for film, star, day in zip(films, stars, days, strict=True):
            rows = slice(int(self.starts[film]), int(self.starts[film + 1]))
            near = np.exp(-np.abs(self.stars[rows] - star) / _STARS) + np.exp(
                -np.abs(self.day[rows] - day) / _DAYS
            )
            scores[self.viewer[rows]] += self.weight[film] * near  # a viewer is there once
        second, first = np.partition(scores, -2)[-2:]
        spread = scores[self.there].std()
        return int(scores.argmax()) if first - second > _STANDS_OUT * spread else -1
