"""Answers say what they know: low..high where an interval is lopsided, and when it says nothing at all."""

from __future__ import annotations

import csv
import datetime
import io
import json
import math
from fractions import Fraction
from typing import Any

import pytest

from sfumato.aggregates.answer import Answer
from sfumato.aggregates.registry import Function
from sfumato.analysis.bounded import MeasureKind
from sfumato.catalog.kind import Kind
from sfumato.release import Release, cost_record, publish
from sfumato.release.display import NO_INFORMATION, _cell
from sfumato.release.formats import rendered
from tests.release import made

AVG = Answer(
    name="age",
    function=Function.AVG,
    measures=("n", "x"),
    scale=Fraction(1, 2),
    centre=50.0,
    lower=0.0,
    upper=100.0,
)
PLAN = made.bounding({"n": MeasureKind.MOMENT, "x": MeasureKind.MOMENT}, [made.counting(), AVG])
DAY, ONE = datetime.date(2024, 1, 5), datetime.timedelta(days=1)
PRICE = made.cost(PLAN, {"n": Fraction(2), "x": Fraction(200)})


def release(monkeypatch: pytest.MonkeyPatch, outer: str | None = None) -> Release:
    """Return a group of one row, of which nothing is known, one of 12, and one of 10,000."""
    made.freeze(monkeypatch)
    exact = made.exact([("few",), ("many",), ("one",)], {"n": [24, 10_000, 1], "x": [600, 0, 0]})
    return publish((made.table(PLAN, PRICE, exact),), outer, cost=cost_record(PRICE))


def test_what_is_known_is_told_in_text_and_html(monkeypatch: pytest.MonkeyPatch) -> None:
    found = release(monkeypatch)
    lines = repr(found).splitlines()
    few, many, one = lines[2:5]
    assert found.intervals()["age"][2] == (0.0, 100.0) and found.rows[2][2] == 50.0
    assert one.endswith(NO_INFORMATION) and "50" not in one
    assert "±" in many.split("  ")[-1]
    low, high = few.split("(")[1].rstrip(")").split("..")
    ends = found.intervals()["age"][0]
    assert ends is not None and (float(low), float(high)) == (round(ends[0]), round(ends[1]))
    assert ends[1] - 62.5 > 1.1 * (62.5 - ends[0]) > 0
    [note] = [line for line in lines if line.startswith(f"-- {NO_INFORMATION}")]
    assert "`age`, in 1 of 3 rows" in note
    html = found._repr_html_()
    assert f">{NO_INFORMATION}<" in html and "±" in html and ".." in html and note[3:] in html


def test_an_epsilon_that_would_help_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """At ten times the epsilon a count of 9 would be clear of noise, and its average worth telling."""
    made.freeze(monkeypatch)
    price = made.cost(PLAN, {"n": Fraction(20), "x": Fraction(200)})
    exact = made.exact([("a",)], {"n": [9], "x": [10]})
    found = publish((made.table(PLAN, price, exact),), None, cost=cost_record(price))
    [note] = [note for note in found.remarks() if note.startswith(NO_INFORMATION)]
    told = float(note.split("about epsilon ")[1].split()[0])
    factor = told / 0.5
    sharper = made.cost(PLAN, {"n": Fraction(20) / int(factor), "x": Fraction(200) / int(factor)})
    low, high = publish((made.table(PLAN, sharper, exact),), None).intervals()["age"][0] or (0, 0)
    assert 0 < high - low <= 50 and 1 < factor <= 100


def test_exports_leave_out_what_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    found = release(monkeypatch)
    frame = found.to_pandas(level=0.95)
    assert frame["age"].isna().tolist() == [False, False, True]
    assert frame["age_low"].tolist()[2] == 0.0 and frame["age_high"].tolist()[2] == 100.0
    assert found.to_polars(level=0.95)["age"].to_list()[2] is None
    assert found.to_pandas()["age"].tolist() == [row[2] for row in found.rows]  # no ends beside it: as it is
    rows = list(csv.DictReader(io.StringIO(rendered(found, "csv", 0.95).decode())))
    assert [row["age"] == "" for row in rows] == [False, False, True] and rows[2]["age_high"] == "100.0"
    record = json.loads(rendered(found, "json", 0.95))
    assert record["no_information"] == {"age": [2]}
    assert any(note.startswith(NO_INFORMATION) for note in record["notes"])
    shown = rendered(found, "markdown", 0.95).decode()
    assert f"| one | 1 (-5 to 7) | {NO_INFORMATION} |" in shown and f"- {NO_INFORMATION}: `age`" in shown


