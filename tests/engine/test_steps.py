"""Steps: hostile questions are refused by a count that is the same everywhere, and that misses no loop."""

from __future__ import annotations

import cProfile
import importlib
from contextlib import suppress
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.catalog import read_project
from sfumato.core import noise_allocation
from sfumato.core.steps import CALLS, MOST_STEPS, limited
from sfumato.errors import InvalidArgument, ProjectRefused, QueryRefused, SfumatoError
from tests.engine.hostile import DOORS, QUESTIONS, Door, all_doors, hostile_database

_FEW = 3_000
_FIXED = 500_000
"""Calls of functions that a door makes however small the question is: modules are read, for example."""

_SMALL = "SELECT c0, AVG(x) AS mean FROM v GROUP BY c0"


@pytest.fixture(scope="module")
def few() -> sf.Database:
    """Return a database that allows few steps: what takes more is refused soon."""
    db = hostile_database(steps=_FEW)
    db.sql(_SMALL, epsilon=1).explain()
    return db


def _counted(db: sf.Database, door: Door) -> tuple[int, int, str]:
    """Return the steps and the calls of functions of a door, and how it ended."""
    profile, ended = cProfile.Profile(), "priced"
    with limited(db.steps) as counted:
        profile.enable()
        try:
            door(db)
        except SfumatoError as refusal:
            ended = refusal.code
        finally:
            profile.disable()
    return counted.taken, sum(entry.callcount for entry in profile.getstats()), ended


def _uncounted(db: sf.Database, door: Door) -> int:
    """Return how many calls no step stands for; above 0, a loop is not counted."""
    taken, calls, _ = _counted(db, door)
    return calls - _FIXED - CALLS * min(taken, db.steps)


@pytest.mark.parametrize(
    ("name", "door"),
    [
        pytest.param(*one, id=one[0], marks=pytest.mark.soak if place % 3 else ())
        for place, one in enumerate(all_doors())
    ],
)
def test_few_steps_are_few_calls_of_functions(few: sf.Database, name: str, door: Door) -> None:
    taken, calls, ended = _counted(few, door)
    assert ended != "SF410" or taken > _FEW
    assert calls <= _FIXED + CALLS * min(taken, _FEW), (taken, calls)
    with limited(_FEW) as again, suppress(SfumatoError):
        door(few)
    assert again.taken == taken


@pytest.mark.soak
@pytest.mark.parametrize(("name", "door"), [pytest.param(*one, id=one[0]) for one in list(all_doors())[::6]])
def test_steps_that_are_allowed_are_few_calls_of_functions(name: str, door: Door) -> None:
    db = hostile_database()
    db.sql(_SMALL, epsilon=1).explain()
    assert db.steps == MOST_STEPS and _uncounted(db, door) <= 0


@pytest.mark.parametrize(
    ("modules", "name"),
    [
        (("plan.sql",), "windows"),
        pytest.param(("analysis.value_grids",), "quantiles", marks=pytest.mark.soak),
        (
            (
                *("analysis.shared_measurements", "analysis.bounding", "analysis.forecast"),
                *("analysis.pricing", "core.noise_allocation", "plan.sql"),
            ),
            "a workload",
        ),
        pytest.param(
            ("workloads.residuals", "workloads.marginal_noise"),
            "tables within an error",
            marks=pytest.mark.soak,
        ),
    ],
    ids=["tokens", "cells", "questions", "tables"],
)
def test_a_loop_that_is_not_counted_is_seen(
    monkeypatch: pytest.MonkeyPatch, modules: tuple[str, ...], name: str
) -> None:
    db = hostile_database(steps=10 * MOST_STEPS)

    def door(db: sf.Database) -> None:
        if name in DOORS:
            DOORS[name](db)
        elif (question := db.sql(QUESTIONS[name], epsilon=1)) and name == "quantiles":
            question.priced()

    for module in modules:
        monkeypatch.setattr(importlib.import_module(f"sfumato.{module}"), "spend", lambda number=1: None)
    monkeypatch.setattr(noise_allocation, "_FEW", 0)  # what is kept takes the steps that it took before
    assert _uncounted(db, door) > 0


def test_a_refusal_says_how_many_steps_and_how_to_allow_more() -> None:
    text = QUESTIONS["windows"]
    db = hostile_database(steps=_FEW)
    with pytest.raises(QueryRefused) as refusal:
        db.sql(text, epsilon=1)
    said = str(refusal.value)
    assert refusal.value.code == "SF410" and f"{_FEW:,} are allowed" in said and "at least" in said
    assert "steps=" in said and "[engine]" in said
    assert "windows" not in said and hostile_database(steps=10**6).sql(text, epsilon=1).priced().epsilon == 1


def test_a_price_is_shown_or_refused_and_never_fails() -> None:
    question = hostile_database().sql(QUESTIONS["deviations by a cube"], epsilon=1)
    assert "SF410" in repr(question)
    with pytest.raises(QueryRefused, match="SF410"):
        question.release()
    assert question.database.balance.spent_units == 0


def test_steps_do_not_depend_on_rows_or_on_what_was_asked_before() -> None:
    counts = set()
    for rows in (1, 60, 60):
        db = hostile_database(rows=rows)
        for _ in range(2):
            with limited(db.steps) as counted:
                repr(db.sql(_SMALL, epsilon=1))
            counts.add(counted.taken)
    assert len(counts) == 1


def test_nothing_is_refused_after_the_charge() -> None:
    db = hostile_database()
    with limited(db.steps) as counted:
        db.sql(_SMALL, epsilon=1)
    with limited(db.steps) as priced:
        db.sql(_SMALL, epsilon=1).priced()
    tight = hostile_database(steps=max(counted.taken, priced.taken - counted.taken))
    assert len(tight.sql(_SMALL, epsilon=1).release()) == 3
    with pytest.raises(QueryRefused, match="SF410"):
        hostile_database(steps=counted.taken - 1).sql(_SMALL, epsilon=1)


def test_the_owner_sets_the_steps_in_the_project_file(tmp_path: Path) -> None:
    path = tmp_path / "sfumato.toml"
    path.write_text(_PROJECT.format(steps="200_000"))
    assert read_project(str(path)).engine.steps == 200_000
    path.write_text(_PROJECT.format(steps="0"))
    with pytest.raises(ProjectRefused, match="steps must be at least 1"):
        read_project(str(path))
    with pytest.raises(InvalidArgument, match="steps"):
        hostile_database(steps=0)


_PROJECT = """
ledger = "people.ledger"

[tables.people]
path = "people.parquet"
unit = "person"

[budget]
epsilon = 1

[engine]
steps = {steps}
"""


def test_computed_constants_of_keys_take_steps() -> None:
    """Each is a statement of the engine, which no count of calls sees."""
    db, taken = hostile_database(), []
    for number in (50, 100):
        cases = " ".join(f"WHEN y = {place} THEN UPPER('a{place}')" for place in range(number))
        with limited(10**6) as steps:
            db.sql(f"SELECT CASE {cases} END AS z, COUNT(*) AS n FROM v GROUP BY 1", epsilon=1).priced()
        taken.append(steps.taken)
    assert taken[1] - taken[0] >= 50 * 300
