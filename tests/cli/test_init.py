"""`init` and `check`: a project file is written from schemas alone, and compared with them alone."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.catalog import Between, OneOf, read_project
from tests.cli.programs import CANARY, PROJECT, destroy_values, make_project, make_tables, program, sfumato
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
    options = (
        "--max-rows-total",
        "7",
        "--public",
        "regions.csv",
        "--epsilon",
        "0.7",
        "--delta",
        "1e-8",
        "--ceiling",
        "0.1",
    )
    files = ("people.parquet", "visits.parquet")
    made = sfumato(tmp_path, "init", *files, "--unit", "person", *DECLARED, *options, "--yes")
    assert made.returncode == 0, made.stderr
    project = read_project(tmp_path / "sfumato.toml")
    assert [table.name for table in project.tables] == ["people", "visits", "regions"]
    assert float(project.budget.epsilon) == 0.7 and float(project.budget.delta) == 1e-8
    assert project.policy.ceiling is not None and float(project.policy.ceiling) == 0.1
    assert set(project.tables[0].declaration.columns) == {"age", "region"}
    assert project.tables[0].declaration.max_rows_total == 7 and project.policy.keep_questions
    assert str(tmp_path) not in (tmp_path / "sfumato.toml").read_text(), "paths are relative to the file"
    again = sfumato(tmp_path, "init", *files, "--unit", "person", "--yes")
    assert again.returncode == 2 and "--force" in again.stderr


def test_init_and_check_read_no_value(tmp_path: Path) -> None:
    """Every page of the file is broken; only the schema, at its end, is whole. For CSV, the same by a
    second line that is not text."""
    make_tables(tmp_path)
    path = tmp_path / "people.parquet"
    moments = pa.array([0] * 3000, pa.timestamp("ms"))  # such a file is read whole when it is asked about
    pq.write_table(pq.read_table(path).append_column("seen", moments), path)
    destroy_values(path)
    (tmp_path / "notes.csv").write_bytes(b"person,note\n" + b"\xff\xfe\x00" * 50)
    files = ("people.parquet", "notes.csv")
    made = sfumato(tmp_path, "init", *files, "--unit", "person", *DECLARED, "--yes")
    assert made.returncode == 0, made.stderr
    checked = sfumato(tmp_path, "check", "--format", "json")
    assert checked.returncode == 0, checked.stderr
    assert [table["columns"] for table in json.loads(checked.stdout)["tables"]] == [5, 2]
    assert CANARY not in (tmp_path / "sfumato.toml").read_text()


def test_check_says_what_is_left_out(tmp_path: Path) -> None:
    table = pa.table({"person": [1], "tags": [[1]], "at": pa.array([1], pa.time32("s"))})
    pq.write_table(table, tmp_path / "people.parquet")
    made = sfumato(tmp_path, "init", "people.parquet", "--unit", "person", "--yes")
    assert made.returncode == 0, made.stderr
    checked = sfumato(tmp_path, "check")
    assert "left out of `people`: `tags` is a column of type LIST" in checked.stdout
    listed = json.loads(sfumato(tmp_path, "check", "--format", "json").stdout)["left_out"]
    assert len(listed) == 2 and "type TIME" in listed[1]
    refused = sfumato(tmp_path, "init", "people.parquet", "--unit", "tags", "--yes", "--force")
    assert refused.returncode == 2 and "tags" in refused.stderr


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
            ("how many groups", "0"), ("how many groups", "2"), ("how many rows", "later"),
            ("region: which values?", "north,south"),
            ("age: between?", "110"), ("two bounds", ""), ("age: between?", "0, 110"),
            ("name: which values?", ""), ("epsilon?", "2.5"), ("How many of them", ""), ("delta?", ""),
        ):  # fmt: skip
            terminal.expect(said)
            if said != "two bounds":
                terminal.send(f"{answer}\r")
        terminal.expect("sfumato check")
        assert terminal.wait() == 0
    project = read_project(tmp_path / "sfumato.toml")
    [people] = project.tables
    assert set(people.declaration.columns) == {"region", "age"} and float(project.budget.epsilon) == 2.5
    assert (people.declaration.max_groups, people.declaration.max_rows) == (2, None)
    assert "# max_rows = .." in (tmp_path / "sfumato.toml").read_text()


def test_a_budget_that_makes_no_sense_is_asked_for_again(tmp_path: Path) -> None:
    """Not after the last question, when all that was answered would be lost."""
    make_tables(tmp_path)
    with Terminal(
        tmp_path, "init", "visits.parquet", "--unit", "person", "--between", "cost=0,9"
    ) as terminal:
        for said, answer in (
            ("how many groups", ""), ("how many rows", ""), ("epsilon?", "-3"), ("above zero", None),
            ("epsilon?", "much"), ("not a number", None), ("epsilon?", "2"),
            ("How many of them", "0"), ("at least 1", None), ("How many of them", "50000"),
            ("delta?", "2"), ("below 1", None), ("delta?", "2e-5"), ("1/n", None), ("delta?", "1e-6"),
        ):  # fmt: skip
            terminal.expect(said)
            if answer is not None:
                terminal.send(f"{answer}\r")
        terminal.expect("sfumato check")
        assert terminal.wait() == 0
    project = read_project(tmp_path / "sfumato.toml")
    assert (float(project.budget.epsilon), float(project.budget.delta), project.people) == (2, 1e-6, 50_000)
    declared = project.tables[0].declaration
    assert (declared.max_groups, declared.max_rows) == (1, 1), "as proposed: the first question has caps"


def test_it_says_in_odds_what_is_asked_for(tmp_path: Path) -> None:
    make_tables(tmp_path)
    init = ("init", "visits.parquet", "--unit", "person", "--between", "cost=0,9", "--max-groups", "1")
    with Terminal(tmp_path, *init, "--max-rows", "2") as terminal:
        terminal.expect("by what factor the odds of any conclusion")
        terminal.expect("epsilon 3: odds change by a factor of up to 20.1")
        terminal.expect("epsilon?")
        terminal.send("1\r")
        terminal.expect("of something ends up 23% sure at")
        terminal.expect("How many of them")
        terminal.send("\r")
        terminal.expect("far below 1 in the number of people")
        terminal.expect("delta?")
        terminal.send("0.001\r")
        terminal.expect("nobody says how many people there are")
        terminal.expect("delta?")
        terminal.send("1e-6\r")
        terminal.expect("1 in 1,000,000 at most")
        terminal.expect("sfumato check")
        assert terminal.wait() == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--delta", "0.001"), "--yes takes it"),
        (("--delta", "0.001", "--people", "1000", "--yes"), "1/n"),
        (("--delta", "1e-3", "--people", "999"), None),
        (("--delta", "0.001", "--yes"), None),
        (("--delta", "1e-4"), None),
        (("--people", "5000000000"), None),
    ],
)
def test_a_delta_is_below_one_in_the_number_of_people(
    tmp_path: Path, options: tuple[str, ...], said: str | None
) -> None:
    make_tables(tmp_path)
    made = sfumato(tmp_path, "init", "people.parquet", "--unit", "person", *options)
    assert made.returncode == (0 if said is None else 2), made.stderr
    if said is not None:
        assert said in made.stderr and not (tmp_path / "sfumato.toml").exists()
        return
    project = read_project(tmp_path / "sfumato.toml")
    assert project.people is None or project.budget.delta * project.people < 1
    warned = "people of [budget]" in sfumato(tmp_path, "check").stdout
    assert warned == (project.people is None and project.budget.delta > 1e-4)


@pytest.mark.parametrize("last", ["40", "hello"])
def test_the_values_of_a_csv_file_do_not_show_in_the_project(tmp_path: Path, last: str) -> None:
    """Neither of one file nor of a pattern: kinds follow from values, and are found when it is opened."""
    (tmp_path / "v-1.csv").write_text("person,amount\n1,10\n2,20\n")
    (tmp_path / "v-2.csv").write_text(f"person,amount\n3,30\n4,{last}\n")
    init = ("init", "v-*.csv", "--unit", "person", "--yes")
    assert sfumato(tmp_path, *init).returncode == 0
    text = (tmp_path / "sfumato.toml").read_text()
    assert "amount" not in text and "integer" not in text and "text" not in text
    checked = sfumato(tmp_path, "check", "--format", "json")
    record = json.loads(checked.stdout)
    assert record["tables"][0]["columns"] == 2 and "kinds of `v`" in record["missing"][0]


def test_codes_with_leading_zeros_are_texts(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("person,zip,born\n1,01234,1980\n2,99999,1981\n")
    given = (
        "--one-of",
        "zip=01234,99999",
        "--one-of",
        "born=1980,1981",
        "--max-groups",
        "1",
        "--max-rows",
        "1",
    )
    made = sfumato(tmp_path, "init", "people.csv", "--unit", "person", "--yes", *given)
    assert made.returncode == 0, made.stderr
    text = (tmp_path / "sfumato.toml").read_text()
    assert '["01234", "99999"]' in text and "[1980, 1981]" in text
    sql = "SELECT zip, COUNT(*) AS n FROM people GROUP BY zip"
    asked = sfumato(tmp_path, "query", sql, "-e", "1", "-f", "csv")
    assert asked.returncode == 0 and "\n01234," in asked.stdout, asked.stderr


def test_a_second_project_is_not_a_second_budget_by_default(tmp_path: Path) -> None:
    make_tables(tmp_path)
    init = ("init", "people.parquet", "--unit", "person", "--max-groups", "1", "--max-rows", "1", "--yes")
    assert sfumato(tmp_path, *init).returncode == 0

    def refused() -> dict[str, object]:
        done = sfumato(tmp_path, *init, "-p", "second.toml", "--json-errors")
        assert done.returncode == 2 and not (tmp_path / "second.toml").exists()
        assert not (tmp_path / "second.ledger").exists()
        error: dict[str, object] = json.loads(done.stderr)["error"]
        return error

    assert refused()["place"] == "--ledger"  # a project file names the data
    assert sfumato(tmp_path, "query", "SELECT COUNT(*) FROM people", "-e", "0.5").returncode == 0
    (tmp_path / "sfumato.toml").rename(tmp_path / "sfumato.bak")
    assert "sfumato.ledger" in str(refused()["message"])  # a ledger has it on record
    shared = sfumato(tmp_path, *init, "-p", "second.toml", "--ledger", "sfumato.ledger")
    assert shared.returncode == 0 and "goes on" in shared.stdout
    other = ("init", "visits.parquet", "--unit", "person", "--yes", "-p", "third.toml")
    assert sfumato(tmp_path, *other).returncode == 0, "other data"
    word = (*init, "-p", "fourth.toml", "--ledger", "fourth.ledger")
    assert sfumato(tmp_path, *word).returncode == 0, "the owner's word"


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


def test_tables_name_one_unit_in_ways_of_their_own(tmp_path: Path) -> None:
    """A column of another name, and a path through a key: written, read back, checked and asked."""
    tables = {
        "people": {"person": range(300), "kind": ["a", "b", "a"] * 100},
        "orders": {"id": range(600), "buyer": [at % 300 for at in range(600)]},
        "lines": {"order_id": [at % 600 for at in range(1200)], "price": [5] * 1200},
    }
    for name, columns in tables.items():
        pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet")
    path = "order_id -> orders.id -> buyer"
    units = ("--unit", "people=person", "--unit", "orders=buyer", "--unit", f"lines={path}")
    caps = ("--between", "price=0,9", "--max-groups", "2", "--max-rows", "9", "--yes")
    files = [f"{name}.parquet" for name in tables]
    refused = sfumato(tmp_path, "init", *files, *units, *caps)
    assert refused.returncode == 2 and "protects" in refused.stderr
    made = sfumato(tmp_path, "init", *files, *units, "--protects", "customer", *caps)
    assert made.returncode == 0, made.stderr
    project = read_project(tmp_path / "sfumato.toml")
    found = {table.name: table.declaration.unit for table in project.tables}
    assert {name: unit.text for name, unit in found.items() if unit} == {
        "people": "person",
        "orders": "buyer",
        "lines": path,
    }
    assert project.unit == "customer" and all(unit and unit.name == "customer" for unit in found.values())
    checked = sfumato(tmp_path, "check")
    assert checked.returncode == 0, checked.stderr
    question = "SELECT kind, SUM(price) AS s FROM people JOIN lines ON person = lines.buyer GROUP BY kind"
    asked = sfumato(tmp_path, "query", question, "--epsilon", "1", "--format", "json")
    assert asked.returncode == 0, asked.stderr
    text = (tmp_path / "sfumato.toml").read_text().replace("orders.id ->", "orders.nothing ->")
    (tmp_path / "sfumato.toml").write_text(text)
    wrong = sfumato(tmp_path, "query", question, "--epsilon", "1")
    assert wrong.returncode == 2 and "orders.nothing" in wrong.stderr and "unit = " in wrong.stderr


def test_a_csv_file_can_be_declared_in_a_narrow_terminal(tmp_path: Path) -> None:
    """It states no kinds: numbers and texts are asked for alike. No line ends within a word."""
    (tmp_path / "people.csv").write_text("person,age,region\n1,30,north\n")
    with Terminal(tmp_path, "init", "people.csv", "--unit", "person", COLUMNS="60") as terminal:
        for said, answer in (
            ("how many groups", ""), ("how many rows", ""), ("age: between?", "0, 110"),
            ("region: between?", "north, south"), ("epsilon?", ""), ("How many of them", ""), ("delta?", ""),
        ):  # fmt: skip
            terminal.expect(said)
            terminal.send(f"{answer}\r")
        terminal.expect("sfumato check")
        assert terminal.wait() == 0
        lines = terminal.raw.splitlines()
    [people] = read_project(tmp_path / "sfumato.toml").tables
    assert people.declaration.columns["region"].domain == OneOf(("north", "south"))
    assert people.declaration.columns["age"].domain == Between(0, 110)
    first = next(place for place, line in enumerate(lines) if line.startswith("Declare what you know"))
    assert lines[first + 1] == "sense. Never look at the data for it.", lines


@pytest.mark.parametrize(
    ("given", "called"),
    [
        ("visits-*.parquet", "visits"),
        ("visits_2026_*.parquet", "visits_2026"),
        ("visits/*.parquet", "visits"),
        ("visits/part-[0-9].parquet", "part"),
        ("first visits.parquet", "first_visits"),
    ],
)
def test_a_table_of_many_files_is_called_by_what_they_share(tmp_path: Path, given: str, called: str) -> None:
    make_tables(tmp_path)
    for one in (given.replace("*", "1").replace("[0-9]", "1"), given.replace("*", "2").replace("[0-9]", "2")):
        path = tmp_path / one
        path.parent.mkdir(exist_ok=True)
        shutil.copy(tmp_path / "visits.parquet", path)
    made = sfumato(tmp_path, "init", given, "--unit", "person", "--yes")
    assert made.returncode == 0, made.stderr
    assert [table.name for table in read_project(tmp_path / "sfumato.toml").tables] == [called]