def test_it_is_told_through_arithmetic_too(monkeypatch: pytest.MonkeyPatch) -> None:
    found = release(monkeypatch, "SELECT k, round(age / 10, 1) AS decades FROM released ORDER BY k")
    assert found.no_information() == {"decades": [False, False, True]}
    ratio = release(monkeypatch, "SELECT n / nullif(n, 0) AS r FROM released WHERE k = 'one'")
    assert ratio.intervals() == {"r": [(-math.inf, math.inf)]} and ratio.no_information() == {"r": [True]}
    assert NO_INFORMATION in repr(ratio)


def test_a_list_of_quantiles_item_by_item(monkeypatch: pytest.MonkeyPatch) -> None:
    made.freeze(monkeypatch)
    answer = Answer(
        name="q",
        function=Function.QUANTILE,
        measures=("c",),
        quantiles=(0.01, 0.5),
        several=True,
        edges=tuple(map(float, range(9))),
    )
    plan = made.bounding({"c": MeasureKind.CELLS}, [answer], keys=[], sets=[()])
    exact = made.exact([()], {"c": [[3, 0, 0, 0, 0, 0, 0, 3]]}, grouping_set=())
    found = publish((made.table(plan, made.cost(plan, 1), exact),), None)
    [flags], [ends] = found.no_information()["q"], found.intervals()["q"]
    assert ends is not None and flags == [high - low == 8 for low, high in zip(*ends, strict=True)]
    assert all(flags) and repr(found).splitlines()[2] == NO_INFORMATION
    assert found.to_arrow(0.95).column("q").to_pylist()[0] == [
        None if flag else value for flag, value in zip(flags, found.rows[0][0], strict=True)
    ]


def test_dates(monkeypatch: pytest.MonkeyPatch) -> None:
    made.freeze(monkeypatch)
    answer = Answer(
        name="day",
        function=Function.QUANTILE,
        measures=("c",),
        quantiles=(0.5,),
        kind=Kind.DATE,
        points=True,
        epoch=datetime.date(2024, 1, 1),
        edges=tuple(map(float, range(9))),
    )
    plan = made.bounding({"c": MeasureKind.CELLS}, [answer], keys=[], sets=[()])

    def shown(cells: list[int]) -> str:
        exact = made.exact([()], {"c": [cells]}, grouping_set=())
        return repr(publish((made.table(plan, made.cost(plan, 2), exact),), None)).splitlines()[2]

    assert shown([1, 0, 0, 1, 0, 0, 0, 1]) == NO_INFORMATION
    assert shown([0, 0, 0, 900, 0, 0, 0, 0]) == "2024-01-04 ±0 days"


@pytest.mark.parametrize(
    ("value", "ends", "shown"),
    [
        (12, (0, 24), "12 ±12"),
        (12, (0, 25), "12 ±13"),  # whole ends are rounded outward
        (12, (0, 26), "12 (0..26)"),
        (0.0, (0.0, 500.0), "0 (0..500)"),
        (1.0, (0.5, 1.54), "1.00 ±0.54"),
        (1.0, (0.5, 1.6), "1.00 (0.50..1.60)"),
        (1.0, (-math.inf, 2.0), "1.0 (-∞..2.0)"),
        (5.0, (6.0, 7.0), "5.0 (6.0..7.0)"),
        (5.0, (5.0, 5.0), "5.00 ±0.00"),
        (DAY, (DAY, DAY + 9 * ONE), "2024-01-05 (2024-01-05..2024-01-14)"),
        ([1, 9], ([0, 0], [2, 9]), "[1 ±1, 9 (0..9)]"),
    ],
)
def test_cells(value: Any, ends: tuple[Any, Any], shown: str) -> None:
    assert _cell(value, ends) == shown


def test_a_cell_of_a_list_of_which_some_say_nothing() -> None:
    assert _cell([1, 9], ([0, 0], [2, 9]), [False, True]) == "[1 ±1, no information]"
