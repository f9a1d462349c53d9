"""Several questions for one epsilon: together they cost what it allows, and no other split errs less."""

from __future__ import annotations

from fractions import Fraction

import pytest

from sfumato.aggregates.registry import Function
from sfumato.analysis import bound, price, price_together
from sfumato.analysis.alternatives import alternative
from sfumato.analysis.forecast import cheapest, forecasts
from sfumato.core import PrivacyBudget
from sfumato.core.rules import PureRule
from sfumato.errors import InvalidArgument
from sfumato.plan.options import Options
from tests.analysis.questions import AGE, AMOUNT, ROWS, SCORE, WORD, aggregate, catalog, question

GAUSSIAN = PrivacyBudget(epsilon=3, delta=1e-7, keys_delta=1e-8)
PURE = PrivacyBudget(epsilon=3, delta=1e-7, keys_delta=1e-7, rule=PureRule())
CAPS = Options(max_groups=2, max_rows=3)
EASY = bound(question(ROWS), catalog(), CAPS)
HARD = bound(question(aggregate(Function.CORR, AGE, AMOUNT), aggregate(Function.AVG, SCORE)), catalog(), CAPS)


@pytest.mark.parametrize("budget", [GAUSSIAN, PURE], ids=["gaussian", "pure"])
def test_all_together_cost_what_epsilon_allows(budget: PrivacyBudget) -> None:
    costs = price_together((EASY, HARD, EASY), budget, epsilon=1)
    assert sum(cost.part for cost in costs) <= 1
    spent = sum(budget.rule.charge(cost.event) for cost in costs)
    allowed = budget.allowance(1) * 10**20
    assert 0.9999 * float(allowed) < spent <= allowed + len(costs)
    assert costs[0].part == costs[2].part < costs[1].part


@pytest.mark.parametrize("budget", [GAUSSIAN, PURE], ids=["gaussian", "pure"])
def test_no_other_split_has_a_smaller_sum_of_relative_variances(budget: PrivacyBudget) -> None:
    best = price_together((EASY, HARD), budget, epsilon=1)

    def total(part: Fraction) -> float:
        parts = (part, 1 - part)
        both = zip((EASY, HARD), parts, strict=True)
        return sum(price(one, budget, epsilon=1, part=share).objective for one, share in both)

    found = sum(cost.objective for cost in best)
    part = best[0].part
    for other in (part * Fraction(8, 10), part * Fraction(12, 10), Fraction(1, 2)):
        assert found < total(other)


def test_one_question_has_all_of_it() -> None:
    (alone,) = price_together((EASY,), GAUSSIAN, epsilon=1)
    assert alone == price(EASY, GAUSSIAN, epsilon=1) and alone.part == 1


def test_the_cheapest_epsilon_of_several_is_for_all_of_them() -> None:
    both = (EASY, HARD)
    epsilon = cheapest(both, GAUSSIAN, error={"a1": 0.02}, size=10_000)
    worst = 0.0
    for one, cost in zip(both, price_together(both, GAUSSIAN, epsilon=epsilon), strict=True):
        found = forecasts(one, cost, size=10_000)
        worst = max(worst, *(each.error or 0.0 for each in found if each.name == "a1"), 0.0)
    assert 0.98 * 0.02 < worst <= 0.02


def test_the_delta_for_keys_is_divided_and_has_a_limit() -> None:
    keyed = bound(question(ROWS, by=(WORD,)), catalog(), CAPS)
    costs = price_together((keyed, EASY, keyed), GAUSSIAN, epsilon=1, options=Options(delta=1e-9))
    assert costs[1].keys_delta == 0
    assert 0 < costs[0].keys_delta + costs[2].keys_delta <= Fraction(1e-9)
    with pytest.raises(InvalidArgument, match="above the 1e-08"):
        price(keyed, GAUSSIAN, epsilon=1, options=Options(delta=2e-8))


def test_a_pure_budget_is_named_where_it_is_much_better() -> None:
    """One large question: Laplace errs less, and fewer fit. Both numbers are those of the other budget."""
    cost = price(EASY, GAUSSIAN, epsilon=1)
    other = alternative(EASY, cost, GAUSSIAN)
    assert other is not None and other.pure_error < 0.8 * other.error and other.pure_fits == 3 < other.fits
    (there,) = forecasts(EASY, price(EASY, PURE, epsilon=1))
    assert other.pure_error == there.error
    assert alternative(EASY, price(EASY, PURE, epsilon=1), PURE) is None
    small = price(HARD, GAUSSIAN, epsilon=Fraction(1, 10))
    assert alternative(HARD, small, GAUSSIAN, size=1000) is None


@pytest.mark.parametrize(
    ("caps", "counted"),
    [
        ({"max_groups": 36, "max_rows": 36, "max_rows_total": 36}, "rows"),
        ({"max_groups": 2, "max_rows": 1}, "units"),
    ],
)
def test_a_pure_budget_says_from_which_size_on_it_shows_groups(caps: dict[str, int], counted: str) -> None:
    """Both sizes are those of the thresholds, in what decides: rows, or weights of units in two groups."""
    keyed = bound(question(ROWS, by=(WORD,)), catalog(), Options(**caps))
    cost = price(keyed, GAUSSIAN, epsilon=3)
    other = alternative(keyed, cost, GAUSSIAN)
    assert other is not None and other.least is not None and other.pure_least is not None
    for size, one in ((other.least, cost), (other.pure_least, price(keyed, PURE, epsilon=3))):
        (selection,) = one.selections
        assert f" {size:,} " in f"{selection.condition} "
    assert f"show groups from {other.pure_least:,} {counted} on instead of {other.least:,};" in str(other)
