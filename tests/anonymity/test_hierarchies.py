"""Hierarchies nest, cover every value, and are refused by the name of a column and never by a value."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.anonymity import Calendar, Flat, Hierarchy, Intervals, Levels, Prefixes
from sfumato.anonymity.columns import encode
from sfumato.anonymity.hierarchy_file import read_hierarchies, read_levels
from sfumato.anonymity.ladders import Ladder, levelled
from sfumato.errors import InvalidArgument

SECRET = "canary-7f3a9"  # a value of a table; no refusal may show it


def climbed(hierarchy: Hierarchy, values: Any, which: int = 0) -> list[str | None]:
    """Return what becomes of one value, level by level."""
    column = encode("c", pa.array(values))
    ladder = hierarchy.ladder(column)
    code = column.codes[which]
    return [level.labels[level.groups[code]] for level in ladder.levels[1:]]


def nests(ladder: Ladder) -> None:
    """See that levels only join, that every group is a run, and that costs grow."""
    for number, level in enumerate(ladder.levels):
        starts, stops = ladder.runs(number)
        for group, (start, stop) in enumerate(zip(starts, stops, strict=True)):
            assert set(level.groups[ladder.order[start:stop]]) == {group}
        if number:
            below = ladder.levels[number - 1]
            pairs = set(zip(below.groups.tolist(), level.groups.tolist(), strict=True))
            assert len(pairs) == len(set(below.groups.tolist()))
            assert (level.costs[level.groups] >= below.costs[below.groups] - 1e-12).all()
    assert len(ladder.levels[-1].labels) == 1 and ladder.levels[-1].labels[0] == "*"


def test_values_climb() -> None:
    assert climbed(Intervals(widths=(5, 20), high=120), [37, 99]) == ["[35, 40)", "[20, 40)", "*"]
    assert climbed(Intervals(widths=(0.1, 0.5)), [0.3, 0.7]) == ["[0.3, 0.4)", "[0, 0.5)", "*"]
    assert climbed(Intervals(widths=(10,), low=-20), [-11, 4]) == ["[-20, -10)", "*"]
    assert climbed(Intervals(widths=(Decimal("0.25"),)), [Decimal("0.50"), Decimal("9")]) == [
        "[0.5, 0.75)",
        "*",
    ]
    assert climbed(Prefixes(keep=(4, 3)), ["53715", "1"]) == ["5371*", "537**", "*"]
    days = [dt.date(1984, 5, 17), dt.date(1969, 12, 31)]
    steps = ("day", "month", "quarter", "year", "decade", "century")
    shown = ["1984-05-17", "1984-05", "1984-Q2", "1984", "1980s", "1900 to 1999", "*"]
    assert climbed(Calendar(steps=steps), days) == shown
    assert climbed(Calendar(steps=("quarter", "decade")), days, 1) == ["1969-Q4", "1960s", "*"]
    moments = [dt.datetime(1984, 5, 17, 23, 59), dt.datetime(2001, 1, 1)]
    assert climbed(Calendar(), moments) == ["1984-05", "1984", "1980s", "*"]
    assert climbed(Levels.tree({"a": ["x", "y"], "b": {"c": ["z"]}}), ["x", "z"]) == ["a", "a", "*"]
    assert climbed(Levels(parents={"1": ("odd", "*"), "2": ("even", "*")}), [1, 2]) == ["odd", "*"]
    assert climbed(Flat(), [True, False]) == ["*"]


def test_missing_values_stay_apart_until_the_top() -> None:
    assert climbed(Intervals(widths=(5,)), [7.0, float("nan"), None], 1) == ["NaN", "*"]
    assert climbed(Intervals(widths=(5,)), [7.0, float("nan"), None], 2) == [None, "*"]
    assert climbed(Levels.tree({"a": ["x"]}), ["x", None], 1) == [None, "*"]


@given(st.lists(st.one_of(st.none(), st.integers(-60, 300)), min_size=1, max_size=30))
def test_intervals_nest(values: list[int | None]) -> None:
    nests(Intervals(widths=(3, 6, 30), low=-60).ladder(encode("c", pa.array(values, pa.int64()))))


@given(st.lists(st.one_of(st.none(), st.floats(-5, 50)), min_size=1, max_size=30))
def test_intervals_of_floats_nest_and_hold_what_they_say(values: list[float | None]) -> None:
    column = encode("c", pa.array(values, pa.float64()))
    ladder = Intervals(widths=(0.1, 0.7), low=-5).ladder(column)
    nests(ladder)
    level = ladder.levels[1]
    for code, value in enumerate(column.values.to_pylist()):
        if value is not None:
            low, high = str(level.labels[level.groups[code]])[1:-1].split(", ")
            assert float(low) <= value < float(high)


@given(st.lists(st.one_of(st.none(), st.text(max_size=4)), min_size=1, max_size=30))
def test_prefixes_nest(values: list[str | None]) -> None:
    nests(Prefixes(keep=(3, 2, 1)).ladder(encode("c", pa.array(values, pa.string()))))


@given(st.lists(st.one_of(st.none(), st.dates()), min_size=1, max_size=30))
def test_calendars_nest(values: list[dt.date | None]) -> None:
    steps = ("day", "month", "quarter", "year", "decade", "century")
    nests(Calendar(steps=steps).ladder(encode("c", pa.array(values, pa.date32()))))


def test_trees_nest_in_an_order_of_their_own() -> None:
    tree = {"p": {"q": ["e", "a"], "r": ["d"]}, "s": ["b", "c"]}
    ladder = Levels.tree(tree).ladder(encode("c", pa.array(list("abcde"))))
    nests(ladder)
    assert not ladder.natural


def test_large_whole_numbers_are_exact() -> None:
    value = 2**53 + 1
    assert climbed(Intervals(widths=(1,), low=2**53 - 2), [value, 2**53]) == [f"[{value}, {value + 1})", "*"]


@pytest.mark.parametrize(
    ("make", "place"),
    [
        (lambda: Intervals(widths=()), "widths"),
        (lambda: Intervals(widths=(5, 12)), "widths"),
        (lambda: Intervals(widths=(5, 5)), "widths"),
        (lambda: Intervals(widths=(-5,)), "widths"),
        (lambda: Intervals(widths=(5,), low=3, high=3), "high"),
        (lambda: Prefixes(keep=()), "keep"),
        (lambda: Prefixes(keep=(2, 3)), "keep"),
        (lambda: Prefixes(keep=(0,)), "keep"),
        (lambda: Calendar(steps=()), "steps"),
        (lambda: Calendar(steps=("week",)), "steps"),
        (lambda: Calendar(steps=("year", "month")), "steps"),
        (lambda: Levels(parents={}), "parents"),
        (lambda: Levels(parents={"a": ("x",), "b": ("x", "y")}), "parents"),
        (lambda: Levels.tree({"a": ["x"], "b": ["x"]}), "tree"),
        (lambda: Levels.tree({"a": "x"}), "tree"),
        (lambda: Levels.tree({"a": [["x"]]}), "tree"),
    ],
)
def test_hierarchies_that_make_no_sense_are_refused(make: Any, place: str) -> None:
    with pytest.raises(InvalidArgument) as refusal:
        make()
    assert refusal.value.place == place


@pytest.mark.parametrize(
    ("hierarchy", "values", "says"),
    [
        (Intervals(widths=(5,), low=10), [9], "level 1"),
        (Intervals(widths=(5,), high=10), [11], "level 1"),
        (Intervals(widths=(5,)), [float("inf")], "level 1"),
        (Intervals(widths=(5,)), [SECRET], "numbers"),
        (Intervals(widths=(0.001,)), [1e9], "million"),
        (Prefixes(keep=(2,)), [12], "texts"),
        (Calendar(), [SECRET], "dates"),
        (Levels.tree({"a": ["x"]}), ["x", SECRET], "level 1"),
        (Levels(parents={"x": ("a", "p"), "y": ("a", "q")}), ["x"], "level 2"),
        (Levels(parents={"x": ("x",), "y": ("x",)}), ["x"], "level"),
    ],
)
def test_a_column_that_does_not_fit_is_refused_by_its_name(
    hierarchy: Hierarchy, values: list[Any], says: str
) -> None:
    with pytest.raises(InvalidArgument) as refusal:
        hierarchy.ladder(encode("somewhere", pa.array(values)))
    assert refusal.value.place == "somewhere" and "`somewhere`" in refusal.value.message
    assert says in refusal.value.message
    assert SECRET not in str(refusal.value)


def test_levels_that_do_not_nest_are_refused_whoever_made_them() -> None:
    column = encode("somewhere", pa.array(["a", "b", "c"]))
    joined, divided = (np.array([0, 0, 1]), ["p", "q"], None), (np.array([0, 1, 1]), ["r", "s"], None)
    assert levelled(column, [joined]).height == 2
    with pytest.raises(InvalidArgument, match="level 2 of the hierarchy of `somewhere`"):
        levelled(column, [joined, divided])


FILE = """\
[age]
intervals = [5, 10]
low = 0
high = 120
[zip]
prefixes = [4, 3]
[birth]
calendar = ["month", "year"]
[education]
csv = "education.csv"
[sex]
flat = true
[marital.tree]
alone = ["single", "divorced"]
together = ["married"]
"""


def test_hierarchies_are_read_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "education.csv").write_text("BSc;degree;*\nMSc;degree;*\n10th;school;*\n", encoding="utf-8")
    (tmp_path / "h.toml").write_text(FILE, encoding="utf-8")
    assert read_hierarchies(tmp_path / "h.toml") == {
        "age": Intervals(widths=(5, 10), low=0, high=120),
        "zip": Prefixes(keep=(4, 3)),
        "birth": Calendar(steps=("month", "year")),
        "education": Levels(
            parents={"BSc": ("degree", "*"), "MSc": ("degree", "*"), "10th": ("school", "*")}
        ),
        "sex": Flat(),
        "marital": Levels.tree({"alone": ["single", "divorced"], "together": ["married"]}),
    }


def test_lines_of_a_hierarchy_may_be_quoted_and_end_anyhow(tmp_path: Path) -> None:
    (tmp_path / "h.csv").write_bytes('\ufeff"a, b",x\r\nc , y\r\n\r\n'.encode())
    assert read_levels(tmp_path / "h.csv").parents == {"a, b": ("x",), "c": ("y",)}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("age = 5", "one kind"),
        ("[age]\nlow = 5", "one kind"),
        ("[age]\nintervals = [5]\nprefixes = [5]", "one kind"),
        ("[age]\nprefixes = [5]\nlow = 0", "one kind"),
        ("[age]\nintervals = 5", "not written like that"),
        ("[age]\ncalendar = [1]", "not written like that"),
        ("[age]\nflat = false", "not written like that"),
        ("[age]\nintervals = [5, 12]", "multiple"),
        ("[age]\nintervals = ['x']", "widths"),
        ("[age]\ncsv = 'no.csv'", "cannot be read"),
        ("[age]\ncsv = 'twice.csv'", "two lines"),
        ("[age\n", "not TOML"),
    ],
)
def test_a_file_that_makes_no_sense_is_refused_with_its_column(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "twice.csv").write_text("a,b\na,c\n")
    (tmp_path / "h.toml").write_text(text)
    with pytest.raises(InvalidArgument) as refusal:
        read_hierarchies(tmp_path / "h.toml")
    assert says in refusal.value.message
    assert "h.toml" in str(refusal.value.place) and ("age" in str(refusal.value.place) or says == "not TOML")


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="cannot be read"):
        read_hierarchies(tmp_path / "none.toml")


def test_positions_are_a_permutation() -> None:
    ladder = Levels.tree({"p": ["b", "d"], "q": ["a", "c"]}).ladder(encode("c", pa.array(list("dcba"))))
    assert np.array_equal(ladder.position[ladder.order], np.arange(4))
