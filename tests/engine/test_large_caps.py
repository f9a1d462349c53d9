"""A cap of any size must treat a table with one row as it treats an empty one."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from sfumato.backends.bounding.priorities import most_per_owner

CAPS = ("max_groups", "max_rows", "max_distinct", "min_units")


def opened(**caps: int) -> sf.Database:
    frame = pd.DataFrame({"person": [1, 2], "x": [1.0, 2.0]})
    return sf.connect(
        frame,
        name="people",
        unit="person",
        budget=sf.Budget(epsilon=9, delta=1e-6),
        **{"max_rows": 1, **caps},
    )


@pytest.mark.parametrize("name", CAPS)
@pytest.mark.parametrize("size", [2**31, 2**63, 2**64, 10**30, 10**400])
def test_caps_beyond_any_table_are_refused_before_anything_is_charged(name: str, size: int) -> None:
    with pytest.raises(sf.errors.InvalidArgument, match=f"{name} must be at most"):
        opened().sql("SELECT COUNT(DISTINCT x) FROM people WHERE x = 2", epsilon=1, **{name: size})
    if name in ("max_groups", "max_rows"):
        with pytest.raises(sf.errors.InvalidArgument, match=f"{name} must be at most"):
            opened(**{name: size})


@pytest.mark.parametrize("name", CAPS)
@pytest.mark.parametrize("there", [2, 3])  # somebody, nobody
def test_the_largest_caps_work_whoever_is_there(name: str, there: int) -> None:
    text = f"SELECT COUNT(DISTINCT x) AS n FROM people WHERE x = {there}"
    rows = opened().sql(text, epsilon=1, **{name: 2**31 - 1}).release().rows
    assert len(rows) == (0 if name == "min_units" else 1)  # nobody shows a result of too few units


def test_any_number_of_entries_may_be_kept() -> None:
    keep = most_per_owner(np.array([9, 5], dtype=np.uint64), np.array([0]), 2**70)
    assert keep.tolist() == [True, True]
