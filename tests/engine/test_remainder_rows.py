"""What is in no group that is shown: every row there counts, however many groups of one person meet."""

from __future__ import annotations

import pandas as pd
import pytest

import sfumato as sf

_PEOPLE, _GROUPS = 3_000, 3


@pytest.fixture
def database() -> sf.Database:
    """Everybody is in three groups of their own, with one row of 15 in each."""
    rows = [(person, f"{person}/{group}", 15.0) for person in range(_PEOPLE) for group in range(_GROUPS)]
    return sf.connect(
        pd.DataFrame(rows, columns=["person", "place", "x"]),
        name="visits",
        unit="person",
        columns={"x": sf.between(0, 20)},
        budget=sf.Budget(epsilon=100, delta=1e-6),
        max_groups=_GROUPS,
        max_rows=1,
    )


def test_rows_of_everything_else_are_counted_and_not_people(database: sf.Database) -> None:
    # Noise of a deviation of about one: to be off by a hundred has a chance far below 1e-9.
    text = "SELECT place, COUNT(*) AS n, COUNT(DISTINCT person) AS people FROM visits GROUP BY place"
    rest = database.sql(text, epsilon=20, others=True).release().to_pandas().iloc[-1]
    assert rest["n"] == pytest.approx(_PEOPLE * _GROUPS, abs=100)
    assert rest["people"] == pytest.approx(_PEOPLE, abs=100)


def test_an_average_of_everything_else_divides_by_rows(database: sf.Database) -> None:
    # By people it would be 10 + 3 * 5, which is cut to 20.
    text = "SELECT place, AVG(x) AS x FROM visits WHERE x IS NOT NULL GROUP BY place"
    rest = database.sql(text, epsilon=20, others=True).release().to_pandas().iloc[-1]
    assert rest["x"] == pytest.approx(15, abs=1)
