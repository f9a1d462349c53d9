"""What one private row may become is limited in public, before anything is charged."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pyarrow
import pytest

import sfumato as sf
from sfumato.backends import open_tables
from sfumato.backends.duckdb import DuckDBBackend
from sfumato.catalog import Catalog, Table, Unit
from sfumato.errors import QueryRefused
from sfumato.ledger import Ledger
from sfumato.session import Database

NUMBERS = pd.DataFrame({"number": range(40), "parity": [0, 1] * 20, "zone": ["a"] * 40})
BIG = pd.DataFrame({"code": range(5_000), "kind": [0] * 4_000 + [1] * 1_000})


def people() -> sf.Database:
    return sf.connect(
        pd.DataFrame({"person": [1, 1, 2], "x": [1, 2, 3], "zone": ["a", "b", "a"]}),
        name="people",
        unit="person",
        budget=sf.Budget(epsilon=90, delta=1e-6),
        max_groups=1,
        max_rows=1,
        public={"numbers": NUMBERS, "big": BIG},
    )


def self_joined(times: int, each: str = "people") -> str:
    joins = "".join(f" JOIN {each} p{i} ON p.person = p{i}.person" for i in range(times))
    return f"SELECT COUNT(*) FROM people p{joins}"


ONE_EACH = "(SELECT person, COUNT(*) AS n FROM people GROUP BY person)"


@pytest.mark.parametrize(
    "text",
    [
        self_joined(1),
        self_joined(2),
        self_joined(5, ONE_EACH),
        "SELECT COUNT(*) FROM people JOIN numbers ON TRUE",
        "SELECT COUNT(*) FROM people JOIN numbers ON x < number",
        "SELECT COUNT(*) FROM people JOIN big ON x = code",
        "SELECT COUNT(*) FROM people LEFT JOIN big ON x + 1 = code AND kind > 0",
        "SELECT COUNT(*) FROM people JOIN (SELECT code AS c FROM big WHERE kind = 1) AS b ON c = x",
        "SELECT COUNT(*) FROM people JOIN numbers n ON x = n.parity JOIN numbers m ON x = m.parity",
        "SELECT COUNT(*) FROM people JOIN numbers n ON TRUE JOIN big ON code = number",
        "SELECT COUNT(*) FROM people WHERE x IN (SELECT code FROM big)",
    ],
)
def test_what_stays_small_is_answered(text: str) -> None:
    people().sql(text, epsilon=1).release()


@pytest.mark.parametrize(
    "text",
    [
        self_joined(3),
        self_joined(3)
        .replace("COUNT(*)", "p.person")
        .join(("SELECT COUNT(*) FROM people WHERE person IN (", ")")),
        "SELECT COUNT(*) FROM people JOIN big ON TRUE",
        "SELECT COUNT(*) FROM people CROSS JOIN big",
        "SELECT COUNT(*) FROM people JOIN big ON x < code",
        "SELECT COUNT(*) FROM people JOIN big ON x = kind",
        "SELECT COUNT(*) FROM people JOIN big ON code = kind",
        "SELECT COUNT(*) FROM people JOIN big ON code = 3 OR x = code",
        "SELECT COUNT(*) FROM people JOIN numbers n ON TRUE JOIN numbers m ON TRUE",
        "SELECT COUNT(*) FROM people JOIN numbers n ON TRUE JOIN numbers m ON people.zone = m.zone",
        "SELECT COUNT(*) FROM people JOIN (SELECT n.number FROM numbers n JOIN numbers m ON TRUE) b ON TRUE",
        "SELECT COUNT(*) FROM (SELECT person, COUNT(*) AS n FROM people JOIN big ON TRUE GROUP BY person)",
    ],
)
def test_what_could_explode_is_refused_before_the_charge(text: str) -> None:
    database = people()
    with pytest.raises(QueryRefused, match="SF404"):
        database.sql(text, epsilon=1).release()
    assert database.budget.spent == 0


def two_tables(first: Any, second: Any) -> Database:
    opened = open_tables({"one": pyarrow.table({"person": first}), "two": pyarrow.table({"person": second})})
    who = Unit(name="person", column="person")
    tables = tuple(
        Table(name=name, fields=opened.fields(name), unit=who, max_rows=2, max_groups=1)
        for name in ("one", "two")
    )
    budget = sf.Budget(epsilon=9, delta=1e-6)
    ledger = Ledger.open(None)
    ledger.register("person", budget)
    catalog = Catalog(tables)
    backend = DuckDBBackend(opened, catalog)
    return Database(catalog=catalog, terms=budget, ledger=ledger, backend=backend, unit="person")


WHOLE, REAL, TEXT = pyarrow.array([1, 2]), pyarrow.array([1.0, 2.0]), pyarrow.array(["1.00", "2.00"])
CENTS = REAL.cast(pyarrow.decimal128(9, 2))
BOTH = [
    "SELECT COUNT(*) FROM (SELECT person FROM one UNION ALL SELECT person FROM two)",
    "SELECT COUNT(*) FROM one JOIN two ON one.person = two.person",
    "SELECT COUNT(*) FROM one WHERE person IN (SELECT person FROM two)",
]


@pytest.mark.parametrize("text", BOTH)
@pytest.mark.parametrize(("first", "second"), [(WHOLE, REAL), (WHOLE, TEXT), (REAL, TEXT), (REAL, CENTS)])
def test_one_person_is_not_two_in_two_ways_of_writing(first: Any, second: Any, text: str) -> None:
    database = two_tables(first, second)
    with pytest.raises(QueryRefused, match="SF406"):
        database.sql(text, epsilon=1).release()
    assert database.budget.spent == 0
    two_tables(first, second).sql("SELECT COUNT(*) FROM one", epsilon=1).release()


@pytest.mark.parametrize("text", BOTH)
@pytest.mark.parametrize(("first", "second"), [(WHOLE, WHOLE.cast(pyarrow.int8())), (TEXT, TEXT)])
def test_units_of_one_kind_are_combined(first: Any, second: Any, text: str) -> None:
    two_tables(first, second).sql(text, epsilon=1).release()
