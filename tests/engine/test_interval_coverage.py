"""Every door that states an interval covers as often as it says, from epsilon 0.1 to 30: no draws.

Draws of noise are replaced by a table of all noises. Each row of an answer has one of them, and the chances
of the rows that cover are added up. Where noise is in fine steps a row stands for a block of neighbours, and
`BLOCKS` is what that may be off by. Sums of many noises are checked by their exact law on a lattice.

Elsewhere: surveys, whose noise is not added (`local/`, by enumeration), rates of fairness reports (`learn/
test_rates.py`), coefficients (`learn/test_least_squares.py`), Fieller's tails (`core/test_gaussian_sums.py`).
Five noises and more are too many for a table: correlations and lines (`aggregates/test_moments.py`), single
quantiles and statistics of blocks (`engine/`) are checked by draws.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.analysis import Bounding, Cost
from sfumato.analysis.forecast import forecasts
from sfumato.backends.exact import Exact, ExactGroups
from sfumato.continual.series import deviation
from sfumato.core import GaussianMechanism, LaplaceMechanism, gaussian, laplace
from sfumato.core.noise_law import NoiseLaw, noise_law
from sfumato.release import NoisyGroups, NoisyTable, add_noise, tabulate
from sfumato.release.consistency import consistent_groups
from sfumato.workloads.marginal_release import Marginals, NoisyCount
from tests.lattice_laws import chance_within, lattice_law
from tests.soaked import rest_soaked

EPSILONS = (0.1, 0.3, 1, 3, 4, 8, 18, 30)
LEVELS = (0.5, 0.9, 0.95, 0.99)
RULES = {
    "pure": sf.Budget(epsilon=1000, rule="pure"),
    "approximate": sf.Budget(epsilon=1000, delta=1e-6),
    "zcdp": sf.Budget(epsilon=1000, delta=1e-6, rule="zcdp"),
}
BLOCKS = 0.004  # of one noise
MORE_BLOCKS = 0.015  # of several, for which fewer blocks are enumerated
X = [0, 1, 1, 2, 3, 3, 3, 2, 1, 0, 2, 2]
Y = [one * one % 5 for one in range(12)]
PEOPLE = pa.table({"who": range(12), "x": X, "y": Y, "sex": ["f", "m"] * 6, "job": ["a", "b", "c"] * 4})
COLUMNS = {
    "x": sf.between(0, 3),
    "y": sf.between(0, 4),
    "sex": sf.one_of("f", "m"),
    "job": sf.one_of("a", "b", "c"),
}

_Integers = npt.NDArray[np.int64]


def people(rule: str) -> sf.Database:
    return sf.connect(
        PEOPLE, name="people", unit="who", columns=COLUMNS, max_rows=1, max_groups=1, budget=RULES[rule]
    )


# -- answers of questions, by a table of all noises ---------------------------------------------


class Listed:
    """Draws that come from a table: a column for each draw of a row."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.laws: list[NoiseLaw] = []
        self.table: _Integers | None = None
        self.next = 0
        for module, name in ((gaussian, "gaussian"), (laplace, "laplace")):
            monkeypatch.setattr(module, f"discrete_{name}", self._draws(name))

    def _draws(self, name: str) -> Any:
        def draw(parameter: Fraction, size: int, **_: Any) -> _Integers:
            if self.table is None:
                self.laws += [noise_law(name, Fraction(parameter))] * size
                return np.zeros(size, dtype=np.int64)
            many = size // len(self.table)
            found = self.table[:, self.next : self.next + many]
            self.next += many
            return found.reshape(-1).copy()

        return draw


