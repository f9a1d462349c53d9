"""Key selection: a group that only one person is in appears with a chance of at most delta.

Measured over a million such groups at delta 1e-3, and computed from the exact law at any delta.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pyarrow
import pytest
from scipy import stats

import sfumato as sf
from sfumato.analysis import Bounding, Cost, bound, price
from sfumato.analysis.keys import appearance, divided_appearance, divided_cut, smallest_cut
from sfumato.analysis.selection import grid_of
from sfumato.backends import open_tables
from sfumato.backends.duckdb import DuckDBBackend
from sfumato.backends.exact import Exact, ExactGroups, Members
from sfumato.core.accountant import PrivacyBudget
from sfumato.core.noise_law import noise_law, noise_laws
from sfumato.plan.options import Options
from sfumato.plan.sql import parse
from sfumato.release import add_noise, weighted_selection
from sfumato.release.weighted_selection import weights_of
from tests.engine.worlds import CATALOG, crowd, newcomer

ALARM = 4e-10  # of one side; a test that looks at both has a false alarm below 1e-9
MILLION = 1_000_000


def asked(
    text: str,
    *,
    noise: Any,
    groups: int = 1,
    rows: int = 1,
    total: int | None = None,
    delta: float = 1e-3,
    least: int | None = None,
) -> tuple[Bounding, Cost]:
    (named,) = parse(text, CATALOG).queries
    caps = Options(max_groups=groups, max_rows=rows, max_rows_total=total, min_units=least)
    bounding = bound(named.query, CATALOG, caps)
    budget = PrivacyBudget(epsilon=3, delta=2 * delta, keys_delta=delta)
    return bounding, price(bounding, budget, epsilon=1, options=Options(noise=noise, delta=delta))


@cache
def million() -> list[tuple[str]]:
    return [(f"word {place}",) for place in range(MILLION)]


def singletons(bounding: Bounding, per_unit: int = 1) -> Exact[tuple[ExactGroups, ...]]:
    """Return a million groups of one unit each, with the reach in every measure."""
    measures = {
        measure.name: np.full(MILLION, measure.sensitivity if measure.sensitivity == 1 else 1, dtype=np.int64)
        for measure in bounding.query.measures
    }
    groups = ExactGroups(
        grouping_set=(0,), keys=million(), measures=measures, units=np.full(MILLION, per_unit, dtype=np.int64)
    )
    return Exact((groups,))


UNITS = "SELECT word, COUNT(DISTINCT person) FROM visits GROUP BY word"  # decides by what is shown
COUNTS = "SELECT word, COUNT(*) FROM visits GROUP BY word"  # decides by noise of its own


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize(("text", "groups", "rows"), [(UNITS, 1, 1), (UNITS, 4, 1), (COUNTS, 1, 3)])
def test_singletons_appear_no_more_often_than_delta(text: str, groups: int, rows: int, noise: str) -> None:
    """Binomial, false alarm below 1e-9: 4e-10 on either side. Of a million, 1000 are expected at most and
    1200 allowed: a threshold that is one too low, at which they appear some 20% more often, is caught.
    """
    bounding, cost = asked(text, noise=noise, groups=groups, rows=rows)
    selection = cost.selection(0)
    assert selection is not None
    assert cost.keys_delta == selection.delta <= Fraction(1, 1000)
    assert selection.cut is not None and selection.threshold == selection.cut + 1
    (noisy,) = add_noise(singletons(bounding), bounding, cost)
    shown = len(noisy.keys)
    single = selection.law.tail_within(selection.cut, selection.cut)
    assert 1 - (1 - single) ** groups <= float(selection.delta)
    assert stats.binom.sf(shown - 1, MILLION, single) > ALARM  # and so at most delta, in every group
    assert stats.binom.cdf(shown, MILLION, single) > ALARM  # and no rarer than the law says
    # k groups of one unit: the chance that any of them appears is at most delta
    assert stats.binom.sf(shown - 1, MILLION, 1 - (1 - 1e-3) ** (1 / groups)) > ALARM


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_a_threshold_that_is_too_low_is_caught(noise: str) -> None:
    bounding, cost = asked(UNITS, noise=noise)
    (selection,) = cost.selections
    lower = replace(cost, selections=(replace(selection, threshold=selection.threshold - 2),))
    (noisy,) = add_noise(singletons(bounding), bounding, lower)
    assert stats.binom.sf(len(noisy.keys) - 1, MILLION, 1e-3) < ALARM


def test_three_in_a_group_are_more_than_one() -> None:
    """The test has power: a unit that counts three times appears more often than delta."""
    bounding, cost = asked(COUNTS, noise="laplace", rows=3)
    (selection,) = cost.selections
    (noisy,) = add_noise(singletons(bounding, per_unit=3), bounding, cost)
    assert selection.cut is not None
    single = selection.law.tail_within(selection.cut, selection.cut)
    assert stats.binom.sf(len(noisy.keys) - 1, MILLION, single) < ALARM


def test_asking_for_more_units_only_hides_more() -> None:
    for text in (UNITS, COUNTS):
        (plain,) = asked(text, noise="laplace")[1].selections
        (more,) = asked(text, noise="laplace", least=10)[1].selections
        assert more.threshold == plain.threshold + 9 and more.delta <= plain.delta


# -- from the exact law ---------------------------------------------------------------------


def leaves(kind: str, parameter: Fraction, cut: int, move: int) -> Any:
    """Return P(noise > cut - move | |noise| <= cut) by adding up the masses, in high precision."""
    import mpmath

    with mpmath.workdps(60):
        scale = mpmath.mpf(parameter.numerator) / parameter.denominator
        losses = (
            x / scale if kind == "laplace" else mpmath.mpf(x) ** 2 / (2 * scale) for x in range(cut + 1)
        )
        masses = [mpmath.exp(-loss) for loss in losses]
        return mpmath.fsum(masses[cut + 1 - move :]) / (2 * mpmath.fsum(masses) - 1)


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("exponent", [3, 6, 9, 15, 30])
@pytest.mark.parametrize("groups", [1, 3, 20])
def test_the_cut_holds_delta_by_the_exact_law(kind: str, exponent: int, groups: int) -> None:
    """k P <= delta at the cut, and above it one step lower: no smaller one would do."""
    import mpmath

    delta = Fraction(1, 10**exponent)
    for parameter in (Fraction(1, 2), Fraction(7, 3), Fraction(25)):
        law = noise_law(kind, parameter)
        cut = smallest_cut(law, delta, each=1, total=groups)
        with mpmath.workdps(60):
            chances = [groups * leaves(kind, parameter, at, 1) for at in (cut, cut - 1)]
            assert chances[0] <= mpmath.mpf(1) / 10**exponent
            least = max(1, law.half_width(0.5))
            assert cut == least or chances[1] * (1 + mpmath.mpf(10) ** -9) > mpmath.mpf(1) / 10**exponent
            claimed = appearance(law, cut, each=1, total=groups)
            assert chances[0] <= claimed <= chances[0] * (1 + 1e-6)


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_groups_that_fall_together_hold_delta_however_they_do(kind: str) -> None:
    """In a coarser grouping set a unit's k groups are parts c_1 + c_2 + .. of k: all of them."""

    def parts(total: int, most: int) -> list[list[int]]:
        if not total:
            return [[]]
        return [[one, *rest] for one in range(min(total, most), 0, -1) for rest in parts(total - one, one)]

    for parameter in (Fraction(7, 3), Fraction(25)):
        for groups in (1, 2, 5):
            law = noise_law(kind, parameter)
            cut = smallest_cut(law, Fraction(1, 1000), each=groups, total=groups)
            worst = appearance(law, cut, each=groups, total=groups)
            for split in parts(groups, groups):
                missed = math.prod(1 - float(leaves(kind, parameter, cut, part)) for part in split)
                assert 1 - missed <= worst * (1 + 1e-12) <= 1.001e-3


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_prices_say_the_chance_that_their_threshold_leaves(kind: str) -> None:
    for text in (UNITS, COUNTS, "SELECT word, region, COUNT(*) FROM visits GROUP BY ROLLUP(word, region)"):
        for delta in (1e-3, 1e-8):
            bounding, cost = asked(text, noise=kind, groups=3, rows=2, delta=delta)
            assert 0 < cost.keys_delta <= Fraction(delta).limit_denominator(10**12) * Fraction(10001, 10000)
            assert len(cost.selections) == sum(bool(chosen) for chosen in bounding.query.grouping_sets)
            for selection in cost.selections:
                finest = len(bounding.query.grouping_sets[selection.grouping_set]) == len(bounding.query.keys)
                if selection.rounds:
                    assert selection.delta == sum(one.delta for one in selection.rounds)
                elif finest:
                    assert selection.cut is not None
                    each = float(leaves(selection.law.name, selection.law.parameter, selection.cut, 1))
                    assert 3 * each <= float(selection.delta) * (1 + 1e-12)


