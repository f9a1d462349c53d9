"""Parallel composition: what is charged to a part is computed from that part's people only."""

from __future__ import annotations

from fractions import Fraction as F

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.analysis import bound
from sfumato.analysis.partition_filter import parts_of
from sfumato.backends import open_tables
from sfumato.backends.duckdb import DuckDBBackend
from sfumato.catalog import Catalog, Field, Kind, Table, Unit, one_of
from sfumato.errors import BudgetExceeded, InvalidArgument
from sfumato.plan.options import Options
from sfumato.plan.sql import parse

PERSON = Unit(name="person", column="id")
YEARS = one_of(1980, 1981, 1982)
PEOPLE = Table(
    name="people",
    fields=(Field("id", Kind.INTEGER), Field("year", Kind.INTEGER, YEARS), Field("x", Kind.INTEGER)),
    unit=PERSON,
    partition="year",
)
VISITS = Table(
    name="visits", fields=(Field("id", Kind.INTEGER), Field("year", Kind.INTEGER, YEARS)), unit=PERSON
)
CATALOG = Catalog((PEOPLE, VISITS))
CAPS = Options(max_groups=3, max_rows=5)

ABOUT = {
    "SELECT COUNT(*) FROM people WHERE year = 1980": {"1980"},
    "SELECT COUNT(*) FROM people WHERE 1980 = year AND x > 3": {"1980"},
    "SELECT COUNT(*) FROM people WHERE year IN (1980, 1982)": {"1980", "1982"},
    "SELECT COUNT(*) FROM people p WHERE p.year IN (1980, 1981) AND p.year = 1981": {"1981"},
    "SELECT year, COUNT(*) FROM people WHERE year IN (1981) GROUP BY year": {"1981"},
    "SELECT COUNT(*) FROM (SELECT id, year AS born FROM people) WHERE born = 1980": {"1980"},
    "SELECT COUNT(*) FROM people p JOIN visits v ON p.id = v.id WHERE p.year = 1980": {"1980"},
    "SELECT COUNT(*) FROM visits v LEFT JOIN people p ON p.id = v.id WHERE p.year = 1980": {"1980"},
}
EVERYONE = (
    "SELECT COUNT(*) FROM people",
    "SELECT year, COUNT(*) FROM people GROUP BY year",
    "SELECT COUNT(*) FROM people WHERE year = 1979",  # not listed
    "SELECT COUNT(*) FROM people WHERE year IN (1980, 1979)",
    "SELECT COUNT(*) FROM people WHERE year = 1980.0",  # another type
    "SELECT COUNT(*) FROM people WHERE year = 1980 OR x = 1",
    "SELECT COUNT(*) FROM people WHERE NOT year = 1980",
    "SELECT COUNT(*) FROM people WHERE year + 0 = 1980",
    "SELECT COUNT(*) FROM people WHERE year = 1980 AND year = 1981",
    "SELECT COUNT(*) FILTER (WHERE year = 1980) FROM people",
    "SELECT COUNT(*) FROM visits WHERE year = 1980",  # a column of the same name, and no partition
    "SELECT COUNT(*) FROM visits v LEFT JOIN people p ON p.id = v.id AND p.year = 1980",
    "SELECT COUNT(*) FROM people p JOIN visits v ON p.id = v.id WHERE v.year = 1980",
)


@pytest.mark.parametrize("text", [*ABOUT, *EVERYONE])
def test_parts_are_read_from_the_tree(text):
    (named,) = parse(text, CATALOG).queries
    assert parts_of(named.query.source, CATALOG) == (ABOUT.get(text) or None)


WORLD = {
    "people": [  # 1 moved between years, 2 has rows without one, 3 and 4 are plain
        (1, 1981, 5), (1, 1980, 6), (1, 1980, 7), (1, None, 8),
        (2, None, 1), (2, 1982, 2), (3, 1981, 3), (4, 1980, 4),
    ],
    "visits": [(1, 1981), (2, 1980), (3, 1980), (4, 1981), (4, 1980)],
}  # fmt: skip


def exact(text: str, without: int | None = None) -> list[tuple[object, ...]]:
    """Return the exact totals of a question about the world, without one person."""
    tables = {}
    for table in CATALOG.tables:
        rows = [row for row in WORLD[table.name] if row[0] != without]
        columns = [[row[place] for row in rows] for place in range(len(table.fields))]
        arrays = [pa.array(column, pa.int64()) for column in columns]
        tables[table.name] = pa.table(arrays, names=[field.name for field in table.fields])
    backend = DuckDBBackend(open_tables(tables), CATALOG)
    (named,) = parse(text, CATALOG).queries
    found = backend.run(bound(named.query, CATALOG, CAPS).query, _salt=1).reveal()
    return [tuple(map(int, values)) for group in found for values in group.measures.values()]


@pytest.mark.parametrize("text", ABOUT)
def test_nobody_of_another_part_moves_an_answer(text):
    """Take out each person: the exact totals change only if that person's part was charged.

    Person 1 has rows of two years and counts as one born in 1980. Without the engine's rule, the
    question about 1981 would move too, and nobody would have paid for it.
    """
    parts = {1: "1980", 2: "1982", 3: "1981", 4: "1980"}
    everyone = exact(text)
    for person, part in parts.items():
        if part not in ABOUT[text]:
            assert exact(text, without=person) == everyone, person
    moved = [person for person in parts if exact(text, without=person) != everyone]
    assert moved or ABOUT[text] == {"1982"}


def test_questions_about_different_parts_cost_the_largest(tmp_path):
    table = pa.table({"id": [1, 2, 3, 4], "year": [1980, 1981, 1981, 1982]})
    db = sf.connect(
        table, name="people", unit="id", columns={"year": YEARS}, partition="year",
        budget=sf.Budget(epsilon=1), ledger=tmp_path / "a", max_rows=1,
    )  # fmt: skip
    for year in (1980, 1981, 1982):
        receipt = (
            db.sql(f"SELECT COUNT(*) FROM people WHERE year = {year}", epsilon=F(9, 10)).release().receipt
        )
        assert receipt["parts"] == f'["{year}"]'
    assert F(89, 100) < db.budget.spent <= F(9, 10)
    with pytest.raises(BudgetExceeded):
        db.sql("SELECT COUNT(*) FROM people", epsilon=F(2, 10)).release()
    db.sql("SELECT COUNT(*) FROM people", epsilon=F(1, 10)).release()
    with pytest.raises(BudgetExceeded):
        db.sql("SELECT COUNT(*) FROM people WHERE year = 1981", epsilon=F(1, 10)).release()
    db.ledger.verify()


def test_a_partition_is_a_listed_column_of_one_table():
    fields = (Field("id", Kind.INTEGER), Field("y", Kind.INTEGER), Field("r", Kind.REAL, one_of(1.5)))
    for name, unit in (("y", PERSON), ("none", PERSON), ("r", PERSON)):
        with pytest.raises(InvalidArgument):
            Table(name="t", fields=fields, unit=unit, partition=name)
    with pytest.raises(InvalidArgument):
        Table(name="t", fields=PEOPLE.fields, unit=Unit(name="row", column=None), partition="year")
    twin = Table(name="more", fields=PEOPLE.fields, unit=PERSON, partition="year")
    with pytest.raises(InvalidArgument):
        Catalog((PEOPLE, twin))
