"""Caps of tables follow the rows that a unit can have: what only chooses rows brings no cap of its own.

The engine holds every unit to the caps of the plan, so one unit more moves the exact integers by at most the
sensitivity, however many rows it has on the other side of a semi-join or of a join with one row per unit.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow
import pytest

import sfumato as sf
from sfumato.analysis import bound
from sfumato.backends import open_tables
from sfumato.backends.duckdb import DuckDBBackend
from sfumato.catalog import Catalog, Field, Kind, Table, Unit, between, one_of
from sfumato.plan.sql import parse

BUYER = Unit(name="buyer", column="id")
CATALOG = Catalog(
    (
        Table(
            name="customer",
            unit=BUYER,
            fields=(Field("id", Kind.INTEGER), Field("segment", Kind.TEXT, one_of("a", "b"))),
            max_groups=1,
            max_rows=1,
        ),
        Table(
            name="orders",
            unit=BUYER,
            fields=(
                Field("id", Kind.INTEGER),
                Field("status", Kind.TEXT, one_of("o", "f")),
                Field("price", Kind.REAL, between(0, 10)),
            ),
            max_groups=2,
            max_rows=30,
        ),
        Table(name="codes", unit=None, fields=(Field("code", Kind.TEXT),)),
    )
)
LATEST = "(SELECT id, MAX(price) AS p FROM orders GROUP BY id) m"
NONE = "SELECT COUNT(*) FROM customer c WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.id = c.id)"
EACH = "(SELECT id, COUNT(*) AS n, AVG(price) AS price FROM orders GROUP BY id) o"


def tables(heavy: int) -> dict[str, Any]:
    """Twenty ordinary buyers, and, if `heavy`, one with that many rows in every table."""
    people = list(range(20))
    customers = people + [99] * heavy
    orders = [each for each in people for _ in range(each % 3)] + [99] * heavy
    return {
        "customer": pyarrow.table(
            {"id": customers, "segment": ["ab"[at % 2] for at in range(len(customers))]}
        ),
        "orders": pyarrow.table(
            {
                "id": orders,
                "status": ["of"[at % 2] for at in range(len(orders))],
                "price": [float(at % 11) for at in range(len(orders))],
            }
        ),
        "codes": pyarrow.table({"code": ["a", "b"]}),
    }


@pytest.mark.parametrize(
    ("text", "groups", "rows"),
    [
        ("SELECT COUNT(*) FROM customer", None, 1),
        ("SELECT COUNT(*) FROM orders", None, 30),
        (NONE, None, 1),
        ("SELECT COUNT(*) FROM customer c WHERE EXISTS (SELECT 1 FROM orders o WHERE o.id = c.id)", None, 1),
        ("SELECT COUNT(*) FROM customer WHERE id IN (SELECT id FROM orders WHERE price > 3)", None, 1),
        ("SELECT COUNT(*) FROM orders WHERE id IN (SELECT id FROM customer WHERE segment = 'a')", None, 30),
        (f"SELECT segment, COUNT(*), SUM(LEAST(n, 9)) FROM customer JOIN {EACH} USING (id) GROUP BY 1", 1, 1),
        (f"SELECT COUNT(*) FROM {EACH} JOIN customer c ON c.id = o.id", None, 1),
        (f"SELECT COUNT(*) FROM customer c LEFT JOIN {EACH} ON c.id = o.id", None, 1),
        ("SELECT segment, SUM(price) FROM customer c JOIN orders o ON c.id = o.id GROUP BY 1", 2, 30),
        ("SELECT segment, COUNT(*) FROM customer JOIN codes ON segment = code GROUP BY 1", 1, 1),
        (f"SELECT COUNT(*) FROM {EACH} JOIN {LATEST} ON o.id = m.id", None, 1),
    ],
)  # fmt: skip
def test_caps_follow_the_rows_of_a_unit(text: str, groups: int | None, rows: int) -> None:
    (named,) = parse(text, CATALOG).queries
    query = bound(named.query, CATALOG).query
    assert (query.max_groups, query.max_rows) == (groups, rows)
    exact = []
    for heavy in (0, 200):
        backend = DuckDBBackend(open_tables(tables(heavy)), CATALOG)
        exact.append(backend.run(query, _salt=1).reveal()[0])
    moved = []
    for measure in query.measures:
        change = abs(exact[1].measures[measure.name] - exact[0].measures[measure.name])
        assert change.max() <= measure.sensitivity
        moved.append((change != 0).sum())
    assert max(moved) <= (groups or 1)
    if "NOT EXISTS" not in text:
        assert max(moved) > 0  # the heavy buyer is there at all


def test_a_join_of_two_rows_per_unit_is_one_row() -> None:
    """No caps are needed where both sides have one row of each unit."""
    loose = Catalog(tuple(replace(table, max_groups=None, max_rows=None) for table in CATALOG.tables))
    text = f"SELECT COUNT(*) FROM {EACH} JOIN {LATEST} ON o.id = m.id"
    (named,) = parse(text, loose).queries
    assert bound(named.query, loose).query.max_rows == 1
    (named,) = parse("SELECT COUNT(*) FROM customer WHERE id IN (SELECT id FROM orders)", loose).queries
    with pytest.raises(sf.errors.QueryRefused, match="SF405"):
        bound(named.query, loose)


# -- min_units ------------------------------------------------------------------------------


def crowd() -> Any:
    rows = pyarrow.table({"id": list(range(40)), "segment": ["a"] * 30 + ["b"] * 10})
    budget = sf.Budget(epsilon=10**6, delta=1e-6)
    known = {"segment": sf.one_of("a", "b")}
    return sf.connect(rows, name="people", unit="id", columns=known, max_groups=1, max_rows=1, budget=budget)


@pytest.mark.parametrize("keys", ["declared", "selected"])
def test_a_total_of_too_few_units_is_not_shown(keys: str) -> None:
    """At epsilon 200 per question, noise of 5 has a chance below e^-200."""
    people = crowd()
    asked = "SELECT COUNT(*) AS n, AVG(1) FROM people"
    assert people.sql(asked, epsilon=1000, min_units=30).release().column("n") == [40]
    assert len(people.sql(asked, epsilon=1000, min_units=50).release()) == 0
    assert "the answer is shown if" in people.sql(asked, epsilon=1000, min_units=50).explain()
    rolled = "SELECT segment, COUNT(*) AS n FROM people GROUP BY ROLLUP(segment)"
    released = people.sql(rolled, epsilon=1000, min_units=20, keys=keys).release()
    assert released.column("segment") == ["a", None]
    released = people.sql(rolled, epsilon=1000, min_units=50, keys=keys).release()
    assert len(released) == 0


def test_googlesql_asks_for_a_least_number_of_units_without_groups() -> None:
    text = """
        SELECT WITH DIFFERENTIAL_PRIVACY
        OPTIONS(epsilon = 1000, privacy_unit_column = id, min_privacy_units_per_group = 50)
        COUNT(*) AS n FROM people
    """
    assert len(crowd().sql(text).release()) == 0
