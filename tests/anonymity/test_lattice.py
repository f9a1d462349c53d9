"""Full-domain recoding finds the optimum: what trying every combination of levels finds."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.anonymity import Goal, Intervals, Levels, Prefixes, reach
from sfumato.anonymity.columns import encode
from sfumato.anonymity.lattice import Lattice
from sfumato.errors import InvalidArgument
from tests.anonymity import reference
from tests.anonymity.reference import QUASI, tables

TOWNS = {
    "Zürich": ("far", "land"), "東京": ("far", "land"), "": ("near", "land"), "a, b": ("near", "land"),
    "{a}": ("sea", "water"), "*": ("sea", "water"), "b": ("lake", "water"),
}  # fmt: skip
HIERARCHIES = {
    "age": Intervals(widths=(2, 4), low=-4, high=4),
    "size": Intervals(widths=(0.5, 5), low=-10),
    "town": Levels(parents=TOWNS),
}
GOALS = st.sampled_from(
    [
        (Goal(k=2), ()),
        (Goal(k=3), ()),
        (Goal(k=2, l=2), ("ill",)),
        (Goal(k=2, entropy_l=1.7), ("ill",)),
        (Goal(k=2, t=0.4), ("ill",)),
        (Goal(k=2, l=2, t=0.5), ("ill", "pay")),
    ]
)
TOP = ("*",)


def levels_of(name: str, value: Any) -> list[Any]:
    """Return a value on every level of its column, by the definitions of the hierarchies."""
    if value in ("NaN!", "NULL!"):
        return [value] * 3 + [TOP]
    match name:
        case "age":
            return [value, ((value + 4) // 2, 2), ((value + 4) // 4, 4), TOP]
        case "size":
            return [value, ((value + 10) // 0.5, 0.5), ((value + 10) // 5, 5), TOP]
        case _:
            return [value, *TOWNS[value], TOP]


def cost(name: str, value: Any, level: int, everything: Sequence[Any]) -> float:
    """Return how much of a column a generalised value leaves open."""
    shown = levels_of(name, value)[level]
    if level == 0 or len(set(everything)) == 1:
        return 0.0
    if shown == TOP:
        return 1.0
    numbers = [one for one in everything if not isinstance(one, str)]
    if name != "town" and value not in ("NaN!", "NULL!") and max(numbers) > min(numbers):
        low = {"age": -4, "size": -10}[name] + shown[0] * shown[1]
        return (min(low + shown[1], max(numbers)) - max(low, min(numbers))) / (max(numbers) - min(numbers))
    alike = {one for one in everything if levels_of(name, one)[level] == shown}
    return len(alike) / len(set(everything)) if len(alike) > 1 else 0.0


def tried(
    table: pa.Table, node: Sequence[int], goal: Goal, sensitive: Sequence[str], most: int
) -> float | None:
    """Return the loss of one combination of levels, None if it does not reach the goal."""
    columns = {name: reference.column(table, name) for name in QUASI}
    classes: dict[Any, list[int]] = {}
    for row in range(table.num_rows):
        key = tuple(
            levels_of(name, columns[name][row])[level] for name, level in zip(QUASI, node, strict=True)
        )
        classes.setdefault(key, []).append(row)
    first = Goal(k=goal.k, l=goal.l)
    rows = list(range(table.num_rows))
    left = [group for group in classes.values() if reference.reaches(group, rows, table, first, sensitive)]
    while True:
        rows = [row for group in left for row in group]
        good = [group for group in left if reference.reaches(group, rows, table, goal, sensitive)]
        if len(good) == len(left):
            break
        left = good
    lost = table.num_rows - len(rows)
    if not rows or lost > most:
        return None
    each = [
        cost(name, columns[name][row], level, columns[name])
        for row in rows
        for name, level in zip(QUASI, node, strict=True)
    ]
    return (sum(each) / len(QUASI) + lost) / table.num_rows


@settings(max_examples=40)
@given(tables(least=2, most=14), GOALS, st.sampled_from([0, 0.15, 0.4]))
def test_the_optimum_is_found(table: pa.Table, wanted: tuple[Goal, Sequence[str]], suppress: float) -> None:
    goal, sensitive = wanted
    most = int(Fraction(str(suppress)) * table.num_rows)
    losses = {
        node: loss
        for node in product(range(4), repeat=3)
        if (loss := tried(table, node, goal, sensitive, most)) is not None
    }
    options: dict[str, Any] = {"method": "recoding", "hierarchies": HIERARCHIES, "suppress": suppress}
    if not losses:
        with pytest.raises(InvalidArgument):
            reach(table, QUASI, goal, sensitive=sensitive, **options)
        return
    made = reach(table, QUASI, goal, sensitive=sensitive, **options)
    assert made.loss.certainty == pytest.approx(min(losses.values()), abs=1e-9)
    assert losses[tuple(made.levels.values())] == pytest.approx(min(losses.values()), abs=1e-9)
    assert made.suppressed.sum() <= most


def test_a_node_that_t_forbids_says_nothing_of_those_below_it() -> None:
    """Joined to town a, the rows of c spoil it; by themselves they are suppressed, and a stays as it is."""
    table = pa.table(
        {
            "town": ["a"] * 6 + ["b"] * 200 + ["c"] * 4,
            "ill": ["x", "y"] * 3 + ["x", "y"] * 100 + ["x"] * 4,
        }
    )
    made = reach(
        table, ["town"], Goal(k=2, t=0.03), sensitive="ill", method="recoding", suppress=0.03,
        hierarchies={"town": Levels.tree({"p": ["a", "c"], "q": ["b"]})},
    )  # fmt: skip
    assert made.levels == {"town": 0} and made.suppressed.sum() == 4


def test_of_levels_that_lose_alike_the_lower_is_taken() -> None:
    table = pa.table({"one": ["x"] * 6, "age": [1, 1, 1, 5, 5, 5]})
    made = reach(
        table, ["one", "age"], Goal(k=3), method="recoding", hierarchies={"age": Intervals(widths=(9,))}
    )
    assert made.levels == {"one": 0, "age": 0}


def people(rows: int) -> dict[str, Any]:
    draw = np.random.default_rng(3)
    return {
        "age": draw.integers(0, 90, rows),
        "zip": (10_000 + 7 * draw.integers(0, 400, rows)).astype(str),
        "sex": draw.choice(["f", "m"], rows),
        "job": draw.choice([f"job {number}" for number in range(30)], rows, p=draw.dirichlet(np.ones(30))),
        "ill": draw.choice(list("abcde"), rows),
    }


@pytest.mark.parametrize("goal", [Goal(k=8), Goal(k=8, l=3), Goal(k=20, l=3, t=0.4)], ids=str)
@pytest.mark.parametrize("suppress", [0, 0.05])
def test_the_search_leaves_most_of_a_lattice_aside_and_still_finds_the_optimum(
    goal: Goal, suppress: float
) -> None:
    """Beside a search that closes nothing: every node of 6 x 6 x 2 x 2 is tried."""
    columns = {name: encode(name, pa.array(values)) for name, values in people(2_000).items()}
    ladders = [
        Intervals(widths=(2, 4, 8, 40), high=100).ladder(columns["age"]),
        Prefixes(keep=(4, 3, 2, 1)).ladder(columns["zip"]),
        Levels(parents={"f": (), "m": ()}).ladder(columns["sex"]),
        Levels(parents={f"job {number}": () for number in range(30)}).ladder(columns["job"]),
    ]
    lattice = Lattice(ladders, goal, [columns["ill"]], suppress)
    lattice.search()
    everything = Lattice(ladders, goal, [columns["ill"]], suppress)
    nodes = list(product(range(6), range(6), range(2), range(2)))
    for node in nodes:
        everything._try(node)
    assert lattice.loss == pytest.approx(everything.loss, abs=1e-12)
    assert lattice.tried < len(nodes) / 3


def test_a_lattice_without_end_is_refused() -> None:
    table = pa.table({f"c{place}": [str(place), "x"] for place in range(12)})
    hierarchies = {f"c{place}": Prefixes(keep=(5, 4, 3, 2, 1)) for place in range(12)}
    with pytest.raises(InvalidArgument, match="five million"):
        reach(table, list(hierarchies), Goal(k=2), method="recoding", hierarchies=hierarchies)
