"""What is promised before anything is spent holds wherever the values lie between their bounds.

For values all at a bound, half at each, spread evenly, all in the middle: of 1,200 releases at least 95%
show an interval no wider than was forecast for a group of that size, and are off by no more. Binomial, each
of the six verdicts of a test with a chance of 1e-10, so that its false alarm is below 1e-9: fewer than 90.5%
are caught, which a forecast that is a fifth too small gives.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pyarrow
import pytest
from scipy import stats

import sfumato as sf
from sfumato.analysis.forecast import forecasts
from sfumato.backends.exact import Exact, ExactGroups
from sfumato.errors import InvalidArgument
from sfumato.release import add_noise, tabulate
from sfumato.session import Database
from tests.soaked import rest_soaked

ALARM = 1e-10  # of one verdict; a test has up to six
TIMES = 1200
BOUNDS = (0.0, 500.0)
PLACES = ("top", "bottom", "ends", "even", "middle")
RATIOS = (
    "AVG(x)", "VAR_POP(x)", "VAR_SAMP(x)", "STDDEV_POP(x)", "STDDEV_SAMP(x)", "COVAR_POP(x, y)",
    "COVAR_SAMP(x, y)",
)  # fmt: skip


def values(place: str, size: int) -> Any:
    low, high = BOUNDS
    match place:
        case "top":
            return np.full(size, high)
        case "bottom":
            return np.full(size, low)
        case "ends":
            return np.where(np.arange(size) % 2, high, low)
        case "even":
            return np.linspace(low, high, size)
    return np.full(size, (low + high) / 2)


@cache
def database(place: str, size: int, rule: str = "pure") -> Database:
    x = values(place, size)
    return sf.connect(
        pyarrow.table({"x": x, "y": x[::-1] if place == "even" else x}),
        name="t",
        unit=None,
        columns={"x": sf.between(*BOUNDS), "y": sf.between(*BOUNDS)},
        budget=sf.Budget(epsilon=1e6, delta=1e-6, rule=rule),
    )


def repeated(opened: Database, listed: str, epsilon: float, rule: str, size: int) -> tuple[Any, Any, Any]:
    """Return the forecasts of a question, its noisy table with fresh noise in each row, and the truth."""
    priced = opened.sql(f"SELECT {listed} FROM t", epsilon=epsilon).priced()
    [bounding], [cost] = priced.boundings, priced.costs
    [groups] = opened.backend.run(bounding.query).reveal()  # type: ignore[attr-defined]
    copies = ExactGroups(
        grouping_set=(),
        keys=[()] * TIMES,
        measures={name: np.repeat(found, TIMES, axis=0) for name, found in groups.measures.items()},
        units=None,
    )
    table = tabulate("released", add_noise(Exact((copies,)), bounding, cost), bounding, cost)
    exact = tabulate(
        "released", add_noise(Exact((groups,)), bounding, _quiet(bounding, opened)), bounding, cost
    )
    return forecasts(bounding, cost, size=size), table, exact


def _quiet(bounding: Any, opened: Database) -> Any:
    from sfumato.analysis import price

    return price(bounding, opened.terms, epsilon=Fraction(10**5))


@pytest.mark.parametrize("rule", ["pure", "gaussian"])
@pytest.mark.parametrize("place", rest_soaked(PLACES, 3))
@pytest.mark.parametrize("listed", [*RATIOS, "SUM(x), COUNT(*)"])
def test_forecasts_hold_wherever_values_lie(listed: str, place: str, rule: str) -> None:
    for size, epsilon in ((3000, 0.5), (3000, 10.0), (300, 1.0)):
        found, table, exact = repeated(database(place, size, rule), listed, epsilon, rule, size)
        answer, forecast = table.answers[0], found[0]
        column = table.aggregate(answer, 0.95)
        low, high = np.array(column.low, dtype=float), np.array(column.high, dtype=float)
        shown = np.array([np.nan if value is None else value for value in column.values], dtype=float)
        [true] = exact.aggregate(answer, None).values
        promised = forecast.error * (1 + 1e-9)
        narrow = int(np.count_nonzero((high - low) / 2 <= promised))
        near = int(np.count_nonzero(~(np.abs(shown - true) > promised + abs(true) * 1e-6)))
        assert stats.binom.cdf(narrow, TIMES, 0.95) > ALARM, (size, epsilon, narrow)
        assert stats.binom.cdf(near, TIMES, 0.95) > ALARM, (size, epsilon, near)


def test_a_sum_beside_a_count_meets_the_error_that_was_asked_for() -> None:
    """The centre's share of the count is in the forecast: the interval is exactly as wide."""
    asked = database("even", 3000).sql("SELECT SUM(x) AS s, COUNT(*) AS n FROM t")
    low, high = asked.release(error={"s": 200}).intervals(0.95)["s"][0]
    assert 190 < (high - low) / 2 <= 200


def test_a_correlation_cannot_be_asked_for_by_its_error() -> None:
    asked = database("even", 3000).sql("SELECT CORR(x, y) AS c FROM t", epsilon=1)
    before = asked.database.budget.spent
    with pytest.raises(InvalidArgument, match="how far values spread") as refused:
        asked.release(error=0.01, size=3000)
    assert refused.value.hints and asked.database.budget.spent == before
    assert "spread evenly" in asked.explain(size=3000)
    with pytest.raises(InvalidArgument, match="how large a group"):
        asked.release(error=0.01)


def test_the_error_of_a_correlation_of_even_values_is_as_explained() -> None:
    """Half-widths are within a fifth of what `even` says, where values are spread as it supposes."""
    found, table, _ = repeated(database("even", 3000), "CORR(x, y)", 3.0, "pure", 3000)
    column = table.aggregate(table.answers[0], 0.95)
    widths = (np.array(column.high) - np.array(column.low)) / 2
    assert found[0].error is None and float(np.median(widths)) < 1.2 * found[0].even


@pytest.mark.parametrize("listed", ["MEDIAN(x)", "MAX(x)", "QUANTILE(x, [0.1, 0.9])"])
def test_the_error_of_a_quantile_is_a_share_of_ranks(listed: str) -> None:
    asked = database("even", 3000).sql(f"SELECT {listed} AS m FROM t")
    before = asked.database.budget.spent
    with pytest.raises(InvalidArgument, match="share of ranks") as refused:
        asked.release(error=2, size=3000)
    assert "52nd percentile" in str(refused.value)
    with pytest.raises(InvalidArgument, match="how large a group"):
        asked.release(error=0.02)
    assert asked.database.budget.spent == before
    fine, coarse = (asked.within(error, size=3000).epsilon for error in (0.01, 0.05))
    assert coarse is not None and fine is not None and 1e-3 < coarse < fine


@pytest.mark.soak
def test_a_median_is_as_near_in_rank_as_was_asked_for() -> None:
    """60 releases of values spread evenly, whose rank is their place: one that is off by more, in twenty.

    False alarm below 1e-9: a binomial tail of 1e-10, also where the chance is 94.5% instead of 95%.
    """
    asked = database("even", 3000).sql("SELECT MEDIAN(x) AS m FROM t").within(0.02, size=3000)
    found = [asked.release().rows[0][0] for _ in range(60)]
    near = sum(value is not None and abs(value / BOUNDS[1] - 0.5) <= 0.02 for value in found)
    assert stats.binom.cdf(near, 60, 0.95) > ALARM
