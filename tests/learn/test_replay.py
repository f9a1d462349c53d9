"""Record and replay of trainings: noisy answers are recorded, and what one person moves at each step of them.

The states of a training are public: they follow from noisy integers. A training is recorded; then the exact
integers of every step are computed again, at the recorded states, for the table with one person more or less.
Whatever the noise was, they have to differ by no more than the event says that was charged.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.events import DiscreteGaussianVector, PoissonSubsampled
from sfumato.learn import (
    LinearRegression,
    LogisticRegression,
    NeuralNetwork,
    gradients,
    least_squares,
    moments,
)
from sfumato.learn.estimator import LinearEstimator
from sfumato.learn.networks.clipping import ClippedSums
from sfumato.learn.networks.training import PricedNetwork
from sfumato.learn.training import PricedTraining
from sfumato.release.noise import add_noise_in_steps

COLUMNS = {
    "age": sf.between(0, 100),
    "pay": sf.between(-5, 5),
    "job": sf.one_of("a", "b", "c"),
    "old": sf.one_of("no", "yes"),
}
Rows = list[tuple[Any, ...]]


def some_rows(seed: int, people: int) -> Rows:
    """Return rows of people, of whom some have several; with what is missing, not listed and far outside."""
    rng = np.random.default_rng(seed)
    ages = [None, float("nan"), 1e300, -7.0, 0.0, 100.0, 55.5]
    return [
        (
            int(who) * 7,
            ages[rng.integers(7)],
            [None, -9.0, 9.0, 1.25][rng.integers(4)],
            [None, "a", "b", "c", "king"][rng.integers(5)],
            [None, "no", "yes", "maybe"][rng.integers(4)],
        )
        for who in np.repeat(np.arange(people), rng.integers(1, 5, people))
    ]


def with_one_more(rows: Rows, seed: int) -> list[Rows]:
    """Return neighbours: with a person of one row, of many, and of many that are all the same and extreme."""
    heavy = [(10**6, 100.0, 9.0, "c", "yes")] * 300
    mixed = [(10**6, *row[1:]) for row in some_rows(seed + 1, 60)]
    return [[*rows, (10**6, 0.0, -5.0, "a", "no")], [*rows, *heavy], [*mixed, *rows]]


def opened(rows: Rows) -> sf.Database:
    kinds = (pa.int64(), pa.float64(), pa.float64(), pa.string(), pa.string())
    names = ("who", "age", "pay", "job", "old")
    columns = list(zip(*rows, strict=True)) or [()] * 5
    table = pa.table(
        {name: pa.array(values, kind) for name, values, kind in zip(names, columns, kinds, strict=True)}
    )
    budget = sf.Budget(epsilon=50, delta=1e-6)
    return sf.connect(table, name="people", unit="who", columns=COLUMNS, budget=budget)


@cache
def worlds_of(people: int) -> list[sf.Database]:
    """Return a table and its neighbours."""
    rows = some_rows(people, people)
    return [opened(each) for each in (rows, *with_one_more(rows, people))]


def largest_excess(model: LinearEstimator | NeuralNetwork, people: int) -> float:
    """Return the largest ratio of a squared move to the one that the event of its step allows."""
    worlds = worlds_of(people)
    priced = model.priced(worlds[0].table("people"))
    recorded: list[tuple[Any, Any]] = []

    def recording(secret: Any) -> Callable[[Any], Any]:
        of_rows = priced.vectors(secret)

        def vector(state: Any) -> Any:
            recorded.append((state, of_rows(state)))
            return recorded[-1][1]

        return vector

    exact = [world.backend.training_rows(priced.rows.relation) for world in worlds]
    add_noise_in_steps(exact[0], recording, priced.update, priced.start, priced.step_laws)
    claimed = allowed(priced)
    assert len(recorded) == len(claimed) == len(priced.step_laws)
    worst = 0.0
    for other in exact[1:]:
        of_rows = priced.vectors(other.reveal())
        for (state, own), most in zip(recorded, claimed, strict=True):
            moved = (of_rows(state).astype(object) - own.astype(object)).ravel()
            worst = max(worst, float(sum(int(entry) ** 2 for entry in moved) / most))
    return worst


def allowed(priced: PricedTraining | PricedNetwork) -> list[Any]:
    """Return the squared norm that each step may move by, read off the event that is charged."""
    found = []
    for event, times in priced.event.parts():
        if isinstance(event, PoissonSubsampled):
            assert event.rate == 1  # here everybody is in every step
            event = event.event
        assert isinstance(event, DiscreteGaussianVector)
        found += [event.l2_squared] * times
    return found


MODELS: list[LinearEstimator | NeuralNetwork] = [
    LogisticRegression(label="old", epsilon=2, steps=4),
    LogisticRegression(label="job", epsilon=2, steps=4, clip=0.05, rate=1000.0),
    LinearRegression(label="pay", epsilon=20, steps=4, clip=30.0),
    LogisticRegression(label="old", epsilon=2, steps=4, weights={"job": {"c": 50}, "old": {"no": 0.1}}),
    LinearRegression(label="pay", epsilon=20, method="moments", weights={"job": {"c": 50}}),
    NeuralNetwork(label="old", epsilon=2, steps=4, hidden=(8,), sampling=1, rows_per_unit=1000, clip=0.05),
]


@pytest.mark.parametrize(
    "model", MODELS, ids=["logistic", "multinomial", "linear", "weighted", "moments", "network"]
)
@pytest.mark.parametrize("people", [0, 40])
def test_one_person_moves_every_step_by_no_more_than_is_charged(
    model: LinearEstimator | NeuralNetwork, people: int
) -> None:
    worst = largest_excess(model, people)
    assert 0.1 < worst <= 1.0  # inside the box, and the box is not far too large


def test_a_planted_row_that_is_not_clipped_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        gradients, "_scales", lambda residuals, norms, clip: np.full(len(norms), gradients.LIMIT / clip)
    )
    assert largest_excess(MODELS[1], 40) > 1.0


def test_a_planted_row_that_counts_in_full_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = float(gradients.LIMIT)
    monkeypatch.setattr(least_squares, "_bounded", lambda wanted, squares: np.full(len(squares), whole))
    assert largest_excess(MODELS[4], 40) > 1.0


def test_a_planted_unit_whose_rows_each_count_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moments, "_shares", lambda sizes: np.full(int(sizes.sum()), float(1 << 24)))
    assert largest_excess(MODELS[0], 40) > 1.0


def test_a_planted_unit_of_a_network_that_is_not_clipped_as_one_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not clipped at all; and the usual mistake: each row clipped by itself, so that many weigh as many."""
    clipped = ClippedSums._weights
    with monkeypatch.context() as planted:
        planted.setattr(ClippedSums, "_weights", lambda *given: np.ones_like(clipped(*given)))
        assert largest_excess(MODELS[-1], 40) > 1.0
    monkeypatch.setattr(
        ClippedSums,
        "_weights",
        lambda self, norms, sizes: clipped(self, norms, np.ones(int(sizes.sum()), dtype=np.int64)),
    )
    assert largest_excess(MODELS[-1], 40) > 10.0
