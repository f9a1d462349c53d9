"""Differencing: two harmless totals whose difference is one person.

"How many of us are sick?" and "how many of us, without Steven?" are both about many people. Their
difference is Steven. So are two averages before and after somebody resigns:
n * before - (n - 1) * after is a salary, to the cent.

Through this system the best that anyone can do is known. Of an attacker who knows everybody else, and
guesses one fair bit from a count with discrete Laplace noise of scale 1/epsilon, exactly a share of
e^epsilon / (1 + e^epsilon) is right: the bound of `bit_bound` is met, not only kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sfumato.attacks.attack_result import (
    EPSILONS,
    AttackResult,
    MeasuredRate,
    bit_bound,
    right,
    success_picture,
    with_interval,
)
from sfumato.attacks.firms import MOST_SALARY, VICTIM, Firms, invent_firms
from sfumato.attacks.victims import Victims
from sfumato.core import Proportion
from sfumato.plots import Axis, Line, Picture
from sfumato.session import Database

__all__ = ["differencing"]

_STORY = """\
Two totals are published, and neither is about one person: how many of the staff are sick, and how many of
the staff without Steven are. Subtract them. Or: the average salary in March, when there were 30 people, and
in April, when one had left. Thirty times the first minus twenty-nine times the second is what she earned,
to the cent. Forbidding small groups does not help: both groups are large. Through this system each total
carries noise that hides any one person, and both are charged to one budget. An attacker who knows everybody
else's record and asks the one best question is right about one bit as often as epsilon says, and no
more."""


def differencing(
    data: Any = None,
    *,
    trait: str | None = None,
    epsilons: Sequence[float] = EPSILONS,
    firms: int = 4000,
    people: int = 30,
    trials: int = 200,
) -> AttackResult:
    """Attack totals by their differences: in invented firms, or about the people of one's own table.

    Of one's own table each row is a person, and `trait` is a column of true and false. For an owner's
    eyes: the finding is made from the data itself, and is no release.
    """
    if data is not None:
        return _own(Victims.read(data, trait), epsilons, trials)
    world = invent_firms(firms, people)
    truth = world.sick[world.victim]
    with_him, without = world.totals(world.sick), world.totals(world.sick, ~world.victim)
    naive = right(with_him - without > 0, truth)
    points = [_count_attack(world, epsilon) for epsilon in epsilons]
    finding = AttackResult(
        name="differencing",
        title=f"Differencing: the total with and without {VICTIM}",
        story=_STORY,
        success="one person's bit guessed right",
        guess=0.5,
        naive=naive,
        curve=tuple(
            MeasuredRate(epsilon=epsilon, rate=point.once, bound=bit_bound(epsilon))
            for epsilon, point in zip(epsilons, points, strict=True)
        ),
    )
    salaries = _Salaries.of(world, epsilons)
    twice = Line(
        label="who asks twice and subtracts, as in the story",
        points=tuple((epsilon, point.twice.share) for epsilon, point in zip(epsilons, points, strict=True)),
    )
    picture = success_picture(
        finding,
        caption="The attacker knows everybody else and asks for one total. Bars are intervals over "
        f"{firms:,} firms. The dashed curve is what epsilon states: nobody can do better, and this attacker "
        "is "
        "as good as it allows.",
    )
    return replace(
        finding,
        facts=salaries.facts(),
        pictures=(replace(picture, marks=(*picture.marks, twice)), salaries.picture()),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Guesses:
    once: Proportion  # who knows everybody else, and spends epsilon on one question
    twice: Proportion  # who asks with the victim and without him, at half of epsilon each


def _count_attack(world: Firms, epsilon: float) -> _Guesses:
    truth = world.sick[world.victim]
    sick = "SELECT firm, COUNT(*) AS n FROM staff WHERE sick{} GROUP BY firm"
    noisy = _column(world.open(epsilon), sick.format(""), epsilon)
    known = world.totals(world.sick, ~world.victim)
    both = world.open(epsilon)
    difference = _column(both, sick.format(""), epsilon / 2) - _column(
        both, sick.format(f" AND name <> '{VICTIM}'"), epsilon / 2
    )
    return _Guesses(once=right(noisy - known > 0, truth), twice=right(difference > 0, truth))


def _column(db: Database, text: str, epsilon: float) -> Any:
    """Return the noisy column of one question, one number for each firm, in order."""
    release = db.sql(text, epsilon=epsilon).release()
    return np.array(release.column("n"), dtype=np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Salaries:
    """How far off a salary is that was computed from two averages, at each epsilon."""

    exact: Proportion
    guess_error: float
    errors: tuple[tuple[float, float], ...]

    @classmethod
    def of(cls, world: Firms, epsilons: Sequence[float]) -> _Salaries:
        n, stay = world.people, ~world.victim
        truth = world.salary[world.victim]
        before = world.totals(world.salary) / n
        after = world.totals(world.salary, stay) / (n - 1)
        exact = np.rint(n * before - (n - 1) * after) == truth
        errors = []
        average = "SELECT firm, AVG(salary) AS n FROM staff GROUP BY firm"
        for epsilon in epsilons:
            noisy = [
                _column(world.open(epsilon, among=among), average, epsilon / 2) for among in (None, stay)
            ]
            found = np.clip(n * noisy[0] - (n - 1) * noisy[1], 0, MOST_SALARY)
            errors.append((epsilon, float(np.nanmedian(np.abs(found - truth)))))
        middle = np.median(world.salary[stay])
        return cls(
            exact=Proportion(hits=int(exact.sum()), trials=world.firms),
            guess_error=float(np.median(np.abs(middle - truth))),
            errors=tuple(errors),
        )

    def facts(self) -> tuple[tuple[str, str], ...]:
        """Say it in words."""
        through = "; ".join(f"{error:,.0f} at epsilon {epsilon:g}" for epsilon, error in self.errors)
        return (
            ("salary from two exact averages", f"right to the unit in {with_interval(self.exact)}"),
            ("salary through this system", f"off by {through} (half of the time less)"),
            ("salary by guessing the usual one", f"off by {self.guess_error:,.0f} (half of the time less)"),
        )

    def picture(self) -> Picture:
        """Draw the error against epsilon."""
        ends = (self.errors[0][0], self.errors[-1][0])
        return Picture(
            title="A salary from two averages",
            caption="How far off the salary is that is computed from the averages before and after a "
            "resignation; "
            "half of the time it is off by less. From exact averages it is off by nothing. A guess that "
            "looks at no "
            "release at all is as good or better.",
            x=Axis(title="epsilon", log=True),
            y=Axis(title="off by", low=0),
            marks=(
                Line(label="from two averages of this system", points=self.errors),
                Line(
                    label="guessing the usual salary",
                    points=tuple((end, self.guess_error) for end in ends),
                    dashed=True,
                ),
                Line(label="from two exact averages", points=tuple((end, 0.0) for end in ends)),
            ),
        )


def _own(victims: Victims, epsilons: Sequence[float], trials: int) -> AttackResult:
    """Attack one's own table: each trial is another victim, and another release."""
    drawn = [victims.draw(trials) for _ in epsilons]
    points = []
    for epsilon, chosen in zip(epsilons, drawn, strict=True):
        question = victims.open(epsilon * trials).sql(victims.counting, epsilon=epsilon)
        guesses = [
            question.release().column("n")[0] - (victims.total - victims.bits[one]) > 0 for one in chosen
        ]
        points.append(
            MeasuredRate(
                epsilon=epsilon,
                rate=right(np.array(guesses), victims.bits[chosen]),
                bound=bit_bound(epsilon),
            )
        )
    chosen = drawn[0]
    without = np.array([victims.total - int(victims.bits[one]) for one in chosen])
    finding = AttackResult(
        name="differencing",
        title="Differencing: a total with and without one person",
        story=_STORY,
        success=f"one person's `{victims.trait}` guessed right",
        guess=0.5,
        naive=right(victims.total - without > 0, victims.bits[chosen]),
        curve=tuple(points),
        facts=(("people in the table", f"{victims.people:,}"),),
    )
    caption = (
        f"{trials:,} people for each epsilon, half of them with `{victims.trait}`; one release for each."
    )
    return replace(finding, pictures=(success_picture(finding, caption=caption),))
