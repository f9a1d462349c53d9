"""Dates as numbers: where their bounds come from, what follows for expressions, what is refused."""

from __future__ import annotations

import datetime
from dataclasses import replace
from typing import Any

import duckdb
import pytest

from sfumato.aggregates.answer import Answer
from sfumato.analysis.bounded import Bounding
from sfumato.analysis.bounding import bound
from sfumato.analysis.calendar import bounded, truncated
from sfumato.analysis.clipping_bias import losses_request
from sfumato.analysis.explain import explain
from sfumato.catalog import Catalog, Field, Kind, Table, Unit, between, one_of
from sfumato.core.accountant import PrivacyBudget
from sfumato.errors import QueryRefused
from sfumato.plan.options import Options
from sfumato.plan.sql import parse

DAY, MOMENT = datetime.date, datetime.datetime
LOW, HIGH = DAY(2020, 1, 1), DAY(2023, 12, 31)
CATALOG = Catalog(
    (
        Table(
            name="t",
            unit=Unit(name="who", column="who"),
            fields=(
                Field("who", Kind.INTEGER),
                Field("day", Kind.DATE, between(LOW, HIGH)),
                Field("at", Kind.TIMESTAMP, between(LOW, HIGH)),
                Field("noon", Kind.TIMESTAMP, between(MOMENT(2020, 1, 1, 12), MOMENT(2020, 1, 1, 13))),
                Field("fair", Kind.DATE, one_of(DAY(2021, 5, 1), DAY(2021, 5, 3))),
                Field("free", Kind.DATE),
                Field("never", Kind.TIMESTAMP),
                Field("always", Kind.DATE, between(DAY.min, HIGH)),
            ),
        ),
    )
)
CAPS = Options(max_groups=1, max_rows=2)


def asked(text: str) -> Bounding:
    (named,) = parse(f"SELECT {text}", CATALOG).queries
    return bound(named.query, CATALOG, CAPS)


def answer(expression: str, rest: str = "") -> Answer:
    (found,) = asked(f"MEDIAN({expression}) FROM t {rest}").answers
    return found


def between_ends(found: Answer) -> tuple[Any, Any]:
    assert found.epoch is not None and found.lower == 0 and found.upper is not None
    unit = "days" if found.kind is Kind.DATE else "microseconds"
    return found.epoch, found.epoch + datetime.timedelta(**{unit: int(found.upper)})


LAST = MOMENT(2023, 12, 31, 23, 59, 59, 999999)


@pytest.mark.parametrize(
    ("expression", "low", "high"),
    [
        ("day", LOW, HIGH),
        ("at", MOMENT(2020, 1, 1), LAST),  # a day is a bound of moments with all of its own
        ("noon", MOMENT(2020, 1, 1, 12), MOMENT(2020, 1, 1, 13)),
        ("fair", DAY(2021, 5, 1), DAY(2021, 5, 3)),
        ("CAST(day AS TIMESTAMP)", MOMENT(2020, 1, 1), MOMENT(2023, 12, 31)),
        ("CAST(noon AS DATE)", LOW, LOW),
        ("date_trunc('month', day)", LOW, DAY(2023, 12, 1)),
        ("date_trunc('week', at)", MOMENT(2019, 12, 30), MOMENT(2023, 12, 25)),
        ("coalesce(day, fair)", LOW, HIGH),
        ("nullif(fair, DATE '2021-05-01')", DAY(2021, 5, 1), DAY(2021, 5, 3)),
        ("CASE WHEN who_is THEN day ELSE DATE '2024-05-05' END", LOW, DAY(2024, 5, 5)),
        ("least(day, DATE '2021-01-01')", LOW, DAY(2021, 1, 1)),
        ("greatest(day, fair)", LOW, HIGH),
        ("least(greatest(free, DATE '2021-01-01'), DATE '2022-01-01')", DAY(2021, 1, 1), DAY(2022, 1, 1)),
        ("greatest(least(free, DATE '2022-01-01'), DATE '2021-01-01')", DAY(2021, 1, 1), DAY(2022, 1, 1)),
    ],
)
def test_bounds_follow_for_expressions(expression: str, low: DAY, high: DAY) -> None:
    found = answer(expression.replace("who_is", "day > fair"))
    assert between_ends(found) == (low, high)
    assert found.kind is (Kind.TIMESTAMP if isinstance(low, MOMENT) else Kind.DATE)


@pytest.mark.parametrize(
    ("where", "low", "high"),
    [
        ("free BETWEEN DATE '2021-01-01' AND DATE '2021-03-01'", DAY(2021, 1, 1), DAY(2021, 3, 1)),
        ("free >= '2021-01-01' AND free < '2021-03-01'", DAY(2021, 1, 1), DAY(2021, 3, 1)),
        ("DATE '2021-01-01' <= free AND DATE '2021-03-01' > free", DAY(2021, 1, 1), DAY(2021, 3, 1)),
        ("free > '2021-01-01 10:00:00' AND free < '2021-03-01'", DAY(2021, 1, 1), DAY(2021, 3, 1)),
    ],
)
def test_a_filter_bounds_dates(where: str, low: DAY, high: DAY) -> None:
    assert between_ends(answer("free", f"WHERE {where}")) == (low, high)
    (found,) = asked(f"MEDIAN(free) FILTER (WHERE {where}) FROM t").answers
    assert between_ends(found) == (low, high)


