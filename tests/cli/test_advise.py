"""`sfumato advise`: risk and error without a charge, step by step to a [budget], pages, two projects."""

from __future__ import annotations

import datetime
import json
import math
import shutil
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.advise import risk_of
from sfumato.catalog import read_project
from sfumato.cli.advise import budget_written
from sfumato.errors import InvalidArgument
from sfumato.local import Survey, YesNo
from sfumato.session import Database, open_project
from tests.advise.trap import without_data
from tests.cli.programs import PROJECT, destroy_values, make_project, make_tables, sfumato

COUNT = "SELECT region, COUNT(*) AS n FROM people GROUP BY region"

DECLARED = """
[tables.people_by_hand]
path = "people.csv"
unit = "person"
max_groups = 1
max_rows = 1
columns.age = { between = [0, 110] }

[tables.days]
path = "days.parquet"
unit = "person"
max_groups = 1
max_rows = 1

[streams.daily]
question = "SELECT COUNT(*) AS n FROM days"
by = "day"
every = "day"
start = 2026-01-01
horizon = 30
epsilon = 1

[workloads.monthly]
file = "many.sql"
epsilon = 0.5

[marginals.yearly]
table = "people"
columns = ["region"]
ways = [1]
epsilon = 0.25
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project without a single private value: whatever decodes one fails, in the engine or here."""
    path = make_folder(tmp_path_factory.mktemp("project"))
    for name in ("people.parquet", "visits.parquet", "days.parquet", "people.csv"):
        destroy_values(path / name)
    return path


