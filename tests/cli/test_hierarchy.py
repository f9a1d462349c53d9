"""`sfumato hierarchy` and `sfumato query --consistent`: what Python answers, from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.ledger import Ledger
from tests.cli.programs import sfumato

PROJECT = """
ledger = "people.ledger"

[tables.people]
path = "people.parquet"
unit = "person"
max_rows = 1
max_groups = 1
columns.age = { one_of = ["young", "old"] }

[tables.places]
path = "places.parquet"
public = true

[tables.totals]
path = "totals.parquet"
public = true

[budget]
epsilon = 50
delta = 1e-6

[[policy.invariants]]
table = "people"
by = ["state"]
totals = "totals"
count = "n"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("census")
    people = {"person": range(60), "block": [i % 6 for i in range(60)], "age": ["young", "old"] * 30}
    pq.write_table(pa.table(people), home / "people.parquet")
    places = {"state": ["a", "b"] * 3, "block": range(6)}
    pq.write_table(pa.table(places), home / "places.parquet")
    pq.write_table(pa.table({"state": ["a", "b"], "n": [30, 30]}), home / "totals.parquet")
    (home / "sfumato.toml").write_text(PROJECT)
    Ledger.open(home / "people.ledger").close()
    return home


ASKED = ("hierarchy", "state,block", "--places", "places", "--cells", "age")


def test_counts_add_up_and_public_totals_are_named(folder: Path) -> None:
    dry = sfumato(folder, *ASKED, "-e", "1", "--dry-run")
    assert "by state, block: n ±" in dry.stdout and "NOT PROTECTED" in dry.stdout
    found = sfumato(folder, *ASKED, "-e", "1", "--non-negative", "--format", "json")
    assert found.returncode == 0, found.stderr
    answer = json.loads(found.stdout)
    rows = answer["rows"]
    for state in ("a", "b"):
        own = [row for row in rows if row["state"] == state]
        assert sum(row["n"] for row in own if row["block"] is None) == 30
        assert sum(row["n"] for row in own if row["block"] is not None) == 30
    assert "NOT PROTECTED" in found.stdout
    explained = sfumato(folder, "explain", _ROLLED, "-e", "1", "--consistent", "--level-shares", "1,2,7")
    assert "for 0.7 of the cost" in explained.stdout


_ROLLED = (
    "SELECT state, block, COUNT(*) AS n FROM people JOIN places USING (block) GROUP BY ROLLUP (state, block)"
)


def test_consistent_questions_in_sql(folder: Path) -> None:
    found = sfumato(folder, "query", _ROLLED, "--error", "40", "--consistent", "--format", "json")
    assert found.returncode == 0, found.stderr
    rows = json.loads(found.stdout)["rows"]
    assert sum(row["n"] for row in rows if row["block"] is not None) == 60


@pytest.mark.parametrize(
    "words",
    [
        (*ASKED,),
        (*ASKED, "-e", "1", "--error", "3"),
        (*ASKED, "-e", "1", "--level-shares", "a,b"),
        ("query", _ROLLED, "-e", "1", "--level-shares", "1,2,7"),
    ],
)
def test_what_makes_no_sense_is_refused(folder: Path, words: tuple[str, ...]) -> None:
    assert sfumato(folder, *words).returncode == 2
