"""`sfumato bounds`: bounds that nobody knows beforehand are estimated, for a price, and can be declared."""

from __future__ import annotations

import json
from pathlib import Path

import sfumato as sf
from tests.cli.programs import PROJECT, make_project, sfumato


def test_bounds_are_a_line_for_the_project_file(tmp_path: Path) -> None:
    """Every age is from 20 to 79, each bracket of powers of two holds hundreds of people, and the noise, of
    deviation 8, hides one with a chance below 1e-9: the bounds hold them all. (They may be too wide: that
    is allowed in one of twenty cases.)"""
    make_project(tmp_path, PROJECT.replace("age = { between = [0, 110] }\n", ""))
    dry = sfumato(tmp_path, "bounds", "age", "--table", "people", "-e", "1", "--dry-run")
    assert dry.returncode == 0 and "nothing was spent" in dry.stdout
    asked = ("bounds", "age", "--table", "people", "-e", "1", "--key", "age")
    found = sfumato(tmp_path, *asked)
    assert found.returncode == 0, found.stderr
    low, high = json.loads(sfumato(tmp_path, *asked, "--format", "json").stdout)["between"]
    assert low <= 20 and high >= 79
    assert found.stdout == f"age = {{ between = [{low}, {high}] }}\n"
    text = (tmp_path / "sfumato.toml").read_text()
    (tmp_path / "sfumato.toml").write_text(
        text.replace("[tables.people.columns]\n", f"[tables.people.columns]\n{found.stdout}")
    )
    assert sf.open(tmp_path / "sfumato.toml").sql("SELECT AVG(age) AS a FROM people", epsilon=0.1).priced()


def test_bounds_need_a_price_and_a_column(tmp_path: Path) -> None:
    make_project(tmp_path)
    assert sfumato(tmp_path, "bounds", "age").returncode == 2
    assert sfumato(tmp_path, "bounds", "aeg", "--table", "people", "-e", "0.1").returncode == 3


def test_a_price_that_the_budget_does_not_cover_is_shown_and_refused(tmp_path: Path) -> None:
    make_project(tmp_path)
    for words in (("bounds", "age", "--table", "people"), ("caps", "people")):
        dry = sfumato(tmp_path, *words, "-e", "9", "--dry-run")
        assert dry.returncode == 4 and "it does not fit in what is left" in dry.stdout


def test_declaring_more_keeps_the_policy(tmp_path: Path) -> None:
    """A declaration that dropped the policy would lift the ceiling."""
    db = sf.open(make_project(tmp_path, PROJECT + "\n[policy]\nceiling = 0.2\n"))
    assert db.declare(age=sf.between(0, 100), table="people").catalog.policy == db.catalog.policy


def test_bounds_that_cannot_be_told_are_an_answer_too(tmp_path: Path) -> None:
    """False alarms: each of ten answers tells bounds from mere noise with a chance of at most 0.1."""
    make_project(tmp_path)
    told = []
    for style in ("json", "table") * 10:
        done = sfumato(tmp_path, "bounds", "age", "-e", "0.00001", "--format", style)
        assert done.returncode == 0, done.stderr
        told.append("null" in done.stdout or "no bounds could be told" in done.stdout)
    assert any(told[::2]) and any(told[1::2])
