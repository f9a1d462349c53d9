"""A histogram is shown as one row per bin, with its edges; each count keeps its interval."""

from __future__ import annotations

import datetime

import pandas as pd

import sfumato as sf

VISITS = pd.DataFrame(
    {
        "person": range(600),
        "region": ["north", "south"] * 300,
        "cost": [(number % 100) + 0.5 for number in range(600)],
        "day": [datetime.date(2024, 1, 1) + datetime.timedelta(days=number % 4) for number in range(600)],
    }
)


def asked(text: str) -> sf.Release:
    """Ask with so much epsilon that a count is off with a probability far below 1e-9."""
    db = sf.connect(
        VISITS,
        name="visits",
        unit="person",
        columns={
            "region": sf.one_of("north", "south"),
            "cost": sf.between(0, 100),
            "day": sf.between(datetime.date(2024, 1, 1), datetime.date(2024, 1, 4)),
        },
        max_groups=1,
        max_rows=1,
        budget=sf.Budget(epsilon=10**6),
    )
    return db.sql(text, epsilon=10**5).release()


def test_bins_of_numbers_have_edges() -> None:
    release = asked("SELECT HISTOGRAM(cost) AS costs FROM visits")
    assert release.columns == ("costs_from", "costs_to", "costs")
    assert release.types == ("DOUBLE", "DOUBLE", "BIGINT")
    assert release.rows[0][0] == 0 and release.rows[-1][1] >= 100
    assert all(one[1] == after[0] for one, after in zip(release.rows, release.rows[1:], strict=False))
    for low, high, count in release:
        assert count == sum(low <= cost < high for cost in VISITS["cost"])
    assert not any("cells of" in note for note in release.notes)


def test_bins_of_listed_values_have_values_and_groups_repeat() -> None:
    release = asked("SELECT region, COUNT(*) AS n, HISTOGRAM(day) AS days FROM visits GROUP BY region")
    assert release.columns == ("region", "n", "days_value", "days")
    assert len(release) == 8 and set(release.column("n")) == {300}
    assert release.column("days_value")[:4] == [datetime.date(2024, 1, day) for day in range(1, 5)]
    assert release.column("days") == [150, 0, 150, 0, 0, 150, 0, 150]
    values = asked("SELECT HISTOGRAM(region) AS regions FROM visits")
    assert values.rows == (("north", 300), ("south", 300))


def test_each_bin_has_its_own_interval_also_when_stored() -> None:
    release = asked("SELECT region, HISTOGRAM(day) AS days FROM visits GROUP BY region")
    ends = release.intervals(0.95)["days"]
    assert all(low <= count <= high for (low, high), count in zip(ends, release.column("days"), strict=True))
    again = sf.Release.from_json(release.to_json())
    assert again.to_json() == release.to_json() and again.intervals(0.95) == release.intervals(0.95)
    assert list(release.to_pandas(0.95).columns) == ["region", "days_value", "days", "days_low", "days_high"]
    assert release.to_polars(0.95).height == release.to_arrow().num_rows == 8


def test_several_histograms_stay_lists_and_say_their_cells() -> None:
    release = asked("SELECT HISTOGRAM(region) AS a, HISTOGRAM(cost > 30) AS b FROM visits")
    assert release.columns == ("a", "b") and release.rows[0][0] == [300, 300]
    assert "cells of `a`: north, south" in release.notes


def test_names_of_edges_give_way_to_those_that_were_asked_for() -> None:
    release = asked("SELECT region AS days_value, HISTOGRAM(day) AS days FROM visits GROUP BY region")
    assert len(set(release.columns)) == 3 and release.columns[0] == "days_value"
