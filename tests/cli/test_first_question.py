"""The first question that is charged fixes the budget, and nothing else; `check` says what it would say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sfumato.ledger import Ledger
from tests.cli.programs import PROJECT, destroy_values, make_project, sfumato

COUNT = "SELECT COUNT(*) AS n FROM people"


def refused(folder: Path, *arguments: str) -> dict[str, Any]:
    done = sfumato(folder, *arguments, "--json-errors")
    assert done.returncode != 0, done.stdout
    error: dict[str, Any] = json.loads(done.stderr)["error"]
    return error


@pytest.mark.parametrize(
    ("words", "given", "code"),
    [
        (("query", "SELEC nonsense", "-e", "0.1"), None, 3),
        (("query", COUNT, "-e", "40"), None, 4),
        (("query", COUNT, "-e", "0.1", "--dry-run"), None, 0),
        (("explain", COUNT, "-e", "0.1"), None, 0),
        (("shell",), ".help\n.budget\n", 0),
        (("budget",), None, 0),
        (("check",), None, 0),
        (("bounds", "age", "--table", "people", "-e", "40"), None, 4),
    ],
)
def test_what_is_not_charged_fixes_nothing(
    tmp_path: Path, words: tuple[str, ...], given: str | None, code: int
) -> None:
    path = make_project(tmp_path)
    done = sfumato(tmp_path, *words, given=given)
    assert done.returncode == code, done.stderr
    path.write_text(PROJECT.replace("epsilon = 2", "epsilon = 1"))
    asked = sfumato(tmp_path, "query", COUNT, "-e", "0.1")
    assert asked.returncode == 0, asked.stderr
    with Ledger.open(tmp_path / "people.ledger") as ledger:
        assert ledger.budget("person").epsilon == 1
    path.write_text(PROJECT)
    assert refused(tmp_path, "query", COUNT, "-e", "0.1")["code"] == "SF706"


def test_another_name_for_the_people_is_refused_by_all(tmp_path: Path) -> None:
    path = make_project(tmp_path)
    assert sfumato(tmp_path, "query", COUNT, "-e", "0.1").returncode == 0
    path.write_text('protects = "somebody"\n' + PROJECT)
    for words in (("query", COUNT, "-e", "0.1"), ("explain", COUNT, "-e", "0.1"), ("check",), ("budget",)):
        error = refused(tmp_path, *words)
        assert error["code"] == "SF610" and "`person`" in error["message"], words


def test_a_private_file_that_is_listed_as_public_is_refused_by_all(tmp_path: Path) -> None:
    public = '[tables.open]\npath = "people.parquet"\npublic = true\n\n[tables.people]'
    make_project(tmp_path, PROJECT.replace("[tables.people]", public, 1))
    for words in (("check",), ("explain", COUNT, "-e", "0.1"), ("query", COUNT, "-e", "0.1")):
        assert refused(tmp_path, *words)["code"] == "SF610", words


def test_two_tables_of_one_name_are_refused_at_the_line_of_the_second(tmp_path: Path) -> None:
    make_project(tmp_path, PROJECT.replace("[tables.visits]", "[tables.PEOPLE]"))
    for words in (("check",), ("query", COUNT, "-e", "0.1")):
        error = refused(tmp_path, *words)
        assert (error["code"], error["line"]) == ("SF705", 13) and "capitals" in error["message"]


def test_prices_need_no_value_of_a_parquet_file(tmp_path: Path) -> None:
    """All pages are rubbish; the schema, at the end, is whole. A question would fail, its price does not."""
    make_project(tmp_path)
    for name in ("people.parquet", "visits.parquet"):
        destroy_values(tmp_path / name)
    for words in (("explain", COUNT, "-e", "0.1"), ("query", COUNT, "-e", "0.1", "--dry-run"), ("check",)):
        done = sfumato(tmp_path, *words)
        assert done.returncode == 0, done.stderr
    assert sfumato(tmp_path, "query", COUNT, "-e", "0.1").returncode != 0