def blocks(law: NoiseLaw, most: int) -> tuple[_Integers, npt.NDArray[np.float64]]:
    """Return noises in the middle of blocks, each with the chance of its block."""
    reach = law.half_width(1 - 1e-6)
    size = -(-(2 * reach + 1) // most) // 2 * 2 + 1
    middles = np.arange(-(-reach // size) * -size, reach + size, size)

    def above(gap: int) -> float:
        return law.tail(gap) if gap >= 1 else 1 - law.tail(1 - gap)

    ends = [(int(one) - size // 2, int(one) + size // 2 + 1) for one in middles]
    return middles, np.array([above(first) - above(last) for first, last in ends])


def noises(laws: Sequence[NoiseLaw], most: int) -> tuple[_Integers, npt.NDArray[np.float64]]:
    """Return all combinations of noises, but for rare ones, and their chances."""
    table, chances = np.zeros((1, 0), dtype=np.int64), np.ones(1)
    for law in laws:
        values, own = blocks(law, most)
        chances = np.outer(chances, own).reshape(-1)
        table = np.column_stack((np.repeat(table, len(values), axis=0), np.tile(values, len(table))))
        order = np.argsort(-chances)
        kept = order[: np.searchsorted(np.cumsum(chances[order]), 1 - 3e-5) + 1]
        table, chances = table[kept], chances[kept]
    return table, chances


def enumerated(
    bounding: Bounding, cost: Cost, exact: ExactGroups, listed: Listed, most: int, *, alike: bool
) -> tuple[NoisyTable, npt.NDArray[np.float64]]:
    """Return an answer with a row for each noise, and chances; `alike`: all cells have the same noise."""

    def rows(number: int) -> Exact[tuple[ExactGroups, ...]]:
        chosen = np.zeros(number, dtype=np.int64)
        return Exact(
            (
                ExactGroups(
                    grouping_set=exact.grouping_set,
                    keys=[exact.keys[0]] * number,
                    measures={name: values[chosen] for name, values in exact.measures.items()},
                    units=None if exact.units is None else exact.units[chosen],
                ),
            )
        )

    add_noise(rows(1), bounding, cost)
    found, chances = noises(listed.laws[:1] if alike else listed.laws, most)
    listed.table = np.tile(found, len(listed.laws)) if alike else found
    return tabulate("n", add_noise(rows(len(found)), bounding, cost), bounding, cost), chances


def check(
    text: str, truth: Any, rule: str, epsilon: float, listed: Listed, *, most: int, alike: bool = False
) -> None:
    question = people(rule).sql(f"SELECT {text} AS a FROM people", epsilon=epsilon)
    priced = question.priced()
    [bounding], [cost] = priced.boundings, priced.costs
    [exact] = question.database.backend.run(bounding.query).reveal()
    table, chances = enumerated(bounding, cost, exact, listed, most, alike=alike)
    [answer], exactly = bounding.answers, np.atleast_1d(truth)
    several = len(listed.laws) > 1 and not alike
    fine = MORE_BLOCKS if several else BLOCKS if 2 * listed.laws[0].half_width(1 - 1e-6) >= most else 0.0
    for level in LEVELS:
        column = table.aggregate(answer, level)
        low, high = (
            np.array([np.nan if end is None else end for end in ends], dtype=np.float64)
            for ends in (column.low, column.high)
        )
        low, high = (ends.reshape(len(chances), -1) for ends in (low, high))
        missed = (low > exactly + 1e-9) | (high < exactly - 1e-9)  # NULL says nothing, and misses nothing
        assert (chances @ missed).max() <= 1 - level + fine, (level, rule, epsilon)


SINGLE = {
    "COUNT(*)": 12,
    "COUNT(DISTINCT who)": 12,
    "COUNT(*) FILTER (WHERE x > 1)": 7,
    "SUM(x)": sum(X),
    "HISTOGRAM(x)": [2, 3, 4, 3],
}
SEVERAL = {
    "AVG(x)": sum(X) / 12,
    "QUANTILE(x, [0.25, 0.5])": [1, 2],
    "VAR_POP(x)": float(np.var(X)),
    "STDDEV_POP(x)": float(np.std(X)),
    "COVAR_POP(x, y)": float(np.mean(np.multiply(X, Y)) - np.mean(X) * np.mean(Y)),
}


@pytest.mark.parametrize("case", rest_soaked([(text, rule) for text in SINGLE for rule in RULES], 4), ids=str)
def test_counts_and_sums_cover(case: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    text, rule = case
    for epsilon in EPSILONS:
        listed = Listed(monkeypatch)
        check(text, SINGLE[text], rule, epsilon, listed, most=1201, alike=text.startswith("HISTOGRAM"))


CASES = [
    (text, rule, epsilon)
    for text in SEVERAL
    for rule in RULES
    for epsilon in ((0.3, 4, 30) if text == "COVAR_POP(x, y)" else EPSILONS)  # each takes seconds
]


@pytest.mark.parametrize("case", rest_soaked(CASES, 30, of_soak=3), ids=str)
def test_ratios_and_quantiles_cover(case: tuple[str, str, float], monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two noises 101 blocks each, of three 25, of four 9 or 21."""
    text, rule, epsilon = case
    listed = Listed(monkeypatch)
    most = {"AVG(x)": 101, "QUANTILE(x, [0.25, 0.5])": 9, "COVAR_POP(x, y)": 21}.get(text, 25)
    check(text, SEVERAL[text], rule, epsilon, listed, most=most)


@pytest.mark.parametrize(
    "case", rest_soaked([("approximate", 18), ("pure", 4), ("approximate", 4)], 3), ids=str
)
def test_levels_that_add_up_cover_as_forecast(case: tuple[str, float]) -> None:
    """Each group of the coarser level, with its two parts, is a tree of its own, with another noise."""
    rule, epsilon = case
    number, truth = 400, 100
    columns = {"g": sf.one_of(*range(number)), "h": sf.one_of(0, 1)}
    row = pa.table({"who": [0], "g": [0], "h": [0]})
    db = sf.connect(
        row, name="people", unit="who", columns=columns, max_rows=1, max_groups=1, budget=RULES[rule]
    )
    text = "SELECT g, h, COUNT(*) AS n FROM people GROUP BY GROUPING SETS ((g), (g, h))"
    priced = db.sql(text, epsilon=epsilon, consistent=True).priced()
    [bounding], [cost] = priced.boundings, priced.costs
    [measure], [answer] = bounding.query.measures, bounding.answers
    coarse, fine = (cost.noise(measure.name, place).law for place in (0, 1))
    table, chances = noises([coarse, fine, fine], 15)
    table, chances = table[:number], chances[:number]
    table = np.concatenate((table, np.zeros((number - len(table), 3), dtype=np.int64)))
    chances = np.concatenate((chances, np.zeros(number - len(chances))))
    keys = [tuple((g,) for g in range(number)), tuple((g, h) for g in range(number) for h in (0, 1))]
    values = [table[:, 0] + 2 * truth, (table[:, 1:] + truth).reshape(-1)]
    noisy = tuple(
        NoisyGroups(grouping_set=chosen, keys=own, measures={measure.name: each}, layers={})
        for chosen, own, each in zip(bounding.query.grouping_sets, keys, values, strict=True)
    )
    found = consistent_groups(noisy, bounding, cost, non_negative=False)
    released = tabulate("n", found, bounding, cost)
    for level in LEVELS:
        column = released.aggregate(answer, level)
        low, high = np.array(column.low), np.array(column.high)
        missed = np.column_stack(
            (
                (low[:number] > 2 * truth) | (high[:number] < 2 * truth),
                ((low[number:] > truth) | (high[number:] < truth)).reshape(number, 2),
            )
        )
        assert (chances @ missed).max() <= 1 - level + BLOCKS, level
        for place, width in ((0, high[0] - low[0]), (1, high[-1] - low[-1])):
            [forecast] = forecasts(bounding, cost, level=level, grouping_set=place)
            assert forecast.error == pytest.approx(width / 2)


# -- sums of many noises, by their law on a lattice ----------------------------------------------


def impulses(release: Marginals, columns: tuple[str, ...], query: Any) -> Iterator[tuple[NoiseLaw, float]]:
    """Yield how much of each measured integer is in a sum of cells: what moving it by one does."""
    places = [[column.name for column in release.columns].index(name) for name in columns]
    tables, order = release.estimates, tuple(sorted(places))
    turned = np.array(query, dtype=np.float64).transpose([places.index(place) for place in order])
    for at, (law, measured) in enumerate(zip(release.laws, release.measured, strict=True)):
        for index in np.ndindex(measured.shape):
            moved = [np.zeros_like(one) for one in release.measured]
            moved[at][index] = 1
            made = type(tables)(noise=tables.noise, measured=tuple(moved))
            if weight := float((turned * made.table(order)).sum()):
                yield law, weight


def sums_of(release: Marginals) -> Iterator[tuple[str, tuple[str, ...], Any, NoisyCount]]:
    cell = np.zeros((2, 3))
    cell[1, 2] = 1
    yield "a cell", ("sex", "job"), cell, release.count(sex="m", job="c")
    yield "the total", (), np.ones(()), release.count()
    yield "two cells", ("job",), [1, 1, 0], release.count(job=["a", "b"])
    yield "a difference", ("job",), [1, 0, -1], release.sum_of("job", query=[1, 0, -1])


@pytest.mark.parametrize("rule", rest_soaked(["approximate", "zcdp"], 2))
def test_marginals_cover_and_err_as_their_price_says(rule: str) -> None:
    """The lattice has 36 steps to a row: weights are products of 1/n and (n - 1)/n^2, n = 2 and 3."""
    for epsilon in EPSILONS:
        db = people(rule)
        question = db.marginals([("sex", "job"), ("job",)], epsilon=epsilon)
        release = question.release()
        assert release.half_widths() == question.priced().half_widths()
        assert all(f"±{width:.4g} (95%)" in repr(release) for width in release.half_widths().values())
        table = release.table("sex", "job").to_arrow(0.95).to_pylist()
        for name, columns, query, count in sums_of(release):
            weights = list(impulses(release, columns, query))
            law = lattice_law([(law, round(36 * weight)) for law, weight in weights])
            assert all(abs(36 * weight - round(36 * weight)) < 1e-9 for _, weight in weights)
            for level in LEVELS:
                low, high = count.interval(level)
                assert chance_within(law, (high - low) / 2, 1 / 36) >= level - 1e-9, (name, epsilon, level)
        [cell] = [one for one in table if (one["sex"], one["job"]) == ("m", "c")]
        low, high = release.count(sex="m", job="c").interval(0.95)
        assert (cell["n_low"], cell["n_high"]) == pytest.approx((low, high), abs=1e-9)
        assert release.half_widths()["sex", "job"] == pytest.approx((high - low) / 2, abs=1e-9)
        free = db.sql("SELECT COUNT(*) AS n FROM people WHERE job IN ('a', 'b')", free=True).release()
        [(first, last)] = free.intervals(0.95)["n"]
        low, high = release.count(job=["a", "b"]).interval(0.95)
        assert first <= math.ceil(low) and last >= math.floor(high) and last - first <= high - low + 2.01


def test_a_normal_quantile_is_caught() -> None:
    """The rule that was there before: of a total it misses some 14% at epsilon 18."""
    missed = []
    for epsilon in EPSILONS:
        release = people("approximate").marginals(["sex"], ways=0, epsilon=epsilon).release()
        count, weights = release.count(), list(impulses(release, (), np.ones(())))
        law = lattice_law([(law, round(weight)) for law, weight in weights])
        missed.append(1 - chance_within(law, 1.959964 * count.deviation))
    assert max(missed) > 0.1, missed


@pytest.mark.parametrize("rule", rest_soaked(RULES, 3))
def test_sums_of_released_cells_cover(rule: str) -> None:
    """Free answers from a table: sums of two and of three cells with independent noises."""
    for epsilon in EPSILONS:
        db = people(rule)
        cells = db.sql("SELECT sex, job, COUNT(*) AS n FROM people GROUP BY sex, job", epsilon=epsilon)
        [noise] = cells.priced().costs[0].noises
        cells.release()
        for text, times in (("sex", 3), ("job", 2)):
            asked = f"SELECT {text}, COUNT(*) AS n FROM people GROUP BY {text}"
            release = db.sql(asked, free=True).release()
            law = lattice_law([(noise.law, 1)] * times)
            for level in LEVELS:
                low, high = release.intervals(level)["n"][0]
                assert chance_within(law, (high - low) / 2) >= level - 1e-9, (epsilon, level)


def test_mechanisms_cover() -> None:
    """`error` and `interval`, the least that do."""
    for epsilon in EPSILONS:
        for mechanism in (
            LaplaceMechanism.from_epsilon(epsilon),
            GaussianMechanism.from_budget(epsilon, 1e-6),
            GaussianMechanism.from_rho(epsilon**2 / 8),
        ):
            law = lattice_law([(mechanism.law, 1)])
            for level in LEVELS:
                width = mechanism.error(level)
                assert mechanism.interval(100, level) == (100 - width, 100 + width)
                assert chance_within(law, width) >= level - 1e-12 > chance_within(law, width - 1) - 1e-9


@pytest.mark.parametrize("rule", rest_soaked(["approximate", "zcdp"], 2))
def test_streams_cover(rule: str) -> None:
    """Totals, days, windows, differences and trends: normal errors that are rounded to whole units."""
    days = 8
    weights = {
        "a total": np.ones(days),
        "a day": np.eye(days)[5],
        "a window": np.array([0, 0, 1, 1, 1, 0, 0, 0]),
        "a difference": np.eye(days)[7] - np.eye(days)[6],
        "a trend": 2 * np.arange(days) - 7.0,
    }
    people = pa.table({"who": [0], "at": pa.array([0], pa.timestamp("us"))})
    for epsilon in EPSILONS:
        db = sf.connect(people, name="people", unit="who", max_rows=1, max_groups=1, budget=RULES[rule])
        stream = db.stream(
            "SELECT COUNT(*) AS n FROM people",
            name="daily",
            by="at",
            every="day",
            horizon=days,
            start="2026-01-01",
            epsilon=epsilon,
        ).priced()
        [noise] = stream.cost.noises
        for name, row in weights.items():
            off = deviation(stream.factorisation, row)
            spread = off * noise.law.deviation / stream.steps(noise.measure, 1)
            [wide] = stream.cost_of_sum(off).noises
            for level in LEVELS:
                width = wide.added.half_width(level)
                assert math.erf((width + 0.5) / spread / math.sqrt(2)) >= level, (name, epsilon, level)
