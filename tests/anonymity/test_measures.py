"""Measures are those of the definitions, whatever the values: against a slow and obvious reference."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

from sfumato.anonymity import AnonymityMeasures, measure
from sfumato.errors import InvalidArgument
from tests.anonymity import reference
from tests.anonymity.reference import QUASI, tables


@settings(max_examples=80)
@given(tables())
def test_measures_are_those_of_the_definitions(table: pa.Table) -> None:
    found = measure(table, QUASI, sensitive=["ill", "pay"], risk=0.3)
    groups = reference.classes(table, QUASI)
    sizes = [len(group) for group in groups]
    rows = table.num_rows
    assert (found.rows, found.classes, found.k, found.largest) == (rows, len(sizes), min(sizes), max(sizes))
    assert found.unique == sizes.count(1) and found.uniqueness == sizes.count(1) / rows
    assert found.highest_risk == 1 / min(sizes)
    assert found.average_risk == pytest.approx(sum(1 / size for size in sizes for _ in range(size)) / rows)
    assert found.at_risk == pytest.approx(sum(size for size in sizes if 1 / size > 0.3) / rows)
    assert dict(found.sizes) == {size: sizes.count(size) for size in set(sizes)}
    for each, ordered in zip(found.diversity, (False, True), strict=True):
        values = reference.column(table, each.column)
        inside = [[values[row] for row in group] for group in groups]
        outside = reference.shares(values)
        assert each.ordered is ordered
        assert each.distinct_l == min(len(set(one)) for one in inside)
        assert each.entropy_l == pytest.approx(math.exp(min(map(reference.entropy, inside))), abs=1e-9)
        distances = [reference.distance(one, values, ordered=ordered) for one in inside]
        assert each.t == pytest.approx(max(distances), abs=1e-12)
        ratios = [share / outside[value] for one in inside for value, share in reference.shares(one).items()]
        assert each.alpha == pytest.approx(max(max(reference.shares(one).values()) for one in inside))
        assert each.beta == pytest.approx(max(ratios) - 1, abs=1e-12)
        assert each.delta == pytest.approx(max(abs(math.log(ratio)) for ratio in ratios), abs=1e-12)
        alone = sum(len(one) for one in inside if len(set(one)) == 1)
        assert each.homogeneous == pytest.approx(alone / rows)


def test_null_and_nan_are_values_and_zeros_are_one() -> None:
    table = pa.table({"x": pa.array([math.nan, math.nan, None, None, 0.0, -0.0])})
    found = measure(table, ["x"])
    assert (found.classes, found.k) == (3, 2)


def test_a_table_may_come_as_a_file_or_as_a_frame(tmp_path: Any) -> None:
    columns = {"age": [1, 1, 2, 2, 2], "ill": ["a", "b", "a", "a", "a"]}
    frame = pd.DataFrame(columns)
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    frame.to_csv(tmp_path / "t.csv", index=False)
    coded = frame.assign(ill=frame["ill"].astype("category"))
    files = [tmp_path / "t.parquet", tmp_path / "t.csv"]
    origins = [frame, coded, pl.DataFrame(columns), pa.table(columns), *files]
    found = [measure(origin, ["age"], sensitive="ill") for origin in origins]
    assert found == found[:1] * len(found)
    assert (found[0].k, found[0].diversity[0].distinct_l) == (2, 1)


def test_classes_are_right_where_codes_do_not_fit_into_one_number() -> None:
    """Nine columns of 256 values: the first adds multiples of 2^64 to a number of them all."""
    columns = {f"c{place}": [*range(256), 0] for place in range(9)}
    columns["c0"][-1] = 5
    found = measure(pa.table(columns), list(columns))
    assert (found.rows, found.classes, found.unique) == (257, 257, 257)


def test_three_equal_values_have_the_entropy_of_three() -> None:
    found = measure(pa.table({"x": [1, 1, 1], "s": ["a", "b", "c"]}), ["x"], sensitive="s")
    assert found.diversity[0].entropy_l == pytest.approx(3, abs=1e-12)


def test_a_report_is_for_people_and_says_whose_it_is() -> None:
    found = measure(pa.table({"age": [1, 1, 2], "s": [5, 6, 7]}), ["age"], sensitive="s")
    text = str(found)
    assert "k = 1" in text and "33.33% of rows are unique" in text and "l = 1" in text
    assert text.splitlines()[-1].startswith("For the owner") and "nor a release" in text
    record = found.to_dict()
    assert record["k"] == 1 and record["diversity"][0]["column"] == "s" and "owner" in record["note"]
    assert isinstance(found, AnonymityMeasures)


@pytest.mark.parametrize(
    ("quasi", "sensitive", "place"),
    [
        ([], [], "quasi"),
        (["age", "no such"], [], "no such"),
        (["age"], ["no such"], "no such"),
        (["age"], ["age"], "age"),
        (["age", "age"], [], "age"),
        ([3], [], "quasi"),
    ],
)
def test_columns_that_make_no_sense_are_refused(quasi: Any, sensitive: Any, place: str) -> None:
    with pytest.raises(InvalidArgument) as refusal:
        measure(pa.table({"age": [1], "s": [2]}), quasi, sensitive=sensitive)
    assert refusal.value.place == place


@pytest.mark.parametrize("risk", [0, -1, 1.5, math.nan])
def test_a_risk_is_a_chance(risk: float) -> None:
    with pytest.raises(InvalidArgument):
        measure(pa.table({"age": [1]}), ["age"], risk=risk)


def test_an_empty_table_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="no rows"):
        measure(pa.table({"age": pa.array([], pa.int64())}), ["age"])
