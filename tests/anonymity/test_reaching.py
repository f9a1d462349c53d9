"""What is reached is what was asked for, and what is shown is true of every row."""

from __future__ import annotations

import datetime as dt
import json
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.anonymity import Calendar, Generalised, Goal, Intervals, Levels, Prefixes, measure, reach
from sfumato.errors import InvalidArgument
from tests.anonymity import reference
from tests.anonymity.reference import QUASI, tables
from tests.anonymity.test_lattice import HIERARCHIES, TOWNS

METHODS: list[dict[str, Any]] = [
    {"method": "mondrian"},
    {"method": "mondrian", "hierarchies": HIERARCHIES},
    {"method": "recoding", "hierarchies": HIERARCHIES},
    {"method": "recoding", "hierarchies": HIERARCHIES, "suppress": 0.3},
    {"method": "recoding"},
]


def covers(shown: Any, value: Any) -> bool:
    """Return whether a generalised value is true of a value, by reading it as a person would."""
    if shown == "*" or reference.same(shown) == reference.same(value):
        return True
    if not isinstance(shown, str):
        return False
    *others, last = shown.split(" or ")
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ("missing" if value is None else "NaN") in [*others, last]
    first = [*others, last][0]
    if isinstance(value, str):
        return (
            value in _texts(first)
            or _between(first, value)
            or TOWNS.get(value, ("", ""))[0] == first
            or TOWNS.get(value, ("", ""))[1] == first
        )
    if first[0] != "[":
        return float(first) == value
    low, high = (float(end) for end in first[1:-1].split(", "))
    return low <= value <= high if first[-1] == "]" else low <= value < high


def _texts(shown: str) -> list[str]:
    """Read {a, "b, c"}, or one text, which is quoted if it looks like something else."""
    if shown[:1] == '"':
        return [json.loads(shown)]
    if shown[:1] != "{":
        return [shown]
    parts, rest = [], shown[1:-1]
    while rest:
        if rest[0] == '"':
            text, end = json.JSONDecoder().raw_decode(rest)
        else:
            text = rest.split(", ", 1)[0]
            end = len(text)
        parts.append(text)
        rest = rest[end + 2 :]
    return parts


def _between(shown: str, value: str) -> bool:
    if shown[:1] != "[":
        return False
    low, high = _texts("{" + shown[1:-1] + "}")
    return low <= value <= high


def is_true(made: Generalised) -> None:
    """See that every row is covered by what is shown for it, in words and in what a label stands for."""
    for each in made.columns:
        values = made.source.column(each.name).to_pylist()
        labels = each.labels.to_pylist()
        for row, value in enumerate(values):
            label = each.of_row[row]
            if made.class_of[row] < 0:
                assert label == -1
                continue
            meant = [reference.same(one) for one in each.stands_for(label).to_pylist()]
            assert reference.same(value) in meant
            if (each.stops - each.starts == 1).all() and each.labels.type == each.values.type:
                assert reference.same(labels[label]) == reference.same(value)  # shown as it is
                continue
            assert covers(labels[label], value), (labels[label], value)
            for one in each.values.to_pylist():  # it stands for what it is true of, no more and no less
                assert covers(labels[label], one) is (reference.same(one) in meant), (labels[label], one)


@settings(max_examples=25)
@given(
    tables(least=3, most=14),
    st.sampled_from([Goal(k=2), Goal(k=3, l=2), Goal(k=2, t=0.45), Goal(k=2, entropy_l=1.5)]),
    st.sampled_from(METHODS),
)
def test_what_is_reached_is_what_was_asked_for_and_true(
    table: pa.Table, goal: Goal, options: dict[str, Any]
) -> None:
    try:
        made = reach(table, QUASI, goal, sensitive=["ill", "pay"], **options)
    except InvalidArgument as refusal:
        assert refusal.place in ("l", "entropy_l")
        return
    is_true(made)
    # The table that would be handed over, measured anew, by others and by us.
    found = made.table
    assert found.column_names == [*QUASI, "ill", "pay"]
    rows = list(range(found.num_rows))
    for group in reference.classes(found, QUASI):
        assert reference.reaches(group, rows, found, goal, ["ill", "pay"])
    again = measure(found, QUASI, sensitive=["ill", "pay"])
    assert again == made.after
    kept = np.flatnonzero(~made.suppressed)
    assert len(kept) == found.num_rows >= (1 - options.get("suppress", 0)) * table.num_rows
    for name in ("ill", "pay"):  # what is not generalised is as it was
        before = [reference.same(table.column(name)[row].as_py()) for row in kept]
        assert sorted(map(str, before)) == sorted(map(str, reference.column(found, name)))


