"""Units that are reached through keys: whose a row is depends on that unit's own keys and on nobody else's.

Tables are as hostile as data gets: keys that two people have, keys that a person has twice, NULL for a key
and for a person, keys that lead nowhere, and a newcomer who claims everybody's keys. The rows of each unit
are held against a reference in Python, and one unit more against the claimed box, by record and replay.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.backends import Source, open_tables
from sfumato.backends.duckdb.dialect import DUCKDB
from sfumato.backends.relations import Relations
from sfumato.catalog import Catalog, Field, Kind, Table, Unit, between, one_of
from sfumato.errors import InvalidArgument, QueryRefused, SfumatoError
from sfumato.plan import tree
from sfumato.session import Database
from tests.engine.questions import Asked
from tests.engine.replay import leaves, planned, record

Row = dict[str, Any]
Rows = dict[str, list[Row]]

KINDS = ("a", "b", "c")
_SCHEMAS = {
    "orders": {"id": pa.int64(), "owner": pa.int64(), "price": pa.int64()},
    "lines": {
        "line": pa.string(),
        "ref": pa.int64(),
        "kind": pa.string(),
        "word": pa.string(),
        "n": pa.int64(),
    },
    "parts": {"ref": pa.string(), "weight": pa.int64()},
    "people": {"person": pa.int64(), "kind": pa.string()},
}
PATHS = {
    "orders": "owner",
    "lines": "ref -> orders.id -> owner",
    "parts": "ref -> lines.line -> ref -> orders.id -> owner",
    "people": "person",
}
_FIELDS: dict[Any, Kind] = {pa.int64(): Kind.INTEGER, pa.string(): Kind.TEXT}
_DOMAINS = {"price": between(0, 9), "n": between(0, 9), "weight": between(0, 9), "kind": one_of(*KINDS)}

CATALOG = Catalog(
    tuple(
        Table(
            name=name,
            fields=tuple(Field(each, _FIELDS[kind], _DOMAINS.get(each)) for each, kind in schema.items()),
            unit=Unit.read(PATHS[name], name="person"),
        )
        for name, schema in _SCHEMAS.items()
    )
)


def crowd(seed: int) -> Rows:
    """Return few people who share few keys; half of all keys lead to several people, or to nobody."""
    draw = random.Random(seed)
    people = [None, *range(6)]
    return {
        "people": [{"person": draw.choice(people), "kind": draw.choice(KINDS)} for _ in range(8)],
        "orders": [
            {"id": draw.choice([None, *range(9)]), "owner": draw.choice(people), "price": draw.randrange(9)}
            for _ in range(14)
        ],
        "lines": [
            _line(draw, draw.choice([None, *range(12), 50]), f"l{draw.randrange(12)}") for _ in range(30)
        ],
        "parts": [
            {"ref": draw.choice([None, "l70", *(f"l{at}" for at in range(15))]), "weight": draw.randrange(9)}
            for _ in range(30)
        ],
    }


NEWCOMERS = (99, -1)  # the largest and the smallest of all: no rule by the order of people may help


def newcomer(seed: int, person: int) -> Rows:
    """Return the rows of one person: orders under everybody's keys, lines and parts that are nobody else's.

    Lines under keys of others would be others' rows: by them others change, not the newcomer.
    """
    draw = random.Random(f"new {seed}")
    return {
        "people": [{"person": person, "kind": kind} for kind in KINDS],
        "orders": [{"id": key, "owner": person, "price": 9} for key in (*range(9), None, 50, 51, 51)],
        "lines": [_line(draw, draw.choice((50, 51)), draw.choice(("l70", "l71", "l3"))) for _ in range(20)],
        "parts": [{"ref": draw.choice(("l70", "l71")), "weight": 9} for _ in range(20)],
    }


def _line(draw: random.Random, key: int | None, line: str) -> Row:
    word = draw.choice((None, "", "x", "y", f"rare {draw.randrange(9)}"))
    return {"line": line, "ref": key, "kind": draw.choice(KINDS), "word": word, "n": draw.randrange(10)}


def together(*some: Rows) -> Rows:
    return {name: [row for rows in some for row in rows[name]] for name in _SCHEMAS}


@cache
def opened(seed: int, more: int | None = None) -> Source:
    rows = crowd(seed) if more is None else together(crowd(seed), newcomer(seed, more))
    held = {}
    for name, schema in _SCHEMAS.items():
        columns = {each: [row[each] for row in rows[name]] for each in schema}
        held[name] = pa.table(columns, schema=pa.schema(list(schema.items())))
    return open_tables(held, threads=1)


# -- whose a row is -------------------------------------------------------------------------


def owned(rows: Rows, name: str, person: int) -> list[Row]:
    """Return the rows of one person in a table, by that person's own keys alone."""
    unit = Unit.read(PATHS[name])
    if not unit.path:
        return [row for row in rows[name] if row[unit.column or ""] == person]
    [link, *_] = unit.path
    keys = {row[link.key] for row in owned(rows, link.table, person)} - {None}
    return [row for row in rows[name] if row[link.column] in keys]


