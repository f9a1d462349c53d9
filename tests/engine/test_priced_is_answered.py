"""Whatever `explain` accepts, `release` runs: the accepted questions of the plan's fixtures, on tiny tables.

And equalities of WHERE are those of ON: a comma join with a public table has a price, and an answer.
"""

from __future__ import annotations

import datetime
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.backends import open_tables
from sfumato.core.accountant import PrivacyBudget
from sfumato.ledger import Ledger
from sfumato.session import Database
from tests.plan.example import CATALOG, accepted
from tests.soaked import rest_soaked

TABLES = {
    "people": pa.table(
        {
            "uid": [1, 2, 3, 4],
            "age": [20, 30, None, 200],
            "income": [10.0, 2e6, None, float("nan")],
            "region": ["north", "south", "east", None],
            "job": ["baker", None, "cook", ""],
            "member": [True, None, False, True],
            "born": [datetime.date(1990, 1, 1), None, datetime.date(2001, 2, 3), datetime.date(1950, 5, 5)],
        }
    ),
    "visits": pa.table(
        {
            "pid": [1, 1, 2, 9],
            "cost": [1.0, None, 3.0, -5.0],
            "clinic": ["a", "b", None, "a"],
            "at": [datetime.datetime(2024, 1, 1, 2, 30), None, datetime.datetime(2024, 3, 1), None],
        }
    ),
    "cars": pa.table({"plate": ["x", "y"], "km": [1.0, 2.0]}),
    "sales": pa.table({"price": [1.0, 2.0], "item": ["a", "b"]}),
    "regions": pa.table({"region": ["north", "south"], "zone": ["inner", "outer"], "size": [1, 2]}),
}
OPTIONS: dict[str, Any] = {"max_groups": 2, "max_rows": 3, "max_distinct": 2}
BUDGET = PrivacyBudget(epsilon=10**6, delta=1e-6)


@pytest.fixture(scope="module")
def database() -> Database:
    ledger = Ledger.open(None)
    for unit in ("person", "car", "sale"):
        ledger.register(unit, BUDGET, distinct=True)
    source = open_tables(TABLES, threads=1)
    return Database(
        catalog=CATALOG, terms=BUDGET, ledger=ledger, backend=source.backend(CATALOG), unit="person"
    )


@pytest.mark.parametrize("part", rest_soaked(range(3), 3))
def test_what_explain_accepts_release_runs(database: Database, part: int) -> None:
    """A refusal of `release` is one of `explain`, and nothing of it is charged."""
    answered, failed = 0, []
    for text, _ in accepted()[part::3]:
        before = [database.ledger.balance(unit).spent for unit in ("person", "car", "sale")]
        try:
            database.sql(text, epsilon=0.5, **OPTIONS).explain()
        except sf.errors.SfumatoError:
            with pytest.raises(sf.errors.SfumatoError):
                database.sql(text, epsilon=0.5, **OPTIONS).release()
            assert [database.ledger.balance(unit).spent for unit in ("person", "car", "sale")] == before
            continue
        try:
            database.sql(text, epsilon=0.5, **OPTIONS).release()
            answered += 1
        except sf.errors.SfumatoError as error:
            failed.append((text, str(error)))
    assert failed == []
    assert answered > 20


ASKED = "SELECT zone, COUNT(*) AS n FROM {} GROUP BY zone"
JOINS = [
    "people JOIN regions ON people.region = regions.region",
    "people, regions WHERE people.region = regions.region",
    "people CROSS JOIN regions WHERE regions.region = people.region",
    "(SELECT uid, region AS r FROM people) p, regions WHERE p.r = regions.region AND size > 0",
]
LOOSE = [
    "sales, regions",
    "sales, regions WHERE sales.item = regions.region OR sales.price > 0",
    "sales, regions WHERE regions.region = CASE WHEN size > 1 THEN sales.item ELSE 'north' END",
]


def test_equalities_of_where_count_as_those_of_on() -> None:
    """A public table of 2,000 rows meets a row once, wherever the condition is written."""
    many = pa.table(
        {
            "region": ["north", "south", *(f"far {place}" for place in range(1998))],
            "zone": ["inner", "outer"] * 1000,
            "size": [1] * 2000,
        }
    )
    opened = sf.connect(
        {"people": TABLES["people"]},
        unit="uid",
        public={"regions": many},
        max_groups=1,
        max_rows=1,
        budget=sf.Budget(epsilon=10**9, delta=1e-6, rule="pure"),
    )
    plain = (("inner", 1), ("outer", 1))
    for text in JOINS:
        question = opened.sql(ASKED.format(text), epsilon=10**4)
        assert "noise" in question.explain() and question.release().rows == plain
    frame = opened.table("people").join(opened.table("regions"))
    same = sf.col("people.region") == sf.col("regions.region")
    assert frame.where(same).group_by("zone").agg(n=sf.count()).release(epsilon=10**4).rows == plain
    for text in ("people, regions", "people, regions WHERE size > 0"):
        with pytest.raises(sf.errors.QueryRefused, match="1,000 rows of one"):
            opened.sql(ASKED.format(text), epsilon=1).explain()


def test_where_each_row_is_a_unit_the_equality_must_be_there(database: Database) -> None:
    text = "SELECT COUNT(*) AS n FROM sales, regions WHERE sales.item = regions.region"
    assert len(database.sql(text, epsilon=1).release()) == 1
    for loose in LOOSE:
        with pytest.raises(sf.errors.QueryRefused, match="several rows of one"):
            database.sql(f"SELECT COUNT(*) AS n FROM {loose}", epsilon=1).explain()
