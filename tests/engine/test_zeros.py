"""0.0 equals -0.0, so nothing that is asked may tell them apart: which one is kept is up to row order."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.session import Database
from tests.soaked import rest_soaked

PEOPLE = 300
INNER = {
    "min": "SELECT person, MIN(x) AS m FROM t GROUP BY person",
    "max": "SELECT person, MAX(x) AS m FROM t GROUP BY person",
    "distinct": "SELECT DISTINCT person, x AS m FROM t",
    "group": "SELECT person, x AS m, COUNT(*) AS c FROM t GROUP BY person, x",
    "product": "SELECT person, MIN(x * (x - 1)) AS m FROM t GROUP BY person",
    "rows": "SELECT person, x AS m FROM t",
}


def opened(rows: pd.DataFrame | pa.Table) -> Database:
    return sf.connect(
        rows,
        name="t",
        unit="person",
        columns={"x": sf.between(-1, 1)},
        max_groups=1,
        max_rows=1,
        budget=sf.Budget(epsilon=1e9, delta=1e-6, rule="pure"),
    )


def counts(rows: pd.DataFrame, inner: str, key: str) -> dict[Any, int]:
    text = f"SELECT {key} AS k, COUNT(*) AS n FROM ({inner}) AS g GROUP BY 1"
    [found] = opened(rows).sql(text, epsilon=1).priced().boundings
    [one] = opened(rows).backend.run(found.query).reveal()  # type: ignore[attr-defined]
    names = ("".join(map(repr, key)) for key in one.keys)
    return dict(zip(names, one.measures["m0"].tolist(), strict=True))


@pytest.mark.parametrize(
    "key", ["m", "CAST(m AS VARCHAR)", "LEFT(CAST(m AS VARCHAR), 1)", "CAST(-m AS TEXT)"]
)
@pytest.mark.parametrize("inner", rest_soaked(INNER.values(), 2), ids=list(INNER))
def test_the_order_of_rows_moves_nobody(inner: str, key: str) -> None:
    """All rows of a person are zeros of both signs, in one order and in the other."""
    people = [*range(PEOPLE), *range(PEOPLE)]
    rows = pd.DataFrame({"person": people, "x": [0.0] * PEOPLE + [-0.0] * PEOPLE})
    forth = counts(rows, inner, key)
    assert forth == counts(rows[::-1], inner, key)
    assert len(forth) == 1 and "-0" not in next(iter(forth))


def test_nan_is_nobody() -> None:
    """A unit that is NaN, whatever its sign or payload, is missing like NULL."""
    rows = pa.table({"person": [1.0, 2.0, math.nan, -math.nan, 0.0, -0.0], "x": [0.5] * 6})
    question = opened(rows).sql("SELECT COUNT(DISTINCT person) AS n FROM t", epsilon=1e6)
    assert question.release().rows == ((3,),)
