"""MODE: chosen by exactly the stated law, at what that costs, with what is known said instead of an interval.

False-alarm rates are 1e-9 per test and below.
"""

from __future__ import annotations

import datetime
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import sfumato as sf
from sfumato.analysis.cell_choice import CellChoice
from sfumato.analysis.forecast import forecasts
from sfumato.core.accountant import PrivacyBudget
from sfumato.core.events import Pure, Repeated
from sfumato.core.events.claims import BoundedRange
from sfumato.release import Release
from tests.engine.test_single_quantile import ALARM, GAUSSIAN, PURE, priced, table

DAYS = [datetime.date(2024, 1, day) for day in (1, 2, 5, 9)]


@pytest.fixture(scope="module")
def database() -> sf.Database:
    """Return 900 people with 2 rows each; the most frequent value of every column has most rows by far."""
    rows = pd.DataFrame(
        {
            "who": [i // 2 for i in range(1800)],
            "region": (["north"] * 5 + ["south"] * 3 + ["lost"]) * 200,
            "age": [40, 41, 41, 41, 10, 110] * 300,
            "member": [True, False, True] * 600,
            "day": [DAYS[i] for i in (0, 1, 1, 1, 2, 3)] * 300,
            "half": [0.5, 1.5, 1.5] * 600,
            "word": ["w"] * 1800,
        }
    )
    return sf.connect(
        rows,
        name="t",
        unit="who",
        columns={
            "region": sf.one_of("south", "north", "empty"),
            "age": sf.between(0, 110),
            "day": sf.between(DAYS[0], DAYS[-1]),
            "half": sf.one_of(0.5, 1.5),
        },
        max_groups=2,
        max_rows=2,
        budget=sf.Budget(epsilon=10**7, delta=1e-6),
    )


# -- meaning ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("MODE(region)", "north"),
        ("MODE(region) FILTER (WHERE region <> 'north')", "south"),
        ("MODE(age)", 41),
        ("MODE(age // 10)", 4),
        ("MODE(member)", True),
        ("MODE(day)", DAYS[1]),
        ("MODE(half)", 1.5),
        ("UPPER(MODE(region))", "NORTH"),
    ],
)
def test_it_is_the_most_frequent_value(text: str, expected: Any, database: sf.Database) -> None:
    """With an epsilon of 10,000 the chance of another one is below e^-1000."""
    release = database.sql(f"SELECT {text} AS m FROM t", epsilon=10_000).release()
    [(found,)] = release.rows
    assert found == expected and type(found) is type(expected) and "m" not in release.intervals()
    assert str(Release.from_json(release.to_json())) == str(release)


def test_groups_python_and_grouping_sets(database: sf.Database) -> None:
    text = "SELECT member, MODE(region) AS r, COUNT(*) AS n FROM t GROUP BY ROLLUP(member) ORDER BY n DESC"
    release = database.sql(text, epsilon=10_000).release()
    assert release.column("r") == ["north"] * 3 and list(release.intervals()) == ["n"]
    assert any("is chosen privately among 3 values" in note for note in release.notes)
    python = database.table("t").group_by("member").agg(r=sf.mode("region")).ask(epsilon=10_000)
    sql = database.sql("SELECT member, MODE(region) AS r FROM t GROUP BY member", epsilon=10_000)
    assert python.priced().costs == sql.priced().costs
    assert python.release().rows == sql.release().rows == ((False, "north"), (True, "north"))


def test_beside_a_histogram_it_is_read_off(database: sf.Database) -> None:
    """Nothing more is charged, whatever else reads the same cells: one value is the largest noisy count."""
    for other in ("HISTOGRAM(region)", "HISTOGRAM(member)", "MEDIAN(age), QUANTILE(age, 0.9)"):
        column = other.split("(")[1].split(")")[0].split(",")[0]
        both = database.sql(f"SELECT MODE({column}) AS m, {other} FROM t", epsilon=1000).priced()
        alone = database.sql(f"SELECT {other} FROM t", epsilon=1000).priced()
        assert both.costs[0].event == alone.costs[0].event
        release = database.sql(f"SELECT MODE({column}) AS m, {other} FROM t", epsilon=1000).release()
        assert release.column("m")[0] in ("north", True, 41)


