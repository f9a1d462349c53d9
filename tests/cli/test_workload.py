"""`sfumato workload`: a file of questions, their prices, their answers, and the answers kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sfumato.cli.workload import questions_of
from sfumato.errors import InvalidArgument
from tests.cli.programs import PROJECT, make_project, sfumato

FILE = """
-- name: regions
-- error: n=40
SELECT region, COUNT(*) AS n FROM people GROUP BY region;
/* counted once more */
-- name: total
-- epsilon: 0.1
SELECT COUNT(*) AS n FROM people; -- the end
SELECT AVG(age) AS age FROM people
"""


def test_a_file_of_questions(tmp_path: Path) -> None:
    make_project(tmp_path)
    (tmp_path / "many.sql").write_text(FILE)
    shown = sfumato(tmp_path, "workload", "many.sql", "-e", "1", "--dry-run")
    assert shown.returncode == 0 and "regions  n: ±" in shown.stdout and "q3" in shown.stdout
    dry = json.loads(
        sfumato(tmp_path, "workload", "-", "-e", "1", "--dry-run", "-f", "json", given=FILE).stdout
    )
    assert dry["price"]["epsilon"] <= 1 and len(dry["price"]["errors"]) == 3
    refused = sfumato(tmp_path, "workload", "many.sql")
    assert refused.returncode != 0 and "q3" in refused.stderr
    assert sfumato(tmp_path, "workload", "many.sql", "-e", "1", "-f", "csv").returncode != 0
    asked, again = (
        sfumato(tmp_path, "workload", "many.sql", "-e", "1", "-f", "json", "-k", "once") for _ in range(2)
    )
    assert asked.returncode == 0 and asked.stdout == again.stdout
    answers = json.loads(asked.stdout)
    assert list(answers["answers"]) == ["regions", "total", "q3"]
    number = answers["receipt"]["reservation"]
    kept = sfumato(tmp_path, "ledger", "show", number, "-f", "json")
    assert kept.stdout == asked.stdout
    (tmp_path / "answer.json").write_text(asked.stdout)
    assert "genuine" in sfumato(tmp_path, "ledger", "receipt", "answer.json").stdout
    assert "## regions" in sfumato(tmp_path, "ledger", "show", number, "-f", "markdown").stdout
    too_much = sfumato(tmp_path, "workload", "many.sql", "-e", "9", "--dry-run")
    assert too_much.returncode == 4


def test_a_workload_of_the_project_and_what_it_makes_free(tmp_path: Path) -> None:
    make_project(tmp_path, PROJECT + '[workloads.monthly]\nfile = "many.sql"\nepsilon = 1\nsize = 1000\n')
    (tmp_path / "many.sql").write_text(FILE)
    shown = sfumato(tmp_path, "workload", "monthly", "--dry-run")
    assert shown.returncode == 0 and "age: ±" in shown.stdout  # the size of a group is known
    free = ("query", "SELECT COUNT(*) AS n FROM people WHERE region = 'north'", "--free")
    refused = sfumato(tmp_path, *free)
    assert refused.returncode == 3 and "SF409" in refused.stderr
    assert sfumato(tmp_path, "workload", "monthly").returncode == 0
    spent = sfumato(tmp_path, "budget", "-f", "json").stdout
    assert "without a charge" in sfumato(tmp_path, *free, "--dry-run").stdout
    answer = sfumato(tmp_path, *free)
    assert answer.returncode == 0 and "nothing was charged" in answer.stdout
    assert sfumato(tmp_path, "budget", "-f", "json").stdout == spent


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("-- only a comment", "no question"),
        ("-- name: a\nSELECT 1;\n-- name: a\nSELECT 2", "two questions are called `a`"),
        ("-- error: many\nSELECT 1", "the error of `q1` is not a number"),
        ("-- epsilon: 1\n-- epsilon: 2\nSELECT 1", "said twice"),
    ],
)
def test_files_that_make_no_sense(text: str, said: str) -> None:
    with pytest.raises(InvalidArgument, match=said):
        questions_of(text)
