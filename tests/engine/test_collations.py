"""A column's collation must not let one row speak for a group, or decide which groups of others count."""

from __future__ import annotations

from pathlib import Path

import duckdb

import sfumato as sf
from sfumato.backends.exact import ExactGroups
from sfumato.session import Database


def groups(database: Database, text: str) -> tuple[ExactGroups, ...]:
    query = database.sql(text, epsilon=1).priced().boundings[0].query
    return database.backend.run(query, _salt=7).reveal()  # type: ignore[call-arg]


def opened(path: Path, *, first: str | None, unit: str = "person") -> Database:
    connection = duckdb.connect(str(path))
    connection.execute("CREATE TABLE people (person VARCHAR COLLATE NOCASE, name VARCHAR COLLATE NOCASE)")
    if first is not None:
        connection.execute("INSERT INTO people VALUES ('one more', ?)", [first])
    connection.execute("INSERT INTO people SELECT 'p' || i, 'smith' FROM range(500) r(i)")
    connection.execute("INSERT INTO people SELECT 'p' || i, 'jones' FROM range(500) r(i)")
    connection.close()
    budget = sf.Budget(epsilon=9, delta=1e-6)
    return sf.connect(path, name="people", unit=unit, budget=budget, max_groups=1, max_rows=1)


def test_one_spelling_does_not_rename_a_group_or_move_others(tmp_path: Path) -> None:
    text = "SELECT name, COUNT(*) FROM people GROUP BY name"
    without, odd = (
        {
            key[0]: int(count)
            for [one] in [groups(opened(tmp_path / f"{number}.duckdb", first=first), text)]
            for key, count in zip(one.keys, one.measures["m0"], strict=True)
        }
        for number, first in enumerate((None, "SmItH"))
    )
    assert odd == {**without, "SmItH": 1}


def test_constants_too_are_compared_letter_by_letter(tmp_path: Path) -> None:
    database = opened(tmp_path / "one.duckdb", first="SmItH")
    for condition, people in (("name = 'SMITH'", 0), ("name = 'SmItH'", 1), ("name LIKE 'Sm%'", 1)):
        [one] = groups(database, f"SELECT COUNT(*) FROM people WHERE {condition}")
        assert [int(value) for value in one.measures["m0"]] == [people]


def test_people_are_told_apart_as_their_hashes_are(tmp_path: Path) -> None:
    path = tmp_path / "people.duckdb"
    connection = duckdb.connect(str(path))
    connection.execute("CREATE TABLE people (person VARCHAR COLLATE NOCASE)")
    connection.execute("INSERT INTO people VALUES ('Ann'), ('ann'), ('ANN'), ('ben')")
    connection.close()
    database = sf.connect(
        path, name="people", unit="person", budget=sf.Budget(epsilon=9, delta=1e-6), max_groups=1, max_rows=1
    )
    [one] = groups(database, "SELECT COUNT(DISTINCT person) FROM people")
    assert [int(value) for value in one.measures["m0"]] == [4]