# -- by weights, in rounds ------------------------------------------------------------------


def loners(each: int, found: int = 0) -> tuple[Exact[tuple[ExactGroups, ...]], int]:
    """Return units that are alone in `each` groups, a million groups in all but `found`.

    So many more of each unit's groups are popular ones, which all units are in.
    """
    units = MILLION // each
    own = np.arange(units * each).reshape(units, each)
    shared = np.broadcast_to(np.arange(units * each, units * each + found), (units, found))
    members = Members(
        groups=np.hstack([own, shared]).ravel(), sizes=np.full(units, each + found, dtype=np.int64)
    )
    size = units * each + found
    counts = np.bincount(members.groups, minlength=size)
    groups = ExactGroups(
        grouping_set=(0,),
        keys=[(place,) for place in range(size)],
        measures={"m0": counts},
        units=counts,
        members=members,
    )
    return Exact((groups,)), units


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize(("each", "found"), [(1, 0), (2, 0), (4, 0), (1, 3), (2, 2)])
def test_units_alone_in_groups_make_some_appear_no_more_often_than_delta(
    each: int, found: int, noise: str
) -> None:
    """Binomial, false alarm below 1e-9, over units: any of a unit's novel groups counts, in any round.

    With four groups a unit, units in one, two or four novel groups, by themselves and after the popular
    ones among their groups were found in the first round, so that they weigh more in the second. At a
    million units a chance that is a fifth above delta is caught; see the next test for its power.
    """
    exact, units = loners(each, found)
    bounding, cost = asked(COUNTS, noise=noise, groups=4, rows=3)
    (selection,) = cost.selections
    assert len(selection.rounds) == 2 and cost.keys_delta == selection.delta <= Fraction(1, 1000)
    (noisy,) = add_noise(exact, bounding, cost)
    shown = np.array([key[0] for key in noisy.keys], dtype=np.int64)
    assert (shown >= units * each).sum() == found  # a million units are missed with a chance below 1e-9
    appeared = len(np.unique(shown[shown < units * each] // each))
    assert stats.binom.sf(appeared - 1, units, float(selection.delta)) > ALARM
    law = sum(
        1 - (1 - one.law.tail_within(one.cut, one.cut + 1 - one.law.divided(selection.grid, left))) ** each
        for one, left in zip(selection.rounds, (each + found, each), strict=True)
    )
    assert law <= float(selection.delta)
    assert stats.binom.sf(appeared - 1, units, law) > ALARM  # and as often as the law says
    assert stats.binom.cdf(appeared, units, law * (1 - 2e-3)) > ALARM


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("place", [0, 1])
def test_weights_that_are_too_large_are_caught(
    noise: str, place: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test above has power: weights that are too large, or cuts too low, show too many groups."""
    exact, units = loners(4)
    bounding, cost = asked(COUNTS, noise=noise, groups=4, rows=3)
    (selection,) = cost.selections
    if not place:
        monkeypatch.setattr(
            weighted_selection, "_weight", lambda one, groups: one.law.divided(one.grid, groups) * 8
        )
        (noisy,) = add_noise(exact, bounding, cost)
    else:
        last = replace(selection.rounds[1], cut=selection.rounds[1].cut * 3 // 4)
        cheap = replace(selection, rounds=(selection.rounds[0], last))
        (noisy,) = add_noise(exact, bounding, replace(cost, selections=(cheap,)))
    appeared = len({key[0] // 4 for key in noisy.keys})
    assert stats.binom.sf(appeared - 1, units, float(selection.delta)) < ALARM


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("exponent", [3, 9, 30])
@pytest.mark.parametrize("groups", [2, 5, 20])
def test_divided_weights_hold_delta_by_the_exact_law(kind: Any, exponent: int, groups: int) -> None:
    """For every number of groups, d P <= delta; and for some, above it one step lower."""
    import mpmath

    grid, delta = 12, Fraction(1, 10**exponent)
    weights = tuple(noise_laws(kind)[0].divided(grid, number) for number in range(1, groups + 1))
    for parameter in (Fraction(7, 3), Fraction(25)):
        cut = divided_cut(noise_law(kind, parameter), delta, weights)
        with mpmath.workdps(60):

            def worst(at: int, parameter: Fraction = parameter) -> Any:
                return max(d * leaves(kind, parameter, at, one) for d, one in enumerate(weights, start=1))

            held = worst(cut)
            assert held <= mpmath.mpf(1) / 10**exponent
            assert cut == grid or worst(cut - 1) * (1 + mpmath.mpf(10) ** -9) > float(delta)
            claimed = divided_appearance(noise_law(kind, parameter), cut, weights)
            assert held <= claimed <= held * (1 + 1e-6)


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_many_groups_taken_together_are_bounded_from_above(kind: Any) -> None:
    grid = grid_of(3000)
    weights = tuple(noise_laws(kind)[0].divided(grid, number) for number in range(1, 3001))
    parameter = Fraction(grid**2 if kind == "gaussian" else grid)
    cut = divided_cut(noise_law(kind, parameter), Fraction(1, 10**6), weights)
    for number in (1, 2, 64, 65, 66, 100, 1000, 2999, 3000):
        assert number * noise_law(kind, parameter).tail_within(cut, cut + 1 - weights[number - 1]) <= 1e-6


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("groups", [1, 2, 3, 7, 12, 13, 100, 5000])
def test_no_unit_weighs_more_than_one(kind: Any, groups: int) -> None:
    """d floor(G / d) <= G and d floor(G / sqrt(d))^2 <= G^2; and little is lost by rounding down."""
    grid = grid_of(groups)
    each = noise_laws(kind)[0].divided(grid, groups)
    norm = groups * each if kind == "laplace" else groups * each**2
    whole = grid if kind == "laplace" else grid**2
    assert whole * 0.996 < norm <= whole


def test_weights_are_those_of_the_definition() -> None:
    _, cost = asked(COUNTS, noise="laplace", groups=4, rows=3)
    (selection,) = cost.selections
    members = Members(groups=np.array([0, 1, 2, 1, 3]), sizes=np.array([3, 1, 1]))
    grid = selection.grid
    nothing = np.zeros(4, dtype=np.bool_)
    assert weights_of(members, nothing, selection).tolist() == [
        grid // 3, grid // 3 + grid, grid // 3, grid
    ]  # fmt: skip
    found = np.array([True, False, False, True])
    assert weights_of(members, found, selection).tolist() == [0, grid // 2 + grid, grid // 2, 0]
    nobody = Members(groups=np.zeros(0, dtype=np.int32), sizes=np.zeros(0, dtype=np.int32))
    assert weights_of(nobody, np.zeros(0, dtype=np.bool_), selection).tolist() == []


# -- by rows --------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize(("moves", "planted"), [((3, 1), False), ((1, 1, 1, 1), False), ((3, 1), True)])
def test_rows_of_lone_units_make_groups_appear_no_more_often_than_delta(
    moves: tuple[int, ...], planted: bool, noise: str
) -> None:
    """Binomial over units, false alarm 4e-10: at most 3 rows in a group and 4 in all, alone in their groups.

    Planted: a cut for units whose rows are one in each group.
    """
    bounding, cost = asked(COUNTS, noise=noise, groups=6, rows=3, total=4)
    (selection,), (measure,) = cost.selections, bounding.query.measures
    assert selection.measure == measure.name and selection.cut is not None
    part = measure.sensitivity // 3
    if planted:
        cut = smallest_cut(selection.law, selection.delta, each=part // 4, total=part)
        cost = replace(cost, selections=(replace(selection, cut=cut, threshold=cut + 1),))
    units = MILLION // len(moves)
    rows = np.tile(np.array(moves, dtype=np.int64) * part, units)
    groups = ExactGroups(
        grouping_set=(0,), keys=million()[: len(rows)], measures={measure.name: rows}, units=None
    )
    (noisy,) = add_noise(Exact((groups,)), bounding, cost)
    shown = np.array([int(str(key[0])[5:]) for key in noisy.keys], dtype=np.int64)
    appeared = len(np.unique(shown // len(moves)))
    assert (stats.binom.sf(appeared - 1, units, float(selection.delta)) > ALARM) != planted
    assert (noisy.measures[measure.name] > selection.cut).all() or planted


# -- from the engine ------------------------------------------------------------------------


def test_a_unit_alone_in_many_groups_counts_once_in_a_few() -> None:
    """What the engine hands over: of forty rare words of one person, two, each with one unit."""
    world = crowd(0, people=12, rows=60) + newcomer("huge", 0, 999)
    bounding, cost = asked(COUNTS, noise="laplace", groups=2, rows=1)
    (groups,) = DuckDBBackend(world.opened(), CATALOG).run(bounding.query).reveal()
    assert groups.units is not None
    rare = [
        int(units)
        for key, units in zip(groups.keys, groups.units, strict=True)
        if str(key[0]).startswith("rare")
    ]
    assert len(rare) <= 2 and set(rare) <= {1}
    (noisy,) = add_noise(Exact((groups,)), bounding, cost)
    assert len(noisy.keys) <= len(groups.keys)


def test_frequent_keys_are_shown_and_rare_ones_are_not() -> None:
    """5000 people say one word; at delta 1e-3 it is missed once in far more than 1e9 runs."""
    table = pyarrow.table({"person": list(range(5000)), "word": ["often"] * 5000})
    from sfumato.catalog import Catalog, Field, Kind, Table, Unit

    catalog = Catalog(
        (
            Table(
                name="visits",
                fields=(Field("person", Kind.INTEGER), Field("word", Kind.TEXT)),
                unit=Unit(name="person", column="person"),
            ),
        )
    )
    bounding, cost = asked(COUNTS, noise="gaussian")
    (named,) = parse(COUNTS, catalog).queries
    bounding = bound(named.query, catalog, Options(max_groups=1, max_rows=1))
    exact = DuckDBBackend(open_tables({"visits": table}), catalog).run(bounding.query)
    (noisy,) = add_noise(exact, bounding, cost)
    assert noisy.keys == (("often",),)


@pytest.mark.parametrize("order", [("region", "ward"), ("ward", "region")])
def test_a_list_holds_beside_a_key_that_nobody_listed(order: tuple[str, str]) -> None:
    """Noise has a scale below 0.1 and no group is near the threshold: false alarms below 1e-9."""
    regions = ["north", "south", "moon", None]
    frame = pd.DataFrame(
        {
            "person": range(4000),
            "region": [regions[one % 4] for one in range(4000)],
            "ward": [one // 4 % 2 for one in range(4000)],
        }
    )
    db = sf.connect(
        frame,
        name="people",
        unit="person",
        max_rows=1,
        max_groups=1,
        columns={"region": sf.one_of("north", "south")},
        budget=sf.Budget(epsilon=1000, delta=1e-6),
    )
    asked = f"SELECT {', '.join(order)}, COUNT(*) AS n FROM people GROUP BY {', '.join(order)}"
    found = db.sql(asked, epsilon=100).release().to_pandas()
    assert sorted(zip(found["region"], found["ward"], strict=True)) == [
        (region, ward) for region in ("north", "south") for ward in (0, 1)
    ]
    assert all(abs(n - 500) < 5 for n in found["n"])
    chosen = db.sql(asked, epsilon=100, keys="selected").release().to_pandas()
    assert "moon" in set(chosen["region"])
