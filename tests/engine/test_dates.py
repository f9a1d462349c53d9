"""Dates end to end: the engine's cells, answers that are dates again, whatever a row holds.

The noise of the statistical test has a false-alarm rate of 1e-9.
"""

from __future__ import annotations

import datetime
import math
import re
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import sfumato as sf
from sfumato.analysis import bound, price
from sfumato.backends import open_tables
from sfumato.backends.duckdb import DuckDBBackend
from sfumato.backends.exact import Exact, ExactGroups
from sfumato.catalog import Catalog, Field, Kind, Table, Unit, between
from sfumato.core.accountant import PrivacyBudget
from sfumato.errors import QueryRefused
from sfumato.plan.options import Options
from sfumato.plan.sql import parse
from sfumato.release import add_noise, tabulate
from tests.engine.worlds import DAYS, MOMENTS

ALARM = 1e-9
DAY, MOMENT = datetime.date, datetime.datetime
BUDGET = PrivacyBudget(epsilon=3, delta=1e-7, keys_delta=1e-8)
LOW, HIGH = DAY(2020, 1, 1), DAY(2021, 12, 31)
START, END = MOMENT(2020, 1, 1, 7), MOMENT(2020, 4, 1)
CATALOG = Catalog(
    (
        Table(
            name="t",
            unit=Unit(name="row", column=None),
            fields=(
                Field("day", Kind.DATE, between(LOW, HIGH)),
                Field("at", Kind.TIMESTAMP, between(START, END)),
            ),
        ),
    )
)
NASTY_DAYS: list[Any] = [
    LOW, HIGH, DAY(2019, 12, 31), DAY(2022, 1, 1), DAY.min, DAY.max, DAY(2020, 2, 29), None, *DAYS
]  # fmt: skip
NASTY_MOMENTS: list[Any] = [
    START, END, MOMENT(1970, 1, 1), MOMENT(2400, 1, 1), MOMENT.min, MOMENT.max,
    START + datetime.timedelta(microseconds=1), None, *MOMENTS,
]  # fmt: skip


def exact(text: str, days: list[Any], moments: list[Any]) -> Any:
    """Return the plan of a question and the integers that the engine finds for it."""
    table = pa.table(
        {"day": days, "at": moments}, schema=pa.schema([("day", pa.date32()), ("at", pa.timestamp("us"))])
    )
    (named,) = parse(text, CATALOG).queries
    bounding = bound(named.query, CATALOG, Options())
    (groups,) = DuckDBBackend(open_tables({"t": table}), CATALOG).run(bounding.query).reveal()
    return bounding, {name: values[0] for name, values in groups.measures.items()}


def test_rows_are_in_the_cells_of_their_dates() -> None:
    """Clamped to the bounds; NULL, infinite dates and those outside the years 1 to 9999 are in none."""
    bounding, found = exact("SELECT MEDIAN(day), MEDIAN(at) FROM t", NASTY_DAYS, NASTY_MOMENTS)
    day, at = bounding.answers
    expected = np.zeros(731, dtype=np.int64)
    for value in NASTY_DAYS:
        if isinstance(value, DAY):
            expected[(min(max(value, LOW), HIGH) - LOW).days] += 1
    assert found[day.measures[0]].tolist() == expected.tolist() and expected.sum() == 7
    edges = np.array(at.edges)
    expected = np.zeros(len(edges) - 1, dtype=np.int64)
    for value in NASTY_MOMENTS:
        if isinstance(value, DAY):
            number = (min(max(value, START), END) - START) // datetime.timedelta(microseconds=1)
            expected[np.searchsorted(edges[1:-1], number, side="right")] += 1
    assert found[at.measures[0]].tolist() == expected.tolist() and expected.sum() == 7


def test_every_edge_is_on_its_side() -> None:
    """A moment at an edge is in the cell above it, one a microsecond before in the cell below."""
    bounding, _ = exact("SELECT HISTOGRAM(at) FROM t", [], [])
    edges = [math.ceil(edge) for edge in bounding.answers[0].edges[1:-1]]
    for shift, first in ((0, 1), (-1, 0)):
        moments = [START + datetime.timedelta(microseconds=edge + shift) for edge in edges]
        _, found = exact("SELECT HISTOGRAM(at) FROM t", [None] * len(moments), moments)
        (cells,) = found.values()
        assert cells.tolist() == [0] * first + [1] * 19 + [0] * (1 - first)


