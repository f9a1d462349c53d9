"""Sparse ratings: a few films that somebody mentioned find their whole record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.anonymity.columns import Flags, Integers
from sfumato.attacks.attack_result import EPSILONS, AttackResult, MeasuredRate, rates, with_interval
from sfumato.attacks.population import invent_ratings
from sfumato.attacks.scoreboard import Ratings, Scoreboard, Tried
from sfumato.attacks.victims import TARGET, count_of_use, guess_bits
from sfumato.core.arguments import count
from sfumato.errors import InvalidArgument
from sfumato.plots import Axis, Picture

__all__ = ["ratings"]

_STORY = """\
In 2006 Netflix published a hundred million ratings of half a million subscribers, under numbers instead of
names. Narayanan and Shmatikov showed that eight ratings, two of them wrong, with days that are off by two
weeks, find 99% of the records; and people write about films elsewhere, under their names. Then all else
that they have rated is known too. No column was a name, none was even like one: it is the whole list that
nobody shares. Through this system an attacker can ask about the one person who gave a rating that he
knows: and gets a count with noise."""


def ratings(
    data: Any = None,
    *,
    columns: Sequence[str] = ("viewer", "film", "stars", "day"),
    sought: Sequence[Any] | None = None,
    known: Sequence[int] = (2, 4, 6, 8),
    published: float = 0.5,
    epsilons: Sequence[float] = EPSILONS,
    viewers: int = 10_000,
    films: int = 2_000,
    targets: int = 400,
    victims: int = 3_000,
) -> AttackResult:
    """Attack published ratings with a few that are known about: invented ones, or one's own.

    `columns` name who rated what, with how many stars, when (a date, or a number of days). A share of
    viewers is `published`, so that the attacker may also look for somebody who is not there. Of each of
    `targets` viewers he knows a few ratings, off by up to a star and two weeks, a quarter of them all
    wrong. He wants to know who has rated a film of a list; `sought` names it, by default it is drawn
    so that a third of viewers have. For an owner's eyes, and no release.

    >>> found = ratings(viewers=500, films=200, known=(8,), targets=40, victims=200, epsilons=(1,))
    >>> found.naive.share > found.guess
    True
    """
    counts = sorted({count(number, "known") for number in known})
    table = Ratings.read(invent_ratings(viewers, films) if data is None else data, columns, counts[-1])
    listed = table.film_list(sought)
    seen = table.seen(listed)
    if seen.all() or not seen.any():
        raise InvalidArgument(
            "everybody has rated a film of the list",
            place="sought",
            hints=("name fewer films, or rarer ones",),
        )
    board = Scoreboard.of(table, listed, published)
    tried = [board.attack(seen, number, targets) for number in counts]
    chosen, rating = table.singled(seen, listed, victims)
    curve = tuple(_through(table, listed, chosen, rating, seen, epsilon) for epsilon in epsilons)
    finding = AttackResult(
        name="ratings",
        title="Sparse ratings: a few films find the whole record",
        story=_STORY,
        success="one viewer's secret told right",
        naive=tried[-1].told,
        curve=curve,
        facts=(*_facts(table, counts, tried), _of_use(table, listed, int(seen.sum()))),
    )
    return finding.illustrated(
        f"{len(chosen):,} viewers; the secret is whether they rated a film of a list, and half of them did. "
        f"Against the naive release the attacker knows {counts[-1]} ratings, about; against this system one "
        "rating, exactly, that nobody else gave. The dashed curve is what epsilon states: nobody can do "
        "better, and this attacker is as good as it allows.",
        after=(_picture(counts, tried),),
    )


def _facts(table: Ratings, counts: Sequence[int], tried: Sequence[Tried]) -> tuple[tuple[str, str], ...]:
    found = [
        (f"records found from {n} ratings", with_interval(one.found))
        for n, one in zip(counts, tried, strict=True)
    ]
    false = tried[-1].false
    return (
        ("ratings", f"{len(table.film):,} of {table.films:,} films by {table.viewers:,} viewers"),
        *found,
        *([] if false is None else [("claims about people who are not there", with_interval(false))]),
    )


def _picture(counts: Sequence[int], tried: Sequence[Tried]) -> Picture:
    claimed = [(n, one.false) for n, one in zip(counts, tried, strict=True) if one.false is not None]
    return Picture(
        title="How few ratings find a record",
        caption="Records found among all that were published, from a few ratings that are off by up to a "
        "star and two weeks, a quarter of them all wrong; and claims about viewers who are not there at all.",
        x=Axis(title="ratings that the attacker knows", low=0, high=counts[-1] + 1),
        y=Axis(title="viewers", percent=True, low=0, high=1),
        marks=(
            rates("found", ((n, one.found) for n, one in zip(counts, tried, strict=True))),
            rates("claimed, although not there", claimed),
        ),
    )


def _through(
    table: Ratings, sought: Integers, chosen: Integers, rating: Integers, seen: Flags, epsilon: float
) -> MeasuredRate:
    """Ask this system who has seen the films, of those who gave the one rating known of each victim."""
    rows = {"film": table.film, "stars": table.levels, "day": table.day}
    text = (
        f'SELECT k."{TARGET}", COUNT(*) AS n FROM ratings r '
        "JOIN known k ON k.film = r.film AND k.stars = r.stars AND k.day = r.day "
        "WHERE EXISTS (SELECT 1 FROM ratings s JOIN sought f ON f.film = s.film WHERE s.viewer = r.viewer) "
        f'GROUP BY k."{TARGET}"'
    )
    known = {name: values[rating] for name, values in rows.items()}
    return guess_bits(
        pa.table({"viewer": table.viewer, **rows}),
        text,
        seen[chosen],
        epsilon,
        name="ratings",
        unit="viewer",
        public={
            "known": pa.table({**known, TARGET: np.arange(len(chosen))}),
            "sought": pa.table({"film": sought}),
        },
    )


def _of_use(table: Ratings, sought: Integers, truth: int) -> tuple[str, str]:
    """Ask what such a table is for: how many have rated a film of the list, at epsilon 1."""
    text = "SELECT COUNT(DISTINCT r.viewer) AS n FROM ratings r JOIN sought f ON f.film = r.film"
    rows, public = {"viewer": table.viewer, "film": table.film}, {"sought": pa.table({"film": sought})}
    told = count_of_use(pa.table(rows), text, truth, name="ratings", unit="viewer", public=public)
    return "how many rated one of the list, at epsilon 1", told
