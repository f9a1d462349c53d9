"""Averaging: ask the same thing again and again, until the noise has gone, or the budget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sfumato.anonymity.columns import Flags, Floats
from sfumato.attacks.attack_result import EPSILONS, AttackResult, MeasuredRate, bit_bound, right
from sfumato.attacks.population import invent_firms
from sfumato.attacks.victims import Victims
from sfumato.core import Proportion, discrete_laplace
from sfumato.core.arguments import count
from sfumato.errors import BudgetExceeded
from sfumato.plots import Axis, Line, Picture
from sfumato.session import SqlQuestion

__all__ = ["averaging"]

_STORY = """\
A server adds honest noise to every answer, and answers as often as it is asked. One answer says little
about anyone. But noise has mean zero: the average of a thousand answers has thirty times less of it, and
rounds to the truth. Forbidding the same question twice does not help, for there are a thousand ways to ask
it: add a zero, swap a condition, ask for the rest and subtract. So this system does not look at questions
but at what answers give away together: each is charged to one budget, on the disk, before it is computed,
and when that is spent the next is refused."""


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

    >>> found = averaging(firms=200, people=4, each=0.5, questions=200, epsilons=(1,), trials=5)
    >>> found.naive.share > 0.9  # of a server that keeps no account
    True
    """
    count(questions, "questions")
    if data is None:
        world: Any = invent_firms(firms, people)
        bits, others, databases = world.sick[:, 0], world.sick[:, 1:].sum(axis=1), 1
    else:
        world = Victims.read(data, trait)
        bits = world.bits[world.draw(trials)]
        others, databases = world.bits.sum() - bits, trials
    curve, answered = [], []
    for epsilon in epsilons:
        price = min(each, epsilon)
        asked = (world.open(epsilon).sql(world.counting, epsilon=price) for _ in range(databases))
        told = np.hstack([_until_refused(question) for question in asked])
        curve.append(MeasuredRate.of_bits(epsilon, told.mean(axis=0) - others > 0.5, bits))
        said = f"{len(told)} answered at epsilon {price:g}, and then no more"
        answered.append((f"asked of this system, budget {epsilon:g}", said))
    path = _without_account(bits, each, questions)
    unlimited = f"{questions:,} times at epsilon {each:g}, all answered"
    finding = AttackResult(
        name="averaging",
        title="Averaging: the same question, a thousand times",
        story=_STORY,
        naive=path[-1][1],
        curve=tuple(curve),
        facts=(("asked of a server without an account", unlimited), *answered),
    )
    return finding.illustrated(
        "Epsilon is the whole budget, spent on the same question until it is refused. Dividing it gains "
        "nothing: the best that anyone can do with it is the dashed curve.",
        before=(_patience([(float(asked), rate.share) for asked, rate in path], each),),
    )


def _without_account(bits: Flags, each: float, questions: int) -> list[tuple[int, Proportion]]:
    """Average what a server says that adds the same noise and keeps no account; the others are known."""
    noise = discrete_laplace(1 / each, size=questions * len(bits)).reshape(questions, len(bits))
    averages = bits + np.cumsum(noise, axis=0) / np.arange(1, questions + 1)[:, None]
    shown = np.unique(np.geomspace(1, questions, 20).astype(int)).tolist()
    return [(asked, right(averages[asked - 1] > 0.5, bits)) for asked in shown]


def _until_refused(question: SqlQuestion) -> Floats:
    """Ask this system until it refuses; return a row of counts for each answer."""
    answers = []
    while True:
        try:
            answers.append(question.release().column("n"))
        except BudgetExceeded:
            return np.array(answers, dtype=np.float64)


def _patience(path: list[tuple[float, float]], each: float) -> Picture:
    ends = (path[0][0], path[-1][0])
    return Picture(
        title="Patience pays, where nobody keeps an account",
        caption=f"A server that adds noise for epsilon {each:g} to each answer, and answers always: the "
        f"average of enough answers tells the bit. With a budget of 1 answer {max(1, int(1 / each))} is the "
        "last, and the best guess stays below the dashed line for ever.",
        x=Axis(title="questions asked", log=True),
        y=Axis(title="one person's bit guessed right", percent=True, low=0.4, high=1),
        marks=(
            Line(label="noise without an account", points=tuple(path)),
            Line.flat("no attacker can do better with a budget of 1", bit_bound(1), ends, dashed=True),
        ),
    )
