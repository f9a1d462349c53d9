"""`sfumato advise`: risk and error without a charge, step by step to a [budget], pages, two projects."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sfumato.catalog import read_project
from sfumato.cli.advise import budget_written
from sfumato.errors import InvalidArgument
from tests.cli.programs import make_project, make_tables, sfumato

COUNT = "SELECT region, COUNT(*) AS n FROM people GROUP BY region"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("project")
    make_project(path)
    return path


def test_advice_leaves_ledger_and_project_as_they_are(folder: Path) -> None:
    before = {one.name: one.read_bytes() for one in folder.iterdir()}
    asked = sfumato(folder, "advise", COUNT, "--advantage", "0.1", "--error", "30", "--format", "json")
    assert asked.returncode == 0, asked.stderr
    record = json.loads(asked.stdout)
    assert record["advantage"] <= 0.1 and record["feasible"] and record["errors"] == {"n": "±30 (95%)"}
    plain = sfumato(folder, "advise", "--people", "400")
    assert (
        "Of 100 people" in plain.stdout
        and "nothing was spent, and nothing was asked of the data" in plain.stdout
    )
    assert {one.name: one.read_bytes() for one in folder.iterdir()} == before


def test_from_init_to_a_budget_and_a_filed_page_without_python(tmp_path: Path) -> None:
    """What an owner without statistics does: init, answers to a few questions, and a page is filed."""
    make_tables(tmp_path)
    declared = ("--unit", "person", "--one-of", "region=north,south", "--max-groups", "1", "--max-rows", "1")
    made = sfumato(tmp_path, "init", "people.parquet", *declared, "--delta", "1e-5", "--yes")
    assert made.returncode == 0, made.stderr
    slips = ("-5", "20,000", "0.1", "49", COUNT.replace("people", "poeple"), "0")  # each is asked again
    answers = "{}\n{}\n20000\n{}\n\n{}\n55\n{}\n" + COUNT + "\n{}\n30\nyes\n"
    answers = answers.format(*slips)
    guided = sfumato(tmp_path, "advise", "--guided", "--output", "advice.html", given=answers)
    assert guided.returncode == 0, guided.stderr
    assert "above 50, which is luck" in guided.stdout and "both can be had" in guided.stdout
    for said in ("at least 1", "not a number such as 20000", "1/n, which is 5e-05", "`poeple`"):
        assert said in guided.stdout
    project = read_project(tmp_path / "sfumato.toml")
    assert project.people == 20_000 and float(project.budget.delta) == 1e-7
    assert f"epsilon {float(project.budget.epsilon):g} into [budget]" in guided.stdout
    page = (tmp_path / "advice.html").read_text()
    for text in ("tossing a coin", "17.14", "Kalman filtering", "Signature", "(now)", "<svg"):
        assert text in page
    assert f"epsilon {float(project.budget.epsilon):g}" in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    again = sfumato(tmp_path, "advise", "--guided", given="52\n\nno\n")  # people and delta are settled
    assert again.returncode == 0 and "delta instead" not in again.stdout, again.stderr
    assert read_project(tmp_path / "sfumato.toml").budget == project.budget
    assert sfumato(tmp_path, "check").returncode == 0
    assert sfumato(tmp_path, "query", COUNT, "--epsilon", "0.01").returncode == 0
    late = sfumato(tmp_path, "advise", "--write")
    assert late.returncode != 0 and "has fixed the budget, for ever" in late.stderr


def test_two_projects_side_by_side(folder: Path, tmp_path: Path) -> None:
    text = (folder / "sfumato.toml").read_text()
    for name, epsilon in (("a", "0.5"), ("b", "4")):
        (tmp_path / f"{name}.toml").write_text(text.replace("epsilon = 2", f"epsilon = {epsilon}"))
    compared = sfumato(tmp_path, "advise", "--compare", "a.toml", "b.toml", "--format", "json")
    record = json.loads(compared.stdout)
    assert record["a.toml"]["advantage"] < record["b.toml"]["advantage"]
    shown = sfumato(tmp_path, "advise", "--compare", "a.toml", "b.toml").stdout
    assert "belief from 0.01" in shown and "b.toml: Of 100 people" in shown


def test_what_a_large_delta_allows_can_be_run(tmp_path: Path) -> None:
    shown = sfumato(tmp_path, "advise", "--whole-records", "--people", "500").stdout
    assert "each of 500 records whole with chance 0.002" in shown and "(0, 0.002)-private" in shown


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--compare", "sfumato.toml"), "two project files"),
        (("--funds", "100"), "needs a chance, a cost, funds"),
        (("--people", "1000000"), "not below 1/n"),
        (("--advantage", "0"), "no epsilon meets"),
        (("--posterior", "0.005"), "no epsilon meets"),
        (("--prior", "1"), "certainty"),
        (("--output", "advice.txt"), "the page is HTML"),
        (("--error", "3"), "found for one question"),
        (
            ("--funds", "-1", "--harm-chance", "0.1", "--harm-cost", "1", "--people", "9"),
            "must not be negative",
        ),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(folder: Path, arguments, said: str) -> None:
    refused = sfumato(folder, "advise", *arguments)
    assert refused.returncode != 0 and said in refused.stderr


def test_only_the_budget_of_a_file_is_written() -> None:
    text = '# a\n[budget]  # for ever\nepsilon = 3  # much\ndelta = 1e-6\n\n[policy]\nepsilon = "no"\n'
    written = budget_written(text, {"epsilon": 0.5, "delta": 1e-7, "people": 9})
    assert written == text.replace("epsilon = 3 ", "epsilon = 0.5 ").replace(
        "delta = 1e-6", "people = 9\ndelta = 1e-07"
    )
    for wrong in ("budget = { epsilon = 3 }\n", "budget.epsilon = 3\n", "[budget]\n'epsilon' = 3\n"):
        with pytest.raises(InvalidArgument, match=r"\[budget\]"):
            budget_written(wrong, {"epsilon": 0.5})
