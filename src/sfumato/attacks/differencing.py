"""Differencing: two harmless totals whose difference is one person.

Through this system the best that anyone can do is known. Of an attacker who knows everybody else, and
guesses one fair bit from a count with discrete Laplace noise of scale 1/epsilon, exactly a share of
e^epsilon / (1 + e^epsilon) is right: the bound of `bit_bound` is met, not only kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sfumato.attacks.attack_result import EPSILONS, AttackResult, MeasuredRate, right, with_interval
from sfumato.attacks.population import MOST_SALARY, VICTIM, Firms, invent_firms
from sfumato.attacks.victims import Victims
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

    >>> found = differencing(firms=100, people=4, epsilons=(1,), trials=20)
    >>> found.naive.share  # two exact totals
    1.0
    """
    if data is not None:
        return _own(Victims.read(data, trait), epsilons, trials)
    world = invent_firms(firms, people)
    bits, others = world.sick[:, 0], world.sick[:, 1:].sum(axis=1)
    once, twice = [], []
    for epsilon in epsilons:
        noisy = _column(world.open(epsilon), world.counting, epsilon)
        once.append(MeasuredRate.of_bits(epsilon, noisy - others > 0, bits))
        both, without = world.open(epsilon), f"sick AND name <> '{VICTIM}'"
        difference = _column(both, world.counting, epsilon / 2)
        difference -= _column(both, world.counting.replace("sick", without), epsilon / 2)
        twice.append((epsilon, right(difference > 0, bits).share))
    salary_facts, salary_picture = _salaries(world, epsilons)
    finding = AttackResult(
        name="differencing",
        title=f"Differencing: the total with and without {VICTIM}",
        story=_STORY,
        naive=right(world.sick.sum(axis=1) - others > 0, bits),
        curve=tuple(once),
        facts=salary_facts,
    )
    return finding.illustrated(
        "The attacker knows everybody else and asks for one total. Bars are intervals over "
        f"{firms:,} firms. The dashed curve is what epsilon states: nobody can do better, and this attacker "
        "is as good as it allows.",
        lines=(Line(label="who asks twice and subtracts, as in the story", points=tuple(twice)),),
        after=(salary_picture,),
    )


def _column(db: Database, text: str, epsilon: float) -> Any:
    """Return the noisy column of one question, one number for each firm, in order."""
    release = db.sql(text, epsilon=epsilon).release()
    return np.array(release.column("n"), dtype=np.float64)


def _salaries(world: Firms, epsilons: Sequence[float]) -> tuple[tuple[tuple[str, str], ...], Picture]:
    """Compute a salary from two averages at each epsilon; say, and draw, how far off it is."""
    n = world.salary.shape[1]
    truth, others = world.salary[:, 0], world.salary[:, 1:]
    before, after = world.salary.sum(axis=1) / n, others.sum(axis=1) / (n - 1)
    exact = right(np.rint(n * before - (n - 1) * after), truth)
    guess = float(np.median(np.abs(np.median(others) - truth)))
    errors = []
    average = "SELECT firm, AVG(salary) AS n FROM staff GROUP BY firm"
    for epsilon in epsilons:
        noisy_before = _column(world.open(epsilon), average, epsilon / 2)
        noisy_after = _column(world.open(epsilon, without=True), average, epsilon / 2)
        found = np.clip(n * noisy_before - (n - 1) * noisy_after, 0, MOST_SALARY)
        errors.append((epsilon, float(np.nanmedian(np.abs(found - truth)))))
    through = "; ".join(f"{error:,.0f} at epsilon {epsilon:g}" for epsilon, error in errors)
    facts = (
        ("salary from two exact averages", f"right to the unit in {with_interval(exact)}"),
        ("salary through this system", f"off by {through} (half of the time less)"),
        ("salary by guessing the usual one", f"off by {guess:,.0f} (half of the time less)"),
    )
    ends = (errors[0][0], errors[-1][0])
    return facts, Picture(
        title="A salary from two averages",
        caption="How far off the salary is that is computed from the averages before and after a "
        "resignation; half of the time it is off by less. From exact averages it is off by nothing. A "
        "guess that looks at no release at all is as good or better.",
        x=Axis(title="epsilon", log=True),
        y=Axis(title="off by", low=0),
        marks=(
            Line(label="from two averages of this system", points=tuple(errors)),
            Line.flat("guessing the usual salary", guess, ends, dashed=True),
            Line.flat("from two exact averages", 0.0, ends),
        ),
    )


def _own(victims: Victims, epsilons: Sequence[float], trials: int) -> AttackResult:
    """Attack one's own table: each victim is another release."""
    bits = victims.bits[victims.draw(trials)]
    total = int(victims.bits.sum())
    curve = []
    for epsilon in epsilons:
        question = victims.open(epsilon * trials).sql(victims.counting, epsilon=epsilon)
        noisy = np.array([question.release().column("n")[0] for _ in bits])
        curve.append(MeasuredRate.of_bits(epsilon, noisy - (total - bits) > 0, bits))
    finding = AttackResult(
        name="differencing",
        title="Differencing: a total with and without one person",
        story=_STORY,
        success=f"one person's `{victims.trait}` guessed right",
        naive=right(total - (total - bits) > 0, bits),
        curve=tuple(curve),
        facts=(("people in the table", f"{len(victims.bits):,}"),),
    )
    return finding.illustrated(
        f"{trials:,} people for each epsilon, half of them with `{victims.trait}`; one release for each."
    )
