"""Fairness reports through every layer: what one person changes, one charge, refusals before it, sweeps."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import BudgetExceeded, InvalidArgument, SfumatoError
from sfumato.learn import (
    LogisticRegression,
    compare_with_public,
    fairness_report,
    fairness_sweep,
)
from sfumato.learn.fairness_cells import GRID
from sfumato.learn.linear import LinearRegression
from sfumato.learn.models import LinearModel
from sfumato.learn.rates import CellSum, rate_of
from sfumato.learn.stored import read_stored
from tests.learn.invented import GROUPS, clinic, engine_cells, visits


@pytest.fixture(scope="module")
def db() -> sf.Database:
    return clinic(visits(3000))


@pytest.fixture(scope="module")
def model(db: sf.Database) -> LinearModel:
    return LogisticRegression(label="ill", features=["age"], epsilon=8).fit(db.table("visits")).release_


def test_with_and_without_each_person_cells_differ_by_the_claimed_norm(model: LinearModel) -> None:
    """Record and replay: rows of the engine, with frozen noise. Power: rows that are not weighed are seen."""
    table = visits(12)
    (whole, claimed), who = engine_cells(table, model), table["who"].to_numpy()
    norms = []
    for person in range(12):
        moved = whole - engine_cells(table.filter(pa.array(who != person)), model)[0]
        assert (moved >= 0).all()
        norms.append(int((moved**2).sum()))
    assert max(norms) == claimed == 8 * GRID**2  # of four sets of columns, two tables each


def test_a_report_is_charged_once_and_finds_who_pays(db: sf.Database, model: LinearModel) -> None:
    """False alarms: the loss of women is 20 deviations from zero."""
    asked = fairness_report(model, db.table("visits"), groups=GROUPS, epsilon=4)
    before = db.balance.spent_units
    price = asked.price()
    assert "accuracy of a group of 1,000: ±" in repr(asked) and db.balance.spent_units == before
    priced, counts = asked.priced(), (CellSum(900 * GRID, 10 / 7), CellSum(100 * GRID, 10 / 7))
    forecast = rate_of(*counts, deviation=priced.law.deviation, miss=0.05)
    assert priced.expected_error(1000) == pytest.approx((forecast.high - forecast.low) / 2, rel=0.01)
    report = asked.release(key="report")
    assert db.balance.spent_units == before + price.units
    assert asked.release(key="report").to_json() == report.to_json()
    assert db.balance.spent_units == before + price.units
    assert repr(read_stored(report.to_json())) == repr(report)
    assert report.receipt["unit"] == "who" and report.cost["epsilon"] == 4
    assert report.group("sex = f").pays and not report.group("sex = m").pays
    assert report.group("everyone").units == pytest.approx(3000, abs=100)
    assert len(report.groups) == 9 and "everyone" in report.record()["groups"][0]["group"]


def test_another_model_is_another_request(db: sf.Database, model: LinearModel) -> None:
    asked = fairness_report(model, db.table("visits"), groups=["sex"], epsilon=1)
    asked.release(key="a model")
    other = LogisticRegression(label="ill", features=["age"], epsilon=1).fit(db.table("visits"))
    with pytest.raises(SfumatoError, match="key"):
        fairness_report(other, db.table("visits"), groups=["sex"], epsilon=1).release(key="a model")


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ("sex", "groups are columns"),
        (["sex", "sex"], "named twice"),
        ([("sex", "sex")], "different columns"),
        ([()], "different columns"),
        (["age"], "is a number"),
        (["who"], "who"),
        (["height"], "no column"),
    ],
)
def test_what_makes_no_sense_is_refused_before_the_charge(
    groups: Any, message: str, db: sf.Database, model: LinearModel
) -> None:
    before = db.balance.spent_units
    with pytest.raises(SfumatoError, match=message):
        fairness_report(model, db.table("visits"), groups=groups, epsilon=1).release()
    assert db.balance.spent_units == before


def test_a_model_has_to_be_fitted_and_a_budget_to_have_a_delta(db: sf.Database, model: LinearModel) -> None:
    with pytest.raises(InvalidArgument, match="fitted"):
        fairness_report(LogisticRegression(label="ill"), db.table("visits"), groups=["sex"], epsilon=1)
    pure = clinic(visits(10), budget=sf.Budget(epsilon=1)).table("visits")
    asked = fairness_report(model, pure, groups=["sex"], epsilon=1)
    with pytest.raises(SfumatoError, match="Gaussian"):
        asked.release()
    assert "will be refused" in repr(asked)
    with pytest.raises(SfumatoError, match="table of a session"):
        fairness_report(model, visits(10), groups=["sex"], epsilon=1).release()  # type: ignore[arg-type]


def test_groups_may_be_computed_and_a_table_may_be_empty(db: sf.Database, model: LinearModel) -> None:
    """What is computed from a row divides groups as a column does; of nobody, a report costs the same."""
    frame = db.table("visits").select("age", "ill", late=sf.col("age") > 90)
    asked = fairness_report(model, frame, groups=["late"], epsilon=1)
    assert [one.name for one in asked.release().groups] == ["everyone", "late = false", "late = true"]
    empty = clinic(visits(2).slice(0, 0)).table("visits")
    nobody = fairness_report(model, empty, groups=["sex"], epsilon=1)
    assert (
        nobody.price().units
        == fairness_report(model, db.table("visits"), groups=["sex"], epsilon=1).price().units
    )
    assert len(nobody.release().groups) == 3


def test_every_epsilon_of_a_sweep_is_charged_and_the_whole_is_priced_before() -> None:
    db = clinic(visits(500))
    estimator = LogisticRegression(label="ill", features=["age"], steps=5)
    options: dict[str, Any] = {"groups": ["sex"], "epsilons": [1, 0.01], "report_epsilon": 2}
    asked = fairness_sweep(estimator, db.table("visits"), **options)
    assert "4 charges: a training at epsilon 0.01, 1 each" in repr(asked)
    price, charged = asked.price(), len(list(db.ledger.entries()))
    sweep = asked.release(key="sweep")
    assert db.balance.spent_units == price.units
    assert len(list(db.ledger.entries())) > charged
    assert [float(run.epsilon) for run in sweep.runs] == [0.01, 1]
    assert repr(asked.release(key="sweep")) == repr(sweep)  # it goes on where it was, free
    assert db.balance.spent_units == price.units
    with pytest.raises(BudgetExceeded):
        fairness_sweep(estimator, db.table("visits"), **options | {"epsilons": [90, 95, 98]}).release()
    assert db.balance.spent_units == price.units  # refused as a whole
    with pytest.raises(InvalidArgument, match="classes apart"):
        fairness_sweep(LinearRegression(label="age"), db.table("visits"), **options)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="100 epsilons at most"):
        fairness_sweep(estimator, db.table("visits"), **options | {"epsilons": list(range(1, 102))})
    with pytest.raises(InvalidArgument, match="two epsilons"):
        fairness_sweep(estimator, db.table("visits"), **options | {"epsilons": [1]})


def test_a_comparison_with_public_rows_spends_nothing(db: sf.Database, model: LinearModel) -> None:
    public = {"age": [10, 90, 95, 20], "ill": [False, True, False, True], "sex": ["f", "f", "m", "m"]}
    before = db.balance.spent_units
    compared = compare_with_public(model, public, groups=["sex", ("sex", "ill")])
    found = {one.name: (one.right.hits, one.right.trials) for one in compared.groups}
    assert found["everyone"] == (2, 4) and found["sex = f"] == (2, 2)
    assert found["sex = m, ill = true"] == (0, 1)
    assert "public rows alone" in repr(compared) and db.balance.spent_units == before
    with pytest.raises(InvalidArgument, match="no public rows"):
        compare_with_public(model, {"age": [], "ill": []}, groups=[])