def test_with_everything_else(database: sf.Database) -> None:
    asked = database.sql(
        "SELECT word, MODE(region) AS m FROM t GROUP BY word", epsilon=1000, others=True, keys="selected"
    )
    assert asked.release().column("m")[0] == "north"


# -- the choice -------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", [PURE, GAUSSIAN])
def test_a_value_is_chosen_by_exactly_the_stated_law(budget: PrivacyBudget) -> None:
    """Chi-square over 20,000 choices; an epsilon that is a third off is caught, but for a chance below 1e-40.

    False alarm below 1e-9: 2e-10 at most, counted with the binomial tails of cells of 90 choices and more.
    """
    bounding, cost = priced("SELECT MODE(few) FROM people", budget)
    (noise,) = cost.noises
    assert noise.choice is not None and noise.choice.flips is (budget is PURE)
    rows = np.array([4, 2, 5, 3, 5, 2, 1, 1, 4, 3, 1, 1, 3])
    counts = rows * bounding.query.measures[0].weight
    cells = table(rows, bounding, cost, 20_000)
    found = cells.aggregate(bounding.answers[0], 0.95).values
    chances = np.array([noise.choice.mechanism.pmf(i, counts) for i in range(13)])
    for law, agrees in ((chances, True), (_law(noise.choice, counts, Fraction(4, 3)), False)):
        expected = law * len(found)
        statistic = float(((np.bincount(found, minlength=13) - expected) ** 2 / expected).sum())
        assert bool(stats.chi2.sf(statistic, 12) > ALARM / 10) is agrees


def _law(choice: CellChoice, counts: Any, factor: Fraction) -> Any:
    other = replace(choice, epsilon=choice.epsilon * factor).mechanism
    return np.array([other.pmf(i, counts) for i in range(len(counts))])


@pytest.mark.parametrize("budget", [PURE, GAUSSIAN])
def test_losses_stay_within_what_is_charged(budget: PrivacyBudget) -> None:
    """Exactly: of one unit more wherever its rows are. If counts fell as well, losses would be larger."""
    _, cost = priced("SELECT MODE(few) FROM people", budget, max_rows=3)
    (noise,) = cost.noises
    assert noise.choice is not None
    choice, counts = noise.choice, [0, 1024, 5000, 5000, 2048]
    neighbours = [[*counts[:i], counts[i] + choice.sensitivity, *counts[i + 1 :]] for i in range(5)]
    parts = choice.sensitivity // 3
    neighbours.append([one + parts * (place < 3) for place, one in enumerate(counts)])
    mechanism, [(event, times)] = choice.mechanism, list(noise.event.parts())
    assert isinstance(event, Pure if budget is PURE else BoundedRange) and times == 1

    def width(other: list[int]) -> float:
        losses = [mechanism.privacy_loss(output, counts, other) for output in range(5)]
        return max(map(abs, losses)) if choice.flips else max(losses) - min(losses)

    claimed = float(event.loss)
    assert max(map(width, neighbours)) <= claimed * (1 + 1e-9)
    assert max(map(width, neighbours)) > claimed / 2  # the claim is not idle
    moved = [counts[0], counts[1], counts[2] + choice.sensitivity, counts[3] - choice.sensitivity, counts[4]]
    assert width(moved) > claimed * 1.2


def test_groups_are_charged_one_by_one() -> None:
    _, cost = priced("SELECT region, MODE(few) FROM people GROUP BY region", PURE)
    (noise,) = cost.noises
    assert noise.choice is not None and noise.event == Repeated(
        event=Pure(loss=noise.choice.epsilon), times=2
    )
    assert noise.choice.epsilon == Fraction(1, 2) and noise.event.epsilon() == cost.epsilon
    _, cost = priced("SELECT region, place, MODE(few) FROM people GROUP BY ROLLUP(region, place)", PURE)
    for noise in cost.noises:  # both groups of one person may be one group of a coarser set
        assert noise.choice is not None and noise.event.epsilon() == 2 * noise.choice.epsilon
    assert cost.event.epsilon() <= cost.epsilon


