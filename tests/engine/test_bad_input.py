"""Bad input is refused with a typed error, fast and free: huge, deep, doubling, or no question at all."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.engine.bad_input import EXPECTED, PRICED, database, outcome

ROOT = Path(__file__).parent.parent.parent


def test_bad_input_is_refused_fast_and_free() -> None:
    """All of it in one process, whose time and memory are limited."""
    ran = subprocess.run(
        [sys.executable, "-m", "tests.engine.bad_input"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    outcomes = dict(json.loads(line) for line in ran.stdout.splitlines())
    found = {name: outcomes.get(name, "the process ended") for name in EXPECTED}
    assert found == EXPECTED


@pytest.mark.parametrize(
    "name", ["hundreds of AND", "hundreds of OR", "a long list", "additions", "outer additions", "calls"]
)
def test_what_is_large_and_priced_is_answered(name: str) -> None:
    """The price was shown: then the answer must follow, also from deep in a program's stack."""

    def deeper(levels: int) -> str:
        return deeper(levels - 1) if levels else outcome(database().sql(PRICED[name], epsilon=1).release)

    assert deeper(200) == "ok"


def test_the_column_all_is_sorted_by() -> None:
    """The parser takes ORDER BY "all" for ORDER BY ALL, which would sort by the first column."""
    order = "CASE g WHEN 'a' THEN 2 ELSE 1 END"
    for by in ('"all"', '"all" ASC', 'counted."all"'):
        inner = f'SELECT g, {order} AS "all", COUNT(*) AS n FROM t GROUP BY g'
        answer = database().sql(f"SELECT * FROM ({inner}) AS counted ORDER BY {by}", epsilon=1).release()
        assert [row[0] for row in answer.rows] == ["b", "a"]