def noisy(text: str, days: list[Any], moments: list[Any], times: int, noise: Any) -> tuple[Any, Any]:
    """Return an answer and its noisy table, repeated with fresh noise."""
    bounding, found = exact(text, days, moments)
    cost = price(bounding, BUDGET, epsilon=1, options=Options(noise=noise))
    copies = ExactGroups(
        grouping_set=(),
        keys=[()] * times,
        measures={name: np.tile(values, (times, 1)) for name, values in found.items()},
        units=None,
    )
    table = tabulate("released", add_noise(Exact((copies,)), bounding, cost), bounding, cost)
    return bounding.answers[0], table


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("column", ["day", "at"])
@pytest.mark.parametrize("text", ["QUANTILE({}, 0.9)", "QUANTILE({}, [0.25, 0.9])"])
def test_intervals_cover_dates(text: str, column: str, noise: str) -> None:
    """95% hold the truth, no fewer: binomial over 400; a tree and a found place, false alarm 1e-9.

    Answers that are counted from another day than the lower bound, 1970 say, are never covered.
    """
    source = np.random.default_rng(3)
    days = [LOW + datetime.timedelta(days=int(one)) for one in source.integers(-50, 500, 4000)]
    moments = [START + datetime.timedelta(seconds=int(one)) for one in source.integers(0, 7_500_000, 4000)]
    answer, table = noisy(f"SELECT {text.format(column)} FROM t", days, moments, 400, noise)
    assert (table.noises[0].quantile is None) == answer.several
    values: list[Any] = sorted(
        min(max(one, LOW), HIGH) if column == "day" else min(max(one, START), END)
        for one in (days if column == "day" else moments)  # type: ignore[attr-defined]
    )
    truth = values[math.ceil(0.9 * 4000) - 1]
    found = table.aggregate(answer, 0.95)
    ends = list(zip(found.low, found.high, strict=True))
    if answer.several:
        ends = [(low[1], high[1]) for low, high in ends]
    assert all(type(low) is type(high) is type(truth) for low, high in ends)
    hits = sum(low <= truth <= high for low, high in ends)
    assert stats.binom.cdf(hits, len(ends), 0.95) > ALARM
    width = float(np.median([(high - low) / datetime.timedelta(days=1) for low, high in ends]))
    assert width < (150 if column == "day" else 60)  # of the 731 days, or 91, between the bounds


@pytest.mark.parametrize("ranks", ["0.5", "[0.5, 0.9]"])
def test_a_day_that_all_rows_share_is_the_answer(ranks: str) -> None:
    """2,000 rows from any other answer, and noise of less than 20: a chance far below 1e-9.

    An answer that is a day off, or an end that is rounded inward, is caught.
    """
    leap, moment = DAY(2020, 2, 29), MOMENT(2020, 2, 29, 11, 30, 15, 123456)
    for column, truth in (("day", leap), ("at", moment)):
        answer, table = noisy(
            f"SELECT QUANTILE({column}, {ranks}) FROM t", [leap] * 4000, [moment] * 4000, 50, "gaussian"
        )
        cell = datetime.timedelta(days=1) * 91 / 2048
        found = table.aggregate(answer, 0.95)
        for value, low, high in zip(found.values, found.low, found.high, strict=True):
            one = [each[0] if answer.several else each for each in (value, low, high)]
            assert one[0] == truth if column == "day" else abs(one[0] - truth) <= cell
            assert one[1] <= truth <= one[2] and (column == "at" or one[1] == one[2])


# -- the whole path -------------------------------------------------------------------------


def people(number: int = 3000) -> sf.Database:
    source = np.random.default_rng(11)
    table = pa.table(
        {
            "person": pa.array(np.arange(number)),
            "region": pa.array(np.where(np.arange(number) % 2, "north", "south")),
            "day": pa.array(
                [LOW + datetime.timedelta(days=int(one)) for one in source.integers(0, 700, number)]
            ),
            "at": pa.array(
                [
                    START + datetime.timedelta(seconds=int(one))
                    for one in source.integers(0, 7_000_000, number)
                ]
            ),
        }
    )
    return sf.connect(
        table,
        name="t",
        unit="person",
        columns={
            "day": sf.between(LOW, HIGH),
            "at": sf.between(START, END),
            "region": sf.one_of("north", "south"),
        },
        max_groups=1,
        max_rows=1,
        budget=sf.Budget(epsilon=100, delta=1e-6),
    )


