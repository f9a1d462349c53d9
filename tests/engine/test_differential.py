"""The same text means the same here and in plain DuckDB: thousands of expressions of every type.

An expression is asked of the same rows twice: compiled by this system, and as it stands in an engine of its
own. Each row must have the same value, exactly. Where the engine fails at a row (overflow, a failed cast,
division by zero), this system has NULL or a value, and must not fail. Where an intermediate result is NaN or
infinite, or a date outside of the years 1 to 9999, it is NULL here: these documented rules are applied to the
engine's text too (the marks « and », and ‹ and ›).
What this system refuses, it refuses with a typed error; there is no fourth outcome.

A sample is asked end to end, at an epsilon so large that the chance of any noise is below e^-100000.
"""

from __future__ import annotations

import datetime
import math
import random
import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pytest

import sfumato as sf
from sfumato.backends import open_tables
from sfumato.backends.duckdb.dialect import DUCKDB
from sfumato.catalog import Catalog, Kind, Table, Unit
from sfumato.errors import QueryRefused
from sfumato.plan.sql import parse
from sfumato.plan.tree import Expression
from tests.engine.expressions import Maker, create
from tests.soaked import rest_soaked

ASKED = 700  # expressions of each seed
SEEDS = (1, 2, 3, 4)
TOGETHER = 12  # expressions that are parsed and run at once
PRECISE = 1e6  # epsilon of one question


@dataclass(frozen=True, slots=True)
class Said:
    """An expression as it is asked, and as plain DuckDB is asked for it."""

    asked: str
    plain: str

    @staticmethod
    def of(text: str) -> Said:
        """Return both forms of a text with marks around what may not be finite."""
        finite = text.replace("«", "nullif(nullif(nullif(")
        finite = finite.replace("»", ", 'nan'::DOUBLE), 'inf'::DOUBLE), '-inf'::DOUBLE)")
        return Said(re.sub("[«»‹›]", "", text), finite.replace("‹", "in_years(").replace("›", ")"))


@dataclass(slots=True)
class Found:
    """What came of expressions: how many agreed, which were refused, which differ."""

    same: int = 0
    refused: list[str] = field(default_factory=list)
    different: list[str] = field(default_factory=list)


class Sides:
    """Both engines over the same rows."""

    def __init__(self, folder: Path, table: str = create("t")) -> None:
        self.path = folder / "t.duckdb"
        with duckdb.connect(str(self.path)) as connection:
            connection.execute(table)
        source = open_tables({"t": str(self.path)})
        self.catalog = Catalog(
            (Table(name="t", unit=Unit(name="person", column="person"), fields=source.fields("t")),)
        )
        source.close()
        self.engine = duckdb.connect(str(self.path), read_only=True)
        self.engine.execute("SET TimeZone = 'UTC'")
        years = "BETWEEN TIMESTAMP '0001-01-01' AND TIMESTAMP '9999-12-31 23:59:59.999999'"
        self.engine.execute(f"CREATE TEMP MACRO in_years(x) AS CASE WHEN x {years} THEN x END")
        self.engine.execute("PRAGMA disable_optimizer")  # it moves arithmetic over comparisons
        fields = self.catalog.tables[0].fields
        self.names = {f"t.{one.name}": f"c_{one.name}" for one in fields}
        cleaned = (f"{DUCKDB.normalised(one.name, one.kind)} AS c_{one.name}" for one in fields)
        self.engine.execute(f"CREATE TEMP TABLE cleaned AS SELECT {', '.join(cleaned)} FROM t")

    def compare(self, said: list[Said]) -> Found:
        """Hold both sides against each other, some expressions at a time."""
        found = Found()
        for start in range(0, len(said), TOGETHER):
            some = said[start : start + TOGETHER]
            pairs = [(one, node) for one, node in zip(some, self._planned(some, found), strict=True) if node]
            if pairs:
                self._compare([one for one, _ in pairs], [node for _, node in pairs], found)
        return found

    def _planned(self, some: list[Said], found: Found) -> list[Expression | None]:
        listed = ", ".join(f"COUNT({one.asked})" for one in some)
        try:
            (named,) = parse(f"SELECT {listed} FROM t", self.catalog).queries
        except QueryRefused as refusal:
            if len(some) > 1:
                return [node for one in some for node in self._planned([one], found)]
            assert refusal.code == "SF403" and refusal.hints, some[0].asked
            found.refused.append(some[0].asked)
            return [None]
        # equal aggregates are one, so each is looked up by what it is made of
        nodes = [aggregate.arguments[0] for _, aggregate in named.query.aggregates]
        return list(nodes) if len(nodes) == len(some) else [self._planned([one], found)[0] for one in some]

    def _compare(self, said: list[Said], nodes: list[Expression], found: Found) -> None:
        ours = [DUCKDB.expression(node, self.names) for node in nodes]
        types = [DUCKDB.sql_type(node.kind) if node.kind else None for node in nodes]
        listed = ", ".join(f"{sql}, typeof({sql})" for sql in ours)
        mine = self.engine.execute(f"SELECT {listed} FROM cleaned ORDER BY c_person").fetchall()
        listed = ", ".join(f"TRY({one.plain})" for one in said)
        plain = self.engine.execute(f"SELECT {listed} FROM t ORDER BY person").fetchall()
        for place, one in enumerate(said):
            rows = [
                row
                for row, (here, there) in enumerate(zip(mine, plain, strict=True))
                if not _same(here[2 * place], there[place])
                and not (there[place] is None and self._fails(one, row))
            ]
            typed = {here[2 * place + 1] for here in mine} == {types[place]}
            if rows or not typed:
                found.different.append(f"{one.asked} in rows {rows}")
            else:
                found.same += 1

    def _fails(self, one: Said, row: int) -> bool:
        """Return whether plain DuckDB fails at a row."""
        try:
            self.engine.execute(f"SELECT {one.plain} FROM t WHERE person = {row}").fetchall()
        except duckdb.Error:
            return True
        return False


