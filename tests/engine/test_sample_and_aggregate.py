"""Sample and aggregate, end to end: from SQL and from Python to a value with an interval that covers."""

from __future__ import annotations

import math

import duckdb
import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from sfumato.errors import InvalidArgument, QueryRefused
from sfumato.plan.outline import outline_request

PEOPLE = 4_000


@pytest.fixture(scope="module")
def database() -> sf.Database:
    source = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "who": np.arange(PEOPLE),
            "income": source.lognormal(0, 0.5, PEOPLE),
            "region": np.where(np.arange(PEOPLE) % 4, "north", "south"),
            "word": source.choice(["a", "b", "c"], PEOPLE),
        }
    )
    frame["rent"] = frame.income + source.normal(0, 0.3, PEOPLE)
    return sf.connect(
        frame,
        name="people",
        unit="who",
        columns={"region": sf.one_of("north", "south", "west")},
        max_groups=1,
        budget=sf.Budget(epsilon=10**9),
    )


@pytest.mark.parametrize(
    ("statistic", "lower", "upper"),
    [
        ("SKEWNESS(income)", 0, 4),
        ("MAD(income)", 0, 1),
        ("GEOMEAN(income)", 0.5, 2),
        ("ENTROPY(word)", 0, 2),
        ("CORR(income, rent)", -1, 1),
        ("MEDIAN(income)", 0, 3),
        ("STDDEV(income)", 0, 2),
    ],
)
def test_it_estimates_the_statistic_of_a_block(
    database: sf.Database, statistic: str, lower: float, upper: float
) -> None:
    """20 blocks of 200 people: the mean over blocks is near the statistic of all."""
    text = f"SELECT SAMPLE_AND_AGGREGATE({statistic}, {lower}, {upper}, blocks => 20) AS a FROM people"
    release = database.sql(text, epsilon=1000).release()
    frame = duckdb.from_arrow(_table(database))
    [(whole,)] = frame.aggregate(statistic).fetchall()
    assert release.column("a")[0] == pytest.approx(whole, abs=(upper - lower) / 10)
    [(low, high)] = release.intervals(0.95)["a"]
    assert lower <= low < release.column("a")[0] < high <= upper and high - low < 0.01


def _table(database: sf.Database) -> object:
    return database.backend._source._objects["people"].table  # of rows that this test made up


def test_noise_is_as_forecast_and_groups_that_are_empty_are_in_the_middle(database: sf.Database) -> None:
    text = (
        "SELECT region, SAMPLE_AND_AGGREGATE(AVG(income), 0, 8, blocks => 40) AS a"
        " FROM people GROUP BY region"
    )
    question = database.sql(text, epsilon=2)
    [bounding], [cost] = question.priced().boundings, question.priced().costs
    [measure] = bounding.query.measures
    step = float(measure.blocks.grid.step)
    assert measure.sensitivity * step == pytest.approx(8, rel=1e-5), "one person moves the sum by the range"
    [answer] = bounding.answers
    forecast = answer.function.record.forecast(answer, [cost.noise(measure.name).added], None, 0.95)
    assert forecast.error == pytest.approx(8 / 40 / 2 * math.log(20), rel=0.02), "Laplace noise of range / k"
    exact = database.sql(text, epsilon=10**6).release()
    assert exact.column("region") == ["north", "south", "west"]
    assert exact.column("a") == pytest.approx([1.13, 1.13, 4.0], abs=0.1)
    assert any("40 blocks" in note and "counts as 4" in note for note in exact.notes)


