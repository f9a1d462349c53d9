"""Against the truth: intervals cover the bounded statistic, and noise is as large as was promised.

A table of 100,000 rows is asked once; the exact result is then frozen and repeated as many equal
groups, each of which gets noise of its own: thousands of answers from one run of the engine. The
truth comes from NumPy, by the documented rule: values clamped, a person with n rows in a group
entering with weight min(n, max_rows) / n. False-alarm rates are 1e-9 per test and below; what they
would catch is said with each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow
import pytest
from scipy import stats

from sfumato.analysis import Bounding, Cost, bound, price
from sfumato.analysis.bounded import MeasureKind
from sfumato.analysis.explain import explain
from sfumato.analysis.forecast import forecasts
from sfumato.backends import open_tables
from sfumato.backends.duckdb import DuckDBBackend
from sfumato.backends.exact import Exact, ExactGroups
from sfumato.catalog import Catalog, Field, Kind, Table, Unit, between, one_of
from sfumato.core.accountant import PrivacyBudget
from sfumato.plan.options import Options
from sfumato.plan.sql import parse
from sfumato.release import add_noise, tabulate
from tests.soaked import rest_soaked

_Floats = npt.NDArray[np.float64]

ALARM = 1e-9
ROWS, PEOPLE = 100_000, 20_000
REGIONS = ("north", "south", "west")
BUDGET = PrivacyBudget(epsilon=3, delta=1e-7, keys_delta=1e-8)

CATALOG = Catalog(
    (
        Table(
            name="people",
            unit=Unit(name="person", column="person"),
            fields=(
                Field("person", Kind.INTEGER),
                Field("age", Kind.INTEGER, between(0, 90)),
                Field("income", Kind.REAL, between(0, 100_000)),
                Field("region", Kind.TEXT, one_of(*REGIONS)),
                Field("word", Kind.TEXT),
            ),
        ),
    )
)


@cache
def data() -> dict[str, npt.NDArray[Any]]:
    """Ages beyond their bounds, incomes in quarters, some missing: made with a seed, for it is data."""
    source = np.random.default_rng(7)
    income = np.round(source.gamma(2.0, 20_000.0, ROWS) * 4) / 4
    income[source.random(ROWS) < 0.02] = np.nan
    return {
        "person": source.integers(0, PEOPLE, ROWS),
        "age": source.integers(0, 111, ROWS),
        "income": income,
        "region": source.choice(REGIONS, ROWS, p=[0.5, 0.3, 0.2]),
        "word": source.choice([f"w{i}" for i in range(300)], ROWS),
    }


@cache
def backend() -> DuckDBBackend:
    return DuckDBBackend(open_tables({"people": pyarrow.table(data())}), CATALOG)


@dataclass(frozen=True, slots=True)
class Frozen:
    """A question that the engine has answered exactly, once."""

    bounding: Bounding
    cost: Cost
    groups: tuple[ExactGroups, ...]

    def repeated(self, group: int, times: int, place: int = 0) -> Any:
        """Return the noisy table of one group, repeated with fresh noise."""
        one = self.groups[place]
        copies = []
        for at, groups in enumerate(self.groups):
            chosen = np.full(times if at == place else 0, group)
            copies.append(
                ExactGroups(
                    grouping_set=groups.grouping_set,
                    keys=[groups.keys[group]] * times if at == place else [],
                    measures={name: values[chosen] for name, values in groups.measures.items()},
                    units=None if groups.units is None else groups.units[chosen],
                )
            )
        assert len(one.keys) > group
        noisy = add_noise(Exact(tuple(copies)), self.bounding, self.cost)
        return tabulate("released", noisy, self.bounding, self.cost)

    def noise(self, group: int, times: int, place: int = 0) -> dict[str, npt.NDArray[Any]]:
        """Return the noise that each measure of one group got; of a histogram, in its lowest layer."""
        noisy = self.repeated(group, times, place).groups[place]
        exact = self.groups[place].measures
        found = {name: values - exact[name][group] for name, values in noisy.measures.items()}
        found |= {name: (layers[0] - exact[name][group]).ravel() for name, layers in noisy.layers.items()}
        return found


@cache
def frozen(text: str, rows: int, noise: Any) -> Frozen:
    (named,) = parse(text, CATALOG).queries
    bounding = bound(named.query, CATALOG, Options(max_groups=3, max_rows=rows, max_distinct=40))
    cost = price(bounding, BUDGET, epsilon=1, options=Options(noise=noise))
    return Frozen(bounding, cost, backend().run(bounding.query).reveal())


# -- the truth, by NumPy --------------------------------------------------------------------


def weights(region: str | None, cap: int) -> tuple[npt.NDArray[np.bool_], _Floats]:
    """Return the rows of a region, and min(n, cap) / n for each of them."""
    table = data()
    pair = table["person"] * len(REGIONS) + np.searchsorted(REGIONS, table["region"])
    counts = np.bincount(pair, minlength=PEOPLE * len(REGIONS))[pair]
    rows = np.ones(ROWS, dtype=np.bool_) if region is None else table["region"] == region
    return rows, np.minimum(counts, cap) / counts


def truth(name: str, region: str | None, cap: int) -> float:
    table = data()
    rows, weight = weights(region, cap)
    age = np.clip(table["age"], 0, 90)[rows].astype(np.float64)
    income = np.clip(table["income"], 0, 100_000)[rows]
    w, there = weight[rows], ~np.isnan(income)
    match name:
        case "n":
            return float(np.sum(w))
        case "present":
            return float(np.sum(w[there]))
        case "people":
            return float(len(np.unique(table["person"][rows])))
        case "words":
            return float(len(np.unique(table["word"][rows])))
        case "old":
            return float(np.sum(w[age > 60]))
        case "total":
            return float(np.sum((w * income)[there]))
        case "mean":
            return float(np.average(income[there], weights=w[there]))
        case "variance":
            return float(np.cov(age, aweights=w, ddof=0))
        case "deviation":
            return float(np.sqrt(np.cov(age, aweights=w, ddof=0)))
        case "covariance":
            return float(np.cov(age[there], income[there], aweights=w[there], ddof=0)[0, 1])
        case "correlation":
            both = np.cov(age[there], income[there], aweights=w[there], ddof=0)
            return float(both[0, 1] / math.sqrt(both[0, 0] * both[1, 1]))
        case "median":
            order = np.argsort(age, kind="stable")
            reached = np.cumsum(w[order]) >= np.sum(w) / 2
            return float(age[order][np.argmax(reached)])
    raise ValueError(name)


LINEAR = {
    "n": "COUNT(*)",
    "present": "COUNT(income)",
    "people": "COUNT(DISTINCT person)",
    "words": "COUNT(DISTINCT word)",
    "old": "COUNT(*) FILTER (WHERE age > 60)",
    "total": "SUM(income)",
}
RATIOS = {
    "mean": "AVG(income)",
    "variance": "VAR_POP(age)",
    "deviation": "STDDEV_POP(age)",
    "covariance": "COVAR_POP(age, income)",
    "correlation": "CORR(age, income)",
}
NAMES = {**LINEAR, **RATIOS, "median": "MEDIAN(age)"}
GROUPS = (
    "SELECT region, {} FROM people GROUP BY region",
    "SELECT region, {} FROM people GROUP BY ROLLUP(region)",
)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("cap", [2, 50])
@pytest.mark.parametrize("name", rest_soaked(NAMES, 3))
def test_an_interval_covers_the_bounded_statistic(name: str, cap: int, noise: str) -> None:
    """95% of intervals hold the truth, no fewer: binomial, false alarm 1e-9 for both sides of both groups.

    Of 8000 intervals at least 93.4% must hold it, so ones that are 10% too narrow (92.8%) are caught.
    Those of counts and sums hold it no more often either: ones that are 15% too wide are caught.
    """
    times = 400 if name == "median" else 8000
    asked = frozen(GROUPS[0].format(NAMES[name]), cap, noise)
    (answer,) = asked.bounding.answers
    for group, region in enumerate(REGIONS[:2]):
        assert asked.groups[0].keys[group] == (region,)
        column = asked.repeated(group, times).aggregate(answer, 0.95)
        exact = truth(name, region, cap)
        slack = 1e-9 * abs(exact)  # NumPy's sums round
        if name == "total":
            slack += PEOPLE * float(answer.scale)  # a person's part is cut to whole steps
        low, high = np.array(column.low, dtype=np.float64), np.array(column.high, dtype=np.float64)
        hits = int(np.count_nonzero((low - slack <= exact) & (exact <= high + slack)))
        assert stats.binom.cdf(hits, times, 0.95) > ALARM / 10, (region, hits / times)
        if name in LINEAR:
            width = float(np.median(high - low))
            assert slack < width / 1000 or name == "total"
            # whole numbers: ends are rounded outward, and each may hold up to one row more
            unit = float(answer.weight) if answer.integer else 1.0
            spread = unit * math.sqrt(asked.cost.noise(answer.measures[0]).law.variance)
            assert stats.binom.sf(hits - 1, times, min(1.0, 0.95 + 0.3 / spread)) > ALARM / 10, (
                region,
                hits / times,
            )


def test_an_interval_of_any_level_covers_as_often() -> None:
    """Binomial, false alarm 1e-9 for both sides of three levels together."""
    asked = frozen(GROUPS[0].format("COUNT(*)"), 2, "gaussian")
    (answer,) = asked.bounding.answers
    exact = truth("n", "north", 2)
    for level in (0.5, 0.8, 0.99):
        column = asked.repeated(0, 4000).aggregate(answer, level)
        hits = sum(low <= exact <= high for low, high in zip(column.low, column.high, strict=True))
        assert stats.binom.cdf(hits, 4000, level) > ALARM / 6
        spread = math.sqrt(asked.cost.noise(answer.measures[0]).law.variance)
        assert stats.binom.sf(hits - 1, 4000, min(1.0, level + 1 / spread)) > ALARM / 6


@pytest.mark.parametrize("name", ["n", "people", "total", "mean"])
def test_totals_of_a_rollup_are_covered(name: str) -> None:
    asked = frozen(GROUPS[1].format(NAMES[name]), 50, None)
    (answer,) = asked.bounding.answers
    place = asked.bounding.query.grouping_sets.index(())
    column = asked.repeated(0, 2000, place).aggregate(answer, 0.95)
    exact = truth(name, None, 50)
    slack = PEOPLE * float(answer.scale) if name == "total" else 1e-9 * exact
    hits = sum(
        low - slack <= exact <= high + slack for low, high in zip(column.low, column.high, strict=True)
    )
    assert stats.binom.cdf(hits, 2000, 0.95) > ALARM


def test_a_wrong_truth_is_not_covered() -> None:
    """The test can fail: what is off by two deviations of the noise is covered half of the time."""
    asked = frozen(GROUPS[0].format("COUNT(*)"), 50, "gaussian")
    (answer,) = asked.bounding.answers
    column = asked.repeated(0, 2000).aggregate(answer, 0.95)
    wrong = truth("n", "north", 50) + 2.0 * math.sqrt(asked.cost.noise(answer.measures[0]).law.variance)
    hits = sum(low <= wrong <= high for low, high in zip(column.low, column.high, strict=True))
    assert stats.binom.cdf(hits, 2000, 0.95) < ALARM


# -- noise is what was promised -------------------------------------------------------------

TREES = {"quartiles": "QUANTILE(age, [0.25, 0.5, 0.75])"}
EVERYTHING = ", ".join(f"{text} AS {name}" for name, text in NAMES.items())


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("name", ["n", "people", "words", "total", "variance", "correlation", "quartiles"])
def test_noise_has_the_variance_that_was_promised(name: str, noise: str) -> None:
    """Chi-square for Gaussian noise; for Laplace noise, whose squares vary more, eight deviations.

    40,000 draws: a scale that is 5% off (Gaussian) or 10% off (Laplace) is caught. False alarm below 1e-9 for
    six measures together: 3e-11 on each side, and 8e-11 for a mean that is 6.5 deviations off.
    """
    asked = frozen(GROUPS[0].format({**NAMES, **TREES}[name]), 2, noise)
    for measure, draws in asked.noise(0, 40_000 if name not in TREES else 500).items():
        promised = asked.cost.noise(measure).law.variance
        size = len(draws)
        values = np.asarray(draws, dtype=np.float64)
        ratio = float(np.sum(values**2)) / promised
        if noise == "gaussian":
            sides = stats.chi2.cdf(ratio, size), stats.chi2.sf(ratio, size)
            assert min(sides) > ALARM / 40, measure
        else:  # the fourth moment of a Laplace law is 24 scale^4
            assert abs(ratio / size - 1) < 8 * math.sqrt(5 / size), measure
        assert abs(float(np.mean(values))) < 6.5 * math.sqrt(promised / size)  # and no bias


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("name", LINEAR)
def test_errors_are_as_forecast(name: str, noise: str) -> None:
    """The error that is shown before anything is spent holds 95% of the noise, no more and no less.

    Binomial, false alarm 1e-9 for both sides together.
    """
    asked = frozen(GROUPS[0].format(NAMES[name]), 2, noise)
    (answer,), (forecast,) = asked.bounding.answers, forecasts(asked.bounding, asked.cost)
    assert forecast.error is not None
    (measure,) = answer.measures[:1] if len(answer.measures) == 1 else (None,)
    if measure is None:  # a sum beside a count: both have noise
        draws = asked.noise(0, 20_000)
        off = float(answer.scale) * draws[answer.measures[1]] + answer.centre * draws[answer.measures[0]]
    else:
        unit = answer.scale if name == "total" else answer.weight
        off = float(unit) * np.asarray(asked.noise(0, 20_000)[measure], dtype=np.float64)
    hits = int(np.count_nonzero(np.abs(off) <= forecast.error * (1 + 1e-12)))
    spread = float(np.std(off)) / float(answer.scale if name == "total" else answer.weight)
    assert stats.binom.cdf(hits, 20_000, 0.95) > ALARM / 2
    assert stats.binom.sf(hits - 1, 20_000, min(1.0, 0.95 + 0.3 / spread)) > ALARM / 2


@pytest.mark.parametrize("name", ["mean", "variance", "deviation", "covariance"])
def test_errors_of_ratios_are_no_larger_than_forecast(name: str) -> None:
    """Their forecast is for the worst place of the values between their bounds."""
    asked = frozen(GROUPS[0].format(NAMES[name]), 2, "gaussian")
    size = truth("present" if name in ("mean", "covariance") else "n", "north", 2)
    (forecast,) = forecasts(asked.bounding, asked.cost, size=size)
    assert forecast.error is not None
    (answer,) = asked.bounding.answers
    values = np.array(asked.repeated(0, 2000).aggregate(answer, None).values, dtype=np.float64)
    hits = int(np.count_nonzero(np.abs(values - truth(name, "north", 2)) <= forecast.error))
    assert stats.binom.cdf(hits, 2000, 0.95) > ALARM


def test_explaining_says_the_noise_that_is_added() -> None:
    asked = frozen("SELECT region, COUNT(*), COUNT(DISTINCT person) FROM people GROUP BY region", 2, None)
    text = explain(asked.bounding, BUDGET, epsilon=1)
    for noise in asked.cost.noises:
        assert f"standard deviation {math.sqrt(noise.law.variance):,.4g}" in text
    assert all(measure.kind is not MeasureKind.CELLS for measure in asked.bounding.query.measures)
