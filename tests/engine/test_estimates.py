"""Bounds, caps and losses, end to end: inside the claimed box, near the truth, charged once.

They are ordinary bounded queries, so the checker of `replay` holds for them as for any other: with the salt
frozen, one person more moves their integers by no more than is paid for, and nothing else differs.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from statistics import NormalDist
from typing import Any

import pandas as pd
import pytest

import sfumato as sf
from sfumato.analysis import bound, price
from sfumato.analysis.clipping_bias import losses_request
from sfumato.backends import open_tables
from sfumato.backends.duckdb import DuckDBBackend
from sfumato.catalog import Catalog, Kind, Table, Unit
from sfumato.errors import BudgetExceeded, InvalidArgument, QueryRefused
from sfumato.plan.buckets import Buckets
from sfumato.plan.estimates import bounds_request, caps_request
from sfumato.plan.options import Options
from sfumato.plan.request import Request
from sfumato.plan.sql import parse
from sfumato.session import Database
from tests.engine.doors import open_door
from tests.engine.replay import BUDGET, Replay
from tests.engine.test_replay import NEIGHBOURS, wrongs
from tests.engine.worlds import CATALOG, crowd
from tests.soaked import rest_soaked

# -- one person more ------------------------------------------------------------------------


def losses(text: str, **options: Any) -> Request:
    return losses_request(replace(parse(text, CATALOG), options=Options(**options)), CATALOG)


REQUESTS = {
    "bounds of whole numbers": bounds_request(CATALOG, "big", table="visits"),
    "bounds of real numbers": bounds_request(CATALOG, "amount", table="named"),
    "bounds by row": bounds_request(CATALOG, "amount", table="lone"),
    "caps": caps_request(CATALOG, "visits", by=["region", "word"], limit=20),
    "caps of the whole table": caps_request(CATALOG, "named", limit=5),
    "losses": losses(
        "SELECT region, SUM(amount), AVG(age * qty) FILTER (WHERE member), COUNT(DISTINCT word)"
        " FROM visits GROUP BY region",
        max_rows=2,
        max_groups=2,
    ),
    "losses of found groups": losses(
        "SELECT word, COUNT(*), MEDIAN(amount), SUM(big, contribution_bounds_per_group => (-5, 50)),"
        " SUM(amount, contribution_bounds_per_row => (-1, 9)) FROM visits WHERE qty > 1 GROUP BY word",
        max_rows=3,
        max_groups=1,
    ),
    "losses by row": losses("SELECT AVG(amount), COUNT(*) FROM lone"),
    "losses of units of one row": losses(
        "WITH u AS (SELECT person, COUNT(*) AS n, MAX(amount) AS m FROM visits GROUP BY person)"
        " SELECT AVG(m), AVG(n, contribution_bounds_per_row => (0, 3)) FROM u"
    ),
}


def replayed(request: Request) -> Replay:
    [named] = request.queries
    bounding = bound(named.query, CATALOG, request.options)
    return Replay(bounding, price(bounding, BUDGET, epsilon=Fraction(1, 2)), bounding.query)


@pytest.mark.parametrize("name", REQUESTS)
@pytest.mark.parametrize("world", rest_soaked([0, 3], 2))
def test_one_person_more_stays_in_the_box(name: str, world: int) -> None:
    assert list(wrongs(replayed(REQUESTS[name]), world, NEIGHBOURS)) == []


def test_a_unit_that_counts_with_every_row_is_caught() -> None:
    """The lie: buckets that count rows, claimed to count units."""
    replay = replayed(REQUESTS["bounds of real numbers"])
    assert list(wrongs(replace(replay, run=replace(replay.query, max_rows=50)), 0, NEIGHBOURS))


# -- edges ----------------------------------------------------------------------------------


def _counted(values: list[Any], kind: Kind) -> list[int]:
    """Return the exact cells of a table whose rows are units: opened here, in a test."""
    opened = open_tables({"t": pd.DataFrame({"x": pd.Series(values, dtype=_TYPES[kind])})})
    catalog = Catalog((Table(name="t", fields=opened.fields("t"), unit=Unit(name="row", column=None)),))
    [named] = bounds_request(catalog, "x").queries
    query = bound(named.query, catalog, Options(max_rows=1)).query
    [groups] = DuckDBBackend(opened, catalog).run(query).reveal()
    [cells] = groups.measures.values()
    return [int(n) for n in cells[0]]


_TYPES = {Kind.INTEGER: "Int64", Kind.REAL: "float64"}


def test_every_whole_number_is_in_its_bucket() -> None:
    buckets = Buckets.of(Kind.INTEGER)
    powers = [1 << bit for bit in range(63)]
    values = sorted({sign * (power + step) for power in powers for sign in (1, -1) for step in (-1, 0, 1)})
    values += [2**63 - 1, -(2**63), -(2**63) + 1]
    expected = [sum(low <= value <= high for value in values) for low, high in _ends(buckets)]
    assert _counted([*values, None, None], Kind.INTEGER) == expected
    assert sum(expected) == len(values) and all(expected)


def test_every_real_number_is_in_its_bucket() -> None:
    """Zero has those nearer than 2^-30; what lies beyond 2^100 is in the last bucket; NaN in none."""
    buckets = Buckets.of(Kind.REAL)
    powers = [2.0**power for power in range(-33, 103)]
    values = [sign * each for sign in (1, -1) for power in powers for each in _around(power)]
    values += [0.0, -0.0, 5e-324, -5e-324, 1.8e308, -1.8e308 / 2, math.inf, -math.inf]
    expected = [0] * len(buckets)
    for value in values:
        expected[sum(value >= edge for edge in buckets.edges)] += 1
    assert _counted([*values, math.nan], Kind.REAL) == expected
    assert all(expected)
    for value in values:  # and the bounds of that bucket hold it, as far as buckets reach
        place = sum(value >= edge for edge in buckets.edges)
        if 2.0**-30 < abs(value) < 2.0**100:
            assert buckets.lows[place] <= value <= buckets.highs[place]


def _around(value: float) -> list[float]:
    return [math.nextafter(value, 0), value, math.nextafter(value, math.inf)]


def _ends(buckets: Buckets) -> list[tuple[Any, Any]]:
    return list(zip(buckets.lows, buckets.highs, strict=True))


# -- near the truth -------------------------------------------------------------------------

PEOPLE = 10_000
_LAW = NormalDist(10.5, 0.8)  # of the logarithm of an income: a median of 36,000, a largest near 800,000
INCOMES = [math.exp(_LAW.inv_cdf((place + 0.5) / PEOPLE)) for place in range(PEOPLE)]


def people(**more: Any) -> Database:
    frame = pd.DataFrame({"person": range(PEOPLE), "income": INCOMES, **more})
    return sf.connect(frame, unit="person", name="people", budget=sf.Budget(epsilon=3, delta=1e-7))


def test_bounds_of_incomes() -> None:
    """Ten thousand people, epsilon 0.1: 99 of 100 values are inside, and the bounds are not far out.

    Noise has a deviation of 42, and a bucket beside others counts from 84 people on; [131072, 262144) has
    476, so that it is missed with a chance below 1e-19, and what begins at 16384 or below begins at
    zero. With a false alarm of 1e-9 it is from 254 on, and [65536, 131072) has 1760. A bound beyond 2^20,
    where nobody is, then has a chance of 1e-9.
    """
    db = people()
    found = db.bounds("income", epsilon=0.1).release()
    low, high = found.one()["low"], found.one()["high"]
    assert low <= 0 and high >= 262144
    assert sum(low <= income <= high for income in INCOMES) >= 0.99 * PEOPLE
    assert found.intervals() == {} and any("NULL" in note for note in found.notes)
    sure = db.bounds("income", epsilon=0.1, false_alarm=1e-9).release().one()
    assert sure["low"] == 0 and 131072 <= sure["high"] <= 2.0**20
    assert sf.Release.from_json(found.to_json()).between() == found.between() == sf.between(low, high)


def test_a_share_is_left_outside() -> None:
    """A tenth of them are above 131072 or so: 543 above, 2303 above 65536, with noise of a deviation of 5.

    Likewise 1599 are below 16384, and 313 below 8192: that is within a sixteenth of 131072, hence zero.
    """
    trimmed = people().bounds("income", epsilon=1, share=0.2, false_alarm=1e-9).release().one()
    assert trimmed == {"low": 0.0, "high": 131072.0}


def test_nothing_is_told_from_noise() -> None:
    """Twenty people, noise of a deviation of 42: they seem 300 or more with a chance below 1e-10."""
    frame = pd.DataFrame({"person": range(20), "x": [3] * 20})
    db = sf.connect(frame, unit="person", name="t", budget=sf.Budget(epsilon=3, delta=1e-7))
    found = db.bounds("x", epsilon=0.1, false_alarm=1e-10).release()
    assert found.rows == ((None, None),)
    with pytest.raises(InvalidArgument):
        found.between()


def test_only_some_releases_are_bounds() -> None:
    with pytest.raises(InvalidArgument):
        people().caps(epsilon=0.5).release().between()


def test_odd_values_change_neither_status_nor_shape_nor_charge() -> None:
    odd = [math.nan, math.inf, -math.inf, None, 0.0, 1e-320, 1e308]
    outcomes = set()
    for values in (INCOMES[:5000], odd * 700, [None] * 4900, []):
        frame = pd.DataFrame({"person": range(len(values)), "x": pd.Series(values, dtype="float64")})
        db = sf.connect(frame, unit="person", name="t", budget=sf.Budget(epsilon=3, delta=1e-7))
        found = db.bounds("x", epsilon=0.1).release()
        outcomes.add((found.columns, found.types, len(found), found.notes, db.budget.spent))
    assert len(outcomes) == 1


def test_caps_are_those_that_leave_a_share_whole() -> None:
    """Of 6,000 people 5,400 have two groups of up to three rows, the others five groups of up to nine.

    Deviations of ranks are some 20 at epsilon 3; the quantiles 0.8 and 0.99 are 540 or more away from a step.
    """
    rows = []
    for person in range(6000):
        groups, each = (2, 3) if person < 5400 else (5, 9)
        rows += [(person, f"g{group}") for group in range(groups) for _ in range(1 if group else each)]
    frame = pd.DataFrame(rows, columns=["person", "group"])
    db = sf.connect(frame, unit="person", name="t", budget=sf.Budget(epsilon=90, delta=1e-7))
    assert db.caps(by="group", epsilon=3, share=0.8).release().one() == {"max_rows": 3, "max_groups": 2}
    most = db.caps("t", by="group", epsilon=3, share=0.95, limit=12).release()
    assert most.one() == {"max_rows": 9, "max_groups": 5}
    assert db.caps(epsilon=3, share=0.8).release().one() == {"max_rows": 4}
    assert db.caps(by="group", epsilon=3, limit=4, share=0.95).release().one() == {
        "max_rows": 4,
        "max_groups": 4,
    }
    counted = db.sql("SELECT COUNT(*) AS n FROM t", epsilon=3, max_rows=most.one()["max_rows"]).release()
    [(low, high)] = counted.intervals(1 - 1e-10)["n"]
    assert low <= 5400 * 4 + 600 * 9 <= high
    declared = db.declare(group=sf.one_of("g0", "g3"))  # g1, g2 and g4 are then no groups
    assert declared.caps(by="group", epsilon=3, share=0.95).release().one() == {
        "max_rows": 9,
        "max_groups": 2,
    }


def test_losses_are_what_was_lost() -> None:
    """Each of the intervals of level 1 - 1e-10 misses with that probability."""
    frame = pd.DataFrame(
        {
            "person": [place // 4 for place in range(8000)],
            "region": [("a", "b", None, "a")[place % 4] for place in range(8000)],
            "cost": [(5.0, 50.0, math.nan, math.inf)[place % 4] for place in range(8000)],
        }
    )
    db = sf.connect(
        frame,
        unit="person",
        name="t",
        columns={"cost": sf.between(0, 20)},
        budget=sf.Budget(epsilon=9, delta=1e-7),
    )
    text = "SELECT region, SUM(cost) AS s, COUNT(DISTINCT cost) AS d FROM t GROUP BY region"
    question = db.sql(text, epsilon=0.5, max_rows=1, max_groups=2, max_distinct=1)
    lost = question.losses(epsilon=2).release()
    truth = {
        "people": 2000,
        "over_max_rows": 2000,  # two rows in the group a
        "over_max_groups": 2000,  # a, b and NULL
        "over_max_distinct": 2000,
        "kept_share": 0.5,  # one row in each of two groups of three, of four rows
        "rows": 4000,  # of eight thousand: two of each person
        "outside_cost": 2000,  # half of them
        "outside_cost_share": 0.5,
    }
    assert lost.columns == tuple(truth)
    ends = lost.intervals(1 - 1e-10)
    for name, value in truth.items():
        [(low, high)] = ends[name]
        assert low <= value <= high and high - low < max(1, value), name
    assert any("not by how much" in note for note in lost.notes)
    assert any("max_rows = 1 and max_groups = 2" in note for note in lost.notes)
    listed = db.declare(region=sf.one_of("a", "b")).sql(text, epsilon=1, max_rows=2, max_groups=2)
    [(low, high)] = listed.losses(epsilon=2).release().intervals(1 - 1e-10)["over_max_groups"]
    assert low <= 0 <= high


def test_rows_that_are_units_have_no_caps_to_exceed() -> None:
    frame = pd.DataFrame({"cost": [5.0, 50.0] * 1000})
    db = sf.connect(
        frame,
        unit=None,
        name="t",
        columns={"cost": sf.between(0, 20)},
        budget=sf.Budget(epsilon=9, delta=1e-7),
    )
    lost = db.sql("SELECT SUM(cost) FROM t", epsilon=1).losses(epsilon=1).release()
    assert lost.columns == ("rows", "outside_cost", "outside_cost_share")
    [(low, high)] = lost.intervals(1 - 1e-10)["outside_cost"]
    assert low <= 1000 <= high and any("no caps" in note for note in lost.notes)
    with pytest.raises(QueryRefused, match="nothing is lost"):
        db.sql("SELECT COUNT(*) FROM t", epsilon=1).losses(epsilon=1)
    both = db.sql("SELECT (SELECT COUNT(*) FROM t) AS n, (SELECT SUM(cost) FROM t) AS s", epsilon=1)
    with pytest.raises(QueryRefused, match="several"):
        both.losses(epsilon=1)


# -- the ledger -----------------------------------------------------------------------------


def test_each_is_charged_once_and_read_once() -> None:
    db = open_door(crowd(1, people=40, rows=200))
    asked = db.sql("SELECT region, SUM(amount) FROM visits GROUP BY region", max_rows=2, max_groups=2)
    spent, runs = db.budget.spent_units, 0
    for question in (
        db.bounds("amount", table="visits", epsilon=0.1),
        db.caps("visits", by="region", epsilon=0.1),
        asked.losses(epsilon=0.1),
    ):
        repr(question), question.explain()
        assert db.budget.spent_units == spent and db.backend.runs == runs  # type: ignore[attr-defined]
        priced = question.priced()
        release = question.release()
        runs += 1
        charge = db.terms.rule.charge(priced.event)
        assert db.budget.spent_units - spent == charge > 0 and db.backend.runs == runs  # type: ignore[attr-defined]
        assert float(release.cost["epsilon"]) == 0.1 and release.receipt["unit"] == "person"
        spent = db.budget.spent_units
    for question in (
        db.bounds("amount", table="visits", epsilon=50),
        db.caps("visits", epsilon=50),
        asked.losses(epsilon=50),
    ):
        with pytest.raises(BudgetExceeded):
            question.release()
    assert db.budget.spent_units == spent and db.backend.runs == runs  # type: ignore[attr-defined]


def test_a_key_gives_the_same_bounds_again() -> None:
    db = people()
    first = db.bounds("income", epsilon=0.1).release(key="bounds")
    spent = db.budget.spent
    assert db.bounds("income", epsilon=0.1).release(key="bounds").to_json() == first.to_json()
    assert db.budget.spent == spent


def test_the_cheapest_epsilon_comes_with_its_own_thresholds() -> None:
    found = people().bounds("income").release(error=40)
    cheap = people().bounds("income").release(error=400)
    assert found.cost["epsilon"] > cheap.cost["epsilon"] and found.notes != cheap.notes


def test_declaring_shares_the_budget_and_leaves_the_rest() -> None:
    db = people()
    with pytest.raises(QueryRefused):
        db.sql("SELECT AVG(income) FROM people", epsilon=0.1, max_rows=1).release()
    found = db.bounds("income", epsilon=0.1, false_alarm=1e-9).release()
    declared = db.declare(income=found.between())
    assert declared.ledger is db.ledger and declared.terms is db.terms
    assert declared.budget.spent == db.budget.spent > 0
    before = db.budget.spent
    answer = declared.sql("SELECT AVG(income) AS a FROM people", epsilon=0.5, max_rows=1).release()
    assert db.budget.spent == declared.budget.spent > before
    assert answer.one()["a"] == pytest.approx(sum(INCOMES) / PEOPLE, rel=0.2)
    assert db.catalog.table("people") != declared.catalog.table("people")
    again = declared.declare({"person": sf.between(0, 9)}, table="people")
    assert again.catalog.tables[0].field("income") == declared.catalog.tables[0].field("income")
    with pytest.raises(InvalidArgument):
        db.declare(incme=sf.between(0, 1))
