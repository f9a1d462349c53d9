"""What the owner lists, what a question computes from it, and what neither says."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.session import Database

TABLE = pa.table(
    {
        "person": list(range(400)),
        "z": [0] * 100 + [1] * 100 + [2] * 100 + [7] * 100,
        "region": ["north"] * 150 + ["south"] * 150 + ["west"] * 100,
    }
)


def database(unit: str | None = "person", table: Any = TABLE, **columns: Any) -> Database:
    return sf.connect(
        table,
        name="t",
        unit=unit,
        columns=columns or {"z": sf.one_of(0, 1, 2), "region": sf.one_of("north", "south", "west")},
        max_groups=1,
        max_rows=1,
        budget=sf.Budget(epsilon=1e9, delta=1e-6, rule="pure"),
    )


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("NULLIF(region, 'north')", {"south": 150, "west": 100, None: 150}),
        ("COALESCE(NULLIF(region, 'north'), 'x')", {"south": 150, "west": 100, "x": 150}),
        ("NULLIF(region, 'nowhere')", {"north": 150, "south": 150, "west": 100}),
        ("COALESCE(region, 'x')", {"north": 150, "south": 150, "west": 100, "x": 0}),
        ("COALESCE(z, 0)", {0: 100, 1: 100, 2: 100}),
    ],
)
def test_no_row_vanishes_from_a_computed_key(key: str, expected: dict[Any, int]) -> None:
    """But for those whose value the owner did not list, which are left out of groups by the column too."""
    rows = database().sql(f"SELECT {key} AS k, COUNT(*) AS n FROM t GROUP BY k", epsilon=1e4).release().rows
    assert dict(rows) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("z", [100, 100, 100]),
        ("COALESCE(z, 0)", [100, 100, 100]),
        ("NULLIF(z, 1)", [100, 100]),
        ("CASE WHEN z = 7 THEN 1 ELSE z END", [200, 100, 100]),  # in the order of 1, 0, 2
        ("CASE WHEN z > 1 THEN 1 ELSE 0 END", [200, 200]),
    ],
)
def test_a_histogram_counts_no_value_as_another(value: str, expected: list[int]) -> None:
    found = database().sql(f"SELECT HISTOGRAM({value}) AS h FROM t", epsilon=1e4).release()
    assert found.column("h") == expected


@pytest.mark.parametrize("unit", ["person", None])
@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("SUM(x, contribution_bounds_per_group => (5, 10))", 16),
        ("SUM(x, contribution_bounds_per_group => (5, 10)) FILTER (WHERE g = 1)", 7),
        ("SUM(x, contribution_bounds_per_group => (8, 10))", 17),
        ("SUM(x, contribution_bounds_per_group => (-10, -5))", -10),
        ("SUM(x, contribution_bounds_per_group => (0, 8))", 15),
        ("SUM(x, contribution_bounds_per_group => (-3, 8))", 15),
    ],
)
def test_who_has_no_value_adds_nothing(unit: str | None, asked: str, expected: float) -> None:
    """GoogleSQL: the sum of the values that are not NULL; a lower bound is no value."""
    table = pa.table({"person": [1, 2, 3, 4], "x": [None, None, 7.0, 9.0], "g": [1, 2, 1, 2]})
    opened = database(unit, table, x=sf.between(0, 100))
    [[found]] = opened.sql(f"SELECT {asked} AS s FROM t", epsilon=1e6).release().rows
    assert found == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize("domain", [(0, 10), [0, 10], 5, "between", {"between": (0, 10)}])
def test_what_is_no_declaration_is_refused_and_not_ignored(domain: Any) -> None:
    with pytest.raises(sf.errors.InvalidArgument, match="between") as refusal:
        database(z=domain)
    assert refusal.value.hints
    with pytest.raises(sf.errors.InvalidArgument, match="between"):
        database().declare(z=domain)


@pytest.mark.parametrize("columns", [[("x", 1)], ("x",), "x", 5])
def test_declarations_are_a_mapping(columns: Any) -> None:
    table = pa.table({"person": [1], "x": [1.0]})
    with pytest.raises(sf.errors.InvalidArgument, match="mapping") as refusal:
        sf.connect(table, name="t", unit="person", columns=columns, budget=sf.Budget(epsilon=1))
    assert refusal.value.hints
