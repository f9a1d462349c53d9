"""Materialized views of PostgreSQL: a private one has of each stored row what that row says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from sfumato.backends.postgres import PostgresTables, materialized_views
from sfumato.errors import InvalidArgument
from tests.conformance.server import Server

MIXED = {
    "NOT EXISTS": "SELECT * FROM v WHERE NOT EXISTS (SELECT 1 FROM v WHERE person = 999)",
    "of another": "SELECT * FROM v WHERE NOT EXISTS (SELECT 1 FROM w WHERE person = 999)",
    "IN": "SELECT * FROM v WHERE 999 IN (SELECT person FROM v)",
    "a scalar": "SELECT person, (SELECT max(cost) FROM v) AS top FROM v",
    "an array": "SELECT person, ARRAY(SELECT cost FROM v)::text AS all FROM v",
    "a join": "SELECT v.person FROM v JOIN w ON w.person = 999",
    "a comma": "SELECT v.person FROM v, w",
    "a comma with itself": "SELECT a.person FROM v AS a, v AS b",
    "lateral": "SELECT v.person, s.n FROM v, LATERAL (SELECT v.cost + 1 AS n) AS s",
    "a function": "SELECT person, n FROM v, generate_series(1, 2) AS n",
    "several rows": "SELECT person, generate_series(1, 2) AS n FROM v",
    "a union": "SELECT person FROM v UNION ALL SELECT person FROM w",
    "EXCEPT": "SELECT cost FROM v EXCEPT SELECT cost FROM v WHERE person = 999",
    "DISTINCT": "SELECT DISTINCT cost FROM v",
    "DISTINCT ON": "SELECT DISTINCT ON (cost) person FROM v",
    "grouped": "SELECT person FROM v GROUP BY person",
    "counted": "SELECT count(*) AS person FROM v",
    "having": "SELECT 1 AS person FROM v HAVING true",
    "limited": "SELECT person FROM v LIMIT 3",
    "skipped": "SELECT person FROM v OFFSET 1",
    "ranked": "SELECT person, rank() OVER (ORDER BY cost) AS n FROM v",
    "sampled": "SELECT person FROM v TABLESAMPLE BERNOULLI (50) REPEATABLE (7)",
    "a common table expression": "WITH a AS (SELECT max(person) AS person FROM v) SELECT * FROM a",
    "below": "SELECT person FROM (SELECT person FROM v) AS a",
    "a place": "SELECT person, ctid::text AS n FROM v",
    "a transaction": "SELECT person, xmin::text AS n FROM v",
    "a count of the server": "SELECT person, pg_stat_get_live_tuples('v'::regclass) AS n FROM v",
    "a table as XML": "SELECT person, table_to_xml('v', true, true, '')::text AS n FROM v",
    "a size": "SELECT person, pg_relation_size('v') AS n FROM v",
    "a user's function": "SELECT person, mv.top(cost) AS n FROM v",
    "a user's operator": "SELECT person, cost OPERATOR(mv.@@@) 1 AS n FROM v",
    "a view": "SELECT person FROM seen",
    "a materialized view": "SELECT person FROM kept",
    "a table with policies": "SELECT person FROM guarded",
    "a table with a part elsewhere": "SELECT person FROM spread WITH NO DATA",
    "no table": "SELECT 1 AS person",
    "values": "VALUES (1), (2)",
    "a text that imitates": "SELECT person, ' {VAR :limitCount <> ' AS \"} :limitCount <> \" FROM v LIMIT 3",
}
BY_ROW = {
    "all": "SELECT * FROM v",
    "expressions": "SELECT a.person AS who, upper(region) || '!' AS r, CASE WHEN cost > 2 THEN 'a' END AS c,"
    " CASE cost WHEN 1 THEN 2 END AS d, coalesce(region, '{QUERY') AS e, nullif(cost, 3) AS f,"
    " greatest(cost, 1) AS g, day + 1 AS h, cost::numeric(9, 2) AS i, cost::text AS j, region IS NULL AS k,"
    " region LIKE 'n%' AS l, cost IN (1, 2) AS m, extract(year FROM day) AS n, substring(region, 1, 2) AS o,"
    " region IS DISTINCT FROM 'x' AS p, -abs(cost) AS q, date_trunc('month', day::timestamp) AS t"
    " FROM v AS a WHERE cost > 3 AND (region = 'north' OR person BETWEEN 0 AND 40)",
    "an odd name": 'SELECT person, cost AS "{AGGREF :varattno -1}" FROM v',
}


@pytest.fixture(scope="module")
def schema(connection: Any) -> Iterator[str]:
    """Two tables of people, one of them with policies, a view, and functions of a user."""
    connection.execute(
        """
        CREATE SCHEMA mv; SET search_path = mv;
        CREATE TABLE v AS SELECT i % 60 AS person, CASE WHEN i % 4 = 0 THEN 'north' ELSE 'south' END
            AS region, i % 12 AS cost, DATE '2024-01-31' AS day FROM generate_series(0, 119) AS i;
        CREATE TABLE w AS SELECT * FROM v; CREATE TABLE guarded AS SELECT * FROM v;
        ALTER TABLE guarded ENABLE ROW LEVEL SECURITY;
        CREATE VIEW seen AS SELECT person FROM v; CREATE MATERIALIZED VIEW kept AS SELECT person FROM v;
        CREATE FOREIGN DATA WRAPPER far; CREATE SERVER far FOREIGN DATA WRAPPER far;
        CREATE TABLE spread (person int, place int) PARTITION BY LIST (place);
        CREATE FOREIGN TABLE there PARTITION OF spread FOR VALUES IN (2) SERVER far;
        CREATE FUNCTION top(int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT max(cost) FROM mv.v';
        CREATE FUNCTION above(int, int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT max(cost) FROM mv.v';
        CREATE OPERATOR @@@ (FUNCTION = above, LEFTARG = int, RIGHTARG = int);
        """
    )
    yield "mv"
    connection.execute("DROP SCHEMA mv CASCADE; DROP FOREIGN DATA WRAPPER far CASCADE; RESET search_path")


def _opens(server: Server, connection: Any, text: str, *, private: bool = True) -> bool:
    connection.execute(f"DROP MATERIALIZED VIEW IF EXISTS mv.t; CREATE MATERIALIZED VIEW mv.t AS {text}")
    try:
        PostgresTables(server.address, {"t": ("mv", "t")}, private={"t"} if private else ())
    except InvalidArgument as refused:
        assert "several people" in refused.message and "CREATE TABLE" in refused.hints[0]
        return False
    return True


def test_a_private_materialized_view_is_made_row_by_row(server: Server, connection: Any, schema: str) -> None:
    """A public one may be any."""
    cases = MIXED | {f"good: {name}": text for name, text in BY_ROW.items()}
    opened = {name for name, text in cases.items() if _opens(server, connection, text)}
    assert opened == {f"good: {name}" for name in BY_ROW}
    assert _opens(server, connection, MIXED["NOT EXISTS"], private=False)


def test_rows_of_people_depend_on_nobody_else(
    server: Server, connection: Any, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a limit and an order are let through, person 999 takes a row away: the comparison sees it."""
    planted = "SELECT person, cost FROM v ORDER BY person DESC LIMIT 3"
    monkeypatch.setattr(materialized_views, "_NODES", materialized_views._NODES | {"SORTGROUPCLAUSE"})
    monkeypatch.setattr(materialized_views, "_EMPTY", ())
    changed = set()
    for name, text in {**BY_ROW, "planted": planted}.items():
        assert _opens(server, connection, text)
        rows = []
        for more in ("", "INSERT INTO mv.v VALUES (999, 'north', 99, NULL); "):
            connection.execute(f"{more}REFRESH MATERIALIZED VIEW mv.t")
            found = connection.execute("SELECT * FROM mv.t").fetchall()
            rows.append(sorted(repr(row) for row in found if row[0] != 999))
        connection.execute("DELETE FROM mv.v WHERE person = 999")
        if rows[0] != rows[1]:
            changed.add(name)
    assert changed == {"planted"}


def test_a_view_without_data_is_named(server: Server, connection: Any, schema: str) -> None:
    """Its server can be reached: before it is opened, and where somebody empties it later."""
    connection.execute(
        "DROP MATERIALIZED VIEW IF EXISTS mv.t; CREATE MATERIALIZED VIEW mv.t AS SELECT person FROM v"
    )
    opened = PostgresTables(server.address, {"t": ("mv", "t")})
    assert opened.version()
    connection.execute("REFRESH MATERIALIZED VIEW mv.t WITH NO DATA")
    for action in (opened.version, lambda: PostgresTables(server.address, {"t": ("mv", "t")})):
        with pytest.raises(InvalidArgument, match="`t` cannot be read") as raised:
            action()
        assert "REFRESH" in raised.value.hints[-1]
