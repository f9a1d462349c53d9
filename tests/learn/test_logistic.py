"""Logistic regression on a table of a session: what it learns, what it costs, what it refuses before that."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import InvalidArgument, SfumatoError, Unsupported
from sfumato.learn import LinearModel, LinearRegression, LogisticRegression

COLUMNS = {
    "age": sf.between(0, 100),
    "job": sf.one_of("baker", "cook", "smith"),
    "ill": sf.one_of("no", "yes"),
}


def people(number: int, seed: int = 5) -> pa.Table:
    """Return people, of whom old smiths are ill, mostly; some values are missing, some are not listed."""
    rng = np.random.default_rng(seed)
    age = rng.uniform(-10, 120, number)
    job = np.array(["baker", "cook", "smith", "king"])[rng.integers(0, 4, number)]
    ill = age / 10 - 6 + 3 * (job == "smith") + rng.logistic(size=number) > 0
    return pa.table(
        {
            "who": np.arange(number),
            "age": pa.array(age, mask=rng.random(number) < 0.02),
            "job": pa.array(job.tolist()),
            "fit": rng.random(number) < 0.5,
            "ill": pa.array(np.where(ill, "yes", "no").tolist(), mask=rng.random(number) < 0.02),
        }
    )


def opened(table: Any, **options: Any) -> sf.Database:
    given = {
        "name": "people",
        "unit": "who",
        "columns": COLUMNS,
        "budget": sf.Budget(epsilon=100, delta=1e-6),
    }
    return sf.connect(table, **{**given, **options})


@pytest.fixture(scope="module")
def db() -> sf.Database:
    return opened(people(4000))


@pytest.fixture(scope="module")
def fitted(db: sf.Database) -> LogisticRegression:
    return LogisticRegression(label="ill", epsilon=8).fit(db.table("people"))


def test_it_learns_what_is_there(fitted: LogisticRegression) -> None:
    assert fitted.release_.features.names == ("age", "job=baker", "job=cook", "job=smith", "fit=True")
    test = people(4000, seed=6)
    assert fitted.score(test) > 0.8  # a rule that knows the truth has about 0.85, guessing about 0.5
    age, baker, _, smith, _ = fitted.coef_[0]
    assert age > 0.5 and smith - baker > 1
    assert fitted.predict({"age": [90, 5], "job": ["smith", "cook"], "fit": [True, None]}).tolist() == [
        "yes",
        "no",
    ]
    chances = fitted.predict_proba({"age": [50, None], "job": ["baker", "king"], "fit": [False, True]})
    assert chances.shape == (2, 2) and np.allclose(chances.sum(axis=1), 1)
    low, high = fitted.release_.units_interval(1 - 1e-9)
    assert low < 3920 + 40 and high > 3920 - 40 and high - low < 400


def test_the_price_is_free_and_a_key_is_charged_once(db: sf.Database) -> None:
    model, before = LogisticRegression(label="ill", epsilon=0.5, steps=3), db.balance.spent_units
    price = model.price(db.table("people"))
    assert repr(price).startswith("epsilon 0.5: ") and repr(price).endswith("nothing was spent")
    assert db.balance.spent_units == before
    first = model.fit(db.table("people"), key="model").release_
    assert db.balance.spent_units == before + price.units
    again = model.fit(db.table("people"), key="model").release_
    assert again.to_json() == first.to_json() and db.balance.spent_units == before + price.units
    with pytest.raises(SfumatoError):
        LogisticRegression(label="ill", epsilon=0.5, steps=4).fit(db.table("people"), key="model")


def test_several_classes_and_scikit_learn(db: sf.Database, fitted: LogisticRegression) -> None:
    model = LogisticRegression(label="job", epsilon=20, features=["ill", "age"]).fit(db.table("people"))
    test = people(300, seed=6).to_pandas()
    assert model.coef_.shape == (3, 2) and model.predict_proba(test).shape == (300, 3)
    assert model.predict({"ill": ["yes"], "age": [30]}).tolist() == ["smith"]
    for one in (model, fitted):
        exported = one.release_.to_sklearn()
        assert (exported.predict(test) == one.predict(test)).all()
        assert np.abs(exported.predict_proba(test) - one.predict_proba(test)).max() < 2e-3


def test_linear_regression(db: sf.Database) -> None:
    rng = np.random.default_rng(0)
    age = rng.uniform(0, 100, 3000)
    made = pa.table({"who": np.arange(3000), "age": age, "pay": 20 * age + rng.normal(size=3000) * 100})
    columns = {"age": sf.between(0, 100), "pay": sf.between(0, 3000)}
    model = LinearRegression(label="pay", epsilon=20).fit(opened(made, columns=columns).table("people"))
    test = {"age": [10.0, 50.0, 90.0], "pay": [200.0, 1000.0, 1800.0]}
    assert np.abs(model.predict(test) - test["pay"]).max() < 120 and model.score(test) > 0.95
    assert np.allclose(model.release_.to_sklearn().predict(test), model.predict(test))
    with pytest.raises(Unsupported):
        model.predict_proba(test)
    with pytest.raises(InvalidArgument, match="two different bounds"):
        LinearRegression(label="ill", epsilon=1).price(db.table("people"))


def test_a_model_survives_storage(fitted: LogisticRegression) -> None:
    model = fitted.release_
    stored = model.to_json()
    read = LinearModel.from_json(stored)
    assert read.to_json() == stored and read.receipt["reservation"] == model.receipt["reservation"]
    assert np.array_equal(read.parameters, model.parameters)
    with pytest.raises(InvalidArgument):
        LinearModel.from_json(stored.replace('"lower"', '"lowest"'))
    with pytest.raises(Unsupported):
        LinearModel.from_json("{}")


def test_rows_are_those_of_the_question(db: sf.Database) -> None:
    young = db.table("people").where(sf.col("age") < 30)
    model = LogisticRegression(label="ill", epsilon=8, steps=2).fit(young)
    assert model.release_.features.columns[0].upper == 30  # narrowed in public
    assert 900 < model.release_.units < 1700  # of 4000 people between -10 and 120


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"label": "age"}, "classes are two at least"),
        ({"label": "who"}, "no column `who` that can be read"),
        ({"label": "nobody"}, "no column `nobody`"),
        ({"label": "ill", "features": ["age", "ill"]}, "is the label"),
        ({"label": "ill", "features": ["age", "age"]}, "different columns"),
        ({"label": "ill", "steps": 0}, "steps"),
        ({"label": "ill", "clip": -1}, "clip"),
        ({"label": "ill", "epsilon": None}, "may cost"),
    ],
)
def test_mistakes_are_refused_before_the_charge(db: sf.Database, given: dict[str, Any], said: str) -> None:
    before = db.balance.spent_units
    with pytest.raises(SfumatoError, match=said):
        LogisticRegression(**{"epsilon": 1, **given}).fit(db.table("people"))
    assert db.balance.spent_units == before


def test_missing_declarations_are_refused_with_the_cure() -> None:
    table = people(10)
    with pytest.raises(InvalidArgument, match="no declared bounds") as refused:
        bare = opened(table, columns={"ill": sf.one_of("no", "yes")})
        LogisticRegression(label="ill", epsilon=1, features=["age"]).fit(bare.table("people"))
    assert refused.value.hints[0] == "declare them: columns={'age': sf.between(0, 100)}"
    pure = opened(table, budget=sf.Budget(epsilon=1))
    with pytest.raises(Unsupported, match="Gaussian"):
        LogisticRegression(label="ill", epsilon=1).fit(pure.table("people"))


@pytest.mark.parametrize("given", [np.zeros((3, 2)), people(3), [[1.0]], people(3).to_pandas()])
def test_arrays_and_frames_are_refused(given: Any) -> None:
    with pytest.raises(InvalidArgument, match="table of a session"):
        LogisticRegression(label="ill", epsilon=1).fit(given)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "no column `age`"),
        ({"age": 30, "job": "cook"}, "no column `age`"),
        ({"age": ["old"], "job": ["cook"], "fit": [True]}, "as a number"),
        ({"age": [30, 40], "job": ["cook"], "fit": [True]}, "differ in length"),
        (np.zeros((1, 2)), "no column `age`"),
    ],
)
def test_public_rows_that_do_not_fit_are_refused(fitted: LogisticRegression, given: Any, said: str) -> None:
    with pytest.raises(InvalidArgument, match=said):
        fitted.release_.features.of_public(given)


def test_rows_of_a_session_are_not_predicted(db: sf.Database, fitted: LogisticRegression) -> None:
    with pytest.raises(InvalidArgument, match="would tell about their people"):
        fitted.predict(db.table("people"))


def test_parameters_are_those_of_scikit_learn() -> None:
    from sklearn.base import clone

    model = LogisticRegression(label="ill", epsilon=1, features=["age"])
    assert repr(model) == "LogisticRegression(label='ill', epsilon=1, features=['age'])"
    copy = clone(model)
    assert copy is not model and copy.get_params() == model.get_params()
    assert copy.set_params(epsilon=2).epsilon == 2
    with pytest.raises(InvalidArgument):
        copy.set_params(penalty="l1")
    with pytest.raises(InvalidArgument, match="not fitted"):
        copy.predict({"age": [1]})
