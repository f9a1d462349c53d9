"""Bad questions are refused before any data is read, and bad data changes nothing but noise.

A refusal has a code, a hint or a caret, and leaves the ledger as it was. Whatever is in the tables
(NULL, NaN, infinities, nothing at all, one row, values out of bounds, the ends of int64, any text),
a question has the same status, the same columns, types and order, and the same charge.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from sfumato.core.accountant import PrivacyBudget
from sfumato.errors import BudgetExceeded, EngineFailure, InvalidArgument, QueryRefused, SfumatoError
from sfumato.plan.tree import Join
from sfumato.session import Database
from tests.engine.doors import BUDGET, Store, locked, open_door
from tests.engine.worlds import World, crowd, newcomer
from tests.soaked import rest_soaked

CAPS = {"max_groups": 2, "max_rows": 3}

REFUSED = {
    "unknown functions": ("SELECT frobnicate(age) FROM visits", "SELECT SUM(sin(age)) FROM visits"),
    "exact answers": (
        "SELECT ANY_VALUE(word) FROM visits",
        "SELECT FIRST(word) FROM visits",
        "SELECT LIST(age) FROM visits",
        "SELECT ARRAY_AGG(age) FROM visits",
        "SELECT STRING_AGG(word, ',') FROM visits",
        "SELECT ARG_MAX(word, age) FROM visits",
        "SELECT MIN(word) FROM visits",
        "SELECT MODE(word) FROM visits",
        "SELECT region, APPROX_COUNT_DISTINCT(word) FROM visits GROUP BY region",
    ),
    "rows": (
        "SELECT * FROM visits",
        "SELECT age FROM visits",
        "SELECT DISTINCT ON (word) word FROM visits",
        "SELECT person, COUNT(*) FROM visits GROUP BY person",
        "FROM visits",
        "TABLE visits",
        "VALUES (1)",
    ),
    "windows over private rows": (
        "SELECT SUM(age) OVER () FROM visits",
        "SELECT COUNT(*) FROM (SELECT row_number() OVER (ORDER BY age) AS r FROM visits)",
        "SELECT COUNT(*) FROM (SELECT * FROM visits QUALIFY row_number() OVER () < 3)",
    ),
    "files and the system": (
        "SELECT COUNT(*) FROM query('SELECT 1')",
        "SELECT COUNT(*) FROM query_table('visits')",
        "SELECT COUNT(*) FROM read_csv('/etc/passwd')",
        "SELECT COUNT(*) FROM '/etc/passwd'",
        "SELECT COUNT(*) FROM read_parquet('x.parquet')",
        "SELECT COUNT(*) FROM glob('*')",
        "SELECT COUNT(*) FROM duckdb_settings()",
        "SELECT COUNT(*) FROM information_schema.tables",
        "SELECT COUNT(*) FROM visits WHERE getenv('HOME') = 'x'",
        "SELECT COUNT(*), (SELECT content FROM read_text('x')) FROM visits",
        "SELECT COUNT(*) FROM visits WHERE random() < 0.5",
        "SELECT COUNT(*) FROM visits WHERE at < now()",
        "SELECT COUNT(*) FROM visits WHERE word = current_user",
        "SELECT COUNT(*) FROM visits WHERE error(word) IS NULL",
    ),
    "statements": (
        "PRAGMA table_info('visits')",
        "ATTACH 'x.db'",
        "COPY visits TO 'x.csv'",
        "SET threads = 1",
        "SUMMARIZE visits",
        "DESCRIBE visits",
        "EXPLAIN SELECT COUNT(*) FROM visits",
        "EXPLAIN ANALYZE SELECT COUNT(*) FROM visits",
        "PIVOT visits ON region USING COUNT(*)",
        "UNPIVOT visits ON age INTO NAME n VALUE v",
        "INSTALL httpfs",
        "LOAD httpfs",
        "CREATE TABLE t AS SELECT * FROM visits",
        "INSERT INTO visits VALUES (1)",
        "UPDATE visits SET age = 1",
        "DELETE FROM visits",
        "DROP TABLE visits",
        "EXPORT DATABASE 'x'",
        "CALL pragma_version()",
        "SELECT COUNT(*) FROM visits; SELECT COUNT(*) FROM visits",
        "SELECT COUNT(*) FROM visits; DROP TABLE visits",
        "",
        ";",
        "SELECT",
        "SELECT COUNT(* FROM visits",
    ),
    "crossing units": (
        "SELECT COUNT(*) FROM visits AS v JOIN orders AS o ON v.region = o.place",
        "SELECT COUNT(*) FROM visits AS v JOIN visits AS w ON v.age = w.age",
        "SELECT COUNT(*) FROM visits AS v, orders AS o",
        "SELECT COUNT(*) FROM visits AS v JOIN named AS n ON v.age = n.age",
        "SELECT COUNT(*) FROM visits AS v RIGHT JOIN places AS p ON v.region = p.region",
        "SELECT COUNT(*) FROM places AS p LEFT JOIN visits AS v ON v.region = p.region",
        "SELECT COUNT(*) FROM visits AS v FULL JOIN places AS p ON v.region = p.region",
        "SELECT COUNT(*) FROM visits WHERE age > (SELECT AVG(cost) FROM orders)",
        "SELECT COUNT(*) FROM visits WHERE person NOT IN (SELECT buyer FROM orders)",
        "SELECT COUNT(*) FROM (SELECT person FROM visits EXCEPT SELECT buyer FROM orders)",
        "SELECT COUNT(*) FROM visits AS v WHERE NOT EXISTS (SELECT 1 FROM orders AS o WHERE o.cost > v.age)",
        "SELECT COUNT(*) FROM visits AS v WHERE NOT EXISTS (SELECT 1 FROM orders)",
        "SELECT COUNT(*) FROM visits AS v WHERE NOT EXISTS (FROM named AS n WHERE n.person = v.person)",
        "SELECT COUNT(*) FROM visits AS v, orders AS o WHERE v.person = o.buyer OR v.age > 3",
        "SELECT COUNT(*) FROM visits AS v, named AS n WHERE v.person = n.person",
        "SELECT COUNT(*) FROM visits AS v NATURAL JOIN orders AS o",
        "SELECT COUNT(*) FROM (SELECT * FROM visits LIMIT 10)",
        "SELECT COUNT(*) FROM (SELECT * FROM visits ORDER BY age LIMIT 10)",
        "SELECT COUNT(*) FROM visits USING SAMPLE 10%",
        "SELECT COUNT(*) FROM (SELECT region FROM visits GROUP BY 1) AS t JOIN visits AS v USING (region)",
        "SELECT COUNT(*) FROM lone AS a JOIN lone AS b ON a.region = b.region",
        "SELECT SUM(person) FROM visits",
        "SELECT COUNT(*) FROM visits WHERE person = 3",
    ),
    "no bounds": (
        "SELECT SUM(item) FROM orders",
        "SELECT AVG(length(word)) FROM visits",
        "WITH u AS (SELECT person, COUNT(*) AS n FROM visits GROUP BY person) SELECT SUM(n) FROM u",
        "SELECT MEDIAN(item) FROM orders",
        "SELECT SUM(1 / amount) FROM visits",
    ),
    "names": (
        "SELECT COUNT(*) FROM nowhere",
        "SELECT SUM(foo) FROM visits",
        "SELECT COUNT(*) FROM visits GROUP BY nope",
        "SELECT region, COUNT(*) FROM visits GROUP BY region HAVING nope > 3",
        "SELECT region, COUNT(*) AS n FROM visits GROUP BY region ORDER BY nope",
    ),
    "lists and types": (
        "SELECT SUM(region) FROM visits",
        "SELECT HISTOGRAM(word) FROM visits",
        "SELECT HISTOGRAM(CAST(word AS DATE)) FROM visits",
        "SELECT MEDIAN(CAST(word AS TIMESTAMP)) FROM visits",
        "SELECT MEDIAN(greatest(CAST(word AS DATE), DATE '2024-01-01')) FROM visits",
        "SELECT MEDIAN(day, contribution_bounds_per_row => (0, 9)) FROM visits",
        "SELECT AVG(day) FROM visits",
        "SELECT SUM(at) FROM visits",
        "SELECT AVG(DISTINCT age) FROM visits",
        "SELECT GROUPING(age), COUNT(*) FROM visits GROUP BY ROLLUP(region)",
        "SELECT COUNT(*) FROM visits WHERE age = 'old'",
        "SELECT QUANTILE(age, 1.5) FROM visits",
        "SELECT QUANTILE(age, []) FROM visits",
        "SELECT COUNT(*) FROM visits WHERE list_contains([1, 2], age)",
        "SELECT SUM(amount, contribution_bounds_per_row => (5, 1)) FROM visits",
    ),
}


@cache
def forbidden() -> Database:
    return locked()


@pytest.mark.parametrize("text", [text for texts in REFUSED.values() for text in texts])
def test_a_bad_question_is_refused_before_data_is_read(text: str) -> None:
    database = forbidden()
    before = database.ledger.head(), database.ledger.history()
    with pytest.raises(QueryRefused) as refusal:
        database.sql(text, epsilon=0.1, **CAPS).release()
    assert (database.ledger.head(), database.ledger.history()) == before
    error = refusal.value
    assert error.code.startswith("SF4") and error.message
    lines = str(error).splitlines()
    assert lines[0].startswith(f"error[{error.code}]: ")
    assert not text.strip(" ;") or any("^" in line for line in lines) or error.hints, "neither caret nor hint"


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("SELECT region, COUNT(*) FROM visits GROUP BY region", {"max_rows": 2}),
        ("SELECT COUNT(*) FROM visits", {}),
        ("SELECT COUNT(*) FROM visits", {"max_rows": 0}),
        ("SELECT COUNT(*) FROM visits", {"max_rows": 1.5}),
        ("SELECT word, COUNT(*) FROM visits GROUP BY word", {**CAPS, "keys": "declared"}),
        ("SELECT COUNT(*) FROM visits", {**CAPS, "noise": "uniform"}),
    ],
)
def test_missing_and_senseless_caps_are_refused(text: str, options: dict[str, Any]) -> None:
    database = forbidden()
    before = database.ledger.head()
    with pytest.raises((QueryRefused, InvalidArgument)) as refusal:
        database.sql(text, epsilon=0.1, **options).release()
    assert database.ledger.head() == before
    assert refusal.value.hints or "must" in str(refusal.value)


def test_a_tree_that_no_reader_made_is_checked_on_the_one_path() -> None:
    """Whoever builds a request by other means meets the same pass over its tree."""
    db = locked()
    request = db.sql("SELECT COUNT(*) FROM visits v JOIN orders o ON v.person = o.buyer", epsilon=1).request
    [named] = request.queries
    assert isinstance(named.query.source, Join) and named.query.source.on_unit
    apart = replace(named.query, source=replace(named.query.source, on_unit=False))
    question = db.ask(replace(request, queries=(replace(named, query=apart),)), epsilon=1, **CAPS)
    with pytest.raises(QueryRefused, match="only on their unit"):
        question.release()
    assert db.budget.spent == 0


def test_a_price_above_the_budget_is_refused_before_data_is_read() -> None:
    world = open_door(crowd(0, people=12, rows=60), PrivacyBudget(epsilon=0.1, delta=1e-6, keys_delta=1e-7))
    with pytest.raises(BudgetExceeded):
        world.sql("SELECT COUNT(*) FROM visits", epsilon=1, **CAPS).release()
    assert isinstance(world.backend, Store) and world.backend.runs == 0
    assert world.budget.spent_units == 0
    pure = locked(PrivacyBudget(epsilon=1))
    with pytest.raises(SfumatoError, match="select"):
        pure.sql("SELECT word, COUNT(*) FROM visits GROUP BY word", epsilon=0.1, **CAPS).release()


def test_looking_at_a_price_reads_nothing() -> None:
    database = forbidden()
    before = database.ledger.head()
    question = database.sql(
        "SELECT region, AVG(age), COUNT(*) FROM visits GROUP BY region", epsilon=0.5, **CAPS
    )
    assert "nothing is spent" in repr(question) and "one unit can change" in question.explain()
    assert database.ledger.head() == before


# -- bad data -------------------------------------------------------------------------------


@cache
def worlds() -> dict[str, World]:
    """Nobody, somebody alone, a crowd, a crowd and somebody: one person more leads from each to another."""
    few = crowd(0, people=12, rows=60)
    nobody = crowd(3, people=5, rows=0)
    found = {"nobody": nobody, "few": few}
    for kind in ("one row", "absent", "extreme"):
        found[f"only {kind}"] = nobody + newcomer(kind, 0, 1000)
    for kind in ("huge", "absent", "extreme", "beyond"):
        found[f"few and {kind}"] = few + newcomer(kind, 0, 1000)
    return found


DECLARED = (
    "SELECT COUNT(*), COUNT(amount), SUM(amount), AVG(amount), VAR_SAMP(score), MEDIAN(big) FROM visits",
    "SELECT COUNT(DISTINCT word), COUNT(DISTINCT person), COUNT(*) FILTER (WHERE member) FROM visits",
    "SELECT region, COUNT(*) AS n, AVG(age), CORR(age, amount) FROM visits GROUP BY region ORDER BY region",
    "SELECT member, region, SUM(qty * amount) FROM visits GROUP BY ROLLUP(member, region) ORDER BY ALL",
    "SELECT region, QUANTILE(amount, [0.1, 0.9]) AS q, HISTOGRAM(qty) AS h FROM visits GROUP BY region",
    "SELECT p.zone, COUNT(*) FROM visits AS v JOIN places AS p ON v.region = p.region GROUP BY p.zone",
    "SELECT region, COUNT(DISTINCT person) FROM named WHERE word LIKE 'a%' GROUP BY region",
    "SELECT region, COUNT(*), SUM(big) FROM lone GROUP BY region",
    "SELECT SUM(amount / qty, contribution_bounds_per_row => (-1, 1)), MIN(amount), MAX(big) FROM visits",
    "SELECT COUNT(*) FROM visits WHERE CAST(word AS INTEGER) > 0 OR big * big > 0 OR sqrt(amount) > 1",
)
FOUND = (
    "SELECT word, COUNT(*) AS n, AVG(amount) AS a FROM visits GROUP BY word",
    "SELECT amount, COUNT(*) FROM visits GROUP BY amount",
    "SELECT big, day, COUNT(*) FROM visits GROUP BY CUBE(big, day)",
    "WITH u AS (SELECT person, COUNT(*) n FROM visits GROUP BY person) SELECT n, COUNT(*) FROM u GROUP BY 1",
)


def seen(text: str, world: World) -> tuple[Any, ...]:
    """Return all that an answer shows but its numbers, and what it cost."""
    database = open_door(world)
    release = database.sql(text, epsilon=0.5, **CAPS).release()
    table = release.to_arrow()
    entries = database.ledger.history()
    spent = [
        (balance.spent_units, balance.keys_spent_units)
        for balance in (database.ledger.balance(unit) for unit in ("person", "name", "row"))
    ]
    return (
        table.schema,
        release.cost,
        release.notes,
        spent,
        [type(entry).__name__ for entry in entries],
        table,
    )


@pytest.mark.parametrize("text", rest_soaked([*DECLARED, *FOUND], 3))
def test_bad_data_changes_nothing_but_noise(text: str) -> None:
    """Declared groups: the same rows in the same order. Others: the same columns."""
    answers = {name: seen(text, world) for name, world in worlds().items()}
    first = answers["few"]
    for name, answer in answers.items():
        assert answer[:-1] == first[:-1], name
        if text in DECLARED:
            keys = [column for column in ("region", "member", "zone") if column in answer[-1].column_names]
            assert answer[-1].num_rows == first[-1].num_rows, name
            assert answer[-1].select(keys).equals(first[-1].select(keys)), name


def test_a_failing_engine_says_always_the_same_and_is_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Out of memory, a broken file: one text that names no value, and what was reserved is burnt."""
    from sfumato.backends.duckdb import backend

    def failing(*given: Any) -> Any:
        raise MemoryError("row 17 of Ada Lovelace")

    monkeypatch.setattr(backend, "_groups", failing)
    texts, spent = set(), set()
    for world in (worlds()["few"], worlds()["few and huge"]):
        database = open_door(world)
        with pytest.raises(EngineFailure) as failure:
            database.sql("SELECT COUNT(*) FROM visits", epsilon=0.5, **CAPS).release()
        texts.add(str(failure.value))
        assert failure.value.__cause__ is None and failure.value.__context__ is None
        spent.add(database.budget.spent_units)
    assert len(texts) == 1 and "Ada" not in texts.pop()
    assert len(spent) == 1 and spent.pop() > 0
    assert BUDGET.epsilon == 3
