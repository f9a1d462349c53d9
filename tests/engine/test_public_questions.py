"""Questions about public tables: alone they are free and exact; beside people, parts of a question."""

from __future__ import annotations

from functools import cache
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import InvalidArgument, QueryRefused, SfumatoError
from sfumato.pipeline import answer_public
from sfumato.session import Database
from tests.engine.questions import Asked
from tests.engine.replay import leaves, planned, record
from tests.engine.worlds import NEIGHBOURS, crowd, newcomer

PEOPLE = pa.table(
    {"who": [1, 2, 3, 4, 5, 5], "place": ["a", "a", "b", "c", None, "b"], "age": [10, 20, 30, 40, 50, 60]}
)
PLACES = pa.table({"place": ["a", "b", "c", "d"], "zone": ["x", "x", "y", None], "size": [1, 2, 3, 4]})
GAPS = pa.table({"place": ["a", None]})


@cache
def database() -> Database:
    return sf.connect(
        PEOPLE,
        name="people",
        unit="who",
        public={"places": PLACES, "gaps": GAPS},
        columns={"age": sf.between(0, 100), "place": sf.one_of("a", "b", "c")},
        max_groups=3,
        max_rows=3,
        budget=sf.Budget(epsilon=1e12, delta=1e-9, rule="pure"),
    )


def truth(text: str) -> list[tuple[Any, ...]]:
    with duckdb.connect() as engine:
        for name, table in (("people", PEOPLE), ("places", PLACES), ("gaps", GAPS)):
            engine.register(name, table)
        return engine.execute(text).fetchall()


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) AS n, AVG(size) AS s FROM places",
        "SELECT zone, SUM(size) AS s FROM main.places GROUP BY zone ORDER BY zone NULLS LAST",
        "SELECT * FROM places ORDER BY size DESC LIMIT 2",
        (
            "WITH big AS (SELECT * FROM places WHERE size > 1) SELECT zone, COUNT(*) FROM big GROUP BY "
            "1 ORDER BY 1"
        ),
        (
            "SELECT place FROM places p WHERE size = (SELECT MAX(size) FROM places q WHERE q.zone = "
            "p.zone) ORDER BY 1"
        ),
        "SELECT place FROM places EXCEPT SELECT place FROM gaps ORDER BY 1",
        "SELECT place, SUM(size) OVER (ORDER BY size) AS s FROM places ORDER BY 1",
    ],
)
def test_a_question_about_public_tables_alone_is_free_and_exact(text: str) -> None:
    db = database()
    before = db.budget.spent
    asked = db.sql(text)
    assert asked.free and "free" in repr(asked)
    release = asked.release()
    assert list(release.rows) == truth(text)
    assert db.budget.spent == before and not release.receipt
    assert float(release.cost["epsilon"]) == 0 and "nothing was charged" in str(release)
    assert sf.Release.from_json(release.to_json()).rows == release.rows


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1",
        "SELECT * FROM nothing",
        "SELECT * FROM read_csv('x')",
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1) COUNT(*) FROM places",
        "SELECT size FROM places, people",
        "SELECT (SELECT who FROM people) FROM places",
    ],
)
def test_nothing_of_anybody_is_free(text: str) -> None:
    with pytest.raises(QueryRefused):
        database().sql(text).release()


def test_a_question_about_people_is_never_answered_as_a_public_one() -> None:
    asked = database().sql("SELECT COUNT(*) FROM people", epsilon=1)
    assert not asked.free
    with pytest.raises(InvalidArgument):
        answer_public(asked.request, backend=database().backend)
    with pytest.raises(SfumatoError, match="no price"):
        database().sql("SELECT COUNT(*) FROM places", epsilon=1).priced()


# -- parts of questions about people ----------------------------------------------------------

BESIDE = (
    "SELECT COUNT(*) FROM people WHERE place IN (SELECT place FROM places WHERE zone = 'x')",
    "SELECT COUNT(*) FROM people WHERE place NOT IN (SELECT place FROM places WHERE zone = 'x')",
    "SELECT COUNT(*) FROM people WHERE place NOT IN (SELECT place FROM gaps)",  # NULL among them: nobody
    "SELECT COUNT(*) FROM people WHERE place NOT IN (SELECT place FROM gaps WHERE place = 'z')",  # empty: all
    "SELECT COUNT(*) FROM people WHERE NOT (place IN (SELECT place FROM places WHERE size < 2))",
    "SELECT COUNT(*) FROM people WHERE age > 35 OR place IN (SELECT place FROM places WHERE size = 1)",
    "SELECT COUNT(*) FROM people WHERE (place NOT IN (SELECT place FROM gaps WHERE place = 'a') OR age < 15)",
    (
        "SELECT COUNT(*) FROM people p WHERE age = 50 OR EXISTS (SELECT 1 FROM places q WHERE "
        "q.place = p.place AND size > 1)"
    ),
    (
        "SELECT COUNT(*) FROM people p WHERE age = 10 OR NOT EXISTS (SELECT 1 FROM places q WHERE "
        "q.place = p.place)"
    ),
    (
        "SELECT COUNT(*) FROM people p WHERE age > 90 OR EXISTS (SELECT 1 FROM people q WHERE "
        "q.who = p.who AND q.age <> p.age)"
    ),
    "SELECT COUNT(*) FROM people WHERE age > 10 * (SELECT AVG(size) FROM places)",
    "SELECT SUM(CASE WHEN age > (SELECT MAX(size) * 10 FROM places) THEN 1 ELSE 0 END) AS n FROM people",
    "SELECT COUNT(*) FROM people WHERE age > (SELECT size FROM places ORDER BY size DESC LIMIT 1) * 10",
    "SELECT COUNT(*) FROM people WHERE age > (SELECT MIN(size) FROM places WHERE size > 9)",  # NULL: nobody
    (
        "SELECT COUNT(*) FROM people WHERE place IN (SELECT place FROM places GROUP BY place "
        "HAVING SUM(size) > 1)"
    ),
    (
        "SELECT COUNT(*) FROM people JOIN (SELECT zone, COUNT(*) AS n, MIN(place) AS place FROM "
        "places GROUP BY zone) z "
        "ON people.place = z.place WHERE n > 1"
    ),
    (
        "SELECT z.n, COUNT(*) AS c FROM people JOIN places USING (place) JOIN "
        "(SELECT zone, COUNT(*) AS n FROM places WHERE zone > '' GROUP BY zone) z ON places.zone = z.zone "
        "GROUP BY z.n ORDER BY z.n"
    ),
    (
        "SELECT place, COUNT(*) AS c FROM people WHERE place IN (SELECT place FROM places WHERE size > 1) "
        "GROUP BY place ORDER BY place"
    ),
    (
        "SELECT place, COUNT(*) AS c FROM people WHERE age = 10 OR place IN (SELECT place FROM "
        "places WHERE size = 2) "
        "GROUP BY place HAVING COUNT(*) > 0.5 ORDER BY place"
    ),
    (
        "WITH big AS (SELECT age FROM people WHERE age > (SELECT MIN(size) * 20 FROM places)) "
        "SELECT COUNT(*) FROM big"
    ),
)


