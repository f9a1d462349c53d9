"""A release: values, intervals of any level, frames, stored bytes, text and HTML."""

from __future__ import annotations

import datetime
import json
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato.aggregates.answer import Answer
from sfumato.aggregates.registry import Function
from sfumato.analysis.bounded import MeasureKind
from sfumato.catalog.kind import Kind
from sfumato.errors import InvalidArgument, SfumatoError
from sfumato.release import NoisyTable, Release, cost_record, publish
from sfumato.release.plain_tables import expected_table
from sfumato.release.sandbox import check
from tests.release import made

MOMENT, CELLS = MeasureKind.MOMENT, MeasureKind.CELLS
COUNT = made.counting()
AVG = Answer(
    name="age",
    function=Function.AVG,
    measures=("n", "x"),
    scale=Fraction(1, 2),
    centre=50.0,
    lower=0.0,
    upper=100.0,
)
TREE = Answer(
    name="q",
    function=Function.QUANTILE,
    measures=("c",),
    quantiles=(0.25, 0.75),
    several=True,
    integer=True,
    points=True,
    edges=tuple(map(float, range(9))),
)
PLAN = made.bounding({"n": MOMENT, "x": MOMENT, "c": CELLS}, [COUNT, AVG, TREE])
PRICE = made.cost(PLAN, 2, levels=3)
KEYS = [("north",), (None,), ("süd ☂",), ("<b>&",)]


def noisy(monkeypatch: pytest.MonkeyPatch, keys: Any = None, **fields: Any) -> NoisyTable:
    """Return a table of four groups: two large ones, an empty one, one with a negative count."""
    made.freeze(monkeypatch)
    number = len(KEYS if keys is None else keys)
    measures = {
        "n": [100, -3, 1000, 0][:number],
        "x": [400, 7, -2000, 0][:number],
        "c": np.array([[0, 50, 0, 0, 50, 0, 0, 0], [0] * 8, [0, 0, 900, 0, 0, 0, 100, 0], [0] * 8])[:number],
    }
    return made.table(PLAN, PRICE, made.exact(KEYS if keys is None else keys, measures), **fields)


def release(monkeypatch: pytest.MonkeyPatch, outer: str | None = None, **fields: Any) -> Release:
    receipt = {"id": "r1", "at": datetime.datetime(2026, 1, 2, 3, 4, 5), "request": "ab12"}
    found = publish((noisy(monkeypatch, **fields),), outer, cost=cost_record(PRICE))
    return replace(found, receipt=receipt)


def test_the_noisy_table_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    found = release(monkeypatch)
    assert found.columns == ("k", "n", "age", "q") and found.types == (
        "VARCHAR",
        "BIGINT",
        "DOUBLE",
        "BIGINT[]",
    )
    assert found.rows == (
        ("<b>&", 0, None, [None, None]),
        ("north", 100, 52.0, [1, 4]),
        ("süd ☂", 1000, 49.0, [2, 2]),
        (None, -3, None, [None, None]),
    )
    assert len(found) == 4 and next(iter(found))[0] == "<b>&" and found.column("n") == [0, 100, 1000, -3]


def test_intervals_of_any_level(monkeypatch: pytest.MonkeyPatch) -> None:
    found = release(monkeypatch)
    ends = found.intervals()
    assert set(ends) == {"n", "age", "q"}
    assert ends["n"] == [(-6, 6), (94, 106), (994, 1006), (-9, 3)]
    assert ends["age"][0] == (0.0, 100.0)
    low, high = ends["age"][1]
    assert 51 < low < 52 < high < 53
    assert ends["q"][0] == ([0, 0], [7, 7])
    wider = found.intervals(0.999)
    assert wider["n"][1][0] < 94 and wider["age"][1][1] > high  # type: ignore[index]
    with pytest.raises(InvalidArgument):
        found.intervals(1.5)


