"""`sfumato marginals`: prices, tables, one table as CSV, and the release kept in the ledger."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from sfumato.workloads.marginal_release import Marginals
from tests.cli.programs import PROJECT, make_project, sfumato

ASKED = ("marginals", "age,region", "--table", "people", "--bins", "age=0,30,60,110")
NAMED = """
[marginals.yearly]
table = "people"
columns = ["age", "region"]
ways = [1, 2]
bins = { age = [0, 30, 60, 110] }
bases.age = "prefixes"
missing = ["region"]
weights = { age = 2.5, "region, age" = 10 }
epsilon = 1
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("marginals")
    make_project(found, PROJECT + NAMED)
    return found


def test_marginals_of_the_project_are_asked_by_their_name(folder: Path) -> None:
    """The file is the same request as the options that say the same, and options come before it."""
    more = ("--ways", "1,2", "--base", "age=prefixes", "--missing", "region", "-e", "1")
    shown, weights = (("--dry-run", "-f", "json"), ("--weights", "tables"))
    named = sfumato(folder, "marginals", "yearly", *shown)
    assert named.returncode == 0, named.stderr
    record = json.loads(named.stdout)
    assert record["cells"] == 15 and record["price"]["epsilon"] == 1
    assert sfumato(folder, *ASKED, *more, *shown).stdout != named.stdout  # weights matter
    same = sfumato(folder, *ASKED, *more, *weights, *shown).stdout
    assert sfumato(folder, "marginals", "yearly", *weights, *shown).stdout == same
    fewer = sfumato(folder, "marginals", "yearly", "--bins", "age=2", "-e", "0.5", *shown)
    record = json.loads(fewer.stdout)
    assert record["cells"] == 2 + 3 + 6 and record["price"]["epsilon"] == 0.5
    key = ("-k", "yearly", "-f", "json", "-e", "0.3")
    first, again = (sfumato(folder, "marginals", "yearly", *key).stdout for _ in range(2))
    assert first == again and Marginals.from_json(first).tables == (("age",), ("region",), ("age", "region"))


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ('"age", "region"]', '"age", "region", "regio"]', 3, "no column `regio`"),
        ('"age", "region"]', '"age", "region", "person"]', 3, "names the unit"),
        ("ways = [1, 2]", "ways = 3", 4, "number of columns, 2"),
        ("[0, 30, 60, 110]", "[0, 60, 30]", 5, "rise"),
        ("{ age = [0, 30, 60, 110] }", "{ cost = 3 }", 5, "no column of the tables"),
        ('["region"]\nw', '["cost"]\nw', 7, "no column of the tables"),
        ('"region, age"', '"region, cost"', 8, "not asked for"),
    ],
)
def test_marginals_that_do_not_fit_are_refused_with_their_line(
    folder: Path, old: str, new: str, line: int, said: str
) -> None:
    assert NAMED.count(old) == 1
    (folder / "wrong.toml").write_text(PROJECT + NAMED.replace(old, new))
    refused = sfumato(folder, "marginals", "yearly", "--project", "wrong.toml", "--dry-run")
    assert refused.returncode != 0 and said in refused.stderr and "SF706" in refused.stderr
    assert f"wrong.toml:{PROJECT.count(chr(10)) + 1 + line}:" in refused.stderr


def test_tables_are_priced_released_and_kept(folder: Path) -> None:
    dry = sfumato(folder, *ASKED, "-e", "1", "--dry-run")
    assert dry.returncode == 0 and "1 tables, 6 cells" in dry.stdout and "age x region: ±" in dry.stdout
    record = json.loads(sfumato(folder, *ASKED, "-e", "1", "--dry-run", "-f", "json").stdout)
    assert record["cells"] == 6 and record["price"]["epsilon"] == 1
    first, again = (sfumato(folder, *ASKED, "-e", "1", "-f", "json", "-k", "once") for _ in range(2))
    assert first.returncode == 0 and first.stdout == again.stdout
    release = Marginals.from_json(first.stdout)
    assert release.tables == (("age", "region"),)
    number = release.receipt["reservation"]
    assert sfumato(folder, "ledger", "show", number, "-f", "json").stdout == first.stdout
    assert "age x region" in sfumato(folder, "ledger", "show", number).stdout
    assert sfumato(folder, "ledger", "show", number, "-f", "parquet", "-o", "a.parquet").returncode != 0
    (folder / "answer.json").write_text(first.stdout)
    assert "genuine" in sfumato(folder, "ledger", "receipt", "answer.json").stdout
    query = ("query", "SELECT COUNT(*) AS n FROM people WHERE region = 'north'", "--free")
    assert f"this follows from release {number}" in sfumato(folder, *query).stdout
    [row] = csv.DictReader(io.StringIO(sfumato(folder, *query, "-f", "csv").stdout))
    assert abs(float(row["n"]) - release.count(region="north").value) <= 0.501  # a whole number
    shown = sfumato(folder, *ASKED, "-e", "1", "-f", "csv", "--show", "region,age", "-k", "once")
    rows = list(csv.DictReader(io.StringIO(shown.stdout)))
    assert len(rows) == 6 and rows[0]["age"] == "[0, 30)" and rows[0]["region"] == "north"
    assert float(rows[0]["n_low"]) < float(rows[0]["n"]) < float(rows[0]["n_high"])


def test_wanted_errors_and_more_options(folder: Path) -> None:
    more = ("--ways", "1,2", "--weights", "tables", "--base", "age=prefixes", "--missing", "region")
    shown = sfumato(folder, *ASKED, *more, "--error", "60", "--dry-run")
    assert shown.returncode == 0, shown.stderr
    assert "3 tables, 15 cells" in shown.stdout
    errors = [float(line.split("±")[1].split()[0]) for line in shown.stdout.splitlines() if "±" in line]
    assert len(errors) == 3 and all(error <= 60.01 for error in errors)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("-e", "1", "--ways", "two"), "whole numbers"),
        (("-e", "1", "--bins", "age"), "age=10"),
        (("-e", "1", "--show", "age,cost"), "no table of the workload"),
        (("-e", "1", "-f", "csv"), "no csv file"),
        (("-e", "1", "--weights", "rows"), "by table"),
        (("-e", "9"), "left"),
        (("--error", "0.001"), "no epsilon of this budget"),
        ((), "may cost"),
    ],
)
def test_mistakes_are_refused_before_the_charge(folder: Path, more: tuple[str, ...], said: str) -> None:
    before = sfumato(folder, "budget", "-f", "json").stdout
    refused = sfumato(folder, *ASKED, *more)
    assert refused.returncode != 0 and said in refused.stderr
    assert sfumato(folder, "budget", "-f", "json").stdout == before
