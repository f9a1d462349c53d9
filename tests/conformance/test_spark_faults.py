"""Executors and drivers of Spark that are killed: nothing answered uncharged, charged twice, or wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from tests.conformance.spark_faults import ROWS
from tests.processes import ROOT

pytestmark = pytest.mark.timeout(3600)


def _killed(what: str, runs: int) -> list[dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.conformance.spark_faults", what, str(runs)],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": "src:."}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return [json.loads(line) for line in done.stdout.splitlines()]


def _right(answer: list[list[int]]) -> bool:
    """Return whether an answer is right but for its noise: 40 of its scales, below 1e-15 of the time."""
    counts, sums = answer
    return all(abs(n - ROWS / 7) < 60 for n in counts) and all(abs(s - ROWS / 7 * 24.5) < 3000 for s in sums)


@pytest.mark.parametrize(
    "kills", [pytest.param(6, marks=pytest.mark.soak), pytest.param(50, marks=pytest.mark.night)]
)
def test_an_executor_that_is_killed_changes_no_answer_and_no_charge(kills: int) -> None:
    """Tasks are run again elsewhere: the same exact integers, one charge. Or the question fails, charged."""
    runs = _killed("executor", kills)
    assert len(runs) == kills
    for run in runs:
        assert run["exact"] and run["charged"] == 1, run
        assert _right(run["answer"]) if "answer" in run else run["error"] == "SF501" and not run["context"], (
            run
        )
    assert sum("answer" in run for run in runs) > kills // 2


@pytest.mark.soak
def test_a_driver_that_is_killed_before_during_and_after_the_charge() -> None:
    before, during, after = _killed("driver", 3)
    assert (before["error"], before["charged"], before["context"]) == ("SF502", 0, False)
    assert (during["error"], during["charged"], during["context"]) == ("SF501", 1, False)
    assert _right(after["answer"]) and after["charged"] == 1
    assert after["again"]["error"] == "SF502" and after["again"]["charged"] == 1