@pytest.mark.parametrize(
    ("outer", "expected"),
    [
        (
            "SELECT n AS total, k FROM released WHERE n > 0 ORDER BY n DESC",
            {"total": [(991, 1009), (91, 109)]},  # noise chose: wide enough for all four rows at once
        ),
        ("SELECT n * 2 AS two FROM released ORDER BY n LIMIT 1", {"two": [(-24, 12)]}),
        ("SELECT -n AS minus FROM released ORDER BY n LIMIT 1", {"minus": [(-6, 12)]}),
        ("SELECT n, n FROM released LIMIT 1", {"n": [(-6, 6)], "n_1": [(-6, 6)]}),
        ("SELECT q[2] AS third FROM released WHERE k = 'north'", {"third": [(4, 4)]}),
        ("SELECT sum(n) AS s FROM released", {}),
        ("SELECT k, max(n) AS s FROM released GROUP BY k", {}),
        ("SELECT n + age AS s, n / age AS t, n / length(k) AS u FROM released", {}),
        ("SELECT round(n / n, 9) AS one FROM released ORDER BY n DESC LIMIT 1", {"one": [(1.0, 1.0)]}),
        (
            "WITH a AS (SELECT * FROM released) SELECT n FROM a WHERE n IN (SELECT max(n) FROM a)",
            {"n": [(991, 1009)]},
        ),
        ("WITH a AS (SELECT n FROM released) SELECT n FROM a WHERE n IN (SELECT * FROM a)", {}),
    ],
)
def test_intervals_follow_rows_through_post_processing(
    monkeypatch: pytest.MonkeyPatch, outer: str, expected: dict[str, Any]
) -> None:
    assert release(monkeypatch, outer).intervals() == expected


