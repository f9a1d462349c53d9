"""Mondrian at array speed finds the classes that a plain recursion over rows finds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.anonymity import Goal, Levels, reach
from sfumato.errors import InvalidArgument
from tests.anonymity import reference
from tests.anonymity.reference import QUASI, tables

GOALS = st.sampled_from(
    [
        (Goal(k=1), ()),
        (Goal(k=2), ()),
        (Goal(k=3), ("ill",)),
        (Goal(k=2, l=2), ("ill",)),
        (Goal(k=1, entropy_l=1.6), ("ill",)),
        (Goal(k=2, t=0.4), ("ill",)),
        (Goal(k=1, t=0.25), ("pay",)),
        (Goal(k=2, l=2, t=0.5), ("ill", "pay")),
    ]
)


def width(values: Sequence[Any], everything: Sequence[Any]) -> float:
    """Return how wide some values of a column are, as a share of all."""
    inside, outside = set(values), set(everything)
    if inside == outside:
        return 1.0 if len(outside) > 1 else 0.0
    numbers = [value for value in outside if not isinstance(value, str)]
    if numbers and all(not isinstance(value, str) for value in inside):
        spread = max(numbers) - min(numbers)
        return (max(inside) - min(inside)) / spread if spread else 0.0
    ranks = reference.ranked(everything)
    places = [ranks.index(value) for value in inside]
    run = max(places) - min(places) + 1  # a run of neighbours is what can be written down
    return 1.0 if run == len(ranks) else run / len(ranks) if run > 1 else 0.0


def recursion(rows: list[int], table: pa.Table, goal: Goal, sensitive: Sequence[str]) -> list[list[int]]:
    """Cut some rows in two where it is allowed, and those again."""
    columns = [reference.column(table, name) for name in QUASI]
    widths = [width([values[row] for row in rows], values) for values in columns]
    for place in sorted(range(len(columns)), key=lambda place: -widths[place]):
        values, ranks = columns[place], reference.ranked(columns[place])
        ranked = reference.ranked([values[row] for row in rows])
        halves = []
        for cut in ranked[:-1]:
            below = set(ranks[: ranks.index(cut) + 1])
            left = [row for row in rows if values[row] in below]
            right = [row for row in rows if values[row] not in below]
            halves.append((abs(len(left) - len(right)), len(halves), left, right))
        if halves:
            _, _, left, right = min(halves)
            everybody = list(range(table.num_rows))
            if all(reference.reaches(half, everybody, table, goal, sensitive) for half in (left, right)):
                return [*recursion(left, table, goal, sensitive), *recursion(right, table, goal, sensitive)]
    return [rows]


@settings(max_examples=40)
@given(tables(least=2, most=12), GOALS)
def test_classes_are_those_of_the_recursion(table: pa.Table, wanted: tuple[Goal, Sequence[str]]) -> None:
    goal, sensitive = wanted
    whole = list(range(table.num_rows))
    if not reference.reaches(whole, whole, table, goal, sensitive):
        with pytest.raises(InvalidArgument):
            reach(table, QUASI, goal, sensitive=sensitive)
        return
    agree(table, goal, sensitive)


@pytest.mark.parametrize(
    "goal", [Goal(k=2), Goal(k=1, l=2), Goal(k=2, t=0.3), Goal(k=1, entropy_l=1.8)], ids=str
)
def test_classes_of_larger_tables_are_those_of_the_recursion(goal: Goal) -> None:
    """With these, cuts fail for l or t that succeed further down, and rounds differ from the whole table."""
    draw = np.random.default_rng(8)
    for _ in range(6):
        columns = [draw.integers(0, 9, 60).tolist(), draw.choice([0.0, 1.5, 4.0], 60).tolist()]
        columns += [
            draw.choice(list("abcd"), 60).tolist(),
            draw.choice(["x", "y", "z"], 60).tolist(),
            [1.0] * 60,
        ]
        agree(reference.table_of(list(zip(*columns, strict=True))), goal, ["ill"])


def agree(table: pa.Table, goal: Goal, sensitive: Sequence[str]) -> None:
    made = reach(table, QUASI, goal, sensitive=sensitive)
    expected = {tuple(group) for group in recursion(list(range(table.num_rows)), table, goal, sensitive)}
    found = {tuple(np.flatnonzero(made.class_of == number)) for number in set(made.class_of.tolist())}
    assert found == expected


def test_the_order_of_rows_does_not_matter() -> None:
    draw = np.random.default_rng(5)
    columns = {"age": draw.integers(0, 40, 500), "town": draw.choice(list("abcdefgh"), 500)}
    columns["ill"] = draw.choice(list("xyz"), 500)
    shuffled = draw.permutation(500)
    one = reach(pa.table(columns), ["age", "town"], Goal(k=7, l=2), sensitive="ill")
    other = reach(
        pa.table({name: values[shuffled] for name, values in columns.items()}),
        ["age", "town"],
        Goal(k=7, l=2),
        sensitive="ill",
    )
    assert one.table.equals(other.table)


def test_with_a_hierarchy_a_class_gets_the_lowest_value_that_covers_it() -> None:
    tree = Levels.tree({"north": ["a", "c"], "south": ["b", "d"]})
    table = pa.table({"town": ["a", "c", "b", "d", "d"]})
    made = reach(table, ["town"], Goal(k=2), hierarchies={"town": tree})
    assert made.table.column("town").to_pylist() == ["north", "north", "south", "south", "south"]
    alone = reach(pa.table({"town": ["a", "a", "b", "d"]}), ["town"], Goal(k=2), hierarchies={"town": tree})
    assert alone.table.column("town").to_pylist() == ["a", "a", "south", "south"]
    whole = reach(pa.table({"town": ["a", "b", "c"]}), ["town"], Goal(k=3), hierarchies={"town": tree})
    assert whole.table.column("town").to_pylist() == ["*"] * 3


def test_classes_of_a_large_table_are_small() -> None:
    """A cut is made wherever k allows one: on a line of distinct values no class has 2k rows or more."""
    made = reach(pa.table({"x": np.arange(10_007)}), ["x"], Goal(k=5))
    assert made.after.k >= 5 and made.after.largest < 10
