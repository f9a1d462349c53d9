"""Joins by comma within EXISTS: a match of units that a join has taken is not one of a unit with itself."""

from __future__ import annotations

import pandas as pd
import pytest

import sfumato as sf
from sfumato.errors import QueryRefused


@pytest.fixture
def database() -> sf.Database:
    return sf.connect(
        pd.DataFrame({"person": [1, 2, 2, 3], "x": [1, 2, 2, 3]}),
        name="v",
        unit="person",
        columns={"x": sf.between(0, 9)},
        budget=sf.Budget(epsilon=10**6),
        max_rows=2,
    )


@pytest.mark.parametrize(("test", "expected"), [("EXISTS", 3), ("NOT EXISTS", 1)])
def test_a_comma_join_within_exists_is_matched_on_the_unit(
    database: sf.Database, test: str, expected: int
) -> None:
    inner = "SELECT 1 FROM v AS a, v AS b WHERE a.person = b.person AND a.person = v.person AND a.x + b.x > 2"
    # A scale of 1/5000: noise other than zero has a chance below e^-4000.
    release = database.sql(f"SELECT COUNT(*) AS n FROM v WHERE {test} ({inner})", epsilon=10**4).release()
    assert release.column("n") == [expected]


@pytest.mark.parametrize(
    "conditions",
    [
        "a.person = b.person",
        "a.person = v.person",
        "a.person = b.person AND a.x = v.x",
        "a.person = a.person",
    ],
)
def test_both_matches_are_needed(database: sf.Database, conditions: str) -> None:
    with pytest.raises(QueryRefused) as refused:
        database.sql(f"SELECT COUNT(*) FROM v WHERE EXISTS (SELECT 1 FROM v AS a, v AS b WHERE {conditions})")
    assert refused.value.code == "SF406"