def everything(rows: int = 400) -> pa.Table:
    draw = np.random.default_rng(9)
    days = np.datetime64("1950-01-01") + draw.integers(0, 20_000, rows).astype("timedelta64[D]")
    return pa.table(
        {
            "name": [f"person {number}" for number in range(rows)],
            "age": draw.integers(0, 100, rows),
            "pay": draw.gamma(2, 900, rows).round(2),
            "zip": (53_700 + draw.integers(0, 99, rows)).astype(str),
            "birth": days,
            "seen": days.astype("datetime64[us]"),
            "well": draw.choice([True, False], rows),
            "ill": draw.choice(list("abc"), rows),
        }
    )


@pytest.mark.parametrize("method", ["mondrian", "recoding"])
def test_every_kind_of_column_is_generalised_truthfully(method: str) -> None:
    quasi = ["age", "pay", "zip", "birth", "seen", "well"]
    hierarchies = {
        "age": Intervals(widths=(10, 50), high=100),
        "pay": Intervals(widths=(0.5, 1000, 5000)),
        "zip": Prefixes(keep=(4, 3)),
        "birth": Calendar(steps=("month", "decade", "century")),
        "seen": Calendar(steps=("day", "year")),
    }
    made = reach(
        everything(), quasi, Goal(k=5), sensitive="ill", method=method,
        hierarchies=hierarchies if method == "recoding" else None,
        suppress=0.2 if method == "recoding" else 0,
    )  # fmt: skip
    assert made.after.k >= 5 and made.table.num_rows >= 320
    for each in made.columns:
        values, labels = made.source.column(each.name).to_pylist(), each.labels.to_pylist()
        for row in np.flatnonzero(~made.suppressed):
            label = each.of_row[row]
            assert values[row] in each.stands_for(label).to_pylist()
            assert _read(labels[label], values[row])


def _read(shown: Any, value: Any) -> bool:
    """Return whether a label is true of a value of any kind, both as texts where they are dates."""
    if shown in ("*", value):
        return True
    if isinstance(value, dt.date):
        text = str(value)
        if shown[0] == "[":
            low, high = shown[1:-1].split(", ")
            return bool(low <= text <= high)
        if " to " in shown:
            return bool(shown[:4] <= text[:4] <= shown[-4:])
        return text.startswith(shown[:3] if shown[-1] == "s" else shown)
    if isinstance(value, str) and "*" in shown:
        return value.startswith(shown.rstrip("*")) and len(value) == len(shown)
    return covers(shown, value)


def test_only_what_was_named_is_handed_over() -> None:
    made = reach(everything(), ["age"], Goal(k=3), sensitive="ill", keep="well")
    assert made.table.column_names == ["age", "ill", "well"]
    assert "person" not in str(made.table.to_pydict())


def test_the_order_of_rows_tells_nothing() -> None:
    table = everything()
    mixed = table.take(pa.array(np.random.default_rng(1).permutation(table.num_rows)))
    one, other = (
        reach(each, ["age", "zip"], Goal(k=4), sensitive="ill", keep="well") for each in (table, mixed)
    )
    assert one.table.equals(other.table)


def test_a_column_that_was_not_generalised_keeps_its_type() -> None:
    table = pa.table({"age": [30, 30, 40, 40], "x": [1, 2, 1, 2]})
    for method in ("mondrian", "recoding"):
        assert reach(table, ["age"], Goal(k=2), method=method).table.schema.field("age").type == pa.int64()


def test_a_value_that_looks_like_several_is_quoted() -> None:
    towns = ["*", "*", "{a, b}", "{a, b}", "a", "b", "x or missing", "x or missing"]
    made = reach(pa.table({"town": towns}), ["town"], Goal(k=2))
    shown = made.table.column("town").unique().to_pylist()
    assert shown == ['"*"', "{a, b}", '"x or missing"', '"{a, b}"']


def test_suppressed_rows_are_gone_and_cost_everything() -> None:
    table = pa.table({"sex": ["f"] * 10 + ["m"] * 9 + ["x"]})
    made = reach(table, ["sex"], Goal(k=5), method="recoding", suppress=0.05)
    assert made.levels == {"sex": 0} and made.suppressed.tolist() == [False] * 19 + [True]
    assert made.class_of.tolist() == [0] * 10 + [1] * 9 + [-1]
    assert made.loss.certainty == pytest.approx(0.05) and made.loss.suppressed == pytest.approx(0.05)
    assert set(made.table.column("sex").to_pylist()) == {"f", "m"}
    strict = reach(table, ["sex"], Goal(k=5), method="recoding", suppress=0.04)
    assert strict.levels == {"sex": 1} and not strict.suppressed.any()