def rows_of_units(source: Source, name: str, catalog: Catalog = CATALOG) -> Counter[tuple[Any, ...]]:
    """Return the rows that the engine gives each unit, with the unit first."""
    table = catalog.table(name)
    assert table is not None
    named = [field for field in table.fields if table.unit is None or field.name != table.unit.own_column]
    columns = tuple(tree.ColumnRef(name=f"t.{field.name}", kind=field.kind) for field in named)
    scan = tree.Scan(table=name, alias="t", columns=columns)
    rendered = Relations(catalog=catalog, dialect=DUCKDB).render(scan)
    listed = ", ".join(rendered.names[column.name] for column in columns)
    found = source.cursor().execute(f"SELECT __unit, {listed} FROM ({rendered.sql})").fetchall()
    return Counter(found)


@pytest.mark.parametrize("name", _SCHEMAS)
def test_rows_belong_to_those_who_have_their_keys(name: str) -> None:
    shared = lost = 0
    for seed in range(8):
        rows = crowd(seed)
        expected: Counter[tuple[Any, ...]] = Counter()
        for person in range(6):
            for row in owned(rows, name, person):
                values = (value for each, value in row.items() if each != Unit.read(PATHS[name]).own_column)
                expected[(person, *values)] += 1
        assert rows_of_units(opened(seed), name) == expected
        shared += max(0, expected.total() - len(rows[name]))
        lost += sum(not any(row in owned(rows, name, person) for person in range(6)) for row in rows[name])
    assert lost, "some rows lead nowhere"
    assert shared or not Unit.read(PATHS[name]).path, "some rows lead to several people"


def test_a_newcomer_with_everybodys_keys_takes_nobodys_rows() -> None:
    """The theorem of `catalog.unit`: of all others each has the same rows as before."""
    for seed in range(8):
        for name in _SCHEMAS:
            before = rows_of_units(opened(seed), name)
            for person in NEWCOMERS:
                after = rows_of_units(opened(seed, person), name)
                assert Counter({row: n for row, n in after.items() if row[0] != person}) == before


# -- one unit more --------------------------------------------------------------------------

