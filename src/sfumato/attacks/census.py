"""Census tables: enough small tables about a block are its people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.anonymity.columns import Flags, Integers
from sfumato.attacks.attack_result import AttackResult, MeasuredRate, rates, with_interval
from sfumato.attacks.blocks import AGES, COLUMNS, TABLES, Blocks, fitting, nearest
from sfumato.attacks.population import choose, invent_blocks
from sfumato.core import Proportion
from sfumato.plots import Axis, Line, Picture

__all__ = ["census"]

_STORY = """\
The census of 2010 published billions of counts about blocks of a few dozen people: sex by age, age by
race, and so on, each of them harmless. The Census Bureau then attacked its own tables. Every count is an
equation about the people of a block, and there are more equations than people. Solved, they gave for 46%
of the population exactly block, sex, age, race and ethnicity, and for 71% with an age that is off by a
year at most. Joined with commercial lists of names, ages and addresses, they named people. Here a small
tract is rebuilt in the same way: from exact tables, and from the same tables released by this system."""

_EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
_GUESSES = 20


def census(
    data: Any = None,
    *,
    columns: Sequence[str] = COLUMNS,
    epsilons: Sequence[float] = _EPSILONS,
    blocks: int = 24,
    tract: int | None = None,
) -> AttackResult:
    """Attack tables about small areas by rebuilding the people behind them: invented ones, or one's own.

    `columns` name the tract, the block, sex, age, race and ethnicity of each row, which is a person. The
    invented blocks are in tracts of `tract` blocks each, by default in one.

    The intervals take people for independent, which neighbours in one solution are not quite. For an owner's
    eyes, and no release.

    >>> found = census(blocks=3, epsilons=(1,))
    >>> found.naive.share > found.guess
    True
    """
    people = Blocks.read(invent_blocks(blocks, tract or blocks) if data is None else data, columns)
    truth = _Truth.of(people)
    exact = people.exact()
    naive = truth.compare(truth.rebuild(exact))
    through = [
        (epsilon, truth.compare(truth.rebuild(people.released(epsilon), epsilon))) for epsilon in epsilons
    ]
    guess, guess_unlike = truth.guess()
    finding = AttackResult(
        name="census",
        title="Census tables: who lives in a block, from counts alone",
        story=_STORY,
        success="people rebuilt exactly",
        guess=guess,
        naive=naive.exact,
        curve=tuple(MeasuredRate(epsilon=epsilon, rate=one.exact) for epsilon, one in through),
        facts=truth.facts(naive, through, exact),
    )
    return finding.illustrated(
        f"{people.people:,} people in {len(truth.inhabitants)} blocks. The same {len(TABLES)} tables, exact "
        "and from this system, whose epsilon is for all of them together. Right is who is right in block, "
        "sex, age, race and ethnicity. Guessing: as many people as live in each block, with the tract's "
        "shares of each sex, age, race and ethnicity. The attacker starts from such a guess.",
        bound=False,
        after=(_named(naive, guess_unlike, through),),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rebuilt:
    """How right rebuilt people are: exactly, with an age that is off by a year at most, and once named.

    `named` are all of whom the race and ethnicity were told right, `unlike` those among them who are unlike
    most of their block, whom nobody tells right by guessing the usual.
    """

    exact: Proportion
    about: Proportion
    named: Proportion
    unlike: Proportion


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Truth:
    """Who really lives there."""

    people: Blocks
    cells: Integers
    inhabitants: Integers

    @classmethod
    def of(cls, people: Blocks) -> _Truth:
        """Count them."""
        cells = people.cells()
        return cls(people=people, cells=cells, inhabitants=cells.sum(axis=(1, 2, 3, 4)))

    def rebuild(self, tables: dict[str, Integers], epsilon: float | None = None) -> Integers:
        """Rebuild the people of every tract: from exact tables, or from those of an epsilon."""
        rebuilt = np.zeros_like(self.cells)
        for tract, own in self._tracts():
            if epsilon is None:
                rebuilt[own] = fitting(tables, own, tract)
            else:
                rebuilt[own] = nearest(tables, own, tract, self._drawn(own), epsilon)
        return rebuilt

    def _tracts(self) -> list[tuple[int, Integers]]:
        """Return the tracts, and which blocks each has."""
        tract, block = self.people.tract, self.people.block
        return [(one, np.unique(block[tract == one])) for one in range(int(tract.max()) + 1)]

    def _drawn(self, own: Integers) -> Integers:
        """Draw people for the blocks of a tract, as many as live there, by the tract's shares.

        These are its shares of each sex, of each age, and of each race and ethnicity: what is taken to be
        known without any of the tables.
        """
        counted = self.cells[own].sum(axis=0)
        shares = (
            counted.sum(axis=(1, 2, 3))[:, None, None]
            * counted.sum(axis=(0, 2, 3))[None, :, None]
            * counted.sum(axis=(0, 1)).reshape(1, 1, -1)
        ).astype(np.float64)
        block = np.repeat(np.arange(len(own)), self.inhabitants[own])
        drawn = np.zeros((len(own), shares.size), dtype=np.int64)
        np.add.at(drawn, (block, choose(shares.ravel(), len(block))), 1)
        return drawn.reshape(len(own), *counted.shape)

    def compare(self, rebuilt: Integers) -> _Rebuilt:
        """Compare rebuilt people with the truth."""
        n = self.people.people
        told, unlike = self._told(rebuilt)
        return _Rebuilt(
            exact=Proportion(hits=int(np.minimum(rebuilt, self.cells).sum()), trials=n),
            about=Proportion(hits=_within_a_year(rebuilt, self.cells), trials=n),
            named=Proportion(hits=int(told.sum()), trials=n),
            unlike=Proportion(hits=int((told & unlike).sum()), trials=max(1, int(unlike.sum()))),
        )

    def _told(self, rebuilt: Integers) -> tuple[Flags, Flags]:
        """Return of whom race and ethnicity are told right, and who is unlike most of the block.

        A list of everybody's name, block, sex and age is joined with the rebuilt people: of the same age, or
        else off by a year. What most of these are is read.
        """
        people = self.people
        kinds = rebuilt.shape[3] * rebuilt.shape[4]
        there = rebuilt.reshape(*rebuilt.shape[:3], kinds)
        near = np.zeros_like(there)
        near[:, :, 1:] += there[:, :, :-1]
        near[:, :, :-1] += there[:, :, 1:]
        match = np.where(there.any(axis=3, keepdims=True), there, near)
        read = np.where(match.any(axis=3), match.argmax(axis=3), -1)
        kind = people.race * rebuilt.shape[4] + people.ethnicity
        usual = self.cells.sum(axis=(1, 2)).reshape(len(self.cells), kinds).argmax(axis=1)
        told = read[people.block, people.sex, people.age] == kind
        return told, kind != usual[people.block]

    def guess(self) -> tuple[float, float]:
        """Return what share drawn people get right: exactly, and once named of those unlike most."""
        drawn = np.zeros_like(self.cells)
        exact, unlike = 0.0, 0.0
        for _ in range(_GUESSES):
            for _, own in self._tracts():
                drawn[own] = self._drawn(own)
            right = self.compare(drawn)
            exact, unlike = exact + right.exact.share, unlike + right.unlike.share
        return exact / _GUESSES, unlike / _GUESSES

    def facts(
        self, naive: _Rebuilt, through: list[tuple[float, _Rebuilt]], tables: dict[str, Integers]
    ) -> tuple[tuple[str, str], ...]:
        """Say in words what was published, and how right the rebuilt people are."""
        numbers = sum(table.size for table in tables.values())
        epsilon, near_one = min(through, key=lambda one: abs(one[0] - 1))
        lines = [
            ("published", f"{numbers:,} counts in {len(tables)} tables, about {self.people.people:,} people")
        ]
        for label, one in (("exact tables", naive), (f"at epsilon {epsilon:g}", near_one)):
            lines += [
                (f"{label}: age off by a year at most", with_interval(one.about)),
                (f"{label}: race told of a name", with_interval(one.named)),
                (f"{label}: if unlike most of the block", with_interval(one.unlike)),
            ]
        return tuple(lines)


def _within_a_year(rebuilt: Integers, truth: Integers) -> int:
    """Return how many rebuilt people can be paired with true ones alike in all but a year of age.

    From the youngest on: who is left over from the year before must be paired now or never, and costs
    nobody a pair, for whoever is taken would have made one pair too.
    """
    pairs = 0
    spare, lone = np.zeros_like(rebuilt[:, :, 0]), np.zeros_like(rebuilt[:, :, 0])
    for age in range(AGES):
        made, real = rebuilt[:, :, age], truth[:, :, age]
        late, early = np.minimum(spare, real), np.minimum(lone, made)
        made, real = made - early, real - late
        both = np.minimum(made, real)
        pairs += int((late + early + both).sum())
        spare, lone = made - both, real - both
    return pairs


def _named(naive: _Rebuilt, guess: float, through: Sequence[tuple[float, _Rebuilt]]) -> Picture:
    epsilons = [epsilon for epsilon, _ in through]
    ends = (min(epsilons), max(epsilons))
    return Picture(
        title="Race and ethnicity of people unlike most of their block",
        caption="A list of names with block, sex and age is joined with the rebuilt people. Shown are those "
        "whose race or ethnicity is not the usual one of their block: guessing the usual one is never right "
        "about them, and people drawn by the tract's shares seldom are.",
        x=Axis(title="epsilon", log=True),
        y=Axis(title="told right", percent=True, low=0, high=1),
        marks=(
            Line.flat("exact tables", naive.unlike.share, ends),
            rates("tables of this system", ((epsilon, one.unlike) for epsilon, one in through)),
            Line.flat("guessing", guess, ends, dashed=True),
        ),
    )