@pytest.mark.parametrize("text", ["MODE(few)", "MODE(few), HISTOGRAM(few), MEDIAN(few)"])
@pytest.mark.parametrize("budget", [PURE, GAUSSIAN])
def test_it_falls_short_by_no_more_than_is_said(text: str, budget: PrivacyBudget) -> None:
    """Among values of almost equal counts, at most 5% of 4,000 choices and as many as chance explains."""
    bounding, cost = priced(f"SELECT {text} FROM people", budget)
    counts = np.array([40 - 3 * i for i in range(13)])
    chosen = table(counts, bounding, cost, 4000).aggregate(bounding.answers[0], None).values
    short = forecasts(bounding, cost)[0]
    assert short.falls_short and short.error is not None
    misses = int((40 - counts[chosen] > short.error).sum())
    assert misses <= stats.binom.isf(ALARM, 4000, 0.05)


def test_cells_that_also_serve_quantiles_are_read_off_the_lowest_layer() -> None:
    """Each of 20 intervals misses its count in 5% of 2,000 draws, and as many as chance explains."""
    x = "least(age, 19)"
    text = f"SELECT MODE({x}), HISTOGRAM({x}), QUANTILE({x}, [0.1, 0.9]) FROM people"
    bounding, cost = priced(text, GAUSSIAN, noise="gaussian")
    assert [noise.levels for noise in cost.noises] == [2]
    counts = np.array([7 * i % 20 for i in range(20)])
    cells = table(counts, bounding, cost, 2000)
    found = cells.aggregate(bounding.answers[1], 0.95)
    inside = (np.array(found.low) <= counts) & (counts <= np.array(found.high))
    assert (2000 - inside.sum(axis=0)).max() <= stats.binom.isf(ALARM / 20, 2000, 0.05)
    assert set(cells.aggregate(bounding.answers[0], None).values) <= set(range(20))


# -- refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "code", "hint"),
    [
        ("SELECT MODE(word) FROM t", "SF405", "one_of"),
        ("SELECT MODE(half * 1e3) FROM t", "SF405", "at most 4,096 values"),
        ("SELECT MODE(age * 100) FROM t", "SF405", "larger steps"),
        ("SELECT MODE(NULL) FROM t", "SF403", "NULL"),
        ("SELECT ARG_MAX(region, age) FROM t", "SF403", "ORDER BY m DESC LIMIT 1"),
        ("SELECT ARG_MIN(region, age) FROM t", "SF403", "MIN(x) AS m"),
        ("SELECT MAX_BY(region, COUNT(*)) FROM t", "SF403", "ARG_MAX(key, n) FROM (SELECT key, COUNT(*)"),
        ("SELECT ARG_MIN(region, SUM(age)) FROM t", "SF403", "ARG_MIN(key, n) FROM (SELECT key,"),
        ("SELECT AVG(m) FROM (SELECT who, MODE(age) AS m FROM t GROUP BY who) AS u", "SF403", "own rows"),
    ],
)
def test_what_has_no_private_choice_is_refused(
    text: str, code: str, hint: str, database: sf.Database
) -> None:
    with pytest.raises(sf.errors.QueryRefused) as refusal:
        database.sql(text, epsilon=1).priced()
    assert refusal.value.code == code and hint in str(refusal.value)


def test_the_hint_for_arg_max_is_answered(database: sf.Database) -> None:
    text = (
        "SELECT region, MAX(age) AS m FROM t GROUP BY region HAVING COUNT(*) > 99"
        " ORDER BY m DESC, region LIMIT 1"
    )
    assert database.sql(text, epsilon=10_000).release().column("region") == ["north"]
    text = "SELECT ARG_MAX(region, n) FROM (SELECT region, COUNT(*) AS n FROM t GROUP BY region)"
    assert database.sql(text, epsilon=10_000).release().rows == (("north",),)