def _same(ours: Any, plain: Any) -> bool:
    if ours is None or plain is None:
        return ours is plain or (isinstance(plain, float) and not math.isfinite(plain))
    if isinstance(ours, datetime.date) and isinstance(plain, datetime.date):
        return _moment(ours) == _moment(plain)  # DATE_TRUNC of a date is a date here, a timestamp there
    if isinstance(ours, str) and isinstance(plain, str):
        return _one_zero(ours) == _one_zero(plain)
    return bool(ours == plain)  # Python compares int, float and Decimal exactly


def _moment(value: datetime.date) -> datetime.datetime:
    return (
        value
        if isinstance(value, datetime.datetime)
        else datetime.datetime(value.year, value.month, value.day)
    )


def _one_zero(text: str) -> str:
    return re.sub(r"-0\.0(?!\d)", "0.0", text)


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Sides:
    return Sides(tmp_path_factory.mktemp("differential"))


@cache
def made(seed: int) -> list[Said]:
    chance = random.Random(seed)
    maker = Maker(chance)
    texts: dict[str, None] = {}
    while len(texts) < ASKED:
        texts[maker.any(chance.choice((1, 2, 2, 3)))] = None
    return [Said.of(text) for text in texts]


@pytest.mark.parametrize("seed", rest_soaked(SEEDS, 2))
def test_expressions_mean_what_duckdb_means(sides: Sides, seed: int) -> None:
    found = sides.compare(made(seed))
    assert not found.different
    assert found.same >= 0.95 * ASKED, f"{len(found.refused)} refused: {found.refused[:5]}"


