"""With noise frozen to zero, answers are the bounded truth; intervals and rounding are as stated."""

from __future__ import annotations

import statistics
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from sfumato.aggregates.answer import AddedNoise, Answer
from sfumato.aggregates.linear import half_width
from sfumato.aggregates.registry import Function
from sfumato.analysis.bounded import MeasureKind
from sfumato.catalog.kind import Kind
from sfumato.core import discrete_laplace
from sfumato.core.laplace import LaplaceNoise
from tests.release import made

MOMENT, CELLS = MeasureKind.MOMENT, MeasureKind.CELLS

X = [31.5, 40.25, 18.0, 99.75, 62.0, 45.5]
Y = [1.0, 4.0, 2.0, 8.0, 5.0, 5.0]
CENTRE, OTHER, STEP = 50.0, 5.0, Fraction(1, 4)


def answers() -> list[Answer]:
    base: dict[str, Any] = {
        "scale": STEP,
        "centre": CENTRE,
        "second_scale": Fraction(1),
        "second_centre": OTHER,
    }

    def of(function: Function, *measures: str, **more: Any) -> Answer:
        return Answer(name=function.name.lower(), function=function, measures=measures, **{**base, **more})

    pair = ("n", "x", "y", "xy")
    return [
        of(Function.COUNT_ROWS, "n", integer=True),
        of(Function.SUM, "n", "x", integer=False),
        of(Function.AVG, "n", "x", lower=0.0, upper=100.0),
        of(Function.VAR_POP, "n", "x", "xx", lower=0.0, upper=2500.0),
        of(Function.VAR_SAMP, "n", "x", "xx", lower=0.0, upper=5000.0),
        of(Function.STDDEV_POP, "n", "x", "xx", lower=0.0, upper=50.0),
        of(Function.STDDEV_SAMP, "n", "x", "xx", lower=0.0, upper=71.0),
        of(Function.COVAR_POP, *pair, lower=-250.0, upper=250.0),
        of(Function.COVAR_SAMP, *pair, lower=-500.0, upper=500.0),
        of(Function.CORR, "n", "x", "y", "xx", "yy", "xy", lower=-1.0, upper=1.0),
    ]


def sums() -> dict[str, list[int]]:
    x = [int((value - CENTRE) / STEP) for value in X]
    y = [int(value - OTHER) for value in Y]
    return {
        "n": [len(X)],
        "x": [sum(x)],
        "y": [sum(y)],
        "xx": [sum(a * a for a in x)],
        "yy": [sum(b * b for b in y)],
        "xy": [sum(a * b for a, b in zip(x, y, strict=True))],
    }


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_answers_without_noise_are_the_truth(monkeypatch: pytest.MonkeyPatch, kind: Any) -> None:
    made.freeze(monkeypatch)
    plan = made.bounding(dict.fromkeys(sums(), MOMENT), answers())
    noisy = made.table(plan, made.cost(plan, 1, kind=kind), made.exact([("a",)], sums()))
    n = len(X)
    truth = {
        "count_rows": n,
        "sum": sum(X),
        "avg": statistics.fmean(X),
        "var_pop": statistics.pvariance(X),
        "var_samp": statistics.variance(X),
        "stddev_pop": statistics.pstdev(X),
        "stddev_samp": statistics.stdev(X),
        "covar_pop": statistics.covariance(X, Y) * (n - 1) / n,
        "covar_samp": statistics.covariance(X, Y),
        "corr": statistics.correlation(X, Y),
    }
    for answer in noisy.answers:
        column = noisy.aggregate(answer)
        assert column.values[0] == pytest.approx(truth[answer.name]), answer.name
        assert column.low[0] <= truth[answer.name] <= column.high[0]
    count = noisy.aggregate(noisy.answers[0]).values[0]
    assert type(count) is int


def test_counts_and_sums_have_the_exact_quantiles_of_their_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    made.freeze(monkeypatch)
    total = Answer(name="s", function=Function.SUM, measures=("s",), scale=Fraction(1, 4))
    plan = made.bounding({"n": MOMENT, "s": MOMENT}, [made.counting(), total])
    noisy = made.table(plan, made.cost(plan, 2), made.exact([("a",)], {"n": [100], "s": [10]}))
    count, real = (noisy.aggregate(answer) for answer in noisy.answers)
    assert (count.values, count.low, count.high) == ([100], [94], [106])  # 6: see `Laplace.error`
    assert (real.values, real.low, real.high) == ([2.5], [1.0], [4.0])
    assert noisy.aggregate(noisy.answers[0], 0.5).high == [101]


def test_parts_of_rows_round_to_whole_ones_and_ends_round_outward(monkeypatch: pytest.MonkeyPatch) -> None:
    made.freeze(monkeypatch)
    count = Answer(name="n", function=Function.COUNT, measures=("n",), integer=True, weight=Fraction(1, 8))
    plan = made.bounding({"n": MOMENT}, [count])
    noisy = made.table(plan, made.cost(plan, 2), made.exact([("a",), ("b",)], {"n": [83, 84]}))
    column = noisy.aggregate(count)
    assert (column.values, column.low, column.high) == ([10, 11], [9, 9], [12, 12])


def test_non_negative_counts_are_optional(monkeypatch: pytest.MonkeyPatch) -> None:
    made.freeze(monkeypatch)
    plan = made.bounding({"n": MOMENT}, [made.counting()])
    groups = made.exact([("a",), ("b",)], {"n": [-40, 3]})
    free = made.table(plan, made.cost(plan), groups).aggregate(made.counting())
    held = made.table(plan, made.cost(plan), groups, non_negative=True).aggregate(made.counting())
    assert free.values == [-40, 3] and free.low[1] < 0
    assert held.values == [0, 3] and held.low == [0, 0] and held.high[0] == 0


