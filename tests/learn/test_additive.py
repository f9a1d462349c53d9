"""Additive models: what one unit moves a step by, what a linear model cannot learn, cost and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.backends import UnitRows
from sfumato.errors import InvalidArgument, Unsupported
from sfumato.learn import AdditiveClassifier, fairness_report
from sfumato.learn.additive import GRID
from sfumato.learn.stored import read_stored

COLUMNS = {"age": sf.between(0, 100), "job": sf.one_of("a", "b", "c")}
PUBLIC = {"age": [5, 50, 95, None], "job": ["a", "b", "c", "king"], "sex": [True, False, True, None]}


def people(number: int) -> pa.Table:
    """Return people of whom the young and the old are ill: no line divides them."""
    rng = np.random.default_rng(4)
    age = rng.uniform(0, 100, number)
    return pa.table(
        {
            "who": np.arange(number),
            "age": age,
            "job": pa.array(np.array(["a", "b", "c"])[rng.integers(0, 3, number)].tolist()),
            "sex": rng.random(number) < 0.5,
            "ill": np.abs(age - 50) > 25,
        }
    )


def opened(table: pa.Table, **options: Any) -> sf.Database:
    budget = sf.Budget(**{"epsilon": 100, "delta": 1e-6, **options})
    return sf.connect(table, name="people", unit="who", columns=COLUMNS, budget=budget)


@pytest.fixture(scope="module")
def db() -> sf.Database:
    return opened(people(4000))


def test_what_no_line_divides_is_learnt_and_charged_once(db: sf.Database) -> None:
    """False alarm below 1e-9: cells of 250 people, and noise of about one at epsilon 20.

    A sex that is missing, which nobody has, adds noise alone: 2.4 is 6.4 deviations of it, a chance of 1e-10.
    """
    estimator, before = AdditiveClassifier(label="ill", epsilon=20, bins=16), db.balance.spent_units
    price = estimator.price(db.table("people"))
    model = estimator.fit(db.table("people"), key="a").release_
    assert db.balance.spent_units - before == price.units
    assert estimator.predict(PUBLIC).tolist()[:3] == [True, False, True]
    assert model.score({"age": [5, 50], "job": ["a", "b"], "sex": [None, None], "ill": [True, False]}) == 1
    assert np.allclose(model.predict_proba(PUBLIC).sum(axis=1), 1)
    curve = dict(model.curve("age"))
    assert curve["0 to 6.25"] > 0 > curve["50 to 56.25"]
    assert [name for name, _ in model.curve("job")] == ["none of these", "a", "b", "c"]
    text = model.to_json()
    assert read_stored(text).to_json() == text and model.receipt
    assert estimator.fit(db.table("people"), key="a").release_.to_json() == text
    report = fairness_report(estimator, db.table("people"), groups=["sex"], epsilon=20).release()
    assert report.receipt


def test_one_unit_moves_each_step_by_at_most_what_is_charged(db: sf.Database) -> None:
    priced = AdditiveClassifier(label="ill", epsilon=1, bins=5, rounds=2).priced(db.table("people"))
    rng, sizes = np.random.default_rng(6), np.array([1, 300, 3, 1, 7])
    number = int(sizes.sum())
    rows = UnitRows(
        columns={
            "age": np.array([-1e300, 0.0, 100.0, np.inf, np.nan])[rng.integers(0, 5, number)],
            "job": rng.integers(-1, 3, number).astype(np.float64),
            "sex": rng.integers(-1, 2, number).astype(np.float64),
            "ill": rng.integers(0, 2, number).astype(np.float64),
        },
        sizes=sizes,
    )
    state, found = priced.start, []
    for place in range(1 + 2 * 3):  # counts, and two rounds of three columns with wild curves
        whole = priced.vectors(rows)(state)
        for gone in range(5):
            change = whole - priced.vectors(rows.of_units(np.arange(5) != gone))(state)
            limit = GRID * (np.sqrt(3) if place == 0 else 1)
            assert np.abs(change).sum() <= (3 if place == 0 else 1) * GRID
            found.append(float(np.sqrt(np.square(change.astype(np.float64)).sum())) / limit)
        state = priced.update(state, whole + rng.integers(-300 * GRID, 300 * GRID, len(whole)))
    assert 0.9 < max(found) <= 1 + 1e-12


def test_what_is_charged_is_what_was_allowed(db: sf.Database) -> None:
    priced = AdditiveClassifier(label="ill", epsilon=2).priced(db.table("people"))
    counts, sums = priced.event.events  # type: ignore[attr-defined]
    assert (counts.l2_squared, sums.event.l2_squared, sums.times) == (3 * GRID**2, GRID**2, 30)
    assert len(priced.step_laws) == 1 + sums.times
    paid = sum(float(db.terms.rule.price(one)) for one in (counts, sums))
    assert 0.999 < paid / float(db.terms.allowance(2)) <= 1


def test_odd_tables_and_refusals(db: sf.Database) -> None:
    empty = opened(people(4).slice(0, 0))
    assert len(AdditiveClassifier(label="ill", epsilon=1).fit(empty.table("people")).predict(PUBLIC)) == 4
    table, before = db.table("people"), db.balance.spent_units
    for wrong, what in [
        (AdditiveClassifier(label="ill"), "may cost"),
        (AdditiveClassifier(label="job", epsilon=1), "two listed values"),
        (AdditiveClassifier(label="ill", epsilon=1, bins=1), "bins"),
        (AdditiveClassifier(label="ill", epsilon=1, rounds=0), "rounds"),
        (AdditiveClassifier(label="ill", epsilon=1, rate=1e9), "rate"),
    ]:
        with pytest.raises(InvalidArgument, match=what):
            wrong.fit(table)
    with pytest.raises(InvalidArgument, match="table of a session"):
        AdditiveClassifier(label="ill", epsilon=1).fit(people(4))  # type: ignore[arg-type]
    with pytest.raises(Unsupported, match="Gaussian"):
        AdditiveClassifier(label="ill", epsilon=1).fit(opened(people(4), delta=0).table("people"))
    assert db.balance.spent_units == before
