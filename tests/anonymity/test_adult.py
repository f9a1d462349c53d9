"""Beside pycanon on real people: the Adult data. It is not part of the project; without it, skipped.

pycanon drops rows without a value and knows no NULL, so columns that have some are filled beforehand.
It rounds the entropy l down, and in its recursive (c, l)-diversity sorts counts upwards, so that is left out.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pycanon import anonymity as peer

from sfumato.anonymity import Goal, Intervals, Levels, measure, reach

DATA = Path(__file__).parent.parent / "data" / "adult.parquet"
SETS = [  # the peer is slow: values times classes times rows
    (("sex", "race"), ("income", "hours_per_week")),
    (("sex", "marital_status"), ("occupation",)),
    (("workclass", "relationship"), ("income",)),
]
MARITAL = Levels.tree(
    {
        "with somebody": ["Married-civ-spouse", "Married-AF-spouse"],
        "alone": ["Never-married", "Divorced", "Separated", "Widowed", "Married-spouse-absent"],
    }
)


@pytest.fixture(scope="module")
def adult() -> Any:
    frame = pd.read_parquet(DATA)
    texts = frame.select_dtypes(exclude="number").columns
    frame[texts] = frame[texts].fillna("missing")
    return frame


@pytest.mark.parametrize(("quasi", "sensitive"), SETS, ids=["sex race", "sex marital", "work relationship"])
def test_measures_are_those_of_the_peer(
    adult: Any, quasi: tuple[str, ...], sensitive: tuple[str, ...]
) -> None:
    frame, names = adult[[*quasi, *sensitive]], list(quasi)
    found = measure(frame, quasi, sensitive=sensitive)
    assert found.k == peer.k_anonymity(frame, names)
    for each in found.diversity:
        column = [each.column]
        assert each.ordered is (each.column == "hours_per_week")
        assert each.distinct_l == peer.l_diversity(frame, names, column)
        assert math.floor(each.entropy_l + 1e-9) == peer.entropy_l_diversity(frame, names, column)
        assert each.t == pytest.approx(peer.t_closeness(frame, names, column), abs=1e-9)
        assert each.alpha == pytest.approx(peer.alpha_k_anonymity(frame, names, column)[0], abs=1e-12)
        if each.column != "hours_per_week":
            assert each.beta == pytest.approx(peer.basic_beta_likeness(frame, names, column), abs=1e-9)
            assert each.delta == pytest.approx(peer.delta_disclosure(frame, names, column), abs=1e-9)


@pytest.mark.parametrize(
    "quasi",
    [
        ("age", "sex", "race", "native_country"),
        ("age", "education", "marital_status", "occupation", "race", "sex"),
    ],
    ids=["four", "six"],
)
def test_k_is_that_of_the_peer_where_classes_are_many(adult: Any, quasi: tuple[str, ...]) -> None:
    assert measure(adult, quasi).k == peer.k_anonymity(adult, list(quasi))


@pytest.mark.parametrize("method", ["mondrian", "recoding"])
def test_what_is_handed_over_is_what_the_peer_says_it_is(adult: Any, method: str) -> None:
    quasi = ["age", "sex", "marital_status"]
    hierarchies = {"age": Intervals(widths=(10, 20, 40), low=0, high=100), "marital_status": MARITAL}
    more = {"hierarchies": hierarchies, "suppress": 0.05} if method == "recoding" else {}
    goal = Goal(k=100, l=2, t=0.35)
    made = reach(adult, quasi, goal, sensitive="income", method=method, **more)
    table = made.table.to_pandas()
    assert peer.k_anonymity(table, quasi) == made.after.k >= 100
    assert peer.l_diversity(table, quasi, ["income"]) == 2
    assert peer.t_closeness(table, quasi, ["income"]) == pytest.approx(made.after.diversity[0].t, abs=1e-9)
    assert made.after.diversity[0].t <= 0.35 + 1e-9
