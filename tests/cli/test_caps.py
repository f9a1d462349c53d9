"""`sfumato caps` and `sfumato losses`: caps that nobody knows are found, and what they take is told."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd

import sfumato as sf
from sfumato.catalog import read_project
from tests.cli.programs import make_project, sfumato


def test_caps_are_lines_for_the_project_file(tmp_path: Path) -> None:
    """Each person has at most six visits here, in at most two wards; the noise at epsilon 1 is some rows."""
    make_project(tmp_path)
    asked = ("caps", "visits", "-e", "1", "--share", "0.5", "--limit", "9", "--key", "caps")
    dry = sfumato(tmp_path, *asked, "--dry-run")
    assert dry.returncode == 0 and "nothing was spent" in dry.stdout, dry.stderr
    shown = sfumato(tmp_path, *asked)
    assert shown.returncode == 0, shown.stderr
    record = json.loads(sfumato(tmp_path, *asked, "--format", "json").stdout)
    assert list(record["caps"]) == ["max_rows"] and 1 <= record["caps"]["max_rows"] <= 9
    assert shown.stdout.splitlines()[0].startswith(
        f"max_rows = {record['caps']['max_rows']}  # 95% interval: "
    )
    assert all(line.startswith("# ") for line in shown.stdout.splitlines()[1:])
    low, high = record["intervals"]["max_rows"]
    assert low <= record["caps"]["max_rows"] <= high
    assert sfumato(tmp_path, "caps", "visits").returncode == 2  # no price
    assert sfumato(tmp_path, "caps", "nobody", "-e", "1").returncode == 3


def test_losses_are_asked_as_python_asks_them(tmp_path: Path) -> None:
    make_project(tmp_path)
    text = "SELECT AVG(cost) AS c FROM visits"
    found = sfumato(tmp_path, "losses", text, "-e", "1", "--max-rows", "1", "--format", "json")
    assert found.returncode == 0, found.stderr
    record = json.loads(found.stdout)
    database = sf.open(tmp_path / "sfumato.toml")
    expected = database.sql(text, epsilon=1, max_rows=1).losses(epsilon=1).release()
    assert record["columns"] == list(expected.columns) and "kept_share" in record["columns"]
    assert record["notes"] == list(expected.remarks()) and record["cost"]["epsilon"] == 1
    dry = sfumato(tmp_path, "losses", text, "-e", "1", "--max-rows", "1", "--dry-run")
    assert dry.returncode == 0 and "nothing was spent" in dry.stdout
    assert sfumato(tmp_path, "losses", text).returncode == 2


def test_rows_in_all_groups_together_can_be_capped(tmp_path: Path) -> None:
    make_project(tmp_path)
    text = "SELECT cost > 60 AS dear, COUNT(*) AS n FROM visits GROUP BY dear"
    ask = ("query", text, "-e", "0.5", "--max-groups", "2", "--max-rows", "3", "--max-rows-total", "4")
    [note] = [line for line in sfumato(tmp_path, *ask).stdout.splitlines() if "max_rows_total = 4" in line]
    assert note.endswith("tells how much") and len(note) < 140, "one line"


def test_an_answer_names_the_command_that_tells(tmp_path: Path) -> None:
    make_project(tmp_path)
    text = "SELECT COUNT(*) AS n FROM visits"
    shown = sfumato(tmp_path, "query", text, "-e", "0.5")
    assert "`sfumato losses`" in shown.stdout and "max_rows = 3" in shown.stdout
    measured = sfumato(tmp_path, "query", text, "-e", "0.5", "--losses", "--format", "json")
    [note] = [note for note in json.loads(measured.stdout)["notes"] if "max_rows = 3" in note]
    assert "5% of the cost" in note and "sfumato losses" not in note
    explained = sfumato(tmp_path, "explain", text, "-e", "0.5", "--losses")
    assert "5% of the cost measures" in explained.stdout


def test_init_proposes_no_caps(tmp_path: Path) -> None:
    pd.DataFrame({"who": [1], "x": [2]}).to_parquet(tmp_path / "t.parquet")
    made = sfumato(tmp_path, "init", "t.parquet", "--unit", "who", "--yes")
    assert made.returncode == 0 and "`sfumato caps`" in made.stdout, made.stderr
    text = (tmp_path / "sfumato.toml").read_text()
    assert "# max_groups = .." in text and "# max_rows = .." in text
    [table] = read_project(tmp_path / "sfumato.toml").tables
    assert (table.declaration.max_groups, table.declaration.max_rows) == (None, None)
    assert "`sfumato caps` finds one" in sfumato(tmp_path, "check").stdout


def test_no_more_groups_are_proposed_than_are_declared() -> None:
    """However large the noise: the answer's range ends at the number of declared groups."""
    frame = pd.DataFrame({"who": list(range(50)) * 3, "g": list("abc") * 50, "h": [True, False, True] * 50})
    columns = {"g": sf.one_of("a", "b", "c"), "h": sf.one_of(True, False)}
    budget = sf.Budget(epsilon=100, delta=1e-6)
    db = sf.connect(frame, name="t", unit="who", columns=columns, budget=budget)
    for by, most in (("g", 3), (["g", "h"], 6), ("h", 2)):
        question = db.caps(by=by, epsilon=0.001)
        assert question.priced().boundings[0].answers[-1].upper == most
        assert all((question.release().one()["max_groups"] or 1) <= most for _ in range(5))
    assert db.caps(by="g", epsilon=0.001, limit=2).priced().boundings[0].answers[-1].upper == 2
