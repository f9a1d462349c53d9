"""Keys whose values the question says: every value that a key can have is shown once, and no other.

At an epsilon so large that noise rounds away (off by one with a chance below e^-500), numbers are those
of DuckDB.
"""

from __future__ import annotations

import itertools
import random
from datetime import date
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import sfumato as sf
from tests.soaked import rest_soaked

FLAGS = ("f1", "f2", "f3", "f4")
DAYS = [*(date(2024, month, 3) for month in range(1, 13)), None]
ROWS = list(itertools.product(*[(True, False, None)] * len(FLAGS), DAYS))  # all there can be


def every_row() -> pa.Table:
    columns = dict(zip((*FLAGS, "day"), map(list, zip(*ROWS, strict=True)), strict=True))
    return pa.table({"who": list(range(len(ROWS))), **columns})


def database(**options: Any) -> Any:
    budget = sf.Budget(epsilon=10**9, delta=1e-6, rule="pure")
    return sf.connect(
        every_row(), name="people", unit="who", max_groups=1, max_rows=1, budget=budget, **options
    )


def shown(text: str) -> list[tuple[Any, ...]]:
    return sorted(database().sql(text, epsilon=10**4).release().rows)


@pytest.mark.parametrize(
    "form", ["SELECT {key} AS k", "SELECT k FROM (SELECT who, {key} AS k FROM people) AS p"]
)
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("MONTHNAME(DATE '2024-01-01')", "January"),
        ("DAYNAME(DATE '2024-01-01')", "Monday"),
        ("COALESCE('30', 'abc')", "30"),
        ("COALESCE(NULL, 'abc')", "abc"),
        ("COALESCE(TRUE, FALSE)", True),
        ("COALESCE(1 = NULL, FALSE)", False),
        ("CASE WHEN TRUE THEN 'a' ELSE 'b' END", "a"),
        ("CASE WHEN 1 > 2 THEN 'a' ELSE 'b' END", "b"),
        ("CASE WHEN f1 AND 1 > 2 THEN 'a' ELSE 'b' END", "b"),
        ("CASE WHEN f1 THEN 'a' ELSE LOWER('A') END", "a"),
        ("1 IS NULL", False),
        ("NULL IS NULL", True),
        ("NULLIF('a', 'b')", "a"),
        ("UPPER('a')", "A"),
        ("SUBSTR('abc', 2)", "bc"),
        ("CAST('3' AS INTEGER)", 3),
        ("'a' IN ('a', 'b')", True),
        ("3 BETWEEN 1 AND 2", False),
        ("'a' || 'b'", "ab"),
        ("GREATEST(1, 2)", 2),
        ("EXTRACT(month FROM DATE '2024-02-03')", 2),
        ("FLOOR(7 / 5) * 5", 5),
    ],
)
def test_a_constant_key_is_one_group(key: str, value: Any, form: str) -> None:
    """It is known beforehand: no delta is paid for finding it."""
    text = form.format(key=key).replace("SELECT k ", "SELECT k, COUNT(*) AS n ")
    text += ", COUNT(*) AS n FROM people GROUP BY 1" if "people" not in text else " GROUP BY k"
    release = database().sql(text, epsilon=10**4).release()
    assert list(release.rows) == [(value, len(ROWS))]
    assert release.cost["keys_delta"] == 0


def test_a_key_that_is_always_null_is_found_privately() -> None:
    text = "SELECT NULLIF('a', 'a') AS k, COUNT(*) AS n FROM people GROUP BY 1"
    (bounding,) = database().sql(text, epsilon=1).priced().boundings
    assert bounding.select_keys


TAGGED = "(SELECT who, 'a' AS k FROM people UNION ALL SELECT who, {other} AS k FROM people WHERE f1) AS p"


@pytest.mark.parametrize(
    ("other", "where", "keys"),
    [
        ("'b'", "", ["a", "b"]),
        ("LOWER('A')", "", ["a"]),
        ("MONTHNAME(DATE '2024-01-01')", "", ["January", "a"]),
        ("'b'", "WHERE k = 'a'", ["a"]),
        ("CASE WHEN f2 THEN 'x' ELSE 'y' END", "", ["a", "x", "y"]),
    ],
)
def test_parts_of_a_union_are_told_apart_by_constants(other: str, where: str, keys: list[str]) -> None:
    text = f"SELECT k, COUNT(*) AS n FROM {TAGGED.format(other=other)} {where} GROUP BY k"
    assert [key for key, _ in shown(text)] == keys


