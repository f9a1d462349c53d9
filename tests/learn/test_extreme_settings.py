"""Settings and models that floats cannot hold: what one person adds is bounded, or they are refused."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.backends import Exact
from sfumato.core.gaussian import GaussianNoise
from sfumato.errors import EngineFailure, InvalidArgument
from sfumato.learn import LinearRegression, LogisticRegression, NeuralNetwork, fairness_report
from sfumato.learn.additive_model import AdditiveModel
from sfumato.learn.features import Features, ModelColumn
from sfumato.learn.gradients import (
    SENSITIVITY,
    STEPS,
    EncodedRows,
    clipped_sum,
    logistic_residuals,
    probabilities,
    squared_residuals,
)
from sfumato.learn.models import LinearModel
from sfumato.release.noise import add_noise_in_steps

COLUMNS = {"x": sf.between(0, 1e-3), "label": sf.one_of("no", "yes")}


@pytest.fixture(scope="module")
def db() -> sf.Database:
    rows = pa.table({"who": range(8), "x": [1e308, 0.0, 1e-3, 5e-4] * 2, "label": ["no", "yes"] * 4})
    return sf.connect(rows, name="t", unit="who", columns=COLUMNS, budget=sf.Budget(epsilon=99, delta=1e-6))


@pytest.mark.parametrize("size", [1e305, 1e308, np.inf, np.nan])
@pytest.mark.parametrize("residuals", [logistic_residuals, squared_residuals])
def test_parameters_that_floats_cannot_hold_move_no_sum_too_far(size: float, residuals: Any) -> None:
    features = np.array([[STEPS, 0], [0, 8 * STEPS], [-STEPS, STEPS]], dtype=np.int16)
    rows = EncodedRows.of(features, np.array([1.0, 0.0, 1.0]), np.array([3]))
    found = clipped_sum(rows, np.array([[size], [-size], [size]]), residuals, 1.0)
    assert sum(int(one) ** 2 for one in found.ravel()) <= SENSITIVITY**2


def test_a_margin_that_is_no_number_has_probabilities() -> None:
    for width in (1, 3):
        with np.errstate(invalid="ignore"):
            assert np.isfinite(probabilities(np.array([[np.nan] * width, [np.inf] * width]))).all()


@pytest.mark.parametrize("settings", [{"clip": 1e-250}, {"clip": 1e300}, {"rate": 1e303}, {"rate": 10**400}])
def test_settings_that_floats_cannot_hold_are_refused(db: sf.Database, settings: dict[str, Any]) -> None:
    for kind in (LogisticRegression, NeuralNetwork):
        with pytest.raises(InvalidArgument, match="is from 1e-6 to 1e6"):
            kind(label="label", epsilon=1, **settings).price(db.table("t"))


def test_a_model_whose_parameters_are_no_numbers_is_refused_before_it_meets_a_row(db: sf.Database) -> None:
    model = LogisticRegression(label="label", epsilon=1, steps=2).fit(db.table("t")).release_
    for parameters in (np.array([[np.inf], [-np.inf]]), np.zeros((2, 5)), np.zeros((3, 1))):
        with pytest.raises(InvalidArgument):
            replace(model, parameters=parameters)
    stored = json.loads(model.to_json())
    stored["objective"] = "softmax"
    with pytest.raises(InvalidArgument):
        LinearModel.from_json(json.dumps(stored))


def test_effects_of_other_cells_are_refused_before_they_meet_a_row() -> None:
    """A row in a cell without an effect would be an error, which tells that there is such a row."""
    age = ModelColumn(name="age", lower=0, upper=100)
    ill = ModelColumn(name="ill", values=(False, True))
    for effects in ((np.zeros(1),), (np.array([0.0, np.nan]),), ()):
        with pytest.raises(InvalidArgument):
            AdditiveModel(features=Features((age,)), label=ill, bins=2, effects=effects)


def test_a_step_that_fails_leaves_no_exact_numbers_in_variables() -> None:
    """A crash reporter shows the variables of every frame."""
    exact, law = Exact(np.array([12_345])), GaussianNoise(Fraction(1))

    def vectors(secret: Any) -> Any:
        return lambda state: secret * 1 if state == 0 else secret / None

    with pytest.raises(EngineFailure) as failed:
        add_noise_in_steps(exact, vectors, lambda state, noisy: state + 1, 0, [law] * 2)
    shown = {
        name
        for entry in failed.traceback
        for name, value in entry.frame.f_locals.items()
        if name != "secret" and isinstance(value, np.ndarray)
    }
    assert not shown


def test_no_warning_tells_that_a_row_overflowed(db: sf.Database) -> None:
    """1e308 over a thousandth is no double: the row counts as its bound, and nobody hears of it."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = LogisticRegression(label="label", epsilon=1, steps=2).fit(db.table("t"))
        LinearRegression(label="x", epsilon=1, features=["label"], steps=2).fit(db.table("t"))
        fairness_report(model, db.table("t"), groups=["label"], epsilon=1).release()


def test_a_label_of_too_many_values_is_refused() -> None:
    """Squares of residuals are added class by class, and each addition rounds."""
    table = pa.table({"who": [1], "x": [1], "label": [1]})
    columns = {"x": sf.between(0, 1), "label": sf.one_of(*range(5_000))}
    db = sf.connect(table, name="t", unit="who", columns=columns, budget=sf.Budget(epsilon=1, delta=1e-6))
    with pytest.raises(InvalidArgument, match="5,000 values"):
        LogisticRegression(label="label", epsilon=1).price(db.table("t"))


def test_what_only_looks_like_a_model_meets_no_private_row(db: sf.Database) -> None:
    """What it says of a row could depend on other rows."""
    model = LogisticRegression(label="label", epsilon=1, steps=2).fit(db.table("t")).release_

    class Mixing:
        features, label, classes, to_json = model.features, model.label, model.classes, model.to_json

        def probabilities_of(self, encoded: Any) -> Any:
            return model.probabilities_of(np.sort(encoded, axis=0))

    with pytest.raises(InvalidArgument, match="fitted model"):
        fairness_report(Mixing(), db.table("t"), groups=["label"], epsilon=1)