def test_post_processing_gives_the_same_rows_with_and_without_intervals(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain = release(monkeypatch)
    assert release(monkeypatch, "SELECT * FROM released").rows == plain.rows
    assert (
        release(monkeypatch, "SELECT * FROM released UNION ALL SELECT * FROM released LIMIT 4").rows
        == plain.rows
    )


def test_rounding_and_null_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    found = release(monkeypatch, "SELECT round(age, 1) AS a FROM released ORDER BY k NULLS LAST")
    low, high = found.intervals()["a"][1]  # type: ignore[misc]
    assert low == round(low, 1) < 52 < high == round(high, 1)


def test_an_end_that_overflows_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    found = release(monkeypatch, "SELECT n::UTINYINT AS small FROM released WHERE n = 0")
    assert found.rows == ((0,),) and found.intervals() == {"small": [None]} and "0" in repr(found)


def test_frames_keep_whole_numbers_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    found = release(monkeypatch)
    frame = found.to_pandas()
    assert str(frame["n"].dtype) in ("int64", "Int64") and frame["n"].tolist() == [0, 100, 1000, -3]
    assert frame["age"].isna().tolist() == [True, False, False, True]
    wide = found.to_pandas(level=0.9)
    assert list(wide.columns) == [
        "k",
        "n",
        "n_low",
        "n_high",
        "age",
        "age_low",
        "age_high",
        "q",
        "q_low",
        "q_high",
    ]
    assert str(found.to_polars()["n"].dtype) == "Int64" and found.to_polars()["n"].to_list() == [
        0,
        100,
        1000,
        -3,
    ]
    assert found.to_arrow(0.95).column("n_low").to_pylist() == [-6, 94, 994, -9]


def test_intervals_survive_a_join_with_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each row has the interval of its own group, repeated or not; a label without a group has none."""
    labels = pa.table({"k": ["süd ☂", "east", "north", "north"], "label": ["S", "E", "N", "N again"]})
    sql = "SELECT label, n, age FROM places LEFT JOIN released USING (k) ORDER BY label"
    found = publish((noisy(monkeypatch),), sql, public={"places": labels})
    assert found.rows == (("E", None, None), ("N", 100, 52.0), ("N again", 100, 52.0), ("S", 1000, 49.0))
    assert found.intervals()["n"] == [None, (94, 106), (94, 106), (994, 1006)]
    again = Release.from_json(found.to_json())
    assert again.intervals() == found.intervals() and repr(again) == repr(found)
    assert found.to_pandas(0.95)["n_low"].isna().tolist() == [True, False, False, False]
    assert "1000 ±6" in repr(found) and found.no_information()["age"] == [None, False, False, False]


def test_stored_bytes_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    for outer in (None, "SELECT age * 2 AS a, current_date AS d, n FROM released WHERE n > 5"):
        found = release(monkeypatch, outer)
        stored = found.to_json()
        again = Release.from_json(stored)
        assert again.to_json() == stored == found.to_json()
        assert again.rows == found.rows and again.notes == found.notes and again.receipt == found.receipt
        assert again.cost["epsilon"] == Fraction(1, 2)
        for level in (0.8, 0.95):
            assert again.intervals(level) == found.intervals(level)
        assert repr(again) == repr(found) and json.loads(stored)["format"] == 1


def test_a_text_that_is_not_a_release_is_refused() -> None:
    texts = ("", "null", "[]", "{}", '{"format": 99}', '{"format": 1}', "[" * 100_000, "\ud800")
    for text in (*texts, None, b""):
        with pytest.raises(SfumatoError):
            Release.from_json(text)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("genuine", "forged"),
    [
        ('"1/2"', '"1e99999999"'),  # of a cost: never computed
        ('["laplace","2"]', '["laplace","1e99999999"]'),
        ('["laplace","2"]', '["laplace","0"]'),
        ('"count(*)"', '"no such aggregate"'),
        ('"$kind":"text"', '"$kind":"no such kind"'),
        ('"$NoisyTable"', '"$NoSuchTable"'),
    ],
)
def test_a_damaged_release_is_refused(monkeypatch: pytest.MonkeyPatch, genuine: str, forged: str) -> None:
    stored = release(monkeypatch).to_json()
    assert genuine in stored
    with pytest.raises(InvalidArgument):
        Release.from_json(stored.replace(genuine, forged))


def test_text(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = repr(release(monkeypatch)).splitlines()
    assert shown[0].split() == ["k", "n", "age", "q"]
    assert shown[3].split()[:3] == ["north", "100", "±6"]
    assert "NULL" in shown[5] and "-3 ±6" in shown[5]
    assert "52.00 (51.87..52.14)" in shown[3] and "49.0000 ±0.0073" in shown[4]
    assert "-- epsilon 0.5; delta 1e-06; ± and low..high cover 95%" in shown
    assert any("negative" in line for line in shown)
    assert shown[0].index("n") < shown[0].index("age")


def test_html_escapes_what_came_from_data(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = release(monkeypatch)._repr_html_()
    assert "<b>" not in shown and "&lt;b&gt;&amp;" in shown and "süd ☂" in shown


def test_keys_cannot_break_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    found = publish((noisy(monkeypatch, keys=[("a\nb\x1b[31m",), ("x" * 500,)]),), None)
    lines = repr(found).splitlines()
    assert (
        len(lines) == 4 + len(found.remarks()) + 1
        and max(map(len, lines[:4])) < 140
        and "\x1b" not in repr(found)
    )


def test_nothing_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    for outer in (None, "SELECT k, n, age, q FROM released", "SELECT n FROM released WHERE false"):
        found = publish((noisy(monkeypatch, keys=[]),), outer)
        assert found.rows == () and all(ends == [] for ends in found.intervals().values())
        assert found.to_pandas().empty and found.to_arrow(0.95).num_rows == 0
        assert Release.from_json(found.to_json()).to_json() == found.to_json()
        assert repr(found).startswith(found.columns[0]) and "<table" in found._repr_html_()


def test_one_group_without_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    made.freeze(monkeypatch)
    plan = made.bounding({"n": MOMENT}, [COUNT], keys=[], sets=[()])
    table = made.table(plan, made.cost(plan, 2), made.exact([()], {"n": [7]}, grouping_set=()))
    found = publish((table,), None)
    assert found.rows == ((7,),) and found.intervals() == {"n": [(1, 13)]}


def test_huge_whole_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    made.freeze(monkeypatch)
    total = Answer(name="s", function=Function.SUM, measures=("s",), integer=True)
    plan = made.bounding({"s": MOMENT}, [total])
    values = np.array([2**90, -5], dtype=object)
    table = made.table(plan, made.cost(plan, 2), made.exact([("a",), ("b",)], {"s": values}))
    for outer in (None, "SELECT k, s FROM released ORDER BY k"):
        found = publish((table,), outer)
        assert found.rows == (("a", 2**90), ("b", -5)) and found.types[1] == "HUGEINT"
        assert found.intervals()["s"][0] == (2**90 - 6, 2**90 + 6)
        assert Release.from_json(found.to_json()).rows == found.rows
        assert int(found.to_arrow().column("s")[0].as_py()) == 2**90
        assert found.to_pandas()["s"].tolist() == found.to_polars()["s"].to_list() == [2**90, -5]
        assert str(2**90) in repr(found)


def test_keys_of_other_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    made.freeze(monkeypatch)
    kinds = [
        ("d", Kind.DATE),
        ("t", Kind.TIMESTAMP),
        ("b", Kind.BOOLEAN),
        ("r", Kind.REAL),
        ("i", Kind.INTEGER),
    ]
    plan = made.bounding({"n": MOMENT}, [COUNT], keys=kinds)
    row = (datetime.date(2020, 1, 2), datetime.datetime(2020, 1, 2, 3, 4, 5, 678), True, 0.1, -3)
    keys = [row, (None,) * 5, (*row[:3], float("inf"), 9)]
    table = made.table(
        plan, made.cost(plan), made.exact(keys, {"n": [1, 2, 3]}, grouping_set=(0, 1, 2, 3, 4))
    )
    for outer in (None, "SELECT * FROM released"):
        found = publish((table,), outer)
        assert [each[:5] for each in found.rows] == [keys[0], keys[2], keys[1]]
        assert Release.from_json(found.to_json()).rows == found.rows
        assert found.to_pandas().shape == (3, 6)


def test_several_noisy_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    made.freeze(monkeypatch)
    plan = made.bounding({"n": MOMENT}, [COUNT], keys=[], sets=[()])
    price = made.cost(plan)
    one = made.table(plan, price, made.exact([()], {"n": [7]}, grouping_set=()))
    two = NoisyTable(name="b", keys=one.keys, answers=one.answers, groups=one.groups, noises=one.noises)
    found = publish(
        (one, two), "SELECT released.n / b.n AS r FROM released, b", cost=cost_record(price, price)
    )
    assert found.rows == ((1.0,),) and found.intervals() == {} and found.cost["epsilon"] == 1


def test_notes_say_what_intervals_do_not_cover(monkeypatch: pytest.MonkeyPatch) -> None:
    made.freeze(monkeypatch)
    raised = publish((noisy(monkeypatch, non_negative=True),), None)
    assert any("raised to zero" in note for note in raised.notes) and raised.column("n") == [0, 100, 1000, 0]
    plan = made.bounding({"n": MOMENT}, [COUNT], select=True)
    groups = made.exact([("a",)], {"n": [70]}, units=[50])
    chosen = publish((made.table(plan, made.cost(plan, threshold=44), groups),), None)
    assert any("at least 44" in note for note in chosen.notes)
    assert Release.from_json(chosen.to_json()).tables[0].selected == chosen.tables[0].selected


def test_noise_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    words = release(monkeypatch).noise()
    assert words["n"] == "discrete Laplace, deviation 2.828" and words["age"] == "discrete Laplace on 2 sums"
    assert words["q"] == "discrete Laplace, deviation 2.828, on 3 layers of 2"


def test_post_processing_can_be_tried_before_anything_is_spent() -> None:
    sheet = expected_table(PLAN)
    assert sheet.types == ("VARCHAR", "BIGINT", "DOUBLE", "BIGINT[]")
    check({"released": sheet}, "SELECT k, round(age, 1) FROM released ORDER BY n DESC LIMIT 3")
    with pytest.raises(SfumatoError):
        check({"released": sheet}, "SELECT region FROM released")


def test_releases_are_frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AttributeError):
        release(monkeypatch).rows = ()  # type: ignore[misc]