@pytest.mark.parametrize(
    ("key", "where", "keys"),
    [
        ("CASE WHEN f1 THEN 'x' ELSE 'y' END", "{key} = 'x'", ["x"]),
        ("CASE WHEN f1 THEN 'x' ELSE 'y' END", "{key} = 'x' AND f2", ["x"]),
        ("CASE WHEN f1 THEN 'x' ELSE 'y' END", "{key} = 'x' OR f2", ["x", "y"]),
        ("COALESCE(MONTHNAME(day), 'never')", "{key} IN ('May', 'never')", ["May", "never"]),
        ("COALESCE(MONTHNAME(day), 'never')", "LEFT({key}, 1) = 'J'", ["January", "July", "June"]),
    ],
)
def test_a_condition_on_a_computed_key_narrows_its_groups(key: str, where: str, keys: list[str]) -> None:
    conditions = where.format(key=key)
    text = f"SELECT {key} AS k, COUNT(*) AS n FROM people WHERE {conditions} GROUP BY 1"
    found = shown(text)
    assert [key for key, _ in found] == keys
    inner = f"(SELECT {key} AS k, f2 FROM people) AS p"
    text = f"SELECT k, COUNT(*) AS n FROM {inner} WHERE {where.format(key='k')} GROUP BY k"
    assert shown(text) == found


def test_one_condition_on_two_computed_keys() -> None:
    first, second = "CASE WHEN f1 THEN 'x' ELSE 'y' END", "CASE WHEN f2 THEN 1 ELSE 2 END"
    text = f"SELECT {first}, {second}, COUNT(*) FROM people WHERE {first} = 'x' OR {second} = 2 GROUP BY 1, 2"
    assert [key for *key, _ in shown(text)] == [["x", 1], ["x", 2], ["y", 2]]


# -- generated keys -------------------------------------------------------------------------


class Written:
    """Writes an expression in which each column stands once: then its parts do not depend on each other."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self.columns = [*FLAGS, "day"]
        draw.shuffle(self.columns)

    def column(self, *allowed: str) -> str | None:
        found = next((name for name in self.columns if name in allowed), None)
        if found is not None:
            self.columns.remove(found)
        return found

    def text(self, depth: int) -> str:
        if depth == 0 or self.draw.random() < 0.15:
            if self.draw.random() < 0.2 and (day := self.column("day")):
                return f"{self.draw.choice(['MONTHNAME', 'DAYNAME'])}({day})"
            return self.draw.choice(
                ["'a'", "'b'", "'A'", "UPPER('a')", "SUBSTR('bab', 2, 1)", "'a' || ''", "NULLIF('a', 'a')",
                 "MONTHNAME(DATE '2024-05-03')", "CAST(NULL AS VARCHAR)", "LEFT('bc', 1)",
                 "CAST(3 AS VARCHAR)"]
            )  # fmt: skip
        match self.draw.randrange(4):
            case 0:
                return f"COALESCE({self.text(depth - 1)}, {self.text(depth - 1)}, {self.text(depth - 1)})"
            case 1:
                last = f" ELSE {self.text(depth - 1)}" if self.draw.random() < 0.7 else ""
                other = f" WHEN {self.truth(depth - 1)} THEN {self.text(depth - 1)}"
                return f"CASE WHEN {self.truth(depth - 1)} THEN {self.text(depth - 1)}{other}{last} END"
            case 2:
                return f"NULLIF({self.text(depth - 1)}, {self.draw.choice(['a', 'b', 'May'])!r})"
        return f"COALESCE({self.text(depth - 1)}, 'a')"

    def truth(self, depth: int) -> str:
        if depth == 0 or self.draw.random() < 0.2:
            if self.draw.random() < 0.6 and (flag := self.column(*FLAGS)):
                return flag
            return self.draw.choice(
                ["TRUE", "FALSE", "1 > 2", "1 = NULL", "'a' IN ('a', 'b')", "2 BETWEEN 1 AND 3",
                 "'a' LIKE 'b%'", "NULL IS NULL", "GREATEST(1, 2) = 2",
                 "EXTRACT(year FROM DATE '2024-05-03') = 2024"]
            )  # fmt: skip
        match self.draw.randrange(4):
            case 0:
                return f"({self.truth(depth - 1)} AND {self.truth(depth - 1)})"
            case 1:
                return f"({self.truth(depth - 1)} OR {self.truth(depth - 1)})"
            case 2:
                return f"(NOT {self.truth(depth - 1)})"
        return f"({self.text(depth - 1)}) IS NULL"


@pytest.mark.parametrize("seed", rest_soaked(range(8), 8))
def test_generated_keys_show_what_duckdb_finds(seed: int) -> None:
    """Over all rows there can be, DuckDB finds the groups that are listed; where it finds NULL, none are."""
    draw, asked, listed = random.Random(seed), database(), 0
    people = every_row()
    with duckdb.connect() as oracle:
        oracle.register("people", people)
        for _ in range(30):
            key = f"COALESCE({Written(draw).text(draw.randrange(4))}, NULL)"  # a literal is refused
            found = {value for (value,) in oracle.execute(f"SELECT DISTINCT {key} FROM people").fetchall()}
            question = asked.sql(f"SELECT {key} AS k, COUNT(*) AS n FROM people GROUP BY 1", epsilon=1)
            (bounding,) = question.priced().boundings
            assert bounding.select_keys == (None in found), key
            if not bounding.select_keys:
                keys = [value for (value,) in bounding.query.declared]
                assert len(keys) == len(set(keys)) and set(keys) == found, key
                listed += 1
    assert listed > 10
