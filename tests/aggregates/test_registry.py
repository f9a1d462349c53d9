"""What every record of an aggregate promises, for all of them: a new one is tested by being registered."""

from __future__ import annotations

import inspect
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from sfumato.aggregates.answer import AddedNoise, Answer, NoisyMeasure
from sfumato.aggregates.record import AggregateRecord
from sfumato.aggregates.registry import Function, function_called, function_labelled
from sfumato.catalog.kind import Kind
from sfumato.core.laplace import LaplaceNoise
from sfumato.core.noise_law import noise_laws

NAMED = [(one, name) for one in Function for name in one.record.names]


def people() -> sf.Database:
    rows = pd.DataFrame({"who": range(2_000), "x": [i % 10 for i in range(2_000)], "y": [3, 8] * 1_000})
    return sf.connect(
        rows,
        name="t",
        unit="who",
        columns={"x": sf.between(0, 9), "y": sf.between(0, 10)},
        max_groups=1,
        max_rows=1,
        budget=sf.Budget(epsilon=10**9, delta=1e-6),
    )


@pytest.fixture(scope="module")
def database() -> sf.Database:
    return people()


def test_names_and_labels_are_each_of_one_aggregate() -> None:
    labels = [one.label for one in Function]
    names = [name for _, name in NAMED]
    assert len(set(labels)) == len(labels) and len(set(names)) == len(names)
    for one, name in NAMED:
        assert function_called(name.upper()) is one and name == name.lower()
        assert function_labelled(one.label) is one
    assert function_called("no_such_name") is None


@pytest.mark.parametrize(("function", "name"), NAMED, ids=[name for _, name in NAMED])
def test_sql_and_python_ask_the_same(function: Function, name: str, database: sf.Database) -> None:
    """Both doors build one plan, and its answer has a forecast, an interval around it and the stated kind."""
    columns = ("x", "y")[: function.record.arity]
    asked = database.sql(f"SELECT {name}({', '.join(columns)}) AS a FROM t", epsilon=5)
    called = database.table("t").agg(a=sf.aggregate(name, *columns)).ask(epsilon=5)
    plans = [one.request.queries[0].query.aggregates[0][1] for one in (asked, called)]
    assert plans[0].function is plans[1].function is function
    priced = asked.priced()
    [answer], cost = priced.boundings[0].answers, priced.costs[0]
    noises = [cost.noise(measure).added for measure in answer.measures]
    forecast = function.record.forecast(answer, noises, 2_000.0, 0.95)
    assert (forecast.error is None) != (forecast.even is None)
    release = asked.release()
    values = release.column("a")
    assert ("a" in release.intervals(0.95)) != function.record.chooses
    intervals = release.intervals(0.95).get("a", [(value, value) for value in values])
    assert len(values) == 1 or function is Function.HISTOGRAM  # which has a row for each bin
    for value, (low, high) in zip(values, intervals, strict=True):
        assert (np.ravel(low) <= np.ravel(value)).all() and (np.ravel(value) <= np.ravel(high)).all()
        assert isinstance(value, list) == (function.record.lists and function is not Function.HISTOGRAM)
    if function.record.kind(Kind.INTEGER) is Kind.INTEGER:
        assert all(isinstance(one, int) for one in values)


def test_what_is_no_aggregate_is_refused() -> None:
    for wrong in (("no_such_name", "x"), ("corr", "x"), ("sum",), (5, "x")):
        with pytest.raises(sf.errors.InvalidArgument):
            sf.aggregate(*wrong)


@pytest.mark.parametrize("function", Function, ids=lambda one: one.label)
def test_records_are_complete(function: Function) -> None:
    record = function.record
    assert isinstance(record, AggregateRecord) and not inspect.isabstract(record)
    assert record.takes(Kind.INTEGER, inner=False)
    assert record.takes(Kind.INTEGER, inner=True) != record.chooses
    sampled = function is Function.SAMPLE_AND_AGGREGATE  # values of blocks are clamped
    assert record.counts or record.clamps or sampled  # what is not counted is clamped to bounds
    assert not (record.multiplies and not record.counts_rows)


def test_a_record_that_leaves_something_out_cannot_be_made() -> None:
    class Half(AggregateRecord):
        def forecast(self, answer: Any, noises: Any, size: Any, level: Any) -> Any:
            raise NotImplementedError

    with pytest.raises(TypeError, match="abstract"):
        Half("half")  # type: ignore[abstract]


@pytest.mark.parametrize("law", noise_laws(), ids=lambda law: law.name)
def test_counts_and_sums_are_linear_in_their_measures(law: Any) -> None:
    for function, measures in ((Function.COUNT, ("n",)), (Function.SUM, ("s",)), (Function.SUM, ("n", "s"))):
        answer = Answer(
            name="a",
            function=function,
            measures=measures,
            scale=Fraction(1, 4),
            weight=Fraction(1, 2),
            centre=7.0,
        )
        sums = {"n": np.array([40, -3]), "s": np.array([100, 9])}
        noisy = [
            NoisyMeasure(
                noise=AddedNoise(measure=name, grouping_set=0, law=law(Fraction(9))), sums=sums[name]
            )
            for name in measures
        ]
        found = function.record.answered(answer, noisy, 0.95, non_negative=False)
        parts = function.record.linear(answer)
        assert parts is not None
        expected = sum(weight * sums[name] for name, weight in parts.items())
        assert found.values == pytest.approx(list(expected))
        assert all(
            low < value < high for low, value, high in zip(found.low, found.values, found.high, strict=True)
        )


def test_ranks_are_forecast_in_rows_or_shares() -> None:
    answer = Answer(name="a", function=Function.MIN, measures=("c",), edges=tuple(float(i) for i in range(9)))
    noise = AddedNoise(measure="c", grouping_set=0, law=LaplaceNoise(Fraction(4)))
    rows = Function.MIN.record.forecast(answer, [noise], None, 0.95)
    share = Function.MIN.record.forecast(answer, [noise], 1_000.0, 0.95)
    assert rows.in_ranks and rows.error is not None and share.error == pytest.approx(rows.error / 1_000)