def test_closeness_is_to_what_is_left_when_rows_are_suppressed() -> None:
    """Without class 1 the table is half a, half b; class 2 is so too, though it was far from the whole."""
    town = [1] * 4 + [2] * 10
    ill = ["a"] * 4 + ["a", "b"] * 5
    made = reach(
        pa.table({"town": town, "ill": ill}), ["town"], Goal(k=5, t=0.1), sensitive="ill",
        method="recoding", suppress=0.3,
    )  # fmt: skip
    assert made.suppressed.tolist() == [True] * 4 + [False] * 10
    assert made.after.diversity[0].t == 0


@pytest.mark.parametrize("method", ["mondrian", "recoding"])
@pytest.mark.parametrize(
    ("values", "k", "classes"),
    [([7], 1, 1), ([7] * 5, 5, 1), ([1, 2, 3], 3, 1), ([None, None, 4, 4], 2, 2), ([math.nan, 1.0], 2, 1)],
)
def test_edges(method: str, values: list[Any], k: int, classes: int) -> None:
    made = reach(pa.table({"x": values}), ["x"], Goal(k=k), method=method)
    assert (made.after.k, made.after.classes) == (len(values) // classes, classes)
    is_true(made)
    assert 0 <= made.loss.certainty <= 1 and str(made)


def test_infinities_have_an_order_and_no_width() -> None:
    values = [-math.inf, 1.0, 2.0, math.inf]
    made = reach(pa.table({"x": values}), ["x"], Goal(k=2))
    assert made.table.column("x").to_pylist() == ["[-inf, 1.0]"] * 2 + ["[2.0, inf]"] * 2
    assert made.loss.certainty == 0.5


def test_a_result_says_what_happened() -> None:
    made = reach(everything(), ["age", "zip"], Goal(k=5, l=2), sensitive="ill")
    text = str(made)
    assert "generalised by mondrian, to reach k = 5, l = 2" in text
    assert "before" in text and "after" in text and "lost:" in text
    assert "nor a release" in text and "have in common" in text
    record = json.loads(json.dumps(made.to_dict()))
    assert record["after"]["k"] >= 5 and record["suppressed"] == 0 and "owner" in record["note"]
    assert repr(made).startswith("<generalised by mondrian: k = 5, l = 2; 400 rows")
    with pytest.raises(AttributeError):
        made.goal = Goal(k=1)  # type: ignore[misc]


TABLE = pa.table({"age": [1, 2, 3], "ill": ["a", "b", "b"]})


@pytest.mark.parametrize(
    ("goal", "more", "place"),
    [
        (Goal(k=4), {}, "k"),
        (Goal(k=1, l=3), {"sensitive": "ill"}, "l"),
        (Goal(k=1, entropy_l=2), {"sensitive": "ill"}, "entropy_l"),
        (Goal(k=1, entropy_l=2), {"sensitive": "ill", "method": "recoding"}, "entropy_l"),
        (Goal(k=1, l=2), {}, "sensitive"),
        (Goal(k=1), {"sensitive": "age"}, "age"),
        (Goal(k=1), {"keep": "age"}, "age"),
        (Goal(k=1), {"method": "magic"}, "method"),
        (Goal(k=1), {"suppress": 0.1}, "suppress"),
        (Goal(k=1), {"suppress": 1, "method": "recoding"}, "suppress"),
        (Goal(k=1), {"suppress": -0.1, "method": "recoding"}, "suppress"),
        (Goal(k=1), {"hierarchies": {"ill": Prefixes(keep=(1,))}}, "ill"),
        (Goal(k=1), {"hierarchies": {"age": 7}}, "age"),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_place(goal: Goal, more: dict[str, Any], place: str) -> None:
    with pytest.raises(InvalidArgument) as refusal:
        reach(TABLE, ["age"], goal, **more)
    assert refusal.value.place == place


@pytest.mark.parametrize(
    ("wanted", "place"),
    [
        ({"k": 0}, "k"),
        ({"k": 2.5}, "k"),
        ({"k": 2, "l": 0}, "l"),
        ({"k": 2, "entropy_l": 0.5}, "entropy_l"),
        ({"k": 2, "t": 1.5}, "t"),
        ({"k": 2, "t": math.nan}, "t"),
    ],
)
def test_goals_that_make_no_sense_are_refused(wanted: dict[str, Any], place: str) -> None:
    with pytest.raises(InvalidArgument) as refusal:
        Goal(**wanted)
    assert refusal.value.place == place


def test_levels_are_named_in_the_result() -> None:
    tree = Levels.tree({"young": ["1", "2"], "old": ["3"]})
    made = reach(TABLE, ["age"], Goal(k=1), method="recoding", hierarchies={"age": tree})
    assert made.levels == {"age": 0} and made.column("age").height == 2
