"""k-means: what one unit moves a round by, what it finds, what it costs and refuses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.backends import UnitRows
from sfumato.errors import InvalidArgument, Unsupported
from sfumato.learn import ClusterModel, KMeans
from sfumato.learn.gradients import SENSITIVITY
from sfumato.learn.k_means import PricedClusters, _State

COLUMNS = {"x": sf.between(0, 10), "y": sf.between(-1, 1), "job": sf.one_of("a", "b", "c")}
ONE = {"x": [1.0], "y": [0.0], "job": ["a"]}


def people(number: int) -> pa.Table:
    """Return people around two points, who have the jobs a and c."""
    rng = np.random.default_rng(2)
    right = rng.random(number) < 0.5
    return pa.table(
        {
            "who": np.arange(number),
            "x": np.where(right, 8.0, 2.0) + rng.normal(size=number) / 4,
            "y": np.where(right, 0.5, -0.5),
            "job": pa.array(np.where(right, "c", "a").tolist()),
        }
    )


def opened(table: pa.Table, **options: Any) -> sf.Database:
    budget = sf.Budget(**{"epsilon": 100, "delta": 1e-6, **options})
    return sf.connect(table, name="people", unit="who", columns=COLUMNS, budget=budget)


@pytest.fixture(scope="module")
def db() -> Iterator[sf.Database]:
    yield opened(people(4000))


def test_two_groups_are_found_and_charged_once(db: sf.Database) -> None:
    """False alarm below 1e-9: at epsilon 10 noise moves a centre by a hundredth of what sets them apart.

    A centre that got nobody starts anew beside the other, in a direction at random, and 3 of 8 do not part
    the two groups: that all of 30 rounds fail has a chance of (3/8)^30, below 1e-12.
    """
    estimator, before = KMeans(clusters=2, epsilon=10, rounds=30), db.balance.spent_units
    price = estimator.price(db.table("people"))
    model = estimator.fit(db.table("people"), key="k").release_
    assert db.balance.spent_units - before == price.units
    low, high = sorted(model.described(), key=lambda one: one["x"])
    assert abs(low["x"] - 2) < 0.5 and abs(high["x"] - 8) < 0.5
    assert low["job=a"] > 0.9 > 0.1 > low["job=c"] and abs(high["y"] - 0.5) < 0.1
    assert abs(model.sizes.sum() - 4000) < 20 * model.deviation
    public = {"x": [2, 8, 8.1], "y": [-0.5, 0.5, 0.5], "job": ["a", "c", "c"]}
    assert np.diff(estimator.predict(public)).astype(bool).tolist() == [True, False]
    assert estimator.score(public) > -0.1 and estimator.cluster_centers_.shape == (2, 5)
    text = model.to_json()
    assert ClusterModel.from_json(text).to_json() == text and model.receipt
    assert estimator.fit(db.table("people"), key="k").release_.to_json() == text


def moved(priced: PricedClusters, centres: Any, gone: int, rows: UnitRows) -> float:
    """Return how far one unit moves the integers of a round, with the same centres."""
    state = _State(centres=centres, sizes=np.zeros(len(centres)))
    kept = np.arange(len(rows.sizes)) != gone
    change = priced.vectors(rows)(state) - priced.vectors(rows.of_units(kept))(state)
    return float(np.sqrt((change.astype(np.float64) ** 2).sum()))


def test_one_unit_moves_a_round_by_at_most_what_is_charged(db: sf.Database) -> None:
    priced = KMeans(clusters=4, epsilon=1).priced(db.table("people"))
    rng = np.random.default_rng(5)
    sizes = np.array([1, 300, 2, 1, 7])
    number = int(sizes.sum())
    extreme = np.array([-1e300, 0.0, 10.0, np.inf, np.nan])
    rows = UnitRows(
        columns={
            "x": extreme[rng.integers(0, 5, number)],
            "y": np.where(rng.random(number) < 0.5, 1.0, -1.0),
            "job": rng.integers(-1, 3, number).astype(np.float64),
        },
        sizes=sizes,
    )
    found = [
        moved(priced, rng.uniform(-1, 1, (4, 5)) * scale, gone, rows)
        for scale in (0.0, 1.0, 1e6)
        for gone in range(5)
    ]
    assert max(found) <= SENSITIVITY
    assert max(found) > 0.9 * SENSITIVITY  # a row at all bounds has nearly the norm that is charged


def test_odd_tables_and_refusals(db: sf.Database) -> None:
    empty = opened(people(4).slice(0, 0))
    assert KMeans(clusters=3, epsilon=1).fit(empty.table("people")).predict(ONE).shape == (1,)
    table, before = db.table("people"), db.balance.spent_units
    for wrong, what in [
        (KMeans(clusters=2), "may cost"),
        (KMeans(clusters=1, epsilon=1), "clusters"),
        (KMeans(clusters=2, epsilon=1, rounds=0), "rounds"),
        (KMeans(clusters=2, epsilon=1, features=["who"]), "who"),
    ]:
        with pytest.raises(InvalidArgument, match=what):
            wrong.fit(table)
    with pytest.raises(InvalidArgument, match="table of a session"):
        KMeans(clusters=2, epsilon=1).fit(np.zeros((3, 2)))  # type: ignore[arg-type]
    with pytest.raises(Unsupported, match="Gaussian"):
        KMeans(clusters=2, epsilon=1).fit(opened(people(4), delta=0).table("people"))
    with pytest.raises(Unsupported):
        KMeans(clusters=2, epsilon=1).fit(empty.table("people")).predict_proba(ONE)
    assert db.balance.spent_units == before
