"""ARG_MAX over declared groups: chosen by exactly the stated law, for less than the numbers of all groups.

False-alarm rates are 1e-9 per test and below.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
from scipy import stats

import sfumato as sf
from sfumato.analysis.group_choice import with_group_choice
from sfumato.audit.sampling import released
from sfumato.backends.exact import ExactGroups
from sfumato.core.accountant import PrivacyBudget
from sfumato.core.events import Pure, Repeated
from sfumato.core.events.claims import BoundedRange
from sfumato.plan.options import Options
from sfumato.plan.request import with_options
from sfumato.plan.sql import parse
from sfumato.release import Release
from tests.engine.test_single_quantile import ALARM, CATALOG, GAUSSIAN, PURE

ROWS = pd.DataFrame(
    {
        "who": [i // 2 for i in range(1800)],
        "region": (["north"] * 5 + ["south"] * 3 + ["west"]) * 200,
        "kind": (["a", "b", "b", "b", "a", "a", "b"] * 258)[:1800],
        "amount": [12.5, -3.0, 2.0, 0.5] * 450,
        "free": range(1800),
    }
)
COUNTS = "(SELECT region, COUNT(*) AS n FROM t GROUP BY region)"
BOTH = "(SELECT region, kind, COUNT(*) AS n FROM t GROUP BY region, kind)"


@pytest.fixture(scope="module")
def database() -> sf.Database:
    """Return 900 people with two rows each, of which no cap takes any."""
    return sf.connect(
        ROWS,
        name="t",
        unit="who",
        columns={
            "region": sf.one_of("west", "south", "north"),
            "kind": sf.one_of("a", "b"),
            "amount": sf.between(-50, 150),
        },
        max_groups=2,
        max_rows=2,
        budget=sf.Budget(epsilon=10**7, delta=1e-6),
    )


# -- meaning ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT ARG_MAX(region, n) AS best FROM {COUNTS}",
        f"SELECT MIN_BY(g.region, g.n) FROM {COUNTS} AS g",
        f"WITH g AS {COUNTS} SELECT UPPER(MAX_BY(region, n)) || '!' AS best FROM g",
        "SELECT ARG_MIN(region, n) FROM (SELECT region, COUNT(DISTINCT who) AS n FROM t GROUP BY region)",
        "SELECT ARG_MAX(kind, s) FROM (SELECT SUM(amount) AS s, kind FROM t WHERE amount < 9 GROUP BY kind)",
        "SELECT ARG_MIN(k, s) FROM (SELECT region AS k, SUM(amount) AS s FROM t GROUP BY k)",
        f"SELECT ARG_MAX(kind, n), ARG_MAX(region, n) FROM {BOTH}",
        f"SELECT region, ARG_MAX(kind, n) AS best FROM {BOTH} AS g GROUP BY 1 ORDER BY g.region DESC",
        f"SELECT region AS r, ARG_MIN(kind, n) AS best FROM {BOTH} GROUP BY ALL ORDER BY r LIMIT 2",
        f"SELECT ARG_MAX(region, n) AS best, kind AS k FROM {BOTH} GROUP BY 2 ORDER BY best, kind",
    ],
)
def test_it_is_the_group_that_duckdb_finds(text: str, database: sf.Database) -> None:
    """With an epsilon of 10,000 the chance of another one is below e^-100."""
    t = ROWS  # noqa: F841 -- DuckDB reads it by its name
    question = database.sql(text, epsilon=10_000)
    assert [noise.choice is not None for noise in question.priced().costs[0].noises] == [True]
    release = question.release()
    assert list(release.rows) == duckdb.sql(text).fetchall()
    assert release.intervals() == {} and str(Release.from_json(release.to_json())) == str(release)
    assert any("is chosen privately among" in note for note in release.notes)
    [table] = release.tables
    assert table.aggregate(table.answers[0]).values == [None for _ in table.sets]


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (f"SELECT ARG_MAX(region, n), MAX(n) FROM {COUNTS}", {}),
        (f"SELECT ARG_MAX(region, n), ARG_MIN(region, n) FROM {COUNTS}", {}),
        (f"SELECT ARG_MAX(region, n) FILTER (WHERE n > 5) FROM {COUNTS}", {}),
        (f"SELECT ARG_MAX(region, n) FROM {COUNTS} WHERE region <> 'north'", {}),
        (f"SELECT ARG_MAX(region, n) FROM {COUNTS} HAVING MAX(n) > 5", {}),
        (f"SELECT ARG_MAX(region, n), COUNT(*) FROM {COUNTS}", {}),
        (f"SELECT ARG_MAX(n, region) FROM {COUNTS}", {}),
        (f"SELECT ARG_MAX(region, -n) FROM {COUNTS}", {}),
        ('SELECT (SELECT COUNT(*) FROM t) AS "ARG_MAX(a, b)"', {}),
        (f"SELECT 'ARG_MAX(a, b)', region FROM {COUNTS}", {}),
        (f"SELECT kind, ARG_MAX(region, n) FROM {BOTH} GROUP BY kind ORDER BY MAX(n)", {}),
        (f"SELECT ARG_MAX(region, n) OVER () FROM {COUNTS}", {}),
        (f"SELECT ARG_MAX(region, n) || (SELECT MAX(n) FROM g) FROM {COUNTS} AS g, {COUNTS} AS h", None),
        ("SELECT ARG_MAX(r, n) FROM (SELECT UPPER(region) AS r, COUNT(*) / 2 AS n FROM t GROUP BY r)", {}),
        ("SELECT ARG_MAX(region, m) FROM (SELECT region, AVG(amount) AS m FROM t GROUP BY region)", {}),
        (
            "SELECT ARG_MAX(kind, n) FROM (SELECT kind, COUNT(*) AS n FROM t GROUP BY 1 HAVING COUNT(*) > 9)",
            {},
        ),
        (
            "SELECT ARG_MAX(region, n) FROM (SELECT region, COUNT(*) AS n FROM t GROUP BY ROLLUP(region))",
            {},
        ),
        (
            "SELECT ARG_MAX(k, n) FROM (SELECT kind AS k, COUNT(*) AS n, SUM(amount) AS s FROM t GROUP BY k)",
            {},
        ),
        ("SELECT ARG_MAX(free, n) FROM (SELECT free, COUNT(*) AS n FROM t GROUP BY free)", {}),
        (f"SELECT ARG_MAX(region, n) FROM {COUNTS}", {"keys": "selected"}),
        (f"SELECT ARG_MAX(region, n) FROM {COUNTS}", {"min_units": 3}),
    ],
)
def test_where_more_is_read_all_numbers_are_paid_for(
    text: str, options: dict[str, Any] | None, database: sf.Database
) -> None:
    if options is None:  # it is refused, as it was
        with pytest.raises(sf.errors.QueryRefused):
            database.sql(text, epsilon=1)
        return
    [cost] = database.sql(text, epsilon=1, **options).priced().costs
    assert all(noise.choice is None for noise in cost.noises)


def test_what_was_chosen_determines_no_number_and_numbers_determine_the_choice(
    database: sf.Database,
) -> None:
    best = f"SELECT ARG_MAX(region, n) AS best FROM {COUNTS}"
    [chosen] = database.sql(best, epsilon=10).release().tables
    assert chosen.basis is None and chosen.groups[0].measures == {}
    assert database.sql("SELECT region, COUNT(*) AS n FROM t GROUP BY region").from_releases() is None
    assert database.sql(best).from_releases() is None
    database.sql("SELECT region, COUNT(*) AS n FROM t GROUP BY region", epsilon=100).release()
    assert database.sql(best, free=True).release().rows == (("north",),)


def test_each_question_of_a_workload_chooses_by_itself(database: sf.Database) -> None:
    lowest = "SELECT ARG_MAX(region, s) FROM (SELECT region, SUM(-amount) AS s FROM t GROUP BY region)"
    asked = [f"SELECT ARG_MAX(region, n) FROM {COUNTS}", lowest, f"SELECT * FROM {COUNTS} ORDER BY n"]
    release = database.workload(asked, epsilon=10_000).release()
    assert [one.rows[0][0] for one in release.releases] == ["north", "west", "west"]


# -- the choice -------------------------------------------------------------------------------


def priced(text: str, budget: PrivacyBudget, **options: Any) -> Any:
    """Return the plan and the price of a question that chooses, by the public path."""
    from sfumato.analysis import bound, price

    given = {"max_groups": 2, "max_rows": 2, **options}
    (named,) = with_group_choice(with_options(parse(text, CATALOG), given), CATALOG, None).queries
    bounding = bound(named.query, CATALOG, Options(**given))
    return bounding, price(bounding, budget, epsilon=1)


def by_place(score: str, name: str = "ARG_MAX", where: str = "") -> str:
    return f"SELECT {name}(place, s) FROM (SELECT place, {score} AS s FROM people{where} GROUP BY place)"


@pytest.mark.parametrize("name", ["ARG_MAX", "ARG_MIN"])
@pytest.mark.parametrize("budget", [PURE, GAUSSIAN])
def test_a_group_is_chosen_by_exactly_the_stated_law(budget: PrivacyBudget, name: str) -> None:
    """Chi-square over 20,000 choices; a rate that is a third off is caught, all but surely.

    False alarm below 1e-9: the exact multinomial chance is 2.1e-10 where chi-square says 2e-10.
    """
    bounding, cost = priced(by_place("SUM(age - 50)", name), budget)
    (noise,), (measure,) = cost.noises, bounding.query.measures
    scores = np.array([round(one / noise.choice.rate) for one in (0, Fraction(-1, 2), Fraction(4, 5))])
    keys = [("a",), ("b",), ("c",)]
    groups = ExactGroups(grouping_set=(0,), keys=keys, measures={measure.name: scores}, units=None)
    [(_, [found])] = released(bounding, cost, (groups,), 20_000)
    times = np.array([sum(key[1] == one for key in found.keys) for (one,) in keys])
    utilities = scores if name == "ARG_MAX" else -scores
    for factor, agrees in ((Fraction(1), True), (Fraction(4, 3), False)):
        mechanism = replace(noise.choice, epsilon=noise.choice.epsilon * factor).mechanism
        expected = np.array([mechanism.pmf(place, utilities) for place in range(3)]) * 20_000
        statistic = float(((times - expected) ** 2 / expected).sum())
        assert bool(stats.chi2.sf(statistic, 2) > ALARM / 5) is agrees


@pytest.mark.parametrize("budget", [PURE, GAUSSIAN])
@pytest.mark.parametrize(
    ("score", "low", "high"),
    [
        ("COUNT(*)", 0, 2),
        ("COUNT(DISTINCT person)", 0, 1),
        ("SUM(age)", 0, 220),
        ("SUM(-age)", -220, 0),
        ("SUM(age - 50)", -100, 120),
        ("SUM(age - 50, contribution_bounds_per_group => (-30, 90))", -30, 90),
    ],
)
def test_losses_stay_within_what_is_charged(budget: PrivacyBudget, score: str, low: int, high: int) -> None:
    """Exactly, of one unit that moves groups as far apart as it can. Priced as a count it loses more."""
    bounding, cost = priced(by_place(score), budget)
    (noise,), (measure,), (answer,) = cost.noises, bounding.query.measures, bounding.answers
    ends = [round(end / answer.weight) for end in (low, high)]
    assert noise.choice.sensitivity == measure.span == ends[1] - ends[0]
    assert isinstance(noise.event, Pure if budget is PURE else BoundedRange)
    before = [0, 0, measure.sensitivity]

    def width(choice: Any, moves: list[int]) -> float:
        after = [one + move for one, move in zip(before, moves, strict=True)]
        losses = [choice.mechanism.privacy_loss(output, before, after) for output in range(3)]
        return max(map(abs, losses)) if choice.flips else max(losses) - min(losses)

    moved = [[ends[place] for place in places] for places in ((0, 1, 0), (1, 0, 1), (1, 0, 0), (0, 1, 1))]
    claimed, worst = float(noise.event.loss), max(width(noise.choice, moves) for moves in moved)
    assert claimed / 2 < worst <= claimed * (1 + 1e-9)
    if low < 0 < high:
        counted = replace(noise.choice, sensitivity=measure.sensitivity)
        assert max(width(counted, moves) for moves in moved) > claimed * 1.05


def test_a_choice_costs_the_same_in_however_many_groups_a_person_is() -> None:
    for groups in (1, 3):
        _, cost = priced(by_place("COUNT(*)"), PURE, max_groups=groups)
        assert cost.noises[0].event == Pure(loss=Fraction(1)) and cost.noises[0].choice.epsilon == 1
    inner = "(SELECT region, place, COUNT(*) AS n FROM people GROUP BY region, place)"
    for groups, times in ((1, 1), (2, 2), (5, 2)):  # there are two regions
        text = f"SELECT region, ARG_MAX(place, n) FROM {inner} GROUP BY region"
        _, cost = priced(text, PURE, max_groups=groups)
        one = Pure(loss=Fraction(1, times))
        assert cost.noises[0].event == (one if times == 1 else Repeated(event=one, times=times))


# -- the price --------------------------------------------------------------------------------


def test_it_costs_less_than_the_table_and_says_so_beforehand(database: sf.Database) -> None:
    spent = database.balance.spent_units
    chosen = database.sql(f"SELECT ARG_MAX(region, n) AS best FROM {COUNTS}", epsilon=1)
    counted = database.sql(f"SELECT ARG_MAX(region, n) AS best, MAX(n) AS n FROM {COUNTS}", epsilon=1)
    # counts that are off by at most 10 each choose a group that is at most 20 below the largest
    assert chosen.within(20).epsilon < counted.within(10).epsilon / 2  # type: ignore[operator]
    said = "arg_max(region, count(*)): at most 19.62 below the largest (95%)"
    assert said in repr(chosen) and said in "\n".join(chosen.price().lines())
    assert "nothing but a group that is chosen with epsilon" in chosen.explain()
    assert "standard deviation" in counted.explain() and "chosen" not in counted.explain()
    assert database.balance.spent_units == spent


@pytest.mark.parametrize(
    ("text", "options", "code", "hint"),
    [
        (
            "SELECT ARG_MAX(region, s) FROM (SELECT region, SUM(free) AS s FROM t GROUP BY region)",
            {},
            "SF405",
            "declare them: free",
        ),
        (
            "SELECT ARG_MAX(free, n) FROM (SELECT free, COUNT(*) AS n FROM t GROUP BY free)",
            {"keys": "declared"},
            "SF405",
            "one_of",
        ),
        ("SELECT ARG_MAX(region, amount) FROM t", {}, "SF403", "ORDER BY m DESC LIMIT 1"),
    ],
)
def test_a_wrong_use_is_refused_before_the_charge(
    text: str, options: dict[str, Any], code: str, hint: str, database: sf.Database
) -> None:
    spent = database.balance.spent_units
    with pytest.raises(sf.errors.QueryRefused) as refusal:
        database.sql(text, epsilon=1, **options).release()
    assert refusal.value.code == code and hint in str(refusal.value)
    assert database.balance.spent_units == spent