@pytest.mark.parametrize("text", BESIDE)
def test_public_subqueries_mean_what_they_mean_in_duckdb(text: str) -> None:
    found = database().sql(text, epsilon=1e6).release().rows
    expected = truth(text)
    assert len(found) == len(expected)
    for row, other in zip(found, expected, strict=True):
        assert row == pytest.approx(other, abs=1e-3)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) FROM people WHERE place NOT IN (SELECT place FROM people)",
        "SELECT COUNT(*) FROM people WHERE age > (SELECT AVG(age) FROM people)",
        "SELECT COUNT(*) FROM people WHERE age > (SELECT size FROM places)",
        "SELECT COUNT(*) FROM people WHERE age > (SELECT MAX(size), MIN(size) FROM places)",
        "SELECT COUNT(*) FROM people WHERE age > (SELECT MAX(size) FROM places GROUP BY zone)",
        "SELECT COUNT(*) FROM people p WHERE age > (SELECT MAX(size) FROM places q WHERE q.place = p.place)",
        "SELECT COUNT(*) FROM people WHERE age > 5 OR place IN (SELECT place FROM people)",
        "SELECT COUNT(*) FROM people WHERE NOT (age > 5 OR place IN (SELECT place FROM places))",
        "SELECT COUNT(*) FROM people WHERE age > ANY (SELECT size FROM places)",
        (
            "SELECT COUNT(*) FROM people JOIN (SELECT zone, COUNT(*) AS n FROM places GROUP BY ROLLUP "
            "(zone)) z USING (zone)"
        ),
    ],
)
def test_what_is_not_one_public_value_is_refused(text: str) -> None:
    with pytest.raises(QueryRefused):
        database().sql(text, epsilon=1).release()


def test_public_groups_follow_from_an_aggregated_public_table() -> None:
    """Groups by columns of an aggregated public table are known in public, as those of the table are."""
    text = (
        "SELECT z.zone, COUNT(*) AS c FROM people JOIN places USING (place) JOIN "
        "(SELECT zone, COUNT(*) AS n FROM places GROUP BY zone HAVING COUNT(*) > 1) z ON "
        "places.zone = z.zone "
        "GROUP BY z.zone"
    )
    [bounding] = database().sql(text, epsilon=1).priced().boundings
    assert bounding.query.declared == (("x",),)


# -- one person more ----------------------------------------------------------------------------

REPLAYED = (
    "SELECT COUNT(*), SUM(v.amount) FROM visits v WHERE v.region NOT IN (SELECT region FROM capitals)",
    "SELECT COUNT(*) FROM visits v WHERE v.region NOT IN (SELECT region FROM places WHERE size = 1)",
    (
        "SELECT v.region, COUNT(*), SUM(v.qty) FROM visits v "
        "WHERE v.age > 30 OR v.region IN (SELECT region FROM places WHERE size > 1) GROUP BY v.region"
    ),
    (
        "SELECT v.word, COUNT(*) FROM visits v WHERE v.age > 30 "
        "OR EXISTS (SELECT 1 FROM orders o WHERE o.buyer = v.person AND o.cost > 9) GROUP BY 1"
    ),
    (
        "SELECT v.region, SUM(v.amount) FROM visits v "
        "WHERE v.age < 30 OR NOT EXISTS (SELECT 1 FROM orders o WHERE o.buyer = v.person) GROUP BY 1"
    ),
    "SELECT SUM(v.qty), COUNT(*) FROM visits v WHERE v.qty > (SELECT AVG(size) FROM places)",
    (
        "SELECT v.region, SUM(v.qty * z.m) FROM visits v "
        "JOIN (SELECT region, MAX(size) AS m FROM places GROUP BY region) z ON v.region = z.region GROUP BY 1"
    ),
)


@pytest.mark.parametrize("text", REPLAYED)
def test_one_person_more_stays_in_the_box(text: str) -> None:
    replay = planned(Asked(text, {"max_groups": 2, "max_rows": 3}))
    world = crowd(7, people=12, rows=60)
    before = record(replay.run, world.opened(), threads=1)
    for kind in NEIGHBOURS:
        after = record(replay.run, (world + newcomer(kind, 7, 1007)).opened(), threads=1)
        assert list(leaves(replay, before, after)) == [], kind
