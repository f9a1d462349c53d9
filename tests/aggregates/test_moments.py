"""Intervals of means, variances, covariances and correlations cover what they say, by simulation.

Each test draws 10,000 noisy data sets of one exact one. An interval of level 0.95 is allowed to
miss 500 times and as much more as chance explains: Binomial(10,000, 0.05) is above `MOST` with
probability below 1e-10, and Binomial(10,000, 0.0505) with one below 1e-9, for intervals of ratios cover only
nearly as often as they say. Power: an interval that covers only 93% is caught with probability 0.98, one
that covers 92% with certainty (a forgotten noise of the count, a wrong sign).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from sfumato.aggregates import regressions
from sfumato.aggregates.answer import Answer
from sfumato.aggregates.centred_ratio import CentredRatio
from sfumato.aggregates.ratios import Estimate
from sfumato.aggregates.registry import Function
from sfumato.core import discrete_gaussian, discrete_laplace
from sfumato.core.noise_law import NoiseLaw, noise_law
from tests.soaked import rest_soaked

DRAWS = 10_000
MOST = int(binom.isf(1e-10, DRAWS, 0.05))
STEP = Fraction(1, 64)
REACH = 512  # steps: values are within 8 of the centre
CENTRE = 100.0


def people(number: int) -> tuple[np.ndarray, np.ndarray]:
    """Return two columns of values in steps around the centre, the same on every run."""
    generator = np.random.default_rng(7)
    x = np.clip(np.rint(generator.normal(3, 2, number) * 64), -REACH, REACH).astype(np.int64)
    y = np.clip(np.rint(0.6 * x + generator.normal(0, 1.5, number) * 64), -REACH, REACH).astype(np.int64)
    return x, y


def law(kind: str, reach: int, epsilon: float) -> NoiseLaw:
    scale = Fraction(reach / epsilon)
    return noise_law(kind, scale if kind == "laplace" else scale**2)


def draw(noise: NoiseLaw) -> np.ndarray:
    if noise.name == "laplace":
        return discrete_laplace(noise.parameter, size=DRAWS)
    return discrete_gaussian(noise.parameter, size=DRAWS, squared=True)


def estimate(how: Answer, noisy: list[Any], laws: list[NoiseLaw], chance: float) -> Estimate:
    record = how.function.record
    assert isinstance(record, CentredRatio)
    return record.estimate(how, noisy, laws, chance)


def misses(
    estimate: Callable[..., Estimate],
    answer: Answer,
    sums: list[int],
    laws: list[NoiseLaw],
    truth: float,
) -> int:
    noisy = [total + draw(noise) for total, noise in zip(sums, laws, strict=True)]
    found = estimate(answer, noisy, laws, 0.05)
    inside = (found.low <= truth + 1e-9) & (truth - 1e-9 <= found.high)
    held = np.isnan(found.values) | ((found.low <= found.values) & (found.values <= found.high))
    assert held.all()
    return int((~inside).sum())


def answer(function: Function, lower: float | None, upper: float | None, **fields: Any) -> Answer:
    return Answer(
        name="a",
        function=function,
        measures=(),
        scale=STEP,
        second_scale=STEP,
        lower=lower,
        upper=upper,
        **fields,
    )


def statistics(x: np.ndarray, y: np.ndarray, kind: str, epsilon: float) -> dict[str, Any]:
    n, s, q = law(kind, 1, epsilon), law(kind, REACH, epsilon), law(kind, REACH**2, epsilon)
    count, sx, sy = len(x), int(x.sum()), int(y.sum())
    xx, yy, xy = int((x * x).sum()), int((y * y).sum()), int((x * y).sum())
    u, v = x / 64, y / 64
    return {
        "mean": (
            estimate,
            answer(Function.AVG, 92.0, 108.0, centre=CENTRE),
            [count, sx],
            [n, s],
            CENTRE + u.mean(),
        ),
        "var_pop": (estimate, answer(Function.VAR_POP, 0, 64), [count, sx, xx], [n, s, q], u.var()),
        "stddev_samp": (
            estimate,
            answer(Function.STDDEV_SAMP, 0, 12),
            [count, sx, xx],
            [n, s, q],
            u.std(ddof=1),
        ),
        "covar_samp": (
            estimate,
            answer(Function.COVAR_SAMP, -128, 128),
            [count, sx, sy, xy],
            [n, s, s, q],
            np.cov(u, v)[0, 1],
        ),
        "corr": (
            estimate,
            answer(Function.CORR, -1, 1),
            [count, sx, sy, xx, yy, xy],
            [n, s, s, q, q, q],
            np.corrcoef(u, v)[0, 1],
        ),
        "regr_slope": (
            estimate,
            answer(Function.REGR_SLOPE, None, None),
            [count, sy, sx, xx, xy],
            [n, s, s, q, q],
            np.polyfit(u, v, 1)[0],
        ),
        "regr_intercept": (
            estimate,
            answer(Function.REGR_INTERCEPT, None, None, centre=20.0, second_centre=10.0),
            [count, sy, sx, xx, xy],
            [n, s, s, q, q],
            np.polyfit(u + 10, v + 20, 1)[1],
        ),
        "regr_r2": (
            estimate,
            answer(Function.REGR_R2, 0, 1),
            [count, sy, sx, yy, xx, xy],
            [n, s, s, q, q, q],
            np.corrcoef(u, v)[0, 1] ** 2,
        ),
    }


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("number", rest_soaked([15, 100, 1000, 100_000], 3))
@pytest.mark.parametrize(
    "statistic",
    ["mean", "var_pop", "stddev_samp", "covar_samp", "corr", "regr_slope", "regr_intercept", "regr_r2"],
)
def test_intervals_cover(statistic: str, number: int, kind: str) -> None:
    """At epsilon 0.2 the count of a group of 15 is three times its own noise. False alarm 1e-9 each."""
    x, y = people(number)
    assert misses(*statistics(x, y, kind, 0.2)[statistic]) <= MOST


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_intervals_of_large_groups_are_not_wasteful(kind: str) -> None:
    """They miss at least 1%: Binomial(10,000, 0.04) is below 100 with probability under 1e-70."""
    x, y = people(20_000)
    for statistic in statistics(x, y, kind, 0.2).values():
        assert misses(*statistic) >= 100


def test_a_forgotten_noise_would_be_caught() -> None:
    """The same intervals, told that the count is nearly exact: they miss far too often."""
    x, _ = people(100)
    estimate, how, sums, laws, truth = statistics(x, x, "gaussian", 0.2)["mean"]
    noisy = [total + draw(noise) for total, noise in zip(sums, laws, strict=True)]
    wrong = [noise_law("gaussian", Fraction(1, 100)), law("gaussian", REACH, 0.4)]
    found = estimate(how, noisy, wrong, 0.05)
    assert ((found.low > truth) | (found.high < truth)).sum() > MOST


def test_a_group_too_small_to_divide_by_is_null_and_its_interval_the_declared_range() -> None:
    laws = [law("laplace", 1, 0.1), law("laplace", REACH, 0.1)]
    noisy = [np.array([-3, 0, 2]), np.array([100, 100, 100])]
    found = estimate(answer(Function.AVG, 92.0, 108.0, centre=CENTRE), noisy, laws, 0.05)
    assert np.isnan(found.values[:2]).all() and found.values[2] == CENTRE + 100 / 64 / 2
    assert (found.low == 92.0).all() and (found.high == 108.0).all()


def test_without_a_declared_range_an_unclear_ratio_has_no_ends() -> None:
    how = Answer(name="a", function=Function.AVG, measures=(), scale=STEP, centre=CENTRE)
    laws = [law("laplace", 1, 0.1), law("laplace", REACH, 0.1)]
    found = estimate(how, [np.array([2, 10_000]), np.array([100, 100])], laws, 0.05)
    assert found.low[0] == -np.inf and found.high[0] == np.inf
    assert np.isfinite([found.low[1], found.high[1]]).all()
    bounded = estimate(
        answer(Function.AVG, 92.0, 108.0, centre=CENTRE), [np.array([10_000]), np.array([100])], laws, 0.05
    )
    assert found.low[1] == pytest.approx(bounded.low[0]) and found.high[1] == pytest.approx(bounded.high[0])


def test_values_stay_in_the_declared_range() -> None:
    laws = [law("gaussian", 1, 1), law("gaussian", REACH, 1), law("gaussian", REACH**2, 1)]
    noisy = [np.array([50]), np.array([5]), np.array([-900_000])]
    found = estimate(answer(Function.STDDEV_POP, 0, 8), noisy, laws, 0.05)
    assert found.values[0] == 0 and found.low[0] == 0


def test_higher_levels_are_wider() -> None:
    x, y = people(1000)
    for estimate, how, sums, laws, _ in statistics(x, y, "laplace", 0.2).values():
        noisy = [np.array([total]) for total in sums]
        wide, narrow = estimate(how, noisy, laws, 0.01), estimate(how, noisy, laws, 0.2)
        assert wide.low[0] < narrow.low[0] < narrow.high[0] < wide.high[0]


@pytest.mark.parametrize("function", [Function.REGR_SLOPE, Function.REGR_INTERCEPT])
def test_weights_of_a_line_are_derivatives(function: Function, monkeypatch: pytest.MonkeyPatch) -> None:
    """How far each noisy sum moves top and bottom of the ratio, to a relative 1e-5: no sign can be wrong.

    Coverage alone would not tell, where one noise is much larger than the others. Noise is next to nothing
    here, so that what is taken off for its square is too.
    """
    seen: dict[str, Any] = {}

    def noticed(top: Any, bottom: Any, **options: Any) -> Any:
        seen.update(top=float(top[0]), bottom=float(bottom[0]), weights=options["weights"])
        return top, bottom

    monkeypatch.setattr(regressions, "fieller", noticed)
    x, y = people(1000)
    sums = [len(x), int(y.sum()), int(x.sum()), int((x * x).sum()), int((x * y).sum())]
    how = answer(function, None, None, centre=20.0, second_centre=10.0)
    laws = [noise_law("gaussian", Fraction(1, 10**9))] * 5

    def sides(*changes: float) -> np.ndarray:
        estimate(how, [np.array([one + more]) for one, more in zip(sums, changes, strict=True)], laws, 0.05)
        return np.array([seen["top"], seen["bottom"]])

    sides(0, 0, 0, 0, 0)
    weights = [(float(top[0]), -float(bottom[0])) for top, bottom in seen["weights"]]
    for place, one in enumerate(sums):
        step = abs(one) * 1e-5
        changes = [step * (place == other) for other in range(5)]
        slope = (sides(*changes) - sides(*(-change for change in changes))) / (2 * step)
        assert slope == pytest.approx(weights[place], rel=1e-5, abs=1e-9), place