QUESTIONS = (
    "SELECT COUNT(*), SUM(n), AVG(n) FROM lines",
    "SELECT kind, COUNT(*), SUM(n), COUNT(DISTINCT word) FROM lines GROUP BY kind",
    "SELECT word, COUNT(*), COUNT(DISTINCT owner) FROM lines GROUP BY word",
    "SELECT MEDIAN(weight) FROM parts",
    "SELECT COUNT(DISTINCT parts.owner) FROM parts WHERE weight > 2",
    "SELECT kind, SUM(n * price) FROM lines l JOIN orders o ON l.ref = o.id GROUP BY kind",
    "SELECT kind, SUM(n + weight) FROM lines l LEFT JOIN parts p ON p.ref = l.line GROUP BY kind",
    "SELECT COUNT(*) FROM parts p, lines l, orders o WHERE p.ref = l.line AND l.ref = o.id AND price > 3",
    "SELECT SUM(a.n * b.n) FROM lines a JOIN lines b ON a.ref = b.ref AND a.line <> b.line",
    "SELECT p.kind, COUNT(*) FROM people p JOIN lines l ON p.person = l.owner GROUP BY p.kind",
    (
        "SELECT COUNT(*), SUM(price) FROM orders o WHERE EXISTS (SELECT 1 FROM lines l WHERE l.ref "
        "= o.id AND n > 4)"
    ),
    "SELECT COUNT(*), SUM(price) FROM orders o WHERE NOT EXISTS (SELECT 1 FROM lines l WHERE l.ref = o.id)",
    (
        "SELECT COUNT(*) FROM lines l1 WHERE EXISTS (SELECT 1 FROM lines l2 WHERE l2.ref = l1.ref "
        "AND l2.n < l1.n)"
    ),
    "SELECT COUNT(*) FROM orders WHERE id IN (SELECT ref FROM lines WHERE kind = 'a')",
    "SELECT COUNT(*) FROM orders WHERE id IN (SELECT ref FROM lines GROUP BY ref HAVING SUM(n) > 9)",
    "SELECT AVG(LEAST(total, 20)) FROM (SELECT owner, SUM(n) AS total FROM lines GROUP BY owner) AS t",
    (
        "SELECT kind, COUNT(*) FROM (SELECT ref, kind, COUNT(*) AS c FROM lines GROUP BY ref, kind) AS t "
        "JOIN orders ON t.ref = orders.id WHERE c > 1 GROUP BY kind"
    ),
)
CAPS = {"max_groups": 2, "max_rows": 3, "max_distinct": 2}


@pytest.mark.parametrize("text", QUESTIONS)
def test_one_unit_more_stays_in_the_box(text: str) -> None:
    replay = planned(Asked(text, CAPS), CATALOG)
    moved = False
    for seed in range(4):
        before, after = (
            record(replay.run, opened(seed, person), threads=1, catalog=CATALOG)
            for person in (None, NEWCOMERS[seed % 2])
        )
        assert list(leaves(replay, before, after)) == []
        moved = moved or any(
            len(old.keys) != len(new.keys)
            or any((old.measures[name] != new.measures[name]).any() for name in old.measures)
            for old, new in zip(before.groups, after.groups, strict=True)
        )
    assert moved, "the newcomer counts in none of the worlds"


# -- questions through the door ---------------------------------------------------------------

TABLES = {
    "orders": pa.table({"id": [1, 2, 3, 3], "owner": [10, 10, 20, 30], "price": [5, 6, 7, 8]}),
    "lines": pa.table({"ref": [1, 1, 2, 3, 4, None], "n": [1, 2, 3, 4, 5, 6]}),
    "people": pa.table({"person": [10, 20, 30], "kind": ["a", "b", "a"]}),
}
UNITS = {"orders": "owner", "lines": "ref -> orders.id -> owner", "people": "person"}


