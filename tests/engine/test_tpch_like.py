"""The 22 questions of TPC-H over invented tables (`tpch`), with `lineitem` by its foreign keys.

At a huge epsilon the answers are DuckDB's: caps are above what any customer has, and bounds around all
values, so nothing but noise and the grid of sums could change an answer. At epsilon 5 * 10^10 noise is
below one step of the grid, 2^-20 of a column's width; the tolerance is 1e-6 of a sum, and noise that passes
it has a chance below e^-100. At a usual epsilon intervals cover the true numbers as often as they say.
"""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import binom

from sfumato.release import Release
from tests.engine.tpch import QUESTIONS, connected, database, scaled, truth

FREE = {"Q2", "Q11", "Q16"}
CHOSEN = {"Q15", "Q20"}  # rows are chosen by their noisy numbers, which intervals do not allow for
LEVEL, REPEATED = 0.9, 40
SCALE = 1.0


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_answer_is_that_of_duckdb(name: str) -> None:
    """Groups, numbers and order; groups that are known in public and empty are the only ones DuckDB lacks."""
    asked = database().sql(QUESTIONS[name], epsilon=5 * 10**10)
    assert asked.free == (name in FREE)
    expected = truth(QUESTIONS[name])
    assert expected
    compare(asked.release(), expected)


def compare(released: Release, expected: list[tuple[Any, ...]], slack: float = 1e-3) -> None:
    """Hold an answer against DuckDB's; `slack` is for what is rounded to the grid, row by row."""
    rows = [row for row in released.rows if row[-1]]
    assert len(rows) == len(expected)
    for row, other in zip(rows, expected, strict=True):
        for value, wanted in zip(row, other, strict=True):
            if isinstance(wanted, str | datetime.date):
                assert value == wanted
            else:
                assert float(value) == pytest.approx(float(wanted), rel=1e-6, abs=slack)


@pytest.mark.soak
def test_at_scale_one(tmp_path: Path) -> None:
    """Six million lines: the same questions, each with the answer of DuckDB."""
    found = scaled(tmp_path, SCALE)
    db = connected(found, max_groups=60, max_rows=400)
    for text in QUESTIONS.values():
        expected = [row for row in truth(text, found) if row[-1] != 1]  # groups of one are not shown
        compare(db.sql(text, epsilon=5 * 10**9).release(), expected, slack=10.0)


@pytest.mark.parametrize(
    ("name", "groups"),
    [("Q5", {"ALGERIA", "ETHIOPIA", "KENYA", "MOROCCO"}), ("Q12", {"MAIL", "SHIP"})],
)
def test_groups_are_those_of_the_condition(name: str, groups: set[str]) -> None:
    """ORDER BY .. LIMIT picks among these, and not among groups that are certainly empty."""
    [bounding] = database().sql(QUESTIONS[name], epsilon=1).priced().boundings
    assert {key[0] for key in bounding.query.declared or ()} == groups


@pytest.mark.soak
def test_intervals_cover_at_their_level() -> None:
    """Of groups that are known beforehand; of others only those are shown whose noise was large.

    The share of cells that a release misses has a mean of at most 0.1, whatever cells have to do with each
    other. A sum of independent shares has lighter tails than as many coins of that mean (Hoeffding 1963), so
    false alarms have a chance below 1e-9. Intervals that cover 0.84 instead of 0.9 would fail.
    """
    missed, released = 0.0, 0
    for name, text in QUESTIONS.items():
        asked = database().sql(text, epsilon=2)
        if name in FREE | CHOSEN or any(
            one.query.keys and one.query.declared is None for one in asked.priced().boundings
        ):
            continue
        known = truth(text)
        for _ in range(REPEATED):
            release = asked.release()
            intervals = release.intervals(LEVEL)
            places = {column: release.columns.index(column) for column in intervals}
            labels = [place for place, column in enumerate(release.columns) if column not in intervals]
            expected = {tuple(row[place] for place in labels): row for row in known}
            inside = [
                pair[0] <= float(expected[label][place]) <= pair[1]
                for column, place in places.items()
                for pair, row in zip(intervals[column], release.rows, strict=True)
                if pair is not None and (label := tuple(row[at] for at in labels)) in expected
            ]
            assert inside
            missed += 1 - sum(inside) / len(inside)
            released += 1
    assert released >= 13 * REPEATED
    assert missed <= binom.isf(1e-9, released, 1 - LEVEL)
