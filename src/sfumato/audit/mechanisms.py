"""The mechanisms of the core as subjects: sampled, and computed where the law is a finite table."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.audit.black_box import Pair
from sfumato.audit.neighbours import answers, numbers
from sfumato.audit.subject import ONE, Claim, Subject
from sfumato.audit.zoo.sparse import sparse_subject
from sfumato.audit.zoo.sums import sum_subject
from sfumato.core.adjacency import Sensitivity
from sfumato.core.finite import FiniteMechanism
from sfumato.core.gaussian import GaussianMechanism
from sfumato.core.laplace import LaplaceMechanism
from sfumato.core.response import RandomizedResponseMechanism
from sfumato.core.selection import ExponentialMechanism, PermuteAndFlip, ReportNoisyMax

__all__ = ["mechanisms"]

_AT_DELTA = Claim(epsilon=1, delta=0.02)
_UTILITIES = answers(5)
_FAR = 60  # outputs of integer noise that a table holds, to each side; ratios beyond are the same, or rarer
_Mechanism = ExponentialMechanism | PermuteAndFlip | ReportNoisyMax


def mechanisms() -> tuple[Subject, ...]:
    """Return every mechanism of the core, under the claim of its own event."""
    three = Sensitivity(each=Fraction(1), coordinates=3)
    return (
        _additive("Laplace noise on a count", LaplaceMechanism(1), ONE),
        _additive("Gaussian noise on a count", GaussianMechanism.from_budget(1, 0.02), _AT_DELTA),
        _vector("Laplace noise on three counts", LaplaceMechanism.from_epsilon(1, sensitivity=three), ONE),
        _vector(
            "Gaussian noise on three counts",
            GaussianMechanism.from_budget(1, 0.02, sensitivity=three),
            _AT_DELTA,
        ),
        sum_subject(100),
        _response("randomized response of two", RandomizedResponseMechanism.coin_toss()),
        _response("randomized response of five", RandomizedResponseMechanism.from_epsilon(1, choices=5)),
        _finite(),
        _choice("exponential mechanism", ExponentialMechanism(1)),
        _choice("permute and flip", PermuteAndFlip(1)),
        _choice("report noisy max", ReportNoisyMax(1)),
        sparse_subject(4, 1),
        sparse_subject(4, 2),
    )


def _additive(name: str, mechanism: LaplaceMechanism | GaussianMechanism, claim: Claim) -> Subject:
    def law(data: Any) -> dict[int, float]:
        return {output: mechanism.pmf(output, len(data)) for output in range(-_FAR, _FAR + 1)}

    return Subject(
        name=name,
        claim=claim,
        run=lambda data, trials: mechanism.release(np.full(trials, len(data))),
        neighbours=numbers(0, 1)[:4],
        trials=100_000,
        law=law,
    )


def _vector(name: str, mechanism: LaplaceMechanism | GaussianMechanism, claim: Claim) -> Subject:
    return Subject(
        name=name,
        claim=claim,
        run=lambda data, trials: mechanism.release(np.tile(np.array(data), (trials, 1))),
        neighbours=answers(3),
        trials=60_000,
    )


def _response(name: str, mechanism: RandomizedResponseMechanism) -> Subject:
    choices = mechanism.choices
    return Subject(
        name=name,
        claim=Claim(epsilon=mechanism.epsilon),
        run=lambda answer, trials: mechanism.release(np.full(trials, answer)),
        neighbours=[Pair(name=f"answers 0 and {other}", left=0, right=other) for other in range(1, choices)],
        trials=60_000,
        law=lambda answer: {report: mechanism.pmf(report, answer) for report in range(choices)},
    )


def _finite() -> Subject:
    """A truncated geometric mechanism on 0 .. 4, with rational rows: e^epsilon is 2 between neighbours."""
    rows = []
    for value in range(5):
        row = [Fraction(1, 3) * Fraction(1, 2) ** abs(output - value) for output in range(5)]
        row[0] += Fraction(1, 3) * Fraction(1, 2) ** value
        row[-1] += Fraction(1, 3) * Fraction(1, 2) ** (4 - value)
        rows.append(row)
    mechanism = FiniteMechanism(rows, neighbours=[(value, value + 1) for value in range(4)])
    return Subject(
        name="a finite mechanism",
        claim=Claim(epsilon=mechanism.epsilon),
        run=lambda value, trials: mechanism.release(np.full(trials, value)),
        neighbours=[Pair(name=f"{value} and {value + 1}", left=value, right=value + 1) for value in range(4)],
        trials=60_000,
        law=lambda value: dict(enumerate(mechanism.matrix[value])),
    )


def _choice(name: str, mechanism: _Mechanism) -> Subject:
    def run(utilities: Any, number: int) -> Any:
        if isinstance(mechanism, ExponentialMechanism):
            return mechanism.release_each(np.tile(np.array(utilities, dtype=np.int64), (number, 1)))
        return np.array([mechanism.release(utilities) for _ in range(number)])

    return Subject(
        name=name,
        claim=ONE,
        run=run,
        neighbours=_UTILITIES,
        trials=40_000 if isinstance(mechanism, ExponentialMechanism) else 8_000,
        law=lambda utilities: {output: mechanism.pmf(output, utilities) for output in range(len(utilities))},
    )
