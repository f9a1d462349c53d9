"""`Release.plot`: bars, lines and histograms with their intervals; nothing is drawn that says nothing."""

from __future__ import annotations

import datetime
import math
import sys
from typing import Any

import pandas as pd
import pytest

import sfumato as sf
from sfumato.errors import InvalidArgument
from sfumato.plots import Bars, Line, Points, chart, svg

YEARS = [2019 + number % 5 for number in range(900)]
PEOPLE = pd.DataFrame(
    {
        "person": range(900),
        "region": [("north", "south", "west")[number % 3] for number in range(900)],
        "year": YEARS,
        "day": [datetime.date(year, 1, 1) for year in YEARS],
        "age": [20 + number % 60 for number in range(900)],
    }
)


@pytest.fixture(scope="module")
def db() -> sf.Database:
    days = [datetime.date(year, 1, 1) for year in range(2019, 2024)]
    return sf.connect(
        PEOPLE,
        name="people",
        unit="person",
        columns={
            "region": sf.one_of("north", "south", "west"),
            "year": sf.one_of(*range(2019, 2024)),
            "day": sf.one_of(*days),
            "age": sf.between(0, 110),
        },
        max_groups=1,
        max_rows=1,
        budget=sf.Budget(epsilon=1000, delta=1e-7),
    )


def asked(db: sf.Database, text: str, epsilon: float = 5.0) -> sf.Release:
    return db.sql(text, epsilon=epsilon).release()


def test_groups_are_bars_with_their_intervals(db: sf.Database) -> None:
    release = asked(db, "SELECT region, COUNT(*) AS n FROM people GROUP BY region")
    picture = release.plot()
    [bars] = picture.marks
    assert isinstance(bars, Bars) and [name for name, _ in bars.bars] == ["north", "south", "west"]
    assert [height for _, height in bars.bars] == release.column("n")
    assert list(bars.intervals) == release.intervals(0.95)["n"]
    assert (picture.x.title, picture.y.title) == ("region", "n") and "0.95" in picture.caption
    assert "north" in svg(picture)


@pytest.mark.parametrize("key", ["year", "day"])
def test_numbers_and_dates_make_lines_one_for_each_series(db: sf.Database, key: str) -> None:
    release = asked(db, f"SELECT {key}, region, COUNT(*) AS n FROM people GROUP BY {key}, region")
    picture = release.plot()
    lines = [mark for mark in picture.marks if isinstance(mark, Line)]
    points = [mark for mark in picture.marks if isinstance(mark, Points)]
    assert [line.label for line in lines] == [one.label for one in points] == ["north", "south", "west"]
    assert all(len(line.points) == 5 and line.points == tuple(sorted(line.points)) for line in lines)
    assert picture.x.time is (key == "day")
    encoded = str(chart(picture).to_dict())
    assert ("temporal" in encoded) is (key == "day")
    assert isinstance(release.plot(kind="bars").marks[0], Bars)


def test_a_histogram_has_a_bar_for_each_bin(db: sf.Database) -> None:
    release = asked(db, "SELECT HISTOGRAM(age) AS ages FROM people")
    picture = release.plot()
    [bars] = picture.marks
    assert isinstance(bars, Bars) and len(bars.bars) == len(release) == len(bars.intervals)
    svg(picture)


@pytest.mark.parametrize("epsilon", [0.01, 5.0], ids=["mostly nothing", "mostly one"])
def test_what_says_nothing_is_not_drawn_and_that_is_said(db: sf.Database, epsilon: float) -> None:
    """No chance: whatever the noise leaves, none, some or all of three averages, is drawn and said."""
    sql = "SELECT region, AVG(age) AS age FROM people WHERE age < 21 GROUP BY region"  # 15 in the north
    release = asked(db, sql, epsilon)
    rows = zip(
        release.column("age"),
        release.intervals(0.95)["age"],
        release.no_information(0.95)["age"],
        strict=True,
    )
    drawn = sum(
        value is not None and not nothing and ends is not None and all(map(math.isfinite, ends))
        for value, ends, nothing in rows
    )
    if drawn:
        [bars], caption = release.plot().marks, release.plot().caption
        assert isinstance(bars, Bars) and len(bars.bars) == drawn
        assert ("rows tell nothing" in caption) is (drawn < 3)
        assert drawn == 3 or f"{3 - drawn} of 3 rows tell nothing" in caption
    else:  # where noise left no average at all, there is not even a column to draw
        with pytest.raises(InvalidArgument, match=r"nothing to draw|no number to draw"):
            release.plot()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"y": "m"}, "no column 'm'"),
        ({"kind": "pie"}, "bars or as a line"),
        ({"kind": "line"}, "three numbers or dates"),
        ({"y": "region"}, "nothing to draw"),
    ],
)
def test_what_cannot_be_drawn_is_refused(db: sf.Database, options: dict[str, Any], words: str) -> None:
    release = asked(db, "SELECT region, COUNT(*) AS n FROM people GROUP BY region", 0.1)
    with pytest.raises(InvalidArgument, match=words):
        release.plot(**options)


def test_a_notebook_shows_the_table_and_the_picture(db: sf.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    release = asked(db, "SELECT region, COUNT(*) AS n FROM people GROUP BY region", 0.1)
    shown = release._repr_html_()
    assert "<table" in shown and "<svg" in shown and 'role="img"' in shown
    monkeypatch.setitem(sys.modules, "altair", None)  # as where the extra is not installed
    assert "<svg" not in release._repr_html_() and "<table" in release._repr_html_()
