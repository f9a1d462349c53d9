"""Several private tables of one unit, declarations of any of them, and public tables beside rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.analysis import bound
from sfumato.backends.duckdb import DuckDBBackend
from sfumato.errors import InvalidArgument, QueryRefused, SfumatoError
from sfumato.session import Database

VISITS = pd.DataFrame({"person": [1, 1, 2, 3], "region": ["n", "s", "n", "n"], "cost": [1.0, 2, 3, 4]})
ORDERS = pl.DataFrame({"person": [1, 2, 2], "price": [5.0, 6, 7]})
PLACES = pa.table({"region": ["n", "s", None, None], "pop": [10, 20, 30, 40], "zone": ["a", "a", "b", "c"]})
MULTIPLIED = "SELECT SUM(v.cost * p.pop) AS s FROM visits AS v JOIN places AS p USING (region)"


def budget() -> Any:
    return sf.Budget(epsilon=1e9, delta=1e-6, rule="pure")


def both(**more: Any) -> Database:
    columns = {"visits.cost": sf.between(0, 10), "orders.price": sf.between(0, 10), **more}
    given = {"visits": VISITS, "orders": ORDERS}
    return sf.connect(
        given,
        unit="person",
        columns=columns,
        max_rows=4,
        max_groups=2,
        budget=budget(),
        public={"places": PLACES},
    )


def alone(**more: Any) -> Database:
    columns = {"cost": sf.between(0, 10), **more}
    options: dict[str, Any] = {
        "max_rows": 4,
        "max_groups": 2,
        "budget": budget(),
        "public": {"places": PLACES},
    }
    return sf.connect(VISITS, name="visits", unit="person", columns=columns, **options)


def one(database: Database, text: str) -> float:
    [[value]] = database.sql(text, epsilon=1e6).release().rows
    return float(value)


def test_tables_of_one_unit_are_asked_about_together() -> None:
    opened = both()
    joined = "SELECT SUM(v.cost * o.price) FROM visits AS v JOIN orders AS o ON v.person = o.person"
    assert one(opened, joined) == pytest.approx(54, abs=0.01)
    together = "(SELECT person, cost AS x FROM visits UNION ALL SELECT person, price FROM orders) AS u"
    assert one(opened, f"SELECT COUNT(*) FROM {together}") == 7
    assert one(opened, f"SELECT COUNT(DISTINCT person) FROM {together}") == 3
    frames = [opened.table(name).select(x=sf.col(x)) for name, x in (("visits", "cost"), ("orders", "price"))]
    asked = frames[0].union_all(frames[1]).agg(n=sf.count(), s=sf.sum_("x"))
    assert asked.release(epsilon=1e6).rows[0] == (7, pytest.approx(28, abs=0.01))
    assert opened.budget.spent == pytest.approx(4e6)


def test_columns_of_public_tables_can_be_declared() -> None:
    for opened in (
        both(**{"places.pop": sf.between(0, 100)}),
        alone(**{"places.pop": sf.between(0, 100)}),
        alone().declare(pop=sf.between(0, 100)),
        alone().declare(pop=sf.between(0, 100), table="places"),
    ):
        assert one(opened, MULTIPLIED) == pytest.approx(120, abs=1)
    with pytest.raises(QueryRefused, match="public table `places`") as refused:
        alone().sql(MULTIPLIED, epsilon=1).release()
    assert "'places.pop': between" in str(refused.value) and "bounds(" not in str(refused.value)


@pytest.mark.parametrize(
    "mistake",
    [
        lambda: sf.connect({}, unit="person", budget=budget()),
        lambda: sf.connect({"a": VISITS, "b": VISITS}, unit=None, budget=budget()),
        lambda: sf.connect({"a": VISITS}, name="x", unit="person", budget=budget()),
        lambda: sf.connect(VISITS, name="a", unit="person", budget=budget(), public={"A": PLACES}),
        lambda: both(cost=sf.between(0, 1)),
        lambda: both(**{"visits.nothing": sf.between(0, 1)}),
    ],
)
def test_mistakes_are_refused_with_a_hint(mistake: Callable[[], object]) -> None:
    with pytest.raises(InvalidArgument) as refused:
        mistake()
    assert refused.value.hints


def test_an_option_that_does_not_exist_is_an_error_of_the_call() -> None:
    with pytest.raises(TypeError, match="max_row"):
        alone().sql("SELECT COUNT(*) FROM visits", max_row=1)  # type: ignore[call-arg]


# -- rows that are units ----------------------------------------------------------------------


def rows(**public: Any) -> Database:
    table = pa.table({"region": ["n", "s", "s", "x"], "i": [1, 2, 3, 4], "r": [1.0, 2.0, 2.0**53, 4.0]})
    return sf.connect(table, name="t", unit=None, budget=budget(), public={"places": PLACES, **public})


def test_rows_that_are_units_meet_one_public_row_each() -> None:
    grouped = "SELECT p.zone, COUNT(*) AS n FROM t JOIN places AS p ON t.region = p.region GROUP BY p.zone"
    assert rows().sql(grouped, epsilon=1e4).release().rows == (
        ("a", 3),
    )  # no row can meet a place without name
    swapped = "SELECT COUNT(*) FROM places AS p JOIN t ON t.region = p.region"
    assert one(rows(), swapped) == 3
    assert one(rows(), "SELECT COUNT(*) FROM t LEFT JOIN places AS p USING (region)") == 4
    asked = rows().table("t").join(rows().table("places"), sf.col("t.region") == sf.col("places.region"))
    assert asked.agg(n=sf.count()).release(epsilon=1e4).rows == ((3,),)


WIDE = pa.table({"k": [1, 2, 2**53, 2**53 + 1]})


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) FROM t JOIN places AS p ON t.region = p.zone",
        "SELECT COUNT(*) FROM t JOIN places AS p ON t.region < p.region",
        "SELECT COUNT(*) FROM t, places",
        "SELECT COUNT(*) FROM t JOIN wide AS w ON t.r = w.k",  # as reals, 2^53 and the next are one
        "SELECT COUNT(*) FROM t AS a JOIN t AS b ON a.region = b.region",
        "SELECT COUNT(*) FROM (SELECT region FROM t UNION ALL SELECT region FROM t) AS u",
    ],
)
def test_a_row_that_could_become_two_is_refused_and_free(text: str) -> None:
    opened = rows(wide=WIDE)
    with pytest.raises(SfumatoError) as refused:
        opened.sql(text, epsilon=1).release()
    assert refused.value.code == "SF406" and refused.value.hints  # type: ignore[attr-defined]
    assert opened.budget.spent == 0
    assert one(opened, "SELECT COUNT(*) FROM t JOIN wide AS w ON t.i = w.k") == 2


def test_the_engine_itself_refuses_to_copy_rows() -> None:
    """Whoever forgets to look at the public table beforehand is stopped where data is read."""
    opened = rows()
    text = "SELECT COUNT(*) FROM t JOIN places AS p ON t.region = p.zone"
    [named] = opened.sql(text, epsilon=1).request.queries
    bounding = bound(named.query, opened.catalog)
    assert isinstance(opened.backend, DuckDBBackend)
    for action in (opened.backend.run, opened.backend.check):
        with pytest.raises(QueryRefused, match="several rows of one"):
            action(bounding.query)
