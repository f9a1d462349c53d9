"""Forecasts: error before spending, and the epsilon for a wanted error."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from sfumato.aggregates.registry import Function
from sfumato.analysis.bounding import bound
from sfumato.analysis.explain import explain
from sfumato.analysis.forecast import cheapest, forecasts
from sfumato.analysis.pricing import price
from sfumato.core import PrivacyBudget
from sfumato.errors import InvalidArgument
from sfumato.plan.options import Options
from tests.analysis.questions import (
    AGE,
    AMOUNT,
    REGION,
    ROWS,
    SCORE,
    WORD,
    aggregate,
    call,
    catalog,
    literal,
    question,
)

PURE = PrivacyBudget(epsilon=3, delta=Fraction(1, 10**7), keys_delta=Fraction(1, 10**7))
GAUSSIAN = PrivacyBudget(epsilon=3, delta=Fraction(1, 10**6), keys_delta=Fraction(1, 10**7))
CAPS = Options(max_groups=2, max_rows=3)


def test_a_count_errs_by_the_quantile_of_its_noise() -> None:
    bounding = bound(question(ROWS), catalog(), Options(max_rows=1))
    cost = price(bounding, PURE, epsilon=Fraction(1, 2))
    assert cost.noises[0].law.parameter == 2
    assert forecasts(bounding, cost)[0].error == 6  # as of `Laplace.from_epsilon(0.5)`
    total = sum(math.exp(-abs(x) / 2) for x in range(-200, 201))
    inside = sum(math.exp(-abs(x) / 2) for x in range(-6, 7)) / total
    assert inside >= 0.95 > inside - 2 * math.exp(-3) / total


def test_errors_are_in_rows_and_in_values() -> None:
    """Counts of some rows are kept in parts of a row, and sums in steps; neither shows."""
    asked = question(aggregate(Function.COUNT, AGE), aggregate(Function.SUM, AGE))
    bounding = bound(asked, catalog(), CAPS)
    count, total = forecasts(bounding, price(bounding, PURE, epsilon=1))
    assert count.error == pytest.approx(3 * 2 * math.log(20), rel=0.01)  # max_rows / (epsilon / 2)
    assert total.error == pytest.approx(55 * 3 * 2 * math.log(20) * math.sqrt(2), rel=0.15)


def test_ratios_need_a_size_and_quantiles_err_in_ranks() -> None:
    asked = question(
        aggregate(Function.AVG, AGE),
        aggregate(Function.VAR_POP, AGE),
        aggregate(Function.STDDEV_SAMP, AGE),
        aggregate(Function.COVAR_POP, AGE, AMOUNT),
        aggregate(Function.CORR, AGE, AMOUNT),
        aggregate(Function.QUANTILE, AGE, quantiles=(0.5,)),
        by=(REGION,),
    )
    bounding = bound(asked, catalog(), CAPS)
    cost = price(bounding, GAUSSIAN, epsilon=1)
    without = forecasts(bounding, cost)
    assert [one.error is None for one in without] == [True] * 5 + [False]
    assert without[5].in_ranks
    small, large = (forecasts(bounding, cost, size=size) for size in (100_000, 1_000_000))
    times = [10, 10, math.sqrt(10), 10, None, 10]  # a deviation may be off by the root of its square's error
    for one, other, many in zip(small, large, times, strict=True):
        if many is None:  # nobody knows what a correlation is divided by
            assert one.error is None and one.even == pytest.approx(10 * (other.even or 0), rel=0.05)
        else:
            assert one.error == pytest.approx(many * (other.error or 0), rel=0.05)


def test_a_centred_sum_errs_less_than_a_plain_one() -> None:
    """Both are given half of the budget; around the middle, the noise has half the variance."""
    beside = bound(question(ROWS, aggregate(Function.SUM, SCORE)), catalog(), CAPS)
    asked = question(aggregate(Function.COUNT_UNITS), aggregate(Function.SUM, SCORE))
    plain = bound(asked, catalog(), CAPS)
    errors = [forecasts(one, price(one, GAUSSIAN, epsilon=1))[1].error or 0 for one in (beside, plain)]
    assert errors[0] == pytest.approx(errors[1] / math.sqrt(2), rel=0.01)


@pytest.mark.parametrize("budget", [PURE, GAUSSIAN])
def test_cheapest_epsilon_meets_the_error_and_is_no_larger(budget: PrivacyBudget) -> None:
    bounding = bound(question(ROWS, aggregate(Function.AVG, AGE), by=(REGION,)), catalog(), CAPS)
    epsilon = cheapest(bounding, budget, error={"a0": 50, "a1": 5.0}, size=2000)

    def errors(value: Fraction) -> list[float]:
        found = forecasts(bounding, price(bounding, budget, epsilon=value), size=2000)
        return [one.error or 0 for one in found]

    met = errors(epsilon)
    assert met[0] <= 50 and met[1] <= 5
    less = errors(epsilon * Fraction(97, 100))
    assert less[0] > 50 or less[1] > 5


def test_an_error_that_depends_on_data_needs_a_size() -> None:
    bounding = bound(question(aggregate(Function.AVG, AGE)), catalog(), CAPS)
    with pytest.raises(InvalidArgument, match="how large a group is"):
        cheapest(bounding, PURE, error=1)
    with pytest.raises(InvalidArgument, match="no aggregate"):
        cheapest(bounding, PURE, error={"nobody": 1.0})


def test_explanation_says_what_matters_and_touches_nothing() -> None:
    old = call(">", AGE, literal(50))
    asked = question(ROWS, aggregate(Function.AVG, AGE, where=old), by=(WORD,))
    text = explain(bound(asked, catalog(), CAPS), GAUSSIAN, epsilon=0.5, size=1000)
    for part in (
        "rows of visits",
        "grouped by word: groups selected privately",
        "at most 2 groups",
        "sum of (age - 80)",
        "discrete Gaussian",
        "(0.5, ",
        "-private",
        "epsilon 0.25",
        "epsilon 1",
        "noisy weight is at least that of",
        "in 2 rounds",
        "of the delta for keys",
    ):
        assert part in text, part
    assert explain(bound(asked, catalog(), CAPS), GAUSSIAN, epsilon=0.5, size=1000) == text