@pytest.fixture(autouse=True)
def no_look_after_opening(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nobody touch the tables that were opened to look at prices: not even how many rows they have."""

    def opened(*given: Any, read: bool = True, **options: Any) -> Database:
        database = open_project(*given, read=read, **options)
        return database if read else without_data(database)

    monkeypatch.setattr("sfumato.cli.project.open_project", opened)


def make_folder(path: Path) -> Path:
    make_project(path, PROJECT + DECLARED)
    days = [datetime.date(2026, 1, 1)] * 10
    pq.write_table(pa.table({"person": range(10), "day": days}), path / "days.parquet")
    (path / "people.csv").write_text("person,age\n1,20\n2,30\n")
    (path / "many.sql").write_text(f"-- name: regions\n{COUNT};")
    Survey.plan("cheating", YesNo(words="Have you cheated?"), epsilon=1).write(path / "survey.toml")
    return path


BY_HAND = "SELECT AVG(age) AS age FROM people_by_hand"


def test_the_same_advice_with_values_and_without_any(folder: Path, tmp_path: Path) -> None:
    """What is advised is a function of schemas and declarations: the bytes are the same for other rows."""
    whole = make_folder(tmp_path)
    for asked in ((COUNT,), (BY_HAND, "--size", "9")):
        with_values, without = (sfumato(each, "advise", *asked) for each in (whole, folder))
        assert without.returncode == 0, without.stderr
        assert with_values.stdout == without.stdout


@pytest.mark.parametrize("asked", [COUNT, BY_HAND])
def test_a_question_needs_the_values_that_advice_does_without(
    folder: Path, tmp_path: Path, asked: str
) -> None:
    """The trap works: what advice does without, an answer needs."""
    copied = Path(shutil.copytree(folder, tmp_path / "copied"))
    refused = sfumato(copied, "query", asked, "--epsilon", "0.1")
    assert refused.returncode != 0 and ("SF501" in refused.stderr or "cannot be read" in refused.stderr)


def test_a_duckdb_file_without_values(tmp_path: Path) -> None:
    with duckdb.connect(tmp_path / "people.duckdb") as connection:
        ages = "CASE WHEN i % 2 = 0 THEN 'north' ELSE 'south' END AS region, hash(i) % 110 AS age"
        connection.execute(f"CREATE TABLE people AS SELECT i AS person, {ages} FROM range(9000) each(i)")
    destroy_values(tmp_path / "people.duckdb")
    tables = PROJECT.partition("[tables.visits]")[0].replace("people.parquet", "people.duckdb")
    (tmp_path / "sfumato.toml").write_text(f"{tables}[budget]\nepsilon = 2\ndelta = 1e-6\n")
    assert sfumato(tmp_path, "ledger", "create").returncode == 0
    before = contents(tmp_path)
    asked = "SELECT AVG(age) AS age FROM people"
    advised = sfumato(tmp_path, "advise", asked, "--size", "9")
    assert advised.returncode == 0 and "Of 100 people" in advised.stdout, advised.stderr
    assert contents(tmp_path) == before
    refused = sfumato(tmp_path, "query", asked, "--epsilon", "0.1").stderr
    assert "SF706" in refused and "cannot be read" in refused  # read whole at opening, before any charge


def contents(folder: Path) -> dict[Path, bytes]:
    return {one: one.read_bytes() for one in folder.rglob("*") if one.is_file()}


@pytest.mark.parametrize(
    ("subject", "about", "epsilon", "errors"),
    [
        (
            ("--stream", "daily"),
            "the whole stream of 30 days",
            1,
            {"n, worst running total", "n, worst day"},
        ),
        (("--workload", "monthly"), "the workload of 1 question", 0.5, {"regions.n"}),
        (("--marginals", "yearly"), "the tables", 0.25, {"region"}),
        (("--survey", "survey.toml"), "the survey `cheating`", 1, {"a share, at worst"}),
    ],
)
def test_what_is_declared_is_advised_on_by_its_name(folder: Path, subject, about, epsilon, errors) -> None:
    before = contents(folder)
    shown = sfumato(folder, "advise", *subject, "--format", "json")
    assert shown.returncode == 0, shown.stderr
    record = json.loads(shown.stdout)
    assert (record["about"], record["epsilon"], set(record["errors"])) == (about, epsilon, errors)
    assert contents(folder) == before


@pytest.mark.parametrize(
    ("subject", "error"),
    [
        (("--stream", "daily"), 50),
        (("--workload", "monthly"), 25),
        (("--marginals", "yearly"), 25),
        (("--survey", "survey.toml", "--people", "2000"), 0.05),
    ],
)
def test_an_error_is_stated_of_whatever_is_declared(folder: Path, subject, error) -> None:
    found = sfumato(folder, "advise", *subject, "--error", str(error), "--advantage", "0.02", "-f", "json")
    assert found.returncode == 0, found.stderr
    both = json.loads(found.stdout)
    assert not both["feasible"] and "both cannot be had" in both["stated"] and both["advantage"] <= 0.02
    named = f"{next(iter(both['errors']))}={error}"
    alone = json.loads(sfumato(folder, "advise", *subject, "--error", named, "-e", "7", "-f", "json").stdout)
    assert [point["epsilon"] for point in alone["frontier"] if point["current"]] == [7]
    [advised] = [point for point in alone["frontier"] if point["advised"]]
    assert 0.97 * error < max(advised["errors"].values()) <= error
    assert alone["epsilon"] > both["epsilon"]


def test_advice_leaves_ledger_and_project_as_they_are(folder: Path) -> None:
    before = contents(folder)
    asked = sfumato(folder, "advise", COUNT, "--advantage", "0.1", "--error", "30", "--format", "json")
    assert asked.returncode == 0, asked.stderr
    record = json.loads(asked.stdout)
    assert record["advantage"] <= 0.1 and record["feasible"] and record["errors"] == {"n": "±30 (95%)"}
    plain = sfumato(folder, "advise", "--people", "400")
    assert (
        "Of 100 people" in plain.stdout
        and "nothing was spent, and nothing was asked of the data" in plain.stdout
    )
    assert contents(folder) == before


def test_another_epsilon_than_the_declared_one(folder: Path) -> None:
    """All tests count for a survey: a belief of 0.95 from 0.01 is met up to ln(19 * 99), not at 20."""
    survey = ("advise", "--survey", "survey.toml", "-e", "0.5", "-f", "json")
    believed = json.loads(sfumato(folder, *survey, "--posterior", "0.95").stdout)
    assert abs(believed["epsilon"] - math.log(19 * 99)) < 0.01
    marginals = ("advise", "--marginals", "yearly", "-f", "json")
    one, half = (json.loads(sfumato(folder, *marginals, "-e", e).stdout) for e in ("1", "0.5"))
    assert one["epsilon"] == 1 and half["epsilon"] == 0.5 and half["advantage"] < one["advantage"]


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


def test_two_projects_side_by_side(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.pages.figure.svg", lambda picture: "<svg ></svg>")  # `browser/` draws it
    text = (folder / "sfumato.toml").read_text().partition("[marginals")[0]
    (folder / "b.toml").write_text(
        text.replace("epsilon = 2", "epsilon = 4")
        .replace("epsilon = 0.5", "epsilon = 1")
        .replace('file = "many.sql"', 'file = "more.sql"')
        .replace("horizon = 30", "horizon = 60")
    )
    (folder / "more.sql").write_text(f"-- by region\n-- name: regions\n{COUNT} ;")
    before = contents(folder)
    pair = ("advise", "--compare", "sfumato.toml", "b.toml", COUNT, "--output", "compared.html")
    record = json.loads(sfumato(folder, *pair, "-f", "json").stdout)
    page = (folder / "compared.html").read_text()
    (folder / "compared.html").unlink()
    assert contents(folder) == before
    a, b = record["projects"].values()
    assert a["budget"]["advantage"] < b["budget"]["advantage"]
    assert set(a["shared"]) == {"question 1", "workload monthly"}  # the stream has other periods
    assert record["notes"] == ["stream daily is not compared: it does not ask the same everywhere"]
    assert b["shared"]["workload monthly"]["errors"] == {"regions.n": "±8 (95%)"}
    alone = json.loads(sfumato(folder, "advise", "--workload", "monthly", "-f", "json").stdout)
    assert a["shared"]["workload monthly"] == alone
    [verdict] = record["verdicts"]
    assert "sfumato.toml is stricter than b.toml" in verdict and "at epsilon 2, and not 4" in verdict
    for said in ("sfumato.toml is stricter than b.toml", "workload monthly: regions.n", "question 1: n"):
        assert said in page


def test_budgets_are_compared_where_their_tables_are_not(tmp_path: Path) -> None:
    """Neither the tables nor the ledgers of these files are there: their budgets can be compared still."""
    whole = PROJECT + DECLARED
    (tmp_path / "a.toml").write_text(whole.replace("epsilon = 2", "epsilon = 0.5"))
    (tmp_path / "pure.toml").write_text(whole.replace("epsilon = 2\ndelta = 1e-6", "epsilon = 8"))
    (tmp_path / "weekly.toml").write_text(PROJECT + 'renew = { every = "week", epsilon = 0.1 }\n')
    shown = sfumato(tmp_path, "advise", "--compare", "pure.toml", "a.toml").stdout
    [mixed] = [line for line in shown.splitlines() if line.startswith("belief")]
    assert "0.001 false alarms  0.9099" in mixed  # as Gaussian noise is judged; by itself it is 0.9679
    assert "a.toml is stricter than pure.toml" in shown and "a.toml: Of 100 people" in shown
    assert "marginals yearly is not compared" in shown and "ledger is not there" in shown
    record = json.loads(
        sfumato(tmp_path, "advise", "--compare", "a.toml", "weekly.toml", "-f", "json").stdout
    )
    weekly = record["projects"]["weekly.toml"]
    period = read_project(tmp_path / "weekly.toml").period
    assert weekly["declared"]["renewed"] == "epsilon 0.1 each week"
    assert weekly["year"] == risk_of(period.budget, times=52).advantage
    assert weekly["year"] < weekly["budget"]["advantage"]


def test_what_a_large_delta_allows_can_be_run(tmp_path: Path) -> None:
    shown = sfumato(tmp_path, "advise", "--whole-records", "--people", "500").stdout
    assert "each of 500 records whole with chance 0.002" in shown and "(0, 0.002)-private" in shown


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--compare", "sfumato.toml"), "two project files"),
        (("--compare", "sfumato.toml", "sfumato.toml"), "two project files"),
        (("--compare", "sfumato.toml", "b.toml", "--advantage", "0.1"), "compared as they are"),
        (("--compare", "sfumato.toml", "b.toml", "--output", "c.txt"), "the page is HTML"),
        (("--funds", "100"), "needs a chance, a cost, funds"),
        (("--people", "1000000"), "not below 1/n"),
        (("--advantage", "0"), "no epsilon meets"),
        (("--posterior", "0.005"), "no epsilon meets"),
        (("--prior", "1"), "certainty"),
        (("--output", "advice.txt"), "the page is HTML"),
        (("--error", "3"), "has no error of its own"),
        (("--stream", ""), "declares no such stream"),
        (("--stream", "hourly"), "declares no such stream"),
        (("--workload", "hourly"), "it declares monthly"),
        (("--stream", "daily", "--marginals", "yearly"), "one thing at a time"),
        (("--marginals", "yearly", "--size", "9"), "need no size"),
        (("--workload", "monthly", "--write"), "are about the budget"),
        (("--survey", "survey.toml", "--people", "9", "--error", "0.1"), "no epsilon up to 20 makes"),
        (("--workload", "monthly", "--error", "regions.m=3"), "no error is called `regions.m`"),
        (("--workload", "monthly", "--error", "3", "--error", "n=3"), "a number, for all answers or by name"),
        (("--workload", "monthly", "--error", "n=few"), "a number, for all answers or by name"),
        (("--survey", "survey.toml", "--delta", "1e-6"), "neither a delta nor groups"),
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