ISSUES = (
    "d2 = 0.06 + 0.01",
    "d2 * 100 = 7",
    "1 - d2 = 0.93",
    "d2 BETWEEN 0.06 - 0.01 AND 0.06 + 0.01",
    "CAST(d2 * 250 AS INTEGER)",
    "u8 = 9007199254740993",
    "h = 9007199254740993",
    "d5 = 9007199254740993",
    "u8 > 9007199254740992",
    "i8 + 1 = 9007199254740994",
    "f = 0.1",
    "f + 0.1",
    "1e3+5",
    "2*1e3+5",
    "2 * 1e3-5.5+1e0",
    "i8 = -9223372036854775808",
    "TRY_CAST(i4 AS TINYINT)",
    "ROUND(d3, 2)",
    "ROUND(NULLIF(250, d2), -1)",
    "ROUND(d5, -3)",
    "ROUND(i8, -2)",
    "TRUNC(d3, 2)",
    "TRUNC(d5, -3)",
    "TRUNC(d2, -30)",
    "TRUNC(h, -2)",
    "TRUNC(i8, 3)",
    "TRUNC(f, 1)",
    "TRUNC(d2, NULL)",
    "LOG(2, i4)",
    "LOG(d2, 8)",
    "CAST(d1 AS VARCHAR)",
    "d2 IN (0.07, 0.08)",
    "COALESCE(d2, 1)",
    "CASE WHEN b THEN d2 ELSE 1 END * 3",
)


@pytest.mark.parametrize("text", ISSUES)
def test_questions_that_doubles_would_answer_wrongly(sides: Sides, text: str) -> None:
    found = sides.compare([Said(text, text)])
    assert found.same == 1 and not found.different


def test_planted_arithmetic_in_doubles_is_seen(sides: Sides, monkeypatch: pytest.MonkeyPatch) -> None:
    """The checker has power: sums and products by way of doubles are reported."""

    def doubled(name: str) -> Any:
        def render(write: Any, arguments: Any, kind: Any) -> str:
            left, right = (write(argument, Kind.REAL) for argument in arguments)
            return f"TRY_CAST(({left} {name} {right}) AS {DUCKDB.sql_type(kind)})"

        return render

    for name in "+*":
        monkeypatch.setitem(DUCKDB.functions, name, doubled(name))
    assert sides.compare([Said("u8 + 0.5", "u8 + 0.5"), Said("d4 * 3", "d4 * 3")]).different
    assert len(sides.compare(made(SEEDS[-1])).different) >= 5


# -- end to end -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def database(sides: Sides) -> sf.Database:
    budget = sf.Budget(epsilon=1e9, delta=1e-6, rule="pure")
    return sf.connect(str(sides.path), name="t", unit="person", max_rows=1, max_groups=1, budget=budget)


def test_conditions_count_what_duckdb_counts(sides: Sides, database: sf.Database) -> None:
    """Two hundred conditions, through parser, plan, price, engine, noise and release."""
    maker = Maker(random.Random(9))
    said = {Said.of(maker.condition(2)): None for _ in range(260)}
    kept = [one for one in said if sides._planned([one], Found())[0] is not None][:200]
    assert len(kept) == 200
    for start in range(0, len(kept), 50):
        some = kept[start : start + 50]
        listed = ", ".join(f"COUNT(*) FILTER (WHERE {one.asked}) AS n{i}" for i, one in enumerate(some))
        (counts,) = database.sql(f"SELECT {listed} FROM t", epsilon=PRECISE).release().rows
        for one, count in zip(some, counts, strict=True):
            listed_rows = sides.engine.execute(f"SELECT TRY({one.plain}), person FROM t").fetchall()
            certain = sum(truth is True for truth, _ in listed_rows)
            failed = sum(truth is None and sides._fails(one, row) for truth, row in listed_rows)
            assert certain <= count <= certain + failed, one.asked


@pytest.mark.parametrize("column", ["u8", "h", "d2", "d4", "d5", "i8", "f", "day"])
def test_distinct_values_and_groups_are_exact(sides: Sides, database: sf.Database, column: str) -> None:
    """Values that doubles take for one are told apart, in COUNT(DISTINCT ..) and in GROUP BY."""
    ((distinct,),) = (
        database.sql(f"SELECT COUNT(DISTINCT {column}) AS n FROM t", epsilon=PRECISE).release().rows
    )
    rows = database.sql(f"SELECT {column}, COUNT(*) AS n FROM t GROUP BY 1", epsilon=PRECISE).release().rows
    plain = sides.engine.execute(f"SELECT {column}, count(*) FROM t GROUP BY 1").fetchall()
    assert distinct == len([value for value, _ in plain if value is not None])
    assert dict(rows) == dict(plain) and {type(key) for key, _ in rows} == {type(key) for key, _ in plain}
