"""Groups by a column of a public table are those that the table lists: all shown, empty or not."""

from __future__ import annotations

import math
from typing import Any

import pyarrow
import pytest

import sfumato as sf
from sfumato.analysis import public_keys

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


def test_too_many_values_are_selected_privately(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "SELECT r.name, COUNT(*) FROM visits v JOIN regions r ON v.region = r.code GROUP BY r.name"
    from sfumato.backends.duckdb import backend

    monkeypatch.setattr(backend, "MOST_VALUES", 2)
    (bounding,) = database(keys_delta=1e-7).sql(text, epsilon=1).priced().boundings
    assert bounding.select_keys
    monkeypatch.setattr(backend, "MOST_VALUES", 3)
    (bounding,) = database().sql(text, epsilon=1).priced().boundings
    assert not bounding.select_keys
    monkeypatch.setattr(public_keys, "_MOST_GROUPS", 2)
    (bounding,) = database(keys_delta=1e-7).sql(text, epsilon=1).priced().boundings
    assert bounding.select_keys


def test_private_columns_are_never_read_for_keys() -> None:
    """Values are asked of public tables alone: the backend refuses others."""
    asked = database(keys_delta=1e-7)
    read: list[tuple[str, str]] = []
    honestly = asked.backend.public_values
    asked.backend.public_values = lambda *given: read.append(given) or honestly(*given)
    text = "SELECT v.region, r.size, COUNT(*) FROM visits v JOIN regions r ON v.region = r.code GROUP BY ALL"
    asked.sql(text, epsilon=1).priced()
    assert read == [("regions", "size")]
    with pytest.raises(sf.errors.Unsupported):
        honestly("visits", "region")
