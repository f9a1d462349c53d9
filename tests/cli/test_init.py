"""`init` and `check`: a project file is written from schemas alone, and compared with them alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sfumato.catalog import read_project
from tests.cli.programs import CANARY, PROJECT, make_project, make_tables, program, sfumato
from tests.cli.terminal import Terminal

DECLARED = (
    "--between",
    "age=0,110",
    "--one-of",
    "region=north,south",
    "--max-groups",
    "1",
    "--max-rows",
    "1",
)
COUNT = "SELECT region, COUNT(*) AS n FROM people GROUP BY region"


def test_init_check_query_in_fresh_processes(tmp_path: Path) -> None:
    make_tables(tmp_path)
    made = program(tmp_path, "init", "people.parquet", "--unit", "person", *DECLARED, "--yes")
    assert made.returncode == 0, made.stderr
    checked = program(tmp_path, "check")
    assert checked.returncode == 0 and "sfumato.toml fits its tables" in checked.stdout
    assert "values of `people.name`" in checked.stdout, "it says what is missing"
    asked = program(tmp_path, "query", COUNT, "--epsilon", "0.5", "--format", "json")
    assert [row["region"] for row in json.loads(asked.stdout)["rows"]] == ["north", "south"]


def test_what_is_written_is_what_was_said(tmp_path: Path) -> None:
    make_tables(tmp_path)
    options = ("--public", "regions.csv", "--epsilon", "0.7", "--delta", "1e-8", "--ceiling", "0.1")
    files = ("people.parquet", "visits.parquet")
    made = sfumato(tmp_path, "init", *files, "--unit", "person", *DECLARED, *options, "--yes")
    assert made.returncode == 0, made.stderr
    project = read_project(tmp_path / "sfumato.toml")
    assert [table.name for table in project.tables] == ["people", "visits", "regions"]
    assert float(project.budget.epsilon) == 0.7 and float(project.budget.delta) == 1e-8
    assert project.policy.ceiling is not None and float(project.policy.ceiling) == 0.1
    assert set(project.tables[0].declaration.columns) == {"age", "region"}
    assert str(tmp_path) not in (tmp_path / "sfumato.toml").read_text(), "paths are relative to the file"
    again = sfumato(tmp_path, "init", *files, "--unit", "person", "--yes")
    assert again.returncode == 2 and "--force" in again.stderr


def test_init_and_check_read_no_value(tmp_path: Path) -> None:
    """Every page of the file is broken; only the schema, at its end, is whole. For CSV, the same by a
    second line that is not text."""
    make_tables(tmp_path)
    path = tmp_path / "people.parquet"
    data = bytearray(path.read_bytes())
    start = int.from_bytes(data[-8:-4], "little") + 8  # the length of the schema, and what follows it
    data[4:-start] = b"\xff" * (len(data) - start - 4)
    path.write_bytes(bytes(data))
    (tmp_path / "notes.csv").write_bytes(b"person,note\n" + b"\xff\xfe\x00" * 50)
    files = ("people.parquet", "notes.csv")
    made = sfumato(tmp_path, "init", *files, "--unit", "person", *DECLARED, "--yes")
    assert made.returncode == 0, made.stderr
    checked = sfumato(tmp_path, "check", "--format", "json")
    assert checked.returncode == 0, checked.stderr
    assert [table["columns"] for table in json.loads(checked.stdout)["tables"]] == [4, 2]
    assert CANARY not in (tmp_path / "sfumato.toml").read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "--unit"),
        (("--unit", "persn"), "`person`"),
        (("--unit", "person", "--each-row"), "not both"),
        (("--unit", "person", "--between", "aeg=0,1"), "`age`"),
        (("--unit", "person", "--between", "age=0"), "low,high"),
        (("--unit", "person", "--between", "age=x,y"), "integer"),
        (("--unit", "person", "--between", "name=0,1"), "one_of"),
        (("--unit", "person", "--epsilon", "-1"), "above zero"),
    ],
)
def test_bad_wishes_are_refused_and_nothing_is_written(
    tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    make_tables(tmp_path)
    made = sfumato(tmp_path, "init", "people.parquet", *arguments, "--yes")
    assert made.returncode == 2 and said in made.stderr, made.stderr
    assert not (tmp_path / "sfumato.toml").exists() and not (tmp_path / "sfumato.ledger").exists()


def test_it_asks_in_a_terminal(tmp_path: Path) -> None:
    make_tables(tmp_path)
    with Terminal(tmp_path, "init", "people.parquet") as terminal:
        terminal.expect("whose each row is")
        terminal.send("nobody\r")
        terminal.expect("there is no column `nobody`")
        terminal.expect("whose each row is")
        terminal.send("person\r")
        for said, answer in (
            ("how many groups", "2"), ("how many rows", ""), ("region: which values?", "north,south"),
            ("age: between?", "110"), ("two bounds", ""), ("age: between?", "0, 110"),
            ("name: which values?", ""), ("epsilon?", "2.5"), ("delta?", ""),
        ):  # fmt: skip
            terminal.expect(said)
            if said != "two bounds":
                terminal.send(f"{answer}\r")
        terminal.expect("sfumato check")
        assert terminal.wait() == 0
    project = read_project(tmp_path / "sfumato.toml")
    [people] = project.tables
    assert set(people.declaration.columns) == {"region", "age"} and float(project.budget.epsilon) == 2.5
    assert (people.declaration.max_groups, people.declaration.max_rows) == (2, 1)


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ("age =", "aeg =", 10, "`age`"),
        ('unit = "person"', 'unit = "persn"', 5, "columns are"),
        ('path = "people.parquet"', 'path = "nobody.parquet"', 4, ""),
        ('"regions.csv"\n', '"regions.csv"\ncolumns.nam = { one_of = ["A"] }\n', 22, "`name`"),
        ('{ one_of = ["north", "south"] }', "{ between = [0, 1] }", 11, "one_of"),
    ],
)
def test_a_file_that_does_not_fit_its_tables(
    tmp_path: Path, old: str, new: str, line: int, said: str
) -> None:
    make_project(tmp_path, PROJECT.replace(old, new))
    checked = sfumato(tmp_path, "check", "--json-errors")
    error = json.loads(checked.stderr)["error"]
    assert checked.returncode == 2 and error["line"] == line, error
    assert said in " ".join(error["hints"])


def test_another_budget_than_the_one_on_record(tmp_path: Path) -> None:
    make_project(tmp_path)
    assert sfumato(tmp_path, "query", "SELECT COUNT(*) FROM people", "-e", "0.1").returncode == 0
    (tmp_path / "sfumato.toml").write_text(PROJECT.replace("epsilon = 2", "epsilon = 20"))
    checked = sfumato(tmp_path, "check", "--json-errors")
    assert checked.returncode == 2 and json.loads(checked.stderr)["error"]["line"] == 24
    assert sfumato(tmp_path, "query", "SELECT COUNT(*) FROM people", "-e", "0.1").returncode == 2