def test_a_filter_narrows_and_never_widens() -> None:
    assert between_ends(answer("day", "WHERE day > '2021-06-01'")) == (DAY(2021, 6, 1), HIGH)
    assert between_ends(answer("day", "WHERE day > '1999-06-01'")) == (LOW, HIGH)
    assert between_ends(answer("day", "WHERE day > '2099-06-01'")) == (LOW, HIGH)  # of no row, then
    (found,) = asked("MEDIAN(at) FROM t WHERE at <= DATE '2021-06-01'").answers
    assert between_ends(found) == (MOMENT(2020, 1, 1), MOMENT(2021, 6, 1))  # its first moment, as SQL has it


def test_declared_zones_are_in_universal_time() -> None:
    zone = datetime.timezone(datetime.timedelta(hours=2))
    found = between(MOMENT(2020, 1, 1, 1, tzinfo=zone), MOMENT(2020, 1, 2, tzinfo=zone))
    assert found == between(MOMENT(2019, 12, 31, 23), MOMENT(2020, 1, 1, 22))


@pytest.mark.parametrize("part", ["year", "quarter", "month", "week", "day", "hour", "minute"])
def test_truncation_is_the_engine_s(part: str) -> None:
    for number in range(0, 5000, 97):
        moment = MOMENT(2019, 1, 1, 17, 44, 31, 5) + datetime.timedelta(days=number, minutes=number)
        (found,) = duckdb.execute("SELECT date_trunc($p, $m::TIMESTAMP)", {"p": part, "m": moment}).fetchall()
        assert found == (truncated(part, moment),)
        if part not in ("hour", "minute"):
            assert truncated(part, moment.date()) == truncated(part, moment).date()  # type: ignore[attr-defined]


def test_cells_and_shared_measures() -> None:
    result = asked("MEDIAN(day), MIN(day), QUANTILE(day, [0.1]), HISTOGRAM(day), HISTOGRAM(at) FROM t")
    median, least, several, days, moments = result.answers
    assert median.measures == least.measures == several.measures
    assert median.points and median.integer and len(median.edges) == 1462
    assert days.kind is moments.kind is Kind.INTEGER and len(moments.edges) == 21
    (few,) = asked("HISTOGRAM(day) FROM t WHERE day BETWEEN '2020-02-28' AND '2020-03-01'").answers
    assert few.labels == (DAY(2020, 2, 28), DAY(2020, 2, 29), DAY(2020, 3, 1))
    (listed,) = asked("HISTOGRAM(fair) FROM t").answers
    assert listed.labels == (DAY(2021, 5, 1), DAY(2021, 5, 3)) and listed.epoch is None
    (one,) = asked("MEDIAN(noon) FROM t WHERE noon = noon").answers
    assert 2048 <= len(one.edges) - 1 <= 4096


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("MEDIAN(free) FROM t", "QUANTILE needs bounds on `free`"),
        ("MAX(never) FROM t", "MAX needs bounds on `never`"),
        ("HISTOGRAM(free) FROM t", "HISTOGRAM needs bounds on `free`"),
        ("MEDIAN(always) FROM t", "QUANTILE needs bounds on `always`"),
        ("MEDIAN(free) FROM t WHERE free > '2020-01-01'", "QUANTILE needs bounds on `free`"),
        ("MEDIAN(greatest(free, DATE '2020-01-01')) FROM t", "QUANTILE needs bounds on `free`"),
        ("MEDIAN(CAST('x' || 'y' AS DATE)) FROM t", "none follow for this expression"),
        ("MEDIAN(day, contribution_bounds_per_row => (0, 9)) FROM t", "bounds per row are numbers"),
        ("SUM(date_diff('day', free, DATE '2020-01-01')) FROM t WHERE free > '2019-01-01'", "needs bounds"),
        ("AVG(year(free)) FROM t WHERE free > '2019-01-01'", "needs bounds"),
    ],
)
def test_what_has_no_bounds_is_refused(question: str, words: str) -> None:
    with pytest.raises(QueryRefused, match="SF405") as caught:
        asked(question)
    assert words in caught.value.message and caught.value.hints and caught.value.start is not None


def test_an_average_of_dates_is_refused_with_what_to_ask() -> None:
    for column in ("day", "at"):
        with pytest.raises(QueryRefused, match="SF403") as caught:
            asked(f"AVG({column}) FROM t")
        assert "MEDIAN" in caught.value.hints[0] and "DATE_DIFF" in caught.value.hints[0]
    assert asked("AVG(DATE_DIFF('day', DATE '2024-01-01', day)) FROM t").answers[0].upper == -1


def test_half_a_bound_is_none() -> None:
    assert bounded((LOW, HIGH)) == (LOW, HIGH)
    assert bounded(None) is bounded((LOW, DAY.max)) is bounded((MOMENT.min, MOMENT(2020, 1, 1))) is None


def test_what_is_said_beforehand() -> None:
    budget = PrivacyBudget(epsilon=1, delta=1e-6, keys_delta=1e-7)
    text = explain(asked("MEDIAN(day), QUANTILE(at, [0.1, 0.9]) FROM t"), budget, epsilon=1, size=1000)
    assert "a histogram of 1461 cells" in text and "of ranks" in text


def test_losses_count_dates_outside() -> None:
    asking = replace(parse("SELECT MEDIAN(day) FROM t", CATALOG), options=CAPS)
    request = losses_request(asking, CATALOG)
    assert "outside_day" in str(request.postprocessing)