def test_whole_sums_stay_exact_beyond_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    made.freeze(monkeypatch)
    single = Answer(name="s", function=Function.SUM, measures=("s",), integer=True, scale=Fraction(3))
    double = Answer(
        name="t", function=Function.SUM, measures=("n", "s"), integer=True, scale=Fraction(1), centre=1.5
    )
    plan = made.bounding({"n": MOMENT, "s": MOMENT}, [single, double])
    big = np.array([2**70 + 1], dtype=object)
    noisy = made.table(plan, made.cost(plan), made.exact([("a",)], {"n": [2], "s": big}))
    assert noisy.aggregate(single).values == [3 * (2**70 + 1)]
    assert noisy.aggregate(double).values == [2**70 + 4]
    assert noisy.aggregate(double).low[0] < 2**70 + 4 < noisy.aggregate(double).high[0]


def test_a_sum_around_a_centre_is_covered() -> None:
    """200,000 draws of scale * X + centre * Y: outside with at most 0.05, false alarm 1e-9."""
    how = Answer(name="s", function=Function.SUM, measures=("n", "s"), scale=Fraction(1, 2), centre=-8.0)
    laws = [LaplaceNoise(Fraction(3)), LaplaceNoise(Fraction(40))]
    noises = [AddedNoise(measure="", grouping_set=0, law=law) for law in laws]
    width = half_width([*(Function.SUM.record.linear(how) or {}).values()], noises, 0.05)
    number = 200_000
    draws = discrete_laplace(40, size=number) / 2 - 8.0 * discrete_laplace(3, size=number)
    outside = int((np.abs(draws) > width).sum())
    assert binom.isf(1e-9, number, 0.05) >= outside >= 0.03 * number


@pytest.mark.parametrize("shared", [False, True])
def test_ratios_of_sums_are_covered(monkeypatch: pytest.MonkeyPatch, shared: bool) -> None:
    """10,000 noisy groups: SUM / COUNT, where the sum may be around a centre and so share the count's
    noise. Misses of 0.95 above 636, false alarm 1e-9; below 200, far less. If sharing were overlooked,
    noise that cancels would be counted, and hardly any interval would miss."""
    measures = ("n", "s") if shared else ("s",)
    total = Answer(name="s", function=Function.SUM, measures=measures, scale=Fraction(1, 4), centre=60.0)
    plan = made.bounding({"n": MOMENT, "s": MOMENT}, [made.counting(), total])
    price = made.cost(plan, {"n": Fraction(5), "s": Fraction(400)})
    number = 10_000
    groups = made.exact(
        [(i,) for i in range(number)],
        {"n": np.full(number, 300, dtype=np.int64), "s": np.full(number, 7000, dtype=np.int64)},
    )
    noisy = made.table(plan, price, groups)
    ends = noisy.ratio(total, made.counting(), 0.95)
    assert ends is not None
    truth = 7000 / 4 / 300 + (60 if shared else 0)
    missed = sum(not low <= truth <= high for low, high in zip(ends.low, ends.high, strict=True))
    assert 200 < missed <= binom.isf(1e-9, number, 0.05)


def test_histograms_are_lists_of_whole_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    made.freeze(monkeypatch)
    how = Answer(
        name="h", function=Function.HISTOGRAM, measures=("c",), integer=True, edges=(0.0, 1.0, 2.0, 3.0)
    )
    plan = made.bounding({"c": CELLS}, [how])
    noisy = made.table(plan, made.cost(plan, 2), made.exact([("a",)], {"c": np.array([[5, 0, 9]])}))
    column = noisy.aggregate(how)
    assert (column.values, column.low, column.high) == ([[5, 0, 9]], [[-1, -6, 3]], [[11, 6, 15]])


def test_quantiles_minimum_and_maximum_share_one_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    made.freeze(monkeypatch)
    base: dict[str, Any] = {
        "measures": ("c",),
        "edges": tuple(map(float, range(9))),
        "points": True,
        "integer": True,
    }
    asked = [
        Answer(name="lo", function=Function.MIN, quantiles=(0.01,), **base),
        Answer(name="q", function=Function.QUANTILE, quantiles=(0.25, 0.5), several=True, **base),
        Answer(name="hi", function=Function.MAX, quantiles=(0.99,), **base),
    ]
    plan = made.bounding({"c": CELLS}, asked)
    cells = np.array([[0, 100, 300, 50, 50, 0, 500, 0], [0, 0, 0, 0, 0, 0, 0, 0]])
    groups = made.exact([("a",), ("b",)], {"c": cells})
    noisy = made.table(plan, made.cost(plan, 2, levels=3), groups)
    lo, q, hi = (noisy.aggregate(answer) for answer in noisy.answers)
    assert lo.values == [1, None] and hi.values == [6, None]
    assert q.values == [[2, 4], [None, None]]
    assert q.low[1] == [0, 0] and q.high[0][0] == 2


def test_grouping_sets_follow_one_another_with_null_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    made.freeze(monkeypatch)
    plan = made.bounding(
        {"n": MOMENT},
        [made.counting()],
        keys=[("a", Kind.TEXT), ("b", Kind.INTEGER)],
        sets=[(0, 1), (1,), ()],
    )
    noisy = made.table(
        plan,
        made.cost(plan),
        made.exact([("x", 2), ("x", 1)], {"n": [1, 2]}, grouping_set=(0, 1)),
        made.exact([(2,), (1,)], {"n": [3, 4]}, grouping_set=(1,)),
        made.exact([()], {"n": [5]}, grouping_set=()),
    )
    assert noisy.key(0) == ["x", "x", None, None, None] and noisy.key(1) == [1, 2, 1, 2, None]
    assert noisy.aggregate(made.counting()).values == [2, 1, 4, 3, 5]
