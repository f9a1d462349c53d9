"""Averaging: ask the same thing again and again, until the noise has gone.

Noise that is drawn afresh for every answer has mean zero, so the average of many answers is the secret. A
server that adds noise and keeps no account gives everything away to whoever is patient. This system charges
every answer to one budget, and when it is spent says no: to everyone, whatever the data. The attacker's
best is then what the whole budget allows, however the questions are divided. And a question that is asked
again under its key is the same answer, with the same noise: free, and of no use.
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
)
from sfumato.attacks.firms import Firms, invent_firms
from sfumato.attacks.victims import Victims
from sfumato.core import Proportion, discrete_laplace
from sfumato.core.arguments import count
from sfumato.errors import BudgetExceeded
from sfumato.plots import Axis, Line, Picture

__all__ = ["averaging"]

_STORY = """\
A server adds honest noise to every answer, and answers as often as it is asked. One answer says little
about anyone. But noise has mean zero: the average of a thousand answers has thirty times less of it, and
rounds to the truth. Forbidding the same question twice does not help, for there are a thousand ways to ask
it: add a zero, swap a condition, ask for the rest and subtract. So this system does not look at questions
but at what answers give away together: each is charged to one budget, on the disk, before it is computed,
and when that is spent the next is refused."""
_QUESTION = "SELECT firm, COUNT(*) AS n FROM staff WHERE sick GROUP BY firm"


def averaging(
    data: Any = None,
    *,
    trait: str | None = None,
    epsilons: Sequence[float] = EPSILONS,
    each: float = 0.25,
    questions: int = 1000,
    firms: int = 2000,
    people: int = 10,
    trials: int = 20,
) -> AttackResult:
    """Ask one question many times, `each` for so much epsilon; on the curve, epsilon is the whole budget.

    Invented firms, or one's own table with a column `trait` of true and false: then each row is a person,
    and each trial another victim with a budget of its own. For an owner's eyes, and no release.
    """
    count(questions, "questions")
    if data is None:
        world: _World = _Firms(world=invent_firms(firms, people))
    else:
        world = _Own(victims=Victims.read(data, trait), trials=count(trials, "trials", least=2))
    patient, path = world.without_account(each, questions)
    told = [world.with_account(epsilon, each) for epsilon in epsilons]
    finding = AttackResult(
        name="averaging",
        title="Averaging: the same question, a thousand times",
        story=_STORY,
        success="one person's bit guessed right",
        guess=0.5,
        naive=patient,
        curve=tuple(
            MeasuredRate(epsilon=epsilon, rate=one.rate, bound=bit_bound(epsilon))
            for epsilon, one in zip(epsilons, told, strict=True)
        ),
        facts=(
            (
                "asked of a server without an account",
                f"{questions:,} times at epsilon {each:g}, all answered",
            ),
            *(
                (
                    f"asked of this system, budget {epsilon:g}",
                    f"{one.answered} answered at epsilon {one.each:g}, and then no more",
                )
                for epsilon, one in zip(epsilons, told, strict=True)
            ),
        ),
    )
    return replace(
        finding,
        pictures=(
            _patience(path, each),
            success_picture(
                finding,
                caption="Epsilon is the whole budget, spent on the same question until it is refused. "
                "Dividing it "
                "gains nothing: the best that anyone can do with it is the dashed curve.",
            ),
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Told:
    """What came of asking until the budget was spent."""

    rate: Proportion
    answered: int
    each: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Firms:
    """Many firms, asked about in one question."""

    world: Firms

    def without_account(self, each: float, questions: int) -> tuple[Proportion, list[tuple[float, float]]]:
        """Average what a server says that adds the same noise and keeps no account."""
        truth = self.world.sick[self.world.victim]
        known = self.world.totals(self.world.sick, ~self.world.victim)
        exact = self.world.totals(self.world.sick)
        total = np.zeros(self.world.firms)
        path, next_shown = [], 1
        guess = np.zeros(self.world.firms, dtype=bool)
        for asked in range(1, questions + 1):
            total += exact + discrete_laplace(1 / each, size=self.world.firms)
            if asked in (next_shown, questions):
                guess = total / asked - known > 0.5
                path.append((float(asked), float((guess == truth).mean())))
                next_shown = -(-next_shown * 3 // 2)
        return right(guess, truth), path

    def with_account(self, budget: float, each: float) -> _Told:
        """Ask this system until it refuses, and average."""
        each = min(each, budget)
        truth = self.world.sick[self.world.victim]
        known = self.world.totals(self.world.sick, ~self.world.victim)
        question = self.world.open(budget).sql(_QUESTION, epsilon=each)
        total, answered = np.zeros(self.world.firms), 0
        while True:
            try:
                release = question.release()
            except BudgetExceeded:
                break
            total += np.array(release.column("n"), dtype=float)
            answered += 1
        return _Told(rate=right(total / answered - known > 0.5, truth), answered=answered, each=each)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Own:
    """One table, asked about once for each victim."""

    victims: Victims
    trials: int

    def without_account(self, each: float, questions: int) -> tuple[Proportion, list[tuple[float, float]]]:
        """Average what a server says that adds the same noise and keeps no account."""
        chosen = self.victims.draw(self.trials)
        noise = discrete_laplace(1 / each, size=self.trials * questions).reshape(self.trials, questions)
        averages = np.cumsum(noise, axis=1) / np.arange(1, questions + 1)
        bits = self.victims.bits[chosen]
        shown = np.unique(np.geomspace(1, questions, 20).astype(int))
        rates = [right(averages[:, asked - 1] + bits > 0.5, bits) for asked in shown]
        return rates[-1], [(float(asked), rate.share) for asked, rate in zip(shown, rates, strict=True)]

    def with_account(self, budget: float, each: float) -> _Told:
        """Ask this system until it refuses, once for each victim."""
        each = min(each, budget)
        chosen = self.victims.draw(self.trials)
        hits = answered = 0
        for one in chosen:
            question = self.victims.open(budget).sql(self.victims.counting, epsilon=each)
            total, answered = 0.0, 0
            while True:
                try:
                    total += question.release().column("n")[0]
                except BudgetExceeded:
                    break
                answered += 1
            bit = bool(self.victims.bits[one])
            hits += (total / answered - (self.victims.total - bit) > 0.5) == bit
        return _Told(rate=Proportion(hits=hits, trials=self.trials), answered=answered, each=each)


_World = _Firms | _Own


def _patience(path: list[tuple[float, float]], each: float) -> Picture:
    ends = (path[0][0], path[-1][0])
    return Picture(
        title="Patience pays, where nobody keeps an account",
        caption=f"A server that adds noise for epsilon {each:g} to each answer, and answers always: the "
        "average of "
        f"enough answers tells the bit. With a budget of 1 answer {max(1, int(1 / each))} is the last, and "
        "the best "
        "guess stays below the dashed line for ever.",
        x=Axis(title="questions asked", log=True),
        y=Axis(title="one person's bit guessed right", percent=True, low=0.4, high=1),
        marks=(
            Line(label="noise without an account", points=tuple(path)),
            Line(
                label="no attacker can do better with a budget of 1",
                points=tuple((end, bit_bound(1)) for end in ends),
                dashed=True,
            ),
        ),
    )
