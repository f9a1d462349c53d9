"""Every example of GoogleSQL's documentation as printed: our answers on cloned units are what its words mean.

Each unit is there CLONES times, so that noise and the random choice of groups average out. By Hoeffding, the
share of a unit's clones that choose one of two groups is within SLACK of a half, but for a chance of 1e-11;
there are 48 such shares. Noise exceeds `_noise`, seven deviations or more, with a chance below 1e-12. Bounds
that are found first lie far beyond all values with a chance of 1e-4, and noise is then as large: the test of
all examples has them found with one of 1e-12. Its false alarm is below 1e-9. A question that ignores its cap
moves its answers by more than all that, and one test shows that it is caught.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.analysis import missing_limits
from sfumato.errors import QueryRefused
from tests.engine.google_examples import EXAMPLES, OTHER_ROWS, PROFESSORS, REFUSED, STUDENTS, Example

CLONES = 3_000
SLACK = math.sqrt(math.log(2e11) / (2 * CLONES))
PAGE = Path(__file__).parents[2] / "docs" / "googlesql.md"


@pytest.fixture(scope="module")
def shop() -> sf.Database:
    """The tables of the documentation, with each unit there many times under names of its own."""
    professors, students = cloned(PROFESSORS), cloned(STUDENTS)
    tables = {
        "professors": professors,
        "view_on_professors": professors,
        "students": students,
        "view_on_students": students,
        "table_a": cloned(OTHER_ROWS).rename_columns(["id", "column_a", "column_b"]),
    }
    return sf.connect(tables, unit="id", budget=sf.Budget(epsilon=10**24, delta=0.95, keys_delta=0.9))


def cloned(rows: list[tuple[int, str, int]]) -> pa.Table:
    ids, items, quantities = zip(*rows, strict=True)
    names = [1000 * clone + unit for clone in range(CLONES) for unit in ids]
    return pa.table({"id": names, "item": items * CLONES, "quantity": quantities * CLONES})


def differing(example: Example, database: sf.Database, text: str | None = None) -> dict[str, Any]:
    """Return what an example is answered with, where that is not what it means: nothing, if all is well."""
    found = dict(database.sql(text or example.text).release().rows)
    expected = example.meaning.on_clones(SLACK)
    assert found.keys() == expected.keys()
    scale = CLONES if example.meaning.function in ("COUNT", "SUM") else 1
    noise = _noise(example)
    return {
        item: found[item]
        for item, (low, high) in expected.items()
        if not low * scale - noise <= found[item] <= high * scale + noise
    }


def _noise(example: Example) -> float:
    """Return how far noise may move an answer, and the grid of averages."""
    if example.exact:
        return 0.01
    return {"COUNT": 400, "SUM": 400, "AVG": 0.2, "PERCENTILE_CONT": 0, "VAR_POP": 40}[
        example.meaning.function
    ]


@pytest.mark.soak
def test_every_example_means_what_is_documented(shop: sf.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """False alarm below 1e-9: 48 shares of 1e-11, noise, and bounds found beyond all values, 1e-12 each."""
    monkeypatch.setattr(missing_limits, "_FALSE_ALARM", 1e-12)
    wrong = {example.number: differing(example, shop) for example in EXAMPLES}
    assert {number: found for number, found in wrong.items() if found} == {}


@pytest.mark.parametrize("number", [7, 11, 21])
def test_what_ignores_its_cap_is_caught(number: int, shop: sf.Database) -> None:
    [example] = (one for one in EXAMPLES if one.number == number)
    loose = example.text.replace("max_groups_contributed=1", "max_groups_contributed=2")
    assert "pencil" in differing(example, shop, loose)


@pytest.mark.parametrize(
    "number, why",
    [(1, "neither grouped by"), (2, "neither grouped by"), (3, "only on their unit"), (38, "`item`")],
)
def test_what_stays_refused(number: int, why: str, shop: sf.Database) -> None:
    with pytest.raises(QueryRefused, match=why):
        shop.sql(REFUSED[number]).release()


def test_public_groups_are_answered_once_their_column_has_a_name(shop: sf.Database) -> None:
    """As above but for `book`, of which no unit has an average: NULL, where Google prints 0."""
    found = dict(shop.sql(REFUSED[38].replace("'book'])", "'book']) AS item")).release().rows)
    [same] = (one for one in EXAMPLES if one.number == 7)
    expected = same.meaning.on_clones(SLACK)
    assert found.pop("book") is None and found.keys() == {"pencil", "pen"}
    assert all(expected[item][0] - 0.01 <= value <= expected[item][1] + 0.01 for item, value in found.items())


# -- the values that are printed ------------------------------------------------------------


def printed_table() -> list[str]:
    """Return what the page says of values that are printed without noise."""
    kinds: dict[tuple[str, ...], list[Example]] = {}
    for example in EXAMPLES:
        if example.printed is not None:
            called = f"`{example.meaning.function}`{' between 50 and 100' * ('(50,100)' in example.call)}"
            least = {item: low for item, (low, _) in example.meaning.on_clones().items()}
            kind = (called, _listed(example.printed), _listed(least), _agreement(example))
            kinds.setdefault(kind, []).append(example)
    lines = ["| examples | aggregate | cap | printed | meant | |", "|---|---|---|---|---|---|"]
    for (called, printed, meant, agreement), examples in kinds.items():
        numbers = ", ".join(str(one.number) for one in examples)
        caps = ", ".join(dict.fromkeys(str(one.cap or "none") for one in examples))
        lines.append(f"| {numbers} | {called} | {caps} | {printed} | {meant} | {agreement} |")
    return lines


def _listed(values: Mapping[str, float]) -> str:
    return ", ".join(f"{values[item]:.4g}" for item in ("pencil", "pen", "scissors"))


def _agreement(example: Example) -> str:
    """Return which choice of groups, on the small table, gives what is printed."""
    meaning = example.meaning
    possible = meaning.possible()
    if example.printed in possible:
        return "as printed" if len(possible) == 1 else "printed: one choice"
    if example.printed in replace(meaning, cap=None).possible():
        return "printed: without the cap"
    if example.printed in replace(meaning, cap=1).possible():
        return "printed: one choice of a cap of 1"
    return "printed: no choice"


def test_the_page_has_these_examples_and_values() -> None:
    page = " ".join(PAGE.read_text().split())
    assert " ".join(" ".join(printed_table()).split()) in page
    asked, exact = len(EXAMPLES) + len(REFUSED), sum(one.printed is not None for one in EXAMPLES)
    assert f"Of {asked} documented examples {len(EXAMPLES)} are answered" in page
    assert f"{exact} of them print values without noise" in page
    assert f"With each unit of their small tables there {CLONES:,} times, all {len(EXAMPLES)} answers" in page
    uncapped = sum(one.printed is not None and "without" in _agreement(one) for one in EXAMPLES)
    assert uncapped == 10 and "Ten examples print what no such choice gives" in page
