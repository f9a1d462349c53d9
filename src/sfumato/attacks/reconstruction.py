"""Reconstruction: too many answers that are too accurate give the whole column away.

With as many counts over random halves as people, and noise well below the square root of their number, the
equations have one solution: everyone's secret (Dinur and Nissim 2003). Solved here by least squares, or by
linear programming, which stands a share of wild answers (Dwork, McSherry and Talwar 2007), and rounded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from sfumato.anonymity.columns import Flags, Floats
from sfumato.attacks.attack_result import AttackResult, MeasuredRate, bit_bound, right
from sfumato.attacks.victims import Victims
from sfumato.core import PrivacyBudget, bernoulli, discrete_gaussian
from sfumato.core.arguments import count
from sfumato.core.conversions import epsilon_of_mu, largest_mu
from sfumato.core.scientific import scientific
from sfumato.errors import InvalidArgument
from sfumato.plots import Axis, Line, Picture
from sfumato.session import Budget, connect

__all__ = ["Method", "rebuild", "reconstruction"]

Method = Literal["least squares", "linear programming"]

_DELTA = 1e-6
_AT_ONCE = 1000  # halves in one question: as many rows as a public table may make of one private row
_EPSILONS = (0.5, 1.0, 4.0, 16.0, 64.0, 256.0)
_MOST_PEOPLE = 5000
_STORY = """\
Nobody publishes a column of secrets. But a server that answers any question about subgroups, each with a
little noise, publishes it bit by bit. Ask how many in a random half of the people have the secret; ask for
four times as many halves as there are people; solve the equations. It needs no cleverness, only patience,
and it is a theorem that no way of answering escapes: overly accurate answers to too many questions destroy
privacy. That is why there is a budget. This system answers all of these questions at once, and each answer
carries the noise that their number takes."""


def rebuild(halves: Flags, answers: Floats, *, method: Method = "least squares") -> Flags:
    """Return everyone's bit from counts over subsets: one row of `halves` and one answer for each question.

    Least squares minimises the sum of squared residues, linear programming the sum of absolute ones with
    every bit between 0 and 1. A secret is then rounded to the nearer of both.
    """
    if method == "least squares":
        found = _least_squares(halves, answers)
    elif method == "linear programming":
        found = _least_absolute(halves, answers)
    else:
        raise InvalidArgument(
            "no such method", place="method", hints=("'least squares' or 'linear programming'",)
        )
    return np.asarray(found > 0.5)


def _least_squares(halves: Flags, answers: Floats) -> Floats:
    """Solve the equations around one half, with a pinch of ridge: about as many as people are unstable."""
    questions, people = halves.shape
    equations, residues = halves.astype(float), answers - halves.sum(axis=1) / 2
    if questions >= people:
        squares = equations.T @ equations + np.eye(people)
        return np.asarray(np.linalg.solve(squares, equations.T @ residues) + 0.5)
    squares = equations @ equations.T + np.eye(questions)
    return np.asarray(equations.T @ np.linalg.solve(squares, residues) + 0.5)


def _least_absolute(halves: Flags, answers: Floats) -> Floats:
    linprog = scientific("optimize").linprog
    sparse = scientific("sparse")
    csr_matrix, eye, hstack = sparse.csr_matrix, sparse.eye, sparse.hstack
    questions, people = halves.shape
    residues = hstack([csr_matrix(halves.astype(float)), eye(questions), -eye(questions)], format="csr")
    solved = linprog(
        np.concatenate([np.zeros(people), np.ones(2 * questions)]),
        A_eq=residues,
        b_eq=answers,
        bounds=[(0, 1)] * people + [(0, None)] * (2 * questions),
        method="highs",
    )
    return np.asarray(solved.x[:people])


def reconstruction(
    data: Any = None,
    *,
    trait: str | None = None,
    people: int = 1000,
    questions: int | None = None,
    epsilons: Sequence[float] = _EPSILONS,
    method: Method = "least squares",
) -> AttackResult:
    """Rebuild a secret column from counts over random halves: four times as many as people, unless said.

    Invented people, or one's own table with a column `trait` of true and false; at most 5,000 rows of it
    are taken. For an owner's eyes, and no release. On the curve, epsilon is the total of all questions
    together, at delta 1e-6.

    >>> found = reconstruction(people=60, epsilons=(1,))
    >>> found.naive.share > 0.8
    True
    """
    if data is None:
        bits = _coins(count(people, "people", least=8))[:_MOST_PEOPLE]
    else:
        bits = Victims.read(data, trait).bits[:_MOST_PEOPLE]
    n = len(bits)
    asked = 4 * n if questions is None else count(questions, "questions")
    halves = _coins(asked * n).reshape(asked, n)
    exact = halves.astype(float) @ bits
    rounded = np.rint(exact / 5) * 5  # "to protect privacy, counts are rounded to the nearest five"
    share = float(bits.mean())
    guess = max(share, 1 - share)
    curve = []
    for epsilon in epsilons:
        rate = right(rebuild(halves, _asked(bits, halves, epsilon), method=method), bits)
        bound = max(guess, min(1.0, bit_bound(epsilon) + _DELTA))
        curve.append(MeasuredRate(epsilon=epsilon, rate=rate, bound=bound))
    growing = _growing(bits, halves, exact, method)
    finding = AttackResult(
        name="reconstruction",
        title=f"Reconstruction: {asked:,} counts rebuild {n:,} secrets",
        story=_STORY,
        success="secrets rebuilt",
        guess=guess,
        naive=right(rebuild(halves, rounded, method=method), bits),
        curve=tuple(curve),
        facts=(
            ("what the naive release is", "counts rounded to the nearest five"),
            ("solved by", method),
            *((label, f"{path[-1][1]:.1%} from {path[-1][0]:,.0f} answers") for label, path in growing),
        ),
    )
    picture = Picture(
        title="More answers, more secrets",
        caption=f"{n:,} people, and a server that adds the same small noise to every answer. Each answer by "
        "itself says hardly anything about anyone.",
        x=Axis(title="counts answered"),
        y=Axis(title="secrets rebuilt", percent=True, low=0.4, high=1),
        marks=tuple(Line(label=label, points=path) for label, path in growing),
    )
    return finding.illustrated(
        f"{asked:,} counts in one budget: epsilon is their total. At 1, little more than guessing; far "
        "beyond what anyone would call private, everything.",
        before=(picture,),
    )


def _coins(number: int) -> Flags:
    return np.asarray(bernoulli(0.5, size=number), dtype=bool)


def _asked(bits: Flags, halves: Flags, epsilon: float) -> Floats:
    """Ask this system for the counts, some hundred halves in one question, all from one budget."""
    people = pa.table({"person": np.arange(len(bits)), "code": np.arange(len(bits)), "secret": bits})
    batches = [halves[start : start + _AT_ONCE] for start in range(0, len(halves), _AT_ONCE)]
    public = {}
    for number, batch in enumerate(batches):
        half, code = np.nonzero(batch)
        public[f"halves{number}"] = pa.table({"half": half, "code": code})
    answers: list[int] = []
    budget = Budget(epsilon=epsilon, delta=_DELTA)
    db = connect(people, name="people", unit="person", budget=budget, public=public)
    share = _share(budget, len(batches))
    for number, batch in enumerate(batches):
        text = (
            f"SELECT h.half, COUNT(*) AS n FROM people p JOIN halves{number} h ON p.code = h.code "
            "WHERE p.secret GROUP BY h.half"
        )
        release = db.sql(text, epsilon=share, max_groups=len(batch), max_rows=1).release()
        found = dict(zip(release.column("half"), release.column("n"), strict=True))
        answers += [found.get(half, 0) for half in range(len(batch))]
    return np.array(answers, dtype=float)


def _share(budget: PrivacyBudget, questions: int) -> float:
    """Return the epsilon of each of several equal questions that together take the whole budget.

    Under the Gaussian rule squares of mu add up; a thousandth is left for what rounds up.
    """
    failure = budget.delta_loss
    mu = largest_mu(budget.epsilon, failure) / math.sqrt(questions)
    return 0.999 * epsilon_of_mu(mu, failure)


def _growing(
    bits: Flags, halves: Flags, exact: Floats, method: Method
) -> list[tuple[str, tuple[tuple[float, float], ...]]]:
    """Return what share is rebuilt from more and more answers, each with noise of some size."""
    lines = []
    steps = sorted({max(1, len(exact) * step // 16) for step in (1, 2, 4, 6, 8, 12, 16)})
    for part in (8, 4, 2):
        sigma = math.sqrt(len(bits)) / part
        noisy = exact + np.asarray(discrete_gaussian(sigma, size=len(exact)))
        found = [right(rebuild(halves[:asked], noisy[:asked], method=method), bits) for asked in steps]
        path = tuple((float(asked), rate.share) for asked, rate in zip(steps, found, strict=True))
        lines.append((f"noise ±{sigma:.2g}: root of n, divided by {part}", path))
    return lines
