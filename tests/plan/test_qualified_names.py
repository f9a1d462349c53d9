"""Names with a schema mean the catalog's tables; another table, or two schemas for one, are refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sfumato.catalog import Catalog
from sfumato.errors import QueryRefused
from sfumato.plan.sql import parse
from tests.plan.example import CATALOG

DECLARED = Catalog(
    tuple(
        replace(table, name=f"sales.{table.name}") if table.name == "visits" else table
        for table in CATALOG.tables
    )
)


def asked(text: str, catalog: Catalog = CATALOG) -> object:
    request = parse(text, catalog)
    return (
        [replace(named.query, text="") for named in request.queries],
        request.postprocessing,
        request.public,
    )


@pytest.mark.parametrize(
    ("qualified", "plain"),
    [
        ("SELECT COUNT(*) FROM main.people", "SELECT COUNT(*) FROM people"),
        ('SELECT COUNT(*) FROM "db"."my schema".PEOPLE', "SELECT COUNT(*) FROM PEOPLE"),
        (
            "SELECT main.people.region, AVG(people.age) AS a FROM main.people GROUP BY main.people.region",
            "SELECT people.region, AVG(people.age) AS a FROM people GROUP BY people.region",
        ),
        (
            (
                "SELECT SUM(v.cost) FROM main.people p JOIN main.visits v ON p.uid = v.pid WHERE EXISTS "
                "(SELECT 1 FROM main.visits WHERE db.main.visits.pid = p.uid)"
            ),
            (
                "SELECT SUM(v.cost) FROM people p JOIN visits v ON p.uid = v.pid WHERE EXISTS "
                "(SELECT 1 FROM visits WHERE visits.pid = p.uid)"
            ),
        ),
        (
            (
                "SELECT zone, n FROM (SELECT region, COUNT(*) AS n FROM x.people GROUP BY region) q JOIN "
                "y.regions USING (region)"
            ),
            (
                "SELECT zone, n FROM (SELECT region, COUNT(*) AS n FROM people GROUP BY region) q JOIN "
                "regions USING (region)"
            ),
        ),
    ],
)
def test_a_schema_is_passed_over(qualified: str, plain: str) -> None:
    if "db.main.visits" in qualified:  # the column says more than the table, and is another
        with pytest.raises(QueryRefused):
            parse(qualified, CATALOG)
        qualified = qualified.replace("db.main.visits", "main.visits")
    assert asked(qualified) == asked(plain)


def test_a_table_may_be_declared_under_its_schema() -> None:
    plain = asked("SELECT SUM(visits.cost) FROM visits", CATALOG)
    for text in (
        "SELECT SUM(sales.visits.cost) FROM sales.visits",
        "SELECT SUM(visits.cost) FROM db.sales.visits",
        "SELECT SUM(visits.cost) FROM visits",
    ):
        queries, *rest = asked(text, DECLARED)  # type: ignore[misc]
        [query] = queries
        assert query.source.table == "sales.visits"
        assert [[replace(query, source=replace(query.source, table="visits"))], *rest] == list(plain)  # type: ignore[call-overload]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) FROM main.nobody",
        "SELECT COUNT(*) FROM other.visits",
        "SELECT COUNT(*) FROM main.people, other.people",
        "SELECT COUNT(other.people.age) FROM main.people",
        "SELECT COUNT(main.people.age) FROM people",
        "SELECT COUNT(*) FROM a.b.c.people",
        "SELECT COUNT(*) FROM main.read_csv('x')",
        "WITH q AS (SELECT age FROM people) SELECT COUNT(*) FROM main.q",
    ],
)
def test_other_tables_are_refused(text: str) -> None:
    with pytest.raises(QueryRefused):
        parse(text, DECLARED)
