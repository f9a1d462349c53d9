"""Pricing: no measure without noise, and the whole query within what it may cost, but not below."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.aggregates.registry import Function
from sfumato.analysis.bounded import Bounding
from sfumato.analysis.bounding import bound
from sfumato.analysis.noise_allocation import tree_shape
from sfumato.analysis.pricing import Cost, price
from sfumato.core import Composition, PrivacyBudget, PrivacyFilter, PureRule, RenyiRule, ZeroConcentratedRule
from sfumato.core.events import DiscreteGaussian, DiscreteLaplace, Event, Pure
from sfumato.core.events.claims import BoundedRange
from sfumato.core.laplace import LaplaceNoise
from sfumato.core.noise_law import noise_laws
from sfumato.errors import InvalidArgument, QueryRefused, Unsupported
from sfumato.plan.options import Options
from sfumato.plan.tree import Query
from tests.analysis.questions import (
    AGE,
    AMOUNT,
    MEMBER,
    REGION,
    ROWS,
    SCORE,
    WORD,
    aggregate,
    catalog,
    question,
)
from tests.analysis.test_sensitivity import AGGREGATES, KEYS

GAUSSIAN = PrivacyBudget(epsilon=3, delta=Fraction(1, 10**6), keys_delta=Fraction(1, 10**7))
PURE = PrivacyBudget(epsilon=3, delta=Fraction(1, 10**7), keys_delta=Fraction(1, 10**7))
BUDGETS = [
    GAUSSIAN,
    PURE,
    PrivacyBudget(
        epsilon=2, delta=Fraction(1, 10**5), keys_delta=Fraction(1, 10**6), rule=ZeroConcentratedRule()
    ),
    PrivacyBudget(
        epsilon=2, delta=Fraction(1, 10**5), keys_delta=Fraction(1, 10**6), rule=RenyiRule(order=8)
    ),
]
CAPS = Options(max_groups=3, max_rows=2, max_distinct=2)


def bounded(asked: Query, options: Options = CAPS) -> Bounding:
    return bound(asked, catalog(), options)


def worst_shifts(bounding: Bounding, cost: Cost) -> list[Event]:
    """Return events for what one unit can really do at worst, written down anew from the measures alone."""
    query, events = bounding.query, []
    groups = query.max_groups or 1
    for noise in cost.noises:
        reach = next(one.sensitivity for one in query.measures if one.name == noise.measure)
        finest = len(query.grouping_sets[noise.grouping_set]) == len(query.keys)
        shift, times = (reach, groups) if finest else (reach * groups, 1)
        drawn = [(noise.law.parameter, shift)] * noise.levels
        if noise.choice is not None:  # counts only rise, and there is no noise
            charged = Pure if noise.choice.flips else BoundedRange
            events += [charged(loss=noise.choice.rate * shift)] * times
            continue
        if noise.finding is not None:  # a choice, its anchor (with Gaussian noise), and annuli
            q = noise.finding.quantile
            furthest = shift * max(q.numerator, q.denominator - q.numerator)
            drawn += [] if noise.finding.anchor is None else [(noise.finding.anchor.parameter, furthest)]
            charged = Pure if noise.finding.flips else BoundedRange
            events += [charged(loss=2 * noise.finding.rate * furthest)] * times
        for parameter, moved in drawn:
            one: Event
            if noise.law.name == "laplace":
                one = DiscreteLaplace(scale=parameter, sensitivity=moved)
            else:
                one = DiscreteGaussian(sigma_squared=parameter, sensitivity=moved)
            events += [one] * times
    return events


QUERIES = st.builds(
    lambda some, by, deep: question(
        *some, by=by, sets=tuple(tuple(range(n)) for n in range(len(by), -1, -1)) if deep else None
    ),
    st.lists(st.sampled_from(AGGREGATES), min_size=1, max_size=4),
    st.sampled_from(KEYS),
    st.booleans(),
)


@settings(max_examples=60)
@given(QUERIES, st.sampled_from(BUDGETS), st.sampled_from([Fraction(1, 10), Fraction(1), Fraction(2)]))
def test_everything_gets_noise_and_costs_no_more_than_it_may(
    asked: Query, budget: PrivacyBudget, epsilon: Fraction
) -> None:
    bounding = bounded(asked)
    cost = price(bounding, budget, epsilon=epsilon)
    measures = {one.name for one in bounding.query.measures}
    sets = bounding.query.grouping_sets
    for place, grouping_set in enumerate(sets):
        assert {noise.measure for noise in cost.noises if noise.grouping_set == place} == measures
        assert (cost.selection(place) is not None) == (bounding.select_keys and bool(grouping_set))
    assert len(cost.noises) == len(measures) * len(sets)
    allowance = budget.allowance(epsilon)
    charge = Fraction(budget.rule.charge(cost.event), 10**20)
    assert charge <= allowance + Fraction(1, 10**20)
    assert charge >= allowance * Fraction(999, 1000)  # nothing is wasted
    assert cost.keys_delta == sum(one.delta for one in cost.selections) <= budget.keys_delta
    assert cost.delta == budget.delta_loss + cost.keys_delta
    # each noise states the price of what one unit can do with it, in any declared partition at least half
    real = sum(Fraction(budget.rule.price(event)) for event in worst_shifts(bounding, cost))
    stated = sum(
        (
            Fraction(budget.rule.price(part)) * times
            for noise in cost.noises
            for part, times in noise.event.parts()
        ),
        Fraction(0),
    )
    if bounding.query.declared is None or len(sets) == 1 or cost.noises[0].law.name == "laplace":
        assert stated == real
    else:
        assert stated <= real


@pytest.mark.parametrize("budget", BUDGETS)
def test_the_batch_is_private_at_its_epsilon(budget: PrivacyBudget) -> None:
    """By the loss distribution of all of it together, which knows nothing of the rule that set the noise."""
    bounding = bounded(question(ROWS, aggregate(Function.AVG, AGE), by=(REGION,)))
    for epsilon in (Fraction(1, 4), Fraction(1)):
        cost = price(bounding, budget, epsilon=epsilon)
        assert Composition(cost.event.parts()).delta(epsilon) <= float(budget.delta_loss)


def test_a_pure_budget_is_spent_to_the_last_drop() -> None:
    budget = PrivacyBudget(epsilon=1)
    for asked in (question(ROWS), question(ROWS, aggregate(Function.CORR, AGE, AMOUNT), by=(REGION,))):
        purse = PrivacyFilter(budget)
        for _ in range(10):
            purse.spend(price(bounded(asked), budget, epsilon=Fraction(1, 10)).event)
        assert purse.remaining == 0


def test_shares_are_equal_and_weights_move_them() -> None:
    asked = question(ROWS, aggregate(Function.SUM, AGE))
    bounding = bounded(asked)
    rows, total = (one.sensitivity for one in bounding.query.measures)
    for budget in (PURE, GAUSSIAN):
        cost = price(bounding, budget, epsilon=1)
        even = [noise.law.variance for noise in cost.noises]
        assert even[0] / rows**2 == pytest.approx(even[1] / total**2, rel=1e-3)
        favoured = price(bounding, budget, epsilon=1, options=Options(weights={"a0": Fraction(8)}))
        assert favoured.noises[0].law.variance < even[0] < even[1] < favoured.noises[1].law.variance
    laplace = price(bounding, PURE, epsilon=1, options=Options(weights={"a0": Fraction(8)}))
    ratio = (laplace.noises[1].law.parameter / total) / (laplace.noises[0].law.parameter / rows)
    assert float(ratio) == pytest.approx(2)  # the cube root of 8


def test_the_split_is_the_best_one() -> None:
    """Any other division of the same price has a larger weighted sum of relative variances."""
    weights = {"a0": Fraction(5), "a1": Fraction(1, 3)}
    bounding = bounded(question(ROWS, aggregate(Function.SUM, AMOUNT)))
    for budget, power in ((PURE, 1), (GAUSSIAN, 2)):
        cost = price(bounding, budget, epsilon=1, options=Options(weights=weights))
        reaches = [one.sensitivity for one in bounding.query.measures]
        relative = np.array(
            [noise.law.variance / reach**2 for noise, reach in zip(cost.noises, reaches, strict=True)]
        )
        w = np.array([5, 1 / 3])
        spent = relative ** (-power / 2)  # what each costs, up to a constant
        best = float(w @ relative)
        for part in (0.9, 1.1):
            other = spent * np.array([part, 1.0])
            other *= spent.sum() / other.sum()
            assert float(w @ other ** (-2 / power)) > best


def test_kinds_of_noise() -> None:
    asked = question(ROWS, by=(REGION,))
    assert price(bounded(asked), PURE, epsilon=1).noises[0].law.name == "laplace"
    assert price(bounded(asked), GAUSSIAN, epsilon=1).noises[0].law.name == "gaussian"
    insisted = price(bounded(asked), GAUSSIAN, epsilon=1, options=Options(noise="laplace"))
    assert insisted.noises[0].law.name == "laplace"
    generous = PrivacyBudget(epsilon=200, delta=Fraction(1, 10**6))
    assert price(bounded(question(ROWS)), generous, epsilon=200).noises[0].law.name == "laplace"
    with pytest.raises(Unsupported):
        price(bounded(asked), PURE, epsilon=1, options=Options(noise="gaussian"))
    with pytest.raises(InvalidArgument):
        price(bounded(asked), PURE, epsilon=1, options=Options(noise="uniform"))


def test_the_better_kind_is_taken() -> None:
    bounding = bounded(question(ROWS, aggregate(Function.SUM, AGE), by=(REGION,)))
    for epsilon in (Fraction(1, 2), Fraction(5), Fraction(100)):
        chosen = price(bounding, GAUSSIAN, epsilon=epsilon).noises[0].law.variance
        each = [
            price(bounding, GAUSSIAN, epsilon=epsilon, options=Options(noise=kind)).noises[0].law.variance
            for kind in ("laplace", "gaussian")
        ]
        assert chosen == min(each)


def test_a_question_must_say_what_it_may_cost() -> None:
    with pytest.raises(InvalidArgument):
        price(bounded(question(ROWS)), PURE, epsilon=None)
    with pytest.raises(InvalidArgument):
        price(bounded(question(ROWS)), PURE, epsilon=0)
    with pytest.raises(InvalidArgument):
        price(bounded(question(ROWS)), PURE, epsilon=1, options=Options(weights={"nobody": Fraction(1)}))


# -- groups that fall together --------------------------------------------------------------


def test_a_parent_of_a_rollup_moves_by_all_groups_at_once() -> None:
    asked = question(ROWS, by=(WORD, REGION), sets=((0, 1), (0,), ()))
    cost = price(bounded(asked), GAUSSIAN, epsilon=1)
    ((event, times),) = cost.noise("m0", 0).event.parts()
    assert (event.sensitivity, times) == (2, 3)  # type: ignore[attr-defined]
    for place in (1, 2):
        ((event, times),) = cost.noise("m0", place).event.parts()
        assert (event.sensitivity, times) == (3 * 2, 1)  # type: ignore[attr-defined]


def test_a_parent_moves_by_no_more_than_it_has_parts() -> None:
    asked = question(ROWS, by=(REGION, MEMBER), sets=((0, 1), (0,)))
    cost = price(bounded(asked), GAUSSIAN, epsilon=1)  # 3 groups; a region has two parts
    shifts = [(event.sensitivity, times) for event, times in cost.noise("m0", 1).event.parts()]  # type: ignore[attr-defined]
    assert shifts == [(2 * 2, 1), (1 * 2, 1)]


def laws(scale: Fraction, shift: int, reach: int) -> np.ndarray:  # type: ignore[type-arg]
    x = np.arange(-reach, reach + 1)
    p = np.exp(-np.abs(x - shift) / float(scale))
    return p * math.tanh(1 / (2 * float(scale)))


@pytest.mark.parametrize(("a", "b"), [(1, 1), (1, 2), (3, 1), (2, 5)])
@pytest.mark.parametrize("scale", [Fraction(1), Fraction(7, 2), Fraction(20)])
def test_laplace_shifts_together_cost_at_least_as_much_as_apart(a: int, b: int, scale: Fraction) -> None:
    """The theorem of the module, by enumeration: two shifted numbers against one shifted by the sum."""
    reach = math.ceil(30 * scale) + 20
    p = laws(scale, 0, reach)
    apart_p, apart_q = (
        np.multiply.outer(p, p),
        np.multiply.outer(laws(scale, a, reach), laws(scale, b, reach)),
    )
    together = DiscreteLaplace(scale=scale, sensitivity=a + b)
    for epsilon in np.linspace(0, float((a + b) / scale), 23):
        apart = float(np.maximum(apart_p - math.exp(epsilon) * apart_q, 0).sum())
        assert apart <= together.delta(epsilon) + 1e-12


# -- trees ----------------------------------------------------------------------------------


@given(st.integers(1, 5000), st.sampled_from(["laplace", "gaussian"]))
def test_layers_cover_all_cells(cells: int, kind: str) -> None:
    levels, branching = tree_shape(cells, noise_laws(kind)[0])
    assert branching >= 2 and branching**levels >= cells
    assert levels == 1 or branching ** (levels - 1) < cells


def test_shapes_that_are_known_to_be_good() -> None:
    assert tree_shape(4096, noise_laws("laplace")[0]) == (3, 16)
    assert tree_shape(4096, noise_laws("gaussian")[0]) == (6, 4)
    assert tree_shape(20, noise_laws("laplace")[0]) == (1, 20)


def test_a_histogram_is_one_layer_and_quantiles_are_charged_by_layer() -> None:
    asked = question(
        aggregate(Function.HISTOGRAM, REGION), aggregate(Function.QUANTILE, AMOUNT, quantiles=(0.5, 0.9))
    )
    cost = price(bounded(asked), PURE, epsilon=1)
    flat, tree = cost.noises
    assert flat.levels == 1 and tree.levels > 1
    assert tree.event.epsilon() == tree.levels * 2 * 1024 / tree.law.parameter
    assert cost.event.epsilon() == 1


# -- keys -----------------------------------------------------------------------------------


def test_selection_needs_a_delta_for_keys() -> None:
    with pytest.raises(QueryRefused) as caught:
        price(bounded(question(ROWS, by=(WORD,))), PrivacyBudget(epsilon=1), epsilon=1)
    assert caught.value.code == "SF405" and caught.value.hints
    assert caught.value.start == 11


def test_the_number_of_units_is_not_counted_twice() -> None:
    for asked, options in (
        (question(aggregate(Function.COUNT_UNITS), by=(WORD,)), CAPS),
        (question(ROWS, by=(WORD,)), Options(max_groups=2, max_rows=1)),
    ):
        cost = price(bounded(asked, options), GAUSSIAN, epsilon=1)
        (selection,) = cost.selections
        assert selection.measure == "m0" and selection.event is None
        assert selection.law.parameter == cost.noises[0].law.parameter
    apart = price(bounded(question(ROWS, by=(WORD,))), GAUSSIAN, epsilon=1)
    assert apart.selections[0].measure is None and apart.selections[0].event is not None


def test_rows_that_are_counted_under_a_cap_over_all_groups_select() -> None:
    """The count has the whole budget, as if its groups were declared; the worst unit is the proved one."""
    capped = Options(max_groups=8, max_rows=5, max_rows_total=7)
    cost = price(bounded(question(ROWS, by=(WORD,)), capped), PURE, epsilon=1)
    (selection,), (noise,) = cost.selections, cost.noises
    assert selection.measure == noise.measure and selection.event is None and not selection.rounds
    assert noise.law == LaplaceNoise(Fraction(7 * 1024)) and selection.law == noise.law
    assert selection.row == Fraction(1, 1024) and selection.cut is not None
    left = [noise.law.tail_within(selection.cut, selection.cut - rows * 1024 + 1) for rows in (5, 2)]
    assert sum(left) <= selection.delta <= sum(left) * (1 + 1e-9)
    for options in (
        Options(max_groups=8, max_rows=5),  # what all groups together move by is 40 rows: weights do better
        Options(max_groups=8, max_rows=5, max_rows_total=7, min_units=3),  # units are asked for
    ):
        assert price(bounded(question(ROWS, by=(WORD,)), options), PURE, epsilon=1).selections[0].event


def test_a_count_of_some_units_does_not_select() -> None:
    from tests.analysis.test_sensitivity import OLD

    asked = question(aggregate(Function.COUNT_UNITS, where=OLD), by=(WORD,))
    assert price(bounded(asked), GAUSSIAN, epsilon=1).selections[0].measure is None


def test_small_groups_can_be_asked_to_stay_away() -> None:
    asked = question(ROWS, by=(WORD,))
    few = Options(max_groups=3, max_rows=2, min_units=2)  # a number of units is asked for, not a weight
    usual = price(bounded(asked, few), GAUSSIAN, epsilon=1).selections[0]
    raised = price(bounded(asked, Options(max_groups=3, max_rows=2, min_units=11)), GAUSSIAN, epsilon=1)
    assert raised.selections[0].threshold == usual.threshold + 9
    declared = bounded(question(ROWS, by=(REGION,)), Options(max_groups=3, max_rows=2, min_units=11))
    cost = price(declared, PURE, epsilon=1)
    (selection,) = cost.selections
    assert selection.threshold == 11 and selection.delta == 0 and selection.measure == "m1"
    assert cost.event.epsilon() == 1


def test_keys_take_their_share_of_delta() -> None:
    asked = bounded(question(ROWS, by=(WORD,)))
    part = price(asked, GAUSSIAN, epsilon=Fraction(1, 2))
    assert 0 < part.keys_delta < GAUSSIAN.keys_delta / 10
    assert price(asked, GAUSSIAN, epsilon=3).keys_delta > GAUSSIAN.keys_delta / 2
    given = price(asked, GAUSSIAN, epsilon=Fraction(1, 2), options=Options(delta=Fraction(1, 10**9)))
    assert Fraction(1, 2 * 10**9) < given.keys_delta <= Fraction(1, 10**9)


def test_grouping_sets_share_the_delta_of_their_keys() -> None:
    asked = bounded(question(ROWS, by=(WORD, REGION), sets=((0, 1), (0,), (1,), ())))
    share = Fraction(1, 10**8)
    cost = price(asked, GAUSSIAN, epsilon=1, options=Options(delta=share))
    assert [one.grouping_set for one in cost.selections] == [0, 1, 2]  # the total is always shown
    assert share / 2 < cost.keys_delta <= share


def test_pure_rule_with_keys() -> None:
    assert isinstance(PURE.rule, PureRule)
    cost = price(bounded(question(ROWS, by=(WORD,))), PURE, epsilon=1)
    assert cost.event.epsilon() == 1 and cost.keys_delta > 0


def test_scores_that_always_have_a_value_cost_less() -> None:
    shared = price(bounded(question(ROWS, aggregate(Function.AVG, SCORE))), PURE, epsilon=1)
    apart = price(bounded(question(ROWS, aggregate(Function.AVG, AGE))), PURE, epsilon=1)
    assert shared.noises[0].law.variance < apart.noises[0].law.variance