def test_python_asks_the_same(database: sf.Database) -> None:
    text = (
        "SELECT SAMPLE_AND_AGGREGATE(CORR(income, rent), -1, 0.5) FILTER (WHERE income > 1) AS a FROM people"
    )
    summary = sf.sample_and_aggregate("corr", "income", "rent", lower=-1, upper=0.5).where(
        sf.col("income") > 1
    )
    questions = database.sql(text, epsilon=1), database.table("people").agg(a=summary).ask(epsilon=1)
    first, second = (one.request.queries[0].query.aggregates for one in questions)
    assert first == second
    assert "sample_and_aggregate(corr(income, rent), -1, 0.5, blocks => 50)" in outline_request(
        questions[1].request
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("SAMPLE_AND_AGGREGATE(KURTOSIS(income), 5, 5)", "the lower end comes first"),
        ("SAMPLE_AND_AGGREGATE(KURTOSIS(income), 0)", "takes a statistic"),
        ("SAMPLE_AND_AGGREGATE(KURTOSIS(income), 0, 5, parts => 3)", "takes a statistic"),
        ("SAMPLE_AND_AGGREGATE(KURTOSIS(income), 0, 5, blocks => 1)", "a whole number from 2"),
        ("SAMPLE_AND_AGGREGATE(KURTOSIS(income), 0, income)", "must be a number"),
        ("SAMPLE_AND_AGGREGATE(COUNT(*), 0, 5)", "no statistic of a block"),
        ("SAMPLE_AND_AGGREGATE(FIRST(income), 0, 5)", "no statistic of a block"),
        ("SAMPLE_AND_AGGREGATE(CORR(income), 0, 5)", "missing"),
        ("SAMPLE_AND_AGGREGATE(MAD(income, rent), 0, 5)", "takes one argument"),
        ("SAMPLE_AND_AGGREGATE(MAD(DISTINCT income), 0, 5)", ""),
        ("SAMPLE_AND_AGGREGATE(MAD(word), 0, 5)", "MAD takes numbers"),
        ("SAMPLE_AND_AGGREGATE(MAD(MAD(income)), 0, 5)", "cannot stand here"),
        ("SAMPLE_AND_AGGREGATE(AVG(income), 1e30, 1.000000000000000000001e30)", "too close"),
        ("KURTOSIS(income)", "no private form"),
        ("MAD(income)", "no private form"),
    ],
)
def test_what_is_no_such_question_is_refused(database: sf.Database, call: str, message: str) -> None:
    with pytest.raises(QueryRefused) as refusal:
        database.sql(f"SELECT {call} AS a FROM people", epsilon=1).priced()
    assert message in refusal.value.message
    if message == "no private form":
        assert "SAMPLE_AND_AGGREGATE" in str(refusal.value.hints)


def test_it_belongs_to_people_with_names_and_to_the_outermost_question(database: sf.Database) -> None:
    inner = "SELECT who, SAMPLE_AND_AGGREGATE(MAD(income), 0, 1) AS m FROM people GROUP BY who"
    with pytest.raises(QueryRefused, match="not divided into blocks"):
        database.sql(f"SELECT AVG(m) FROM ({inner})", epsilon=1)
    with pytest.raises(QueryRefused, match="added up to `others`"):
        text = "SELECT word, SAMPLE_AND_AGGREGATE(MAD(income), 0, 1) AS m FROM people GROUP BY word"
        database.sql(text, epsilon=1, others=True).priced()
    rows = pd.DataFrame({"x": [1.0, 2.0]})
    lone = sf.connect(rows, name="t", unit=None, budget=sf.Budget(epsilon=1, delta=1e-6))
    with pytest.raises(QueryRefused, match="rows without names"):
        lone.sql("SELECT SAMPLE_AND_AGGREGATE(MAD(x), 0, 1) AS m FROM t", epsilon=1).priced()
    for wrong in (
        {"lower": 1, "upper": 1},
        {"lower": 0, "upper": 1, "blocks": 1},
        {"lower": 0, "upper": math.nan},
    ):
        with pytest.raises(InvalidArgument):
            sf.sample_and_aggregate("mad", "x", **wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="no statistic"):
        sf.sample_and_aggregate("corr", "x", lower=0, upper=1)
