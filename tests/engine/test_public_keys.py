"""Groups by a column of a public table are those that the table lists: all shown, empty or not."""

from __future__ import annotations

import math
from typing import Any

import pyarrow
import pytest

import sfumato as sf
from sfumato.analysis import public_keys
from sfumato.analysis.shapes import scans
from sfumato.plan.tree import ColumnRef, Scan

PEOPLE = 400


def database(**public: Any) -> Any:
    visits = pyarrow.table(
        {
            "who": list(range(PEOPLE)),
            "region": [("n", "s", None, "elsewhere")[place % 4] for place in range(PEOPLE)],
        }
    )
    regions = pyarrow.table(
        {
            "code": ["n", "s", "e", "x", None],
            "name": ["North", "South", "East", None, "South"],
            "size": [1, 2, 2, 3, 2],
            "share": [0.5, math.nan, 1.5, 0.5, 0.5],
        }
    )
    # delta is for losses alone: with no delta for keys, nothing can be selected
    budget = sf.Budget(epsilon=500, delta=1e-6, keys_delta=public.pop("keys_delta", 0))
    return sf.connect(
        visits,
        name="visits",
        unit="who",
        max_groups=1,
        max_rows=1,
        budget=budget,
        public={"regions": regions, **public},
    )


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("r.name", ["East", "North", "South"]),
        ("r.size", [1, 2, 3]),
        ("r.share", [0.5, 1.5]),
    ],
)
def test_all_public_values_are_shown(key: str, values: list[Any]) -> None:
    """East has nobody, and is there; NULL and NaN are no values. Nothing is paid for finding them."""
    text = (
        f"SELECT {key} AS k, COUNT(*) AS n FROM visits v JOIN regions r ON v.region = r.code GROUP BY {key}"
    )
    release = database().sql(text, epsilon=20).release()
    assert release.column("k") == values
    assert release.cost["keys_delta"] == 0
    if key == "r.name":  # noise at epsilon 20: off by 20 with a chance below e^-300
        assert abs(release.column("n")[1] - 100) < 20 and abs(release.column("n")[0]) < 20


def test_through_subqueries_and_beside_declared_keys() -> None:
    text = """
        WITH named AS (SELECT r.name AS place, v.who AS who FROM visits v JOIN regions r ON v.region = r.code)
        SELECT place, COUNT(*) AS n FROM named GROUP BY place ORDER BY place
    """
    assert database().sql(text, epsilon=1).release().column("place") == ["East", "North", "South"]


def test_a_left_join_has_groups_that_no_table_lists() -> None:
    text = "SELECT r.name, COUNT(*) FROM visits v LEFT JOIN regions r ON v.region = r.code GROUP BY r.name"
    with pytest.raises(sf.errors.QueryRefused, match="SF405"):
        database().sql(text, epsilon=1).release()


def test_too_many_groups_are_refused_and_selected_on_demand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody gets selected groups, some of which are missing, without having asked for them."""
    text = "SELECT r.name, COUNT(*) FROM visits v JOIN regions r ON v.region = r.code GROUP BY r.name"
    monkeypatch.setattr(public_keys, "MOST_GROUPS", 2)
    with pytest.raises(sf.errors.QueryRefused, match=r"SF405.*more than 2 groups") as refused:
        database(keys_delta=1e-7).sql(text, epsilon=1).priced()
    assert any("keys='selected'" in hint for hint in refused.value.hints)
    (bounding,) = database(keys_delta=1e-7).sql(text, epsilon=1, keys="selected").priced().boundings
    assert bounding.select_keys
    monkeypatch.setattr(public_keys, "MOST_GROUPS", 3)
    (bounding,) = database().sql(text, epsilon=1).priced().boundings
    assert not bounding.select_keys
    monkeypatch.setattr(public_keys, "_MOST_ROWS", 4)
    with pytest.raises(sf.errors.QueryRefused, match=r"SF405.*meet in more than 4 rows"):
        database().sql(text, epsilon=1).priced()


def test_private_columns_are_never_read_for_keys() -> None:
    """Keys are read from public tables alone: the backend refuses others."""
    asked = database(keys_delta=1e-7)
    read: list[str] = []
    honestly = asked.backend.public_keys

    def noted(relation: Any, keys: Any, most: int) -> Any:
        read.extend(scan.table for scan in scans(relation))
        return honestly(relation, keys, most)

    asked.backend.public_keys = noted
    text = "SELECT v.region, r.size, COUNT(*) FROM visits v JOIN regions r ON v.region = r.code GROUP BY ALL"
    asked.sql(text, epsilon=1).priced()
    assert read == ["regions"]
    region = ColumnRef(name="visits.region", kind=sf.catalog.Kind.TEXT)
    with pytest.raises(sf.errors.Unsupported):
        honestly(Scan(table="visits", alias="visits", columns=(region,)), (region,), 10)