def test_answers_are_dates_everywhere() -> None:
    text = (
        "SELECT region, MEDIAN(day) AS d, MAX(at) AS a, QUANTILE(day, [0.1, 0.9]) AS q, HISTOGRAM(at) AS h"
        " FROM t GROUP BY region ORDER BY d"
    )
    found = people().sql(text, epsilon=5).release()
    assert found.types == ("VARCHAR", "DATE", "TIMESTAMP", "DATE[]", "TIMESTAMP", "TIMESTAMP", "BIGINT")
    assert found.column("d") == sorted(found.column("d"))
    for row in found.rows:
        assert type(row[1]) is DAY and LOW <= row[1] <= HIGH
        assert type(row[2]) is MOMENT and START <= row[2] <= END
        assert [type(one) for one in row[3]] == [DAY, DAY] and row[3][0] <= row[3][1]
    for name in ("d", "a", "q"):
        for pair in found.intervals(0.9)[name]:
            assert pair is not None and type(pair[0]) is type(pair[1])
    again = sf.Release.from_json(found.to_json())
    assert again.rows == found.rows and again.to_json() == found.to_json()
    assert again.intervals(0.8) == found.intervals(0.8) and str(again) == str(found)
    arrow = found.to_arrow(0.95)
    assert arrow.schema.field("d_low").type == pa.date32()
    assert arrow.schema.field("a_high").type == pa.timestamp("us")
    assert arrow.schema.field("q_low").type == pa.list_(pa.date32())
    assert found.to_pandas(0.95)["d"].tolist() == found.column("d")
    assert found.to_polars(0.95)["a"].to_list() == found.column("a")
    assert str(found.column("d")[0]) in found.to_pandas().to_csv()
    text = str(found)  # an interval is symmetric, in days, or has two dates as its ends
    assert str(found.column("d")[0]) in text and (
        " days" in text or re.search(r"\d\.\.\d{4}-\d\d-\d\d", text)
    )
    assert MOMENT(2020, 1, 1, 7) in found.column("h_from")


def test_post_processing_of_dates() -> None:
    text = (
        "SELECT MEDIAN(day) + 7 AS later, YEAR(MEDIAN(day)) AS y, MEDIAN(day) < DATE '2030-01-01' AS early,"
        " DATE_DIFF('day', MIN(day), MAX(day)) AS span, CAST(MEDIAN(at) AS DATE) AS a,"
        " list_extract(QUANTILE(day, [0.1, 0.9]), 1) AS q FROM t"
    )
    found = people().sql(text, epsilon=5).release()
    (row,) = found.rows
    assert found.types == ("DATE", "BIGINT", "BOOLEAN", "BIGINT", "DATE", "DATE")
    assert row[1] in (2020, 2021) and row[2] is True and 0 <= row[3] <= 730
    intervals = found.intervals(0.95)
    assert set(intervals) == {"later", "a"}
    for place, name in ((0, "later"), (4, "a")):
        (pair,) = intervals[name]
        assert pair is not None and pair[0] <= row[place] <= pair[1]


def test_an_empty_group_is_null_and_the_calendar_ends() -> None:
    db = people(200)
    found = db.sql("SELECT MEDIAN(day) AS m FROM t WHERE day < '2019-01-01'", epsilon=9).release()
    assert found.column("m") == [None] or LOW <= found.column("m")[0] <= HIGH  # noise may make somebody
    late = sf.connect(
        pa.table({"x": pa.array([DAY(9999, 12, 30)] * 300)}),
        name="late",
        unit=None,
        columns={"x": sf.between(DAY(9999, 1, 1), DAY(9999, 12, 30))},
        budget=sf.Budget(epsilon=100, delta=1e-6),
    )
    told = late.sql("SELECT MAX(x) AS m, HISTOGRAM(x) AS h FROM late", epsilon=9).release()
    (pair,) = set(told.intervals(0.99)["m"])
    assert pair is not None and DAY(9999, 1, 1) <= pair[0] <= pair[1] <= DAY(9999, 12, 30)
    assert told.rows[-1][2] == DAY(9999, 12, 31)  # the last bin goes on to the end of the calendar


def test_the_same_in_python() -> None:
    db = people()
    asked = db.table("t").agg(m=sf.median("day"), q=sf.quantile("at", [0.1, 0.9]), h=sf.histogram("day"))
    found = asked.release(epsilon=5)
    assert found.types == ("DATE", "TIMESTAMP[]", "DATE", "DATE", "BIGINT")
    with pytest.raises(QueryRefused, match="SF403"):
        db.table("t").agg(m=sf.avg("day")).ask(epsilon=1)


def test_what_was_clamped_is_counted() -> None:
    db = people()
    lost = db.sql("SELECT MEDIAN(day) AS m, MAX(at) AS a FROM t", epsilon=1).losses(epsilon=20).release()
    assert {"outside_day", "outside_at"} <= set(lost.columns)
    assert abs(lost.column("outside_day")[0]) < 50
