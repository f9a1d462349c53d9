"""Consistent ROLLUP and CUBE: answers add up to the last unit, err as predicted, and cost one reservation."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

import sfumato as sf
from sfumato.analysis import consistency, price
from sfumato.analysis.bounded import Bounding
from sfumato.analysis.consistency import level_deviations
from sfumato.core.accountant import PrivacyBudget
from sfumato.core.events import Composed
from sfumato.errors import QueryRefused, SfumatoError
from sfumato.plan.options import Options
from sfumato.release import NoisyGroups, Release, tabulate
from sfumato.release.consistency import consistent_groups
from tests.engine.questions import Asked
from tests.engine.replay import BUDGET as REPLAYED
from tests.engine.replay import planned
from tests.engine.test_replay import caught, claiming

STATES, COUNTIES, SEXES = ("A", "B", "C"), ("1", "2", "3", "4"), ("f", "m")
COUNTY_LIST = [(state, county) for state in STATES for county in COUNTIES if (state, county) != ("C", "4")]
ROLLED = "SELECT state, county, COUNT(*) AS n FROM people GROUP BY ROLLUP (state, county)"
CUBED = "SELECT state, sex, COUNT(*) AS n FROM people GROUP BY CUBE (state, sex)"


def people() -> pd.DataFrame:
    rows = [
        (state, county, sex, place % 7, place % 11)
        for place, ((state, county), sex) in enumerate(product(COUNTY_LIST, SEXES))
        for _ in range(3 + place % 5)
    ]
    frame = pd.DataFrame(rows, columns=["state", "county", "sex", "visits", "income"])
    frame.insert(0, "who", range(len(frame)))
    return frame


@pytest.fixture(scope="module")
def db() -> sf.Database:
    return sf.connect(
        people(),
        name="people",
        unit="who",
        max_rows=1,
        max_groups=1,
        columns={
            "state": sf.one_of(*STATES),
            "county": sf.one_of(*COUNTIES),
            "sex": sf.one_of(*SEXES),
            "visits": sf.between(0, 7),
            "income": sf.between(0, 10),
        },
        keys={("state", "county"): COUNTY_LIST},
        budget=sf.Budget(epsilon=1e9, delta=1e-6),
    )


def table(release: Release, *keys: str) -> dict[tuple[Any, ...], list[Any]]:
    """Return what a release says, by key; of a histogram a list of counts."""
    places = [release.columns.index(key) for key in keys]
    found: dict[tuple[Any, ...], list[Any]] = {}
    for row in release.rows:
        found.setdefault(tuple(row[place] for place in places), []).append(row[-1])
    return found


def adds_up(found: dict[tuple[Any, ...], list[Any]]) -> bool:
    """Return whether each group with a NULL is the sum of those that have a value there."""
    wrong = []
    for key, values in found.items():
        for place, part in enumerate(key):
            fixed = [at for at in range(len(key)) if at != place]
            parts = [
                other
                for one, other in found.items()
                if one[place] is not None and all(one[at] == key[at] for at in fixed)
            ]
            if part is None and parts:
                wrong += [value for value, *below in zip(values, *parts, strict=True) if value != sum(below)]
    return not wrong


QUESTIONS = {
    "a ragged rollup": ROLLED,
    "cells": "SELECT state, county, HISTOGRAM(sex) AS n FROM people GROUP BY ROLLUP (state, county)",
    "some states": ROLLED.replace("GROUP", "WHERE state IN ('A', 'B') AND county <> '2' GROUP"),
    "several roots": "SELECT state, sex, COUNT(*) AS n FROM people GROUP BY sex, ROLLUP (state)",
    "a cube": CUBED,
    "a filtered count": "SELECT state, sex, COUNT(*) FILTER (WHERE income > 3) AS n FROM people"
    " GROUP BY GROUPING SETS ((state, sex), (state), (sex))",
    "cells of a cube": "SELECT state, sex, HISTOGRAM(visits) AS n FROM people GROUP BY CUBE (state, sex)",
}


@pytest.mark.parametrize("non_negative", [False, True])
@pytest.mark.parametrize("text", QUESTIONS.values(), ids=QUESTIONS.keys())
def test_answers_add_up_to_the_last_unit(db: sf.Database, text: str, non_negative: bool) -> None:
    asked = db.sql(text, epsilon=0.5, consistent=True, non_negative=non_negative)
    release = asked.release()
    second = release.columns[1]
    found = table(release, "state", second)
    assert adds_up(found)
    values = [value for several in found.values() for value in several]
    whole = "CUBE" not in text and "SETS" not in text
    assert all(isinstance(value, int if whole or non_negative else float) for value in values)
    if non_negative:
        assert min(values) >= 0 and "biased" in " ".join(release.notes)
    assert Release.from_json(release.to_json()).to_json() == release.to_json()
    for value, ends in zip(release.column("n"), release.intervals()["n"], strict=True):
        assert ends is not None and ends[0] <= value <= ends[1]


def test_sums_add_up_as_well(db: sf.Database) -> None:
    text = "SELECT state, county, COUNT(*) AS c, SUM(income) AS n FROM people GROUP BY ROLLUP (state, county)"
    release = db.sql(text, epsilon=0.5, consistent=True).release()
    assert adds_up(table(release, "state", "county"))


@pytest.mark.parametrize("sets", ["ROLLUP (state, sex)", "CUBE (state, sex)"])
def test_sums_beyond_64_bits_add_up(db: sf.Database, sets: str) -> None:
    wide = db.declare(income=sf.between(-(10.0**25), 10.0**25))
    text = f"SELECT state, sex, SUM(income) AS n FROM people GROUP BY {sets}"
    release = wide.sql(text, epsilon=0.5, consistent=True).release()
    found = table(release, "state", "sex")
    scale = max(abs(value) for [value] in found.values())
    assert 1e23 < scale < 1e28
    for sex in SEXES:
        if (None, sex) in found:
            assert math.isclose(
                found[None, sex][0], sum(found[state, sex][0] for state in STATES), abs_tol=scale * 1e-12
            )
    total = sum(found[state, None][0] for state in STATES)
    assert math.isclose(found[None, None][0], total, abs_tol=scale * 1e-12)


@pytest.mark.parametrize("text", [ROLLED, CUBED])
@pytest.mark.parametrize("options", [{}, {"non_negative": True}, {"noise": "laplace"}])
def test_without_noise_it_is_the_truth(db: sf.Database, text: str, options: dict[str, Any]) -> None:
    release = db.sql(text, epsilon=1e6, consistent=True, **options).release()
    second = release.columns[1]
    frame = people()
    for (state, other), values in table(release, "state", second).items():
        rows = frame if state is None else frame[frame.state == state]
        rows = rows if other is None else rows[rows[second] == other]
        assert values == [len(rows)]


def test_it_is_one_request_and_one_reservation(db: sf.Database) -> None:
    before = db.ledger.head().sequence
    asked = db.sql(ROLLED, epsilon=0.5, consistent=True)
    assert isinstance(asked.priced().event, Composed) and len(asked.priced().event.events) == 3
    release = asked.release()
    assert db.ledger.head().sequence - before == 2  # a charge, and its answer
    assert release.receipt["reservation"] == str(before + 1)


# -- errors ---------------------------------------------------------------------------------------------

BUDGET = PrivacyBudget(epsilon=1, delta=1e-6)
PURE = PrivacyBudget(epsilon=1)
GAUSS = Options(noise="gaussian")


def bounding(db: sf.Database, text: str, **options: Any) -> Bounding:
    [found] = db.sql(text, epsilon=1, **options).priced().boundings
    return found


def leaves_of(text: str) -> str:
    """Return the question for the finest groups alone."""
    return text.replace("ROLLUP (", "").replace("CUBE (", "").removesuffix(")")


@pytest.mark.parametrize("text", [ROLLED, CUBED])
@pytest.mark.parametrize("budget", [BUDGET, PURE], ids=["gaussian", "pure"])
def test_no_level_errs_more_than_independent_levels_nor_sums_of_leaves(
    db: sf.Database, text: str, budget: PrivacyBudget
) -> None:
    """By variances, at one epsilon, of the noise that each way needs.

    Dividing an epsilon is dear: for so few groups the plain ways come within 15% of it there.
    """
    slack = 1.15 if budget is PURE else 1.0001
    options = Options(noise="laplace" if budget is PURE else "gaussian")
    asked = [bounding(db, text, consistent=True), bounding(db, text), bounding(db, leaves_of(text))]
    cost, apart, alone = (price(one, budget, epsilon=1, options=options) for one in asked)
    deviations, query = level_deviations(asked[0], cost), asked[0].query
    for place in range(len(query.grouping_sets)):
        chosen = query.grouping_sets[place]
        parts = max(Counter(tuple(key[at] for at in chosen) for key in query.declared or ()).values())
        found = deviations["m0", place]
        assert found < slack * apart.noise("m0", place).law.deviation
        if parts > 1:  # of the finest groups nothing can be better than measuring them alone
            assert found < slack * alone.noise("m0").law.deviation * math.sqrt(parts)
        else:
            assert found < 0.85 * apart.noise("m0", place).law.deviation


def test_nearly_all_for_the_leaves_is_as_good_as_leaves_alone(db: sf.Database) -> None:
    consistent = bounding(db, ROLLED, consistent=True, level_shares=(0.005, 0.005, 0.99))
    leaf = price(bounding(db, leaves_of(ROLLED)), BUDGET, epsilon=1, options=GAUSS).noise("m0").law.deviation
    found = level_deviations(consistent, price(consistent, BUDGET, epsilon=1, options=GAUSS))
    assert found["m0", 0] < 1.001 * leaf and found["m0", 2] < leaf * math.sqrt(11)


def test_shares_are_what_levels_get_of_the_cost(db: sf.Database) -> None:
    for noise in ("gaussian", "laplace"):
        one = bounding(db, ROLLED, consistent=True, level_shares=(1, 2, 7), noise=noise)
        cost = price(one, BUDGET, epsilon=1, options=Options(noise=noise))
        prices = [Fraction(BUDGET.rule.price(each.event)) for each in cost.noises]
        shares = [float(each / sum(prices)) for each in prices]
        assert shares == pytest.approx([0.7, 0.2, 0.1], rel=0.02)
    scales = [float(each.law.parameter) for each in price(one, PURE, epsilon=1).noises]
    assert [1 / scale for scale in scales] == pytest.approx([0.7, 0.2, 0.1])


def drawn(consistent: Bounding, cost: Any) -> tuple[NoisyGroups, ...]:
    """Return noise on empty groups."""
    found = []
    for place, chosen in enumerate(consistent.query.grouping_sets):
        keys = sorted({tuple(key[at] for at in chosen) for key in consistent.query.declared or ()})
        measures = {
            measure.name: cost.noise(measure.name, place).law.draw(len(keys))
            for measure in consistent.query.measures
        }
        found.append(NoisyGroups(grouping_set=chosen, keys=tuple(keys), measures=measures, layers={}))
    return tuple(found)


@pytest.mark.parametrize(("text", "noise"), [(ROLLED, "gaussian"), (CUBED, "gaussian"), (ROLLED, "laplace")])
def test_errors_are_as_predicted(db: sf.Database, text: str, noise: str) -> None:
    """False alarm below 1e-9: 7.5 deviations of a sample variance, and a binomial tail of misses.

    Power: a variance that is half off, or an interval at 85% instead of 95%, is found out.
    """
    rounds = 1200
    consistent = bounding(db, text, consistent=True, noise=noise)
    cost = price(consistent, BUDGET, epsilon=Fraction(1, 5), options=Options(noise=noise))
    predicted = level_deviations(consistent, cost)
    errors: list[list[float]] = [[] for _ in consistent.query.grouping_sets]
    for _ in range(rounds):
        groups = consistent_groups(drawn(consistent, cost), consistent, cost, non_negative=False)
        for place, one in enumerate(groups):
            assert one.fitted is not None
            errors[place].append(
                one.measures["m0"][0] / one.fitted["m0"].parts
            )  # the first group is of the largest state
    table = tabulate("table", groups, consistent, cost)
    column = table.aggregate(table.answers[0])
    for place, found in enumerate(errors):
        spread = (2.0 if noise == "gaussian" else 5.0) / rounds
        ratio = float(np.mean(np.square(found))) / predicted["m0", place] ** 2
        assert abs(ratio - 1) < 7.5 * math.sqrt(spread)
        at = table.sets.index(place)
        width = (column.high[at] - column.low[at]) / 2
        misses = sum(abs(error) > width for error in found)
        assert misses <= binom.isf(1e-10, rounds, 0.05)


def test_forecasts_are_of_what_is_answered(db: sf.Database) -> None:
    plain, consistent = (repr(db.sql(ROLLED, epsilon=1, consistent=flag)) for flag in (None, True))
    assert "  n: ±14" in plain and "  by state, county: n ±1" in consistent and "of the cost" in consistent
    found = db.sql(ROLLED, consistent=True).within(40.0)
    [one] = found.priced().boundings
    assert max(level_deviations(one, found.priced().costs[0]).values()) * 1.96 < 40


# -- privacy, and refusals before the charge ------------------------------------------------------------

WORLD = "SELECT v.region, v.member, COUNT(*), SUM(v.amount) FROM visits AS v GROUP BY"
CAPS: dict[str, Any] = {"max_groups": 2, "max_rows": 2, "consistent": True}


@pytest.mark.parametrize("sets", ["ROLLUP(v.region, v.member)", "CUBE(v.region, v.member)"])
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_one_person_more_stays_in_the_box(sets: str, noise: str) -> None:
    plan = planned(Asked(f"{WORLD} {sets}", {**CAPS, "noise": noise}))
    assert plan.bounding.consistency is not None and caught(plan) == []
    if noise == "gaussian":  # a price for one group only is found out
        cheap = price(claiming(plan, max_groups=1).bounding, REPLAYED, epsilon=Fraction(1, 2), options=GAUSS)
        assert any("paid for" in wrong for wrong in caught(replace(plan, cost=cheap)))


REFUSED = {
    "one grouping set": ("SELECT state, COUNT(*) FROM people GROUP BY state", {}, "one grouping set"),
    "an average": ("SELECT state, AVG(income) FROM people GROUP BY ROLLUP (state)", {}, "not the sum"),
    "people": ("SELECT state, COUNT(DISTINCT who) FROM people GROUP BY ROLLUP (state)", {}, "not the sum"),
    "a median": ("SELECT state, MEDIAN(income) FROM people GROUP BY ROLLUP (state)", {}, "not the sum"),
    "selected groups": (ROLLED, {"keys": "selected"}, "not known in public"),
    "groups left out": (ROLLED, {"min_units": 3}, "left out"),
    "a cube with holes": (ROLLED.replace("ROLLUP", "CUBE"), {}, "not every combination"),
    "no finest set": (
        "SELECT state, sex, COUNT(*) FROM people GROUP BY GROUPING SETS ((state), (sex))",
        {},
        "no set has all keys",
    ),
    "shares of a cube": (CUBED, {"level_shares": (1, 1, 1, 1)}, "a cube has none"),
    "too few shares": (ROLLED, {"level_shares": (1, 9)}, "3 levels and 2 shares"),
    "sums from zero on": (
        "SELECT state, SUM(income) FROM people GROUP BY ROLLUP (state)",
        {"non_negative": True},
        "for counts",
    ),
}


@pytest.mark.parametrize(("text", "options", "said"), REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_add_up_is_refused_before_the_charge(
    db: sf.Database, text: str, options: dict[str, Any], said: str
) -> None:
    spent = db.balance.spent_units
    with pytest.raises(QueryRefused, match=said):
        db.sql(text, epsilon=1, consistent=True, **options).release()
    assert db.balance.spent_units == spent


def test_too_many_numbers_are_refused_before_the_charge(
    db: sf.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consistency, "_MOST_NUMBERS", 29)
    spent = db.balance.spent_units
    db.sql(ROLLED, epsilon=1, consistent=True).priced()  # 15 numbers
    with pytest.raises(QueryRefused, match="asks for 30 numbers, and 29 are the most"):
        db.sql(QUESTIONS["cells"], epsilon=1, consistent=True).release()
    assert db.balance.spent_units == spent


def test_children_that_do_not_cover_their_parent_are_refused(db: sf.Database) -> None:
    more = db.declare(state=sf.one_of(*STATES, "D"))
    with pytest.raises(QueryRefused, match="do not cover `state`: 1 of its values"):
        more.sql(ROLLED, epsilon=1, consistent=True).release()


@pytest.mark.parametrize("shares", ["0.5", (0.5, -1), (0.5, "x"), 3])
def test_shares_that_make_no_sense_are_refused(db: sf.Database, shares: Any) -> None:
    with pytest.raises(SfumatoError, match="level_shares"):
        db.sql(ROLLED, epsilon=1, consistent=True, level_shares=shares)
    with pytest.raises(SfumatoError, match="consistent"):
        db.sql(ROLLED, epsilon=1, level_shares=(1, 1, 1))
