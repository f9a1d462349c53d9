"""What a tired engineer does wrong, and what is said then: the place, and what to do instead."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import sfumato as sf
from sfumato.cli.exits import report
from sfumato.errors import InvalidArgument, ProjectRefused, QueryRefused
from tests.cli.programs import PROJECT, make_project, make_tables, sfumato

COUNT = "SELECT COUNT(*) AS n FROM people"


def refused(folder: Path, *arguments: str) -> dict[str, Any]:
    done = sfumato(folder, *arguments, "--json-errors")
    assert done.returncode != 0 and done.stdout == ""
    error: dict[str, Any] = json.loads(done.stderr)["error"]
    return error


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    make_project(tmp_path)
    return tmp_path


def test_init_says_which_option_is_wrong_and_how_it_is_written(tmp_path: Path) -> None:
    make_tables(tmp_path)
    init = ("init", "people.parquet", "--unit", "person", "--yes")
    bare = refused(tmp_path, *init, "--between", "age")
    assert bare["hints"] == ["--between age=0,110"] and bare["place"] == "age"
    words = refused(tmp_path, *init, "--between", "age=a,b")
    assert words["place"] == "--between age=a,b" and "integer" in words["message"]
    missing = refused(tmp_path, "init", "peeple.parquet", "--unit", "person", "--yes")
    assert missing["place"].endswith("peeple.parquet")
    assert not (tmp_path / "sfumato.toml").exists()


def test_init_leaves_nothing_behind_where_it_fails(tmp_path: Path) -> None:
    make_tables(tmp_path)
    init = ("init", "people.parquet", "--unit", "person", "--yes")
    nowhere = refused(tmp_path, *init, "--project", "no/such/sfumato.toml")
    assert nowhere["exit"] == 2 and nowhere["place"] == "no/such/sfumato.toml"
    assert refused(tmp_path, *init, "--ledger", "no/such/people.ledger")["exit"] == 5
    assert refused(tmp_path, *init, "--ledger", "people.parquet")["code"] == "SF602"
    assert {path.name for path in tmp_path.iterdir()} == {"people.parquet", "visits.parquet", "regions.csv"}
    assert sfumato(tmp_path, *init).returncode == 0


def test_bounds_of_a_column_that_one_table_has_need_no_table(folder: Path) -> None:
    """As the option's help says: its table, if several have it."""
    text = (folder / "sfumato.toml").read_text().replace("columns.cost = { between = [0, 100] }", "")
    (folder / "sfumato.toml").write_text(text)
    found = sfumato(folder, "bounds", "cost", "-e", "0.5")
    assert found.returncode == 0 and found.stdout.startswith("cost = { between = ["), found.stderr
    several = refused(folder, "bounds", "person", "-e", "0.5")
    assert several["code"] == "SF402" and "--table" in several["hints"][0]
    nowhere = refused(folder, "bounds", "coast", "-e", "0.5")
    assert nowhere["code"] == "SF402" and "`coast`" in nowhere["message"]
    db = sf.open(folder / "sfumato.toml")
    assert db.declare(cost=sf.between(0, 9)).catalog.table("visits").field("cost").domain is not None  # type: ignore[union-attr]
    with pytest.raises(QueryRefused):
        db.declare(coast=sf.between(0, 9))


def test_another_budget_than_the_one_on_record_names_the_line_and_the_record(folder: Path) -> None:
    assert sfumato(folder, "query", COUNT, "-e", "0.1").returncode == 0
    (folder / "sfumato.toml").write_text(PROJECT.replace("epsilon = 2", "epsilon = 5"))
    for words in (("query", COUNT, "-e", "0.1"), ("explain", COUNT, "-e", "0.1"), ("check",)):
        error = refused(folder, *words)
        assert error["code"] == "SF706" and error["key"] == "budget" and "epsilon = 2," in error["hints"][0]
    with pytest.raises(ProjectRefused):
        sf.open(folder / "sfumato.toml")


def test_the_error_of_an_average_is_asked_for_in_the_names_of_the_question(folder: Path) -> None:
    asked = ("SELECT AVG(age) AS mean_age FROM people", "--error", "1")
    error = refused(folder, "query", *asked)
    assert "`mean_age`" in error["message"] and "--size" in error["hints"][0]
    dry = sfumato(folder, "query", *asked, "--size", "2000", "--dry-run")
    assert dry.returncode == 0 and "mean_age: ±" in dry.stdout


def test_a_ledger_that_is_missing_may_have_been_moved(folder: Path) -> None:
    (folder / "people.ledger").rename(folder / "elsewhere")
    for words in (("check",), ("query", COUNT, "-e", "0.1"), ("explain", COUNT, "-e", "0.1"), ("budget",)):
        error = refused(folder, *words)
        assert error["exit"] == 5 and "was it moved?" in error["hints"][0]


def test_numbers_that_are_no_charges(folder: Path) -> None:
    for words in (("ledger", "show", "1"), ("ledger", "receipt", "99")):
        error = refused(folder, *words)
        assert error["code"] == "SF608" and "ledger history" in error["hints"][0]


def test_a_file_that_is_gone_is_named(folder: Path) -> None:
    (folder / "people.parquet").unlink()
    for words in (("query", COUNT, "-e", "0.1"), ("explain", COUNT, "-e", "0.1"), ("check",)):
        error = refused(folder, *words)
        assert error["code"] == "SF706" and error["line"] == 4 and "people.parquet" in error["message"]


def test_refusals_end_lines_between_words_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A question above its mark stays as it is."""
    error = InvalidArgument("word " * 20, place="x" * 70, hints=("--error n=20 " * 8,))
    report(error, as_json=False)
    whole = capsys.readouterr().err
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "60")
    report(error, as_json=False)
    folded = capsys.readouterr().err
    assert folded.split() == whole.split() and "x" * 70 in folded
    assert all(len(line) <= 60 for line in folded.splitlines() if "xx" not in line)
