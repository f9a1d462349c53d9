"""Weights of declared groups in training: what they do for a small class, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import SfumatoError
from sfumato.learn import LogisticRegression, fairness_report
from sfumato.learn.reweighting import declared_weights


@pytest.fixture(scope="module")
def db() -> sf.Database:
    """Three kinds of plants, of which the third is cut to a thirtieth and lies near the second."""
    draw = np.random.default_rng(2)
    kind = np.repeat([0, 1, 2], [3000, 3000, 100])
    width = np.array([-2.0, 0.0, 1.2])[kind] + draw.normal(0, 0.5, len(kind))
    table = pa.table({"plant": np.arange(len(kind)), "width": width, "kind": kind})
    columns = {"width": sf.between(-4, 4), "kind": sf.one_of(0, 1, 2)}
    budget = sf.Budget(epsilon=500, delta=1e-6)
    return sf.connect(table, name="plants", unit="plant", columns=columns, budget=budget)


def test_a_small_class_pays_the_report_shows_it_and_weights_narrow_it(db: sf.Database) -> None:
    """False alarms: 42% or 83% of the class are found, give or take a point; limits are 10 deviations off.

    Power: weights that are not used, or that raise what is clipped anyway, change nothing.
    """
    frame = db.table("plants")
    gaps = []
    for weights in (None, {"kind": {2: 30}}):
        model = LogisticRegression(label="kind", epsilon=30, weights=weights).fit(frame)
        report = fairness_report(model, frame, groups=["kind"], epsilon=30).release()
        small, everyone = report.group("kind = 2"), report.group("everyone")
        assert small.pays
        gaps.append((small.accuracy.minus(everyone.accuracy), everyone.accuracy))
    (before, plain), (after, weighted) = gaps
    assert before.high < -0.45  # about half of the small class is lost
    assert after.low > before.high + 0.3  # and most of that is found again
    assert plain.value - weighted.value < 0.2  # at a price for the others


def test_weights_are_at_most_one_and_cost_nothing(db: sf.Database) -> None:
    frame = db.table("plants")
    found = declared_weights(frame, {"kind": {2: 30, 0: 2}})
    assert found is not None and found.weights == ((2 / 30, 1 / 30, 1.0),) and found.others == (1 / 30,)
    read = {"kind": np.array([0.0, 1.0, 2.0, -1.0, np.nan])}
    assert found.of_rows(read).tolist() == [2 / 30, 1 / 30, 1.0, 1 / 30, 1 / 30]
    plain, weighted = (
        LogisticRegression(label="kind", epsilon=1, weights=one).priced(frame)
        for one in (None, {"kind": {2: 9}})
    )
    assert plain.event == weighted.event
    assert plain.fingerprint() != weighted.fingerprint()


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([3], "by columns"),
        ({"kind": 3}, "by columns"),
        ({"kind": {7: 2}}, "not declared"),
        ({"kind": {2: 0}}, "above zero|positive"),
        ({"kind": {2: float("nan")}}, "weights|number"),
        ({"width": {2: 2}}, "not declared"),
        ({"height": {2: 2}}, "no column"),
    ],
)
def test_what_makes_no_sense_is_refused(db: sf.Database, weights: Any, message: str) -> None:
    with pytest.raises(SfumatoError, match=message):
        LogisticRegression(label="kind", epsilon=1, weights=weights).price(db.table("plants"))
