"""Tables that a textbook leaves out: trainings end, cost what they always cost, and say nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import SfumatoError
from sfumato.learn import LinearRegression, LogisticRegression

COLUMNS = {
    "x": sf.between(0, 1),
    "tiny": sf.between(0, 1e-30),
    "same": sf.between(3, 3),
    "kind": sf.one_of(*map(str, range(30))),
    "label": sf.one_of("no", "yes"),
    "much": sf.between(-1, 1),
}
NAN = float("nan")


def table(number: int, *, who: Any = None, **columns: Any) -> pa.Table:
    """Return rows that are alike but for what is said."""
    made = {
        "who": np.arange(number) if who is None else who,
        "x": pa.array([0.5] * number, pa.float64()),
        "tiny": pa.array([1e300] * number, pa.float64()),  # so far beyond its bounds that doubles overflow
        "same": [3] * number,
        "kind": ["1"] * number,
        "label": pa.array(["no", "yes"] * (number // 2), pa.string()),
        "much": pa.array([0.5] * number, pa.float64()),
        **columns,
    }
    return pa.table(made)


def opened(rows: pa.Table) -> sf.Database:
    budget = sf.Budget(epsilon=9, delta=1e-6)
    return sf.connect(rows, name="t", unit="who", columns=COLUMNS, budget=budget)


ODD: dict[str, pa.Table] = {
    "no rows": table(0, same=pa.array([], pa.int64()), kind=pa.array([], pa.string())),
    "features that are missing or infinite": table(4, x=[NAN, None, float("inf"), -float("inf")]),
    "labels that are not listed": table(4, label=["maybe", None, "YES", ""]),
    "one class": table(4, label=["yes"] * 4),
    "fewer rows than features": table(2),
    "one unit with all rows": table(50, who=[7] * 50),
    "nobody's rows": table(4, who=pa.array([None] * 4, pa.int64())),
    "a number that is always at its bound": table(4, x=[1.0] * 4, much=[1e300] * 4),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_tables_train_and_cost_the_same(name: str) -> None:
    db = opened(ODD[name])
    for model in (
        LogisticRegression(label="label", epsilon=1, steps=3),
        LinearRegression(label="much", epsilon=1, steps=3),
    ):
        before, price = db.balance.spent_units, model.price(db.table("t"))
        model.fit(db.table("t"))
        assert db.balance.spent_units == before + price.units
        assert np.isfinite(model.release_.parameters).all() and np.isfinite(model.release_.units)
        assert model.release_.features.width == 34
        predicted = model.predict(
            {
                "x": [0.0, None],
                "same": [3, 9],
                "tiny": [0, 1],
                "kind": ["1", "x"],
                "much": [0, 1],
                "label": ["no", None],
            }
        )
        assert len(predicted) == 2


def test_a_model_of_one_class_predicts_that_class() -> None:
    """False alarm below 1e-9: logarithms of odds are 25 with a deviation of 1.2.

    The feature varies: by one that is always the same noise alone would be scaled, and drown the constant.
    """
    rows = table(2000, label=["yes"] * 2000, x=[0.0, 1.0] * 1000)
    model = LogisticRegression(label="label", epsilon=8, features=["x"]).fit(opened(rows).table("t"))
    assert model.predict({"x": [0.5]}).tolist() == ["yes"]


@pytest.mark.parametrize("rows", [20_000, pytest.param(1_000_000, marks=pytest.mark.soak)])
def test_a_unit_with_very_many_rows_counts_once(rows: int) -> None:
    """Two hundred people say yes, and one of many rows says no to all of them.

    False alarm below 1e-9: logarithms of odds are 19 with a deviation of 1.7, and units 201 with one of 6.
    """
    who = np.concatenate([np.arange(200), np.full(rows, 999)])
    label = pa.array(["yes"] * 200 + ["no"] * rows)
    db = opened(table(len(who), who=who, label=label, x=np.arange(len(who)) % 2.0))
    model = LogisticRegression(label="label", epsilon=8, features=["x"], steps=20).fit(db.table("t"))
    assert model.predict({"x": [0.5]}).tolist() == ["yes"] and model.release_.units < 400


def test_an_interrupted_training_is_charged_once_and_its_key_is_burnt() -> None:
    db = opened(table(20))
    model = LogisticRegression(label="label", epsilon=1, steps=5)
    before, price = db.balance.spent_units, model.price(db.table("t"))

    def stopping(step: str) -> None:
        if step == "step 3 of 5":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match="was charged"):
        model.fit(db.table("t"), key="mine", progress=stopping)
    assert db.balance.spent_units == before + price.units and not hasattr(model, "release_")
    with pytest.raises(SfumatoError):
        model.fit(db.table("t"), key="mine")
    assert db.balance.spent_units == before + price.units


def test_progress_names_steps_and_no_number_of_the_data() -> None:
    said: list[str] = []
    LogisticRegression(label="label", epsilon=1, steps=2).fit(
        opened(table(20)).table("t"), progress=said.append
    )
    assert said[-3:] == ["step 1 of 2", "step 2 of 2", "storing"]


def test_a_budget_that_is_too_small_refuses_before_data_is_read() -> None:
    db = opened(table(20))
    with pytest.raises(SfumatoError):
        LogisticRegression(label="label", epsilon=10).fit(db.table("t"))
    assert db.balance.spent_units == 0
