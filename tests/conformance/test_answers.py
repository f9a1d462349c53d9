"""Answers as users see them are the same on all engines, and so are refusals: their codes, texts and places.

Caps are above what anybody has, and epsilon is so large that noise has a chance below e^-1000 in any number.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

import sfumato as sf
from sfumato.catalog import Catalog
from sfumato.errors import SfumatoError
from sfumato.session import Database
from tests.conformance.comparing import Worlds
from tests.conformance.engines import DuckDB, Engine, lean
from tests.engine.test_refusals import REFUSED

TABLES, PUBLIC, EPSILON = ("visits", "orders", "places", "capitals"), ("places", "capitals"), 10**12
ANSWERED = (
    "SELECT COUNT(*) AS n, AVG(age) AS a, SUM(price) AS s, COUNT(DISTINCT word) AS w FROM visits",
    "SELECT region, COUNT(*) AS n FROM visits GROUP BY region HAVING COUNT(*) > 40 ORDER BY n DESC LIMIT 2",
    "SELECT word, age, SUM(qty) AS q FROM visits GROUP BY word, age ORDER BY q DESC, word NULLS FIRST, age",
    "SELECT code, rate, COUNT(*) AS n FROM visits GROUP BY ALL ORDER BY ALL",
    "SELECT DATE_TRUNC('month', day) AS m, COUNT(*) AS n, AVG(single) AS s FROM visits GROUP BY m ORDER BY m",
    "SELECT DATE_TRUNC('day', at) AS d, member, COUNT(*) AS n FROM visits GROUP BY d, member",
    "SELECT region, member, COUNT(*) AS n FROM visits GROUP BY CUBE(region, member) ORDER BY 1, 2, 3",
    "SELECT HISTOGRAM(age) AS ages FROM visits",
    "SELECT region, QUANTILE(at, [0.1, 0.9]) AS q, MODE(member) AS m FROM visits GROUP BY region",
    "SELECT zone, COUNT(DISTINCT person) AS n FROM visits JOIN places USING (region) GROUP BY zone",
    "SELECT place, SUM(cost) / COUNT(*) AS c FROM orders GROUP BY place ORDER BY c",
    "SELECT w, SUM(n) OVER (ORDER BY w) AS r FROM (SELECT word AS w, COUNT(*) AS n FROM visits GROUP BY w)",
    """WITH t AS (SELECT region AS r, COUNT(*) AS n FROM visits GROUP BY region)
    SELECT zone, SUM(n) AS n FROM t JOIN places AS p ON p.region = r GROUP BY zone ORDER BY 1""",
    "SELECT CAST(AVG(amount) AS DECIMAL(10, 2)) AS a, FORMAT('{} rows', COUNT(*)) AS f FROM visits",
    "SELECT n, COUNT(*) AS people FROM (SELECT person, COUNT(*) AS n FROM visits GROUP BY person) GROUP BY n",
)
ONLY = [text for texts in REFUSED.values() for text in texts]


@cache
def opened(engine: Engine, beside: Engine) -> Database:
    """Return a world in an engine, as users open it, with the kinds of columns that another one has."""
    worlds = Worlds(beside)
    catalog = Catalog(tuple(one for one in worlds.catalog.tables if one.name in TABLES))
    return engine.connect(
        catalog,
        worlds.rows(1, None),
        public=PUBLIC,
        unit={"visits": "person", "orders": "buyer"},
        protects="person",
        columns={f"{one.name}.{f.name}": f.domain for one in catalog.tables for f in one.fields if f.domain},
        max_groups=25,
        max_rows=25,
        budget=sf.Budget(epsilon=10**15, delta=1e-9, rule="pure"),
    )


def _answer(database: Database, text: str, **options: Any) -> Any:
    try:
        release = database.sql(text, epsilon=EPSILON, **options).release()
    except SfumatoError as error:
        return type(error), str(error)
    table = release.to_arrow()
    return release.columns, table.schema, list(map(repr, table.to_pylist()))


@pytest.mark.parametrize(("engine", "text"), lean(ANSWERED, postgresql=6), indirect=["engine"])
def test_answers_have_the_same_columns_types_rows_and_order(engine: Engine, text: str) -> None:
    ours, theirs = (_answer(opened(one, engine), text) for one in (_duckdb(), engine))
    assert isinstance(ours[0][0], str), ours
    assert ours == theirs


@cache
def _duckdb() -> DuckDB:
    return DuckDB()


def test_refusals_are_the_same(engine: Engine) -> None:
    """Nothing of it depends on an engine, and nothing is charged."""
    assert len(ONLY) > 100
    wrong = []
    for text in ONLY:
        ours, theirs = (_answer(opened(one, engine), text) for one in (_duckdb(), engine))
        if ours != theirs or not issubclass(ours[0], SfumatoError):
            wrong.append((text, ours, theirs))
    assert not wrong