def connected(**other: Any) -> Database:
    given: dict[str, Any] = {
        "unit": UNITS,
        "protects": "person",
        "columns": {"lines.n": sf.between(0, 9), "orders.price": sf.between(0, 9)},
        "budget": sf.Budget(epsilon=1e12, delta=1e-9, rule="pure"),
        "max_groups": 2,
        "max_rows": 9,
    }
    return sf.connect(TABLES, **(given | other))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT COUNT(*), SUM(n) FROM lines", (5, 14)),  # the line of order 3 counts for both of its owners
        ("SELECT COUNT(DISTINCT owner) FROM lines", (3,)),
        ("SELECT SUM(n * price) FROM lines JOIN orders ON ref = id", (5 + 10 + 18 + 28 + 32,)),
        (
            (
                "SELECT SUM(n) FROM people, orders, lines WHERE person = orders.owner AND ref = id AND "
                "kind = 'a'"
            ),
            (10,),
        ),
        ("SELECT SUM(n) FROM people JOIN lines ON person = lines.owner WHERE kind = 'b'", (4,)),
        ("SELECT COUNT(*) FROM lines, orders WHERE ref = id AND owner = person_of_nobody", None),
        ("SELECT owner FROM lines", None),
        ("SELECT ref, SUM(n) FROM lines GROUP BY ref", None),
        ("SELECT COUNT(*) FROM lines, orders", None),
        ("SELECT COUNT(*) FROM lines JOIN orders ON n = id", None),
        ("SELECT COUNT(*) FROM lines WHERE n IN (SELECT id FROM orders)", None),
        ("SELECT COUNT(*) FROM orders WHERE id NOT IN (SELECT ref FROM lines)", None),
    ],
)
def test_questions_are_asked_as_if_the_table_had_the_column(
    text: str, expected: tuple[int, ...] | None
) -> None:
    db = connected()
    if expected is None:
        with pytest.raises(QueryRefused):
            db.sql(text, epsilon=1e9)
        return
    [row] = db.sql(text, epsilon=1e9).release().rows
    assert row == pytest.approx(expected, abs=1e-3)


def test_frames_join_on_the_unit() -> None:
    db = connected()
    asked = db.table("lines").join(db.table("orders"), sf.col("ref") == sf.col("id"), unit=True)
    assert asked.agg(n=sf.count()).release(epsilon=1e9).rows == ((5,),)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda: connected(unit=UNITS | {"lines": "ref -> orders.id"}), "how to reach the unit"),
        (lambda: connected(unit=UNITS | {"lines": "ref -> nothing.id -> owner"}), "no table"),
        (lambda: connected(unit=UNITS | {"lines": "ref -> orders.nothing -> owner"}), "no column"),
        (lambda: connected(unit=UNITS | {"lines": "ref -> orders.owner -> owner"}), "names the unit itself"),
        (lambda: connected(unit=UNITS | {"lines": "ref -> orders.id -> price"}), "another one"),
        (lambda: connected(unit=UNITS | {"lines": "nothing -> orders.id -> owner"}), "no column `nothing`"),
        (lambda: connected(unit=UNITS | {"lines": "ref -> people.kind -> person"}), "cannot have"),
        (lambda: connected(unit=UNITS | {"other": "x"}), "no private table `other`"),
        (lambda: connected(unit={"orders": "owner"}), "whose the rows of table `lines` are"),
        (lambda: connected(protects=None), "differently: owner, person"),
    ],
)
def test_paths_that_lead_nowhere_are_refused(change: Callable[[], object], said: str) -> None:
    with pytest.raises(InvalidArgument, match=said) as refused:
        change()
    assert refused.value.place == "unit" and refused.value.hints


def test_a_path_is_another_declaration() -> None:
    """What is declared is part of the fingerprint that an idempotency key is bound to."""
    lines = CATALOG.table("lines")
    assert lines is not None and lines.unit is not None
    assert lines.unit.text == PATHS["lines"]
    other = replace(lines, unit=Unit(name="person", column="ref"))
    assert Catalog((*CATALOG.tables[:1], other)).fingerprint() != Catalog(CATALOG.tables[:2]).fingerprint()


def test_a_table_with_a_path_is_not_divided_into_parts() -> None:
    with pytest.raises(SfumatoError, match="cannot be divided"):
        Table(
            name="lines",
            fields=(Field("ref", Kind.INTEGER), Field("kind", Kind.TEXT, one_of(*KINDS))),
            unit=Unit.read(PATHS["lines"]),
            partition="kind",
        )
