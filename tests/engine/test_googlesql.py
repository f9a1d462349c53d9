"""GoogleSQL, end to end: its values on cloned units, limits that are found first, reports, public groups.

Tables are small, and each unit is there many times under names of its own: with a huge epsilon the answers
are those that Google documents for the small table, sums and counts as often as there are clones.
"""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.analysis import bound, price
from sfumato.analysis.missing_limits import MissingLimit, missing_limits, with_limits
from sfumato.audit.queries import examine_query
from sfumato.core import GaussianRule, PureRule, RenyiRule, ZeroConcentratedRule
from sfumato.core.accountant import PrivacyBudget
from sfumato.errors import BudgetExceeded, InvalidArgument, QueryRefused, Unsupported
from sfumato.plan.sql import parse
from tests.engine.replay import BUDGET, Replay
from tests.engine.test_replay import wrongs
from tests.engine.worlds import CATALOG, NEIGHBOURS

CLONES = 60
ROWS = [
    (1, "oak", 24), (2, "ash", 16), (2, "oak", 10), (2, "oak", 38), (1, "ash", 19), (1, "ash", 23),
    (3, "elm", 8), (4, "oak", 72),
]  # fmt: skip
CLAUSE = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1e20, delta=.01, max_groups_contributed={})"
PUBLIC = pa.table({"tree": ["ash", "oak", "yew"]})


def forest(budget: PrivacyBudget | None = None, **declared: Any) -> sf.Database:
    rows = [(1000 * clone + who, tree, size) for clone in range(CLONES) for who, tree, size in ROWS]
    who, tree, size = zip(*rows, strict=True)
    table = pa.table({"who": who, "tree": tree, "size": size})
    budget = budget or sf.Budget(epsilon=10**22, delta=0.9)
    return sf.connect({"trees": table}, unit="who", public={"kinds": PUBLIC}, budget=budget, **declared)


def answered(text: str, groups: Any = 2, **options: Any) -> dict[Any, Any]:
    """Return the rows of an answer by their first column."""
    rows = forest().sql(text.replace("CLAUSE", CLAUSE.format(groups)), **options).release().rows
    return {row[0]: row[1] if len(row) == 2 else row[1:] for row in rows}


# -- values ---------------------------------------------------------------------------------


@pytest.mark.parametrize("groups", [2, "NULL"])
@pytest.mark.parametrize("bounds", ["", ", contribution_bounds_per_group => (0, 100)"])
def test_averages_are_those_of_units_averages(bounds: str, groups: Any) -> None:
    found = answered(f"CLAUSE tree, AVG(size{bounds}) FROM trees GROUP BY tree;", groups)
    assert found == pytest.approx({"oak": 40, "ash": 18.5, "elm": 8}, abs=0.01)


def test_bounds_move_a_units_average() -> None:
    found = answered(
        "CLAUSE tree, AVG(size, contribution_bounds_per_group => (50, 100)) FROM trees GROUP BY tree"
    )
    assert found == pytest.approx({"oak": 172 / 3, "ash": 50, "elm": 50}, abs=0.01)


@pytest.mark.parametrize("bounds", ["", ", contribution_bounds_per_group=>(0, 100)"])
def test_sums_and_counts(bounds: str) -> None:
    counted = ", ".join(f"COUNT({what}{bounds})" for what in ("*", "tree", "who"))
    found = answered(f"CLAUSE tree, SUM(size{bounds}), {counted} FROM trees GROUP BY tree")
    expected = {"oak": (144, 4, 4, 4), "ash": (58, 3, 3, 3), "elm": (8, 1, 1, 1)}
    assert found == {tree: tuple(CLONES * one for one in row) for tree, row in expected.items()}


def test_variances_and_quantiles_of_a_few_rows_of_each_unit() -> None:
    asked = (
        "CLAUSE 'all', VAR_POP(size), STDDEV_POP(size, contribution_bounds_per_row => (0, 100)),"
        " PERCENTILE_CONT(size, 0.9, contribution_bounds_per_row => (0, 100)),"
        " APPROX_QUANTILES(size, 4)[OFFSET(4)], ARRAY_LENGTH(APPROX_QUANTILES(size, 4)) FROM trees"
    )
    variance, deviation, rank, largest, parts = answered(asked)["all"]
    assert variance == pytest.approx(375.1875, rel=1e-3) and deviation == pytest.approx(19.3698, rel=1e-3)
    assert rank == largest == 72 and parts == 5


@pytest.mark.parametrize(
    "values, printed",
    [
        ([1.5, 1.5, 2.5, 3.5, -0.5, -1.5, 1.5, 2.5], [1, 1, 1.5, 1.5, 2.5, 2.5]),
        ([2, 1, 1, 2, 1, 4, 2, 3], [1, 1, 1, 2, 2, 3]),
    ],
)
def test_quantiles_of_many_values_are_those_at_googles_ranks(values: list[Any], printed: list[float]) -> None:
    """`printed` are those of eight values, in Google's compliance queries: one rank is between two."""

    def ranked(times: int) -> list[float]:
        rows = sorted(min(max(value, 1), 3) for value in values * times)
        places = (min(max(part / 5, 0.005), 0.995) * (len(rows) - 1) for part in range(6))
        return [rows[math.floor(place)] for place in places]

    assert ranked(1) == printed
    table = pa.table({"who": range(200 * len(values)), "x": values * 200})
    db = sf.connect({"t": table}, unit="who", budget=sf.Budget(epsilon=10**22, delta=0.9))
    asked = f"{CLAUSE.format(1)} APPROX_QUANTILES(x, 5, contribution_bounds_per_row => (1, 3)) FROM t"
    [[found]] = db.sql(asked).release().rows
    assert found == pytest.approx(ranked(200), abs=0.01)


def test_declared_bounds_are_used_before_any_are_looked_for() -> None:
    asked = f"{CLAUSE.format(2)} tree, AVG(size) FROM trees GROUP BY tree"
    declared = forest(columns={"size": sf.between(0, 100)})
    assert declared.sql(asked).priced().limits is None and forest().sql(asked).priced().limits is not None


# -- limits that are found first ----------------------------------------------------------------------

IMPLICIT = {
    "sums": "tree, SUM(size) FROM trees GROUP BY tree",
    "averages and counts": "tree, AVG(size), COUNT(*) FROM trees GROUP BY tree",
    "values": "VAR_POP(size), MEDIAN(size) FROM trees",
}
BUDGETS = (
    sf.Budget(epsilon=10, rule="pure", delta=1e-6),
    sf.Budget(epsilon=10, delta=1e-6),
    sf.Budget(epsilon=10, delta=1e-6, rule="zcdp"),
)


@pytest.mark.parametrize("asked", IMPLICIT.values(), ids=IMPLICIT)
@pytest.mark.parametrize("budget", BUDGETS, ids=lambda budget: budget.rule.name)
def test_whatever_is_found_the_rest_costs_no_more_than_was_reserved(
    asked: str, budget: PrivacyBudget
) -> None:
    clause = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=2, max_groups_contributed=NULL) "
    db = forest(budget)
    priced = db.sql(clause + asked).priced()
    limits = priced.limits
    assert limits is not None
    charge = budget.rule.charge
    reserved = sum(charge(one.event) for one in limits.first) + charge(limits.rest.event)
    allowed = budget.allowance(2) * 10**20
    assert charge(priced.event) <= reserved + 1 and reserved <= allowed * (1 + Fraction(1, 10**9))
    rows: list[tuple[Any, Any]] = [
        (-1.0, 1.0),
        (0, 3),
        (0.125, 1e30),
        (-7e-9, 0),
        (None, None),
        (2**40, 2**41),
    ]
    for low, high in rows:
        found = [(low, high) if one.aggregates else (7,) for one in limits.missing]
        settled = limits.settled(found)
        assert charge(settled.event) <= charge(limits.rest.event)
        assert settled.keys_delta <= limits.rest.keys_delta == priced.keys_delta
        assert settled.limits is None


@pytest.mark.parametrize("asked", IMPLICIT.values(), ids=IMPLICIT)
def test_one_charge_pays_for_all(asked: str) -> None:
    budget = sf.Budget(epsilon=4, delta=1e-6)
    db = forest(budget)
    clause = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=3, max_groups_contributed=2) "
    question = db.sql(clause + asked)
    spent = budget.rule.charge(question.priced().event)
    first = question.release(key="once")
    assert db.balance.spent == Fraction(spent, 10**20) and first.cost["epsilon"] == 3
    assert question.release(key="once").to_json() == first.to_json() and db.balance.spent == Fraction(
        spent, 10**20
    )
    assert any("found privately" in note for note in first.notes)
    with pytest.raises(BudgetExceeded):
        question.release()
    assert db.balance.spent == Fraction(spent, 10**20)


def test_bounds_that_cannot_be_told_from_noise_make_an_answer_null() -> None:
    text = f"{CLAUSE.format(2)} tree, COUNT(*), SUM(size) FROM trees WHERE size > 100 GROUP BY tree"
    declared = forest(columns={"tree": sf.one_of("oak")})
    release = declared.sql(text).release()
    assert release.rows == (("oak", None, None),)
    assert sum("could not be told from noise" in note for note in release.notes) == 2
    assert release.intervals(0.95)["COUNT(*)"][0] in (None, (None, None))


def test_the_price_says_what_is_not_known_yet() -> None:
    question = forest().sql(
        f"{CLAUSE.format(2)} tree, AVG(size) AS mean, COUNT(DISTINCT who) AS n FROM trees GROUP BY 1"
    )
    assert "mean: depends on limits that are found first" in repr(question)
    assert "n: ±" in repr(question)
    assert "bounds on values of AVG(size)" in question.explain()
    with pytest.raises(InvalidArgument, match="found first"):
        question.release(error=1)


def test_plain_questions_are_still_refused_without_bounds() -> None:
    with pytest.raises(QueryRefused, match="needs bounds"):
        forest().sql("SELECT SUM(size) FROM trees", epsilon=1, max_rows=3).release()


WORLDLY = {
    "what a unit adds": "region, SUM(score), COUNT(word) FROM visits GROUP BY region",
    "averages": "word, AVG(score) FROM visits GROUP BY word",
    "values": "VAR_POP(big), STDDEV_POP(score) FROM visits WHERE member",
    "groups": "word, day, COUNT(*, contribution_bounds_per_group => (0, 2)) FROM visits GROUP BY word, day",
}


LOOSE = replace(
    CATALOG,
    tables=tuple(
        replace(table, fields=tuple(replace(field, domain=None) for field in table.fields))
        for table in CATALOG.tables
    ),
)
"""The same tables, with nothing declared about their columns."""


def found_by(asked: str) -> list[MissingLimit]:
    clause = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, max_groups_contributed=NULL) "
    _, missing = missing_limits(parse(clause + asked, LOOSE), LOOSE, None)  # type: ignore[arg-type]
    assert missing
    return list(missing)


def replayed(missing: MissingLimit) -> Replay:
    [named] = missing.request.queries
    options = replace(missing.request.options, intervals=True)  # the checker knows a search that has one
    bounding = bound(named.query, LOOSE, options)
    return Replay(bounding, price(bounding, BUDGET, epsilon=Fraction(1, 2)), bounding.query)


@pytest.mark.parametrize("asked", WORLDLY.values(), ids=WORLDLY)
@pytest.mark.parametrize("world", [0, 3])
def test_one_person_more_stays_in_the_box(asked: str, world: int) -> None:
    """What finds limits, and the question with limits that might be found."""
    for missing in found_by(asked):
        assert list(wrongs(replayed(missing), world, NEIGHBOURS[::2])) == []


@pytest.mark.parametrize("asked", WORLDLY.values(), ids=WORLDLY)
def test_one_person_more_stays_in_the_box_of_what_was_found(asked: str) -> None:
    clause = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, max_groups_contributed=NULL) "
    request, missing = missing_limits(parse(clause + asked, LOOSE), LOOSE, None)  # type: ignore[arg-type]
    filled = with_limits(request, missing, [(-4.0, 32.0) if one.aggregates else (2,) for one in missing])
    bounding = bound(filled.queries[0].query, LOOSE, filled.options)
    cost = price(bounding, BUDGET, epsilon=Fraction(1, 2))
    assert list(wrongs(Replay(bounding, cost, bounding.query), 0, NEIGHBOURS[::2])) == []


def test_a_unit_that_counts_with_every_row_is_caught() -> None:
    """The lie: buckets that count rows, claimed to count units."""
    replay = replayed(found_by(WORLDLY["values"])[0])
    assert list(wrongs(replace(replay, run=replace(replay.query, max_rows=50)), 0, NEIGHBOURS))


@pytest.mark.parametrize(
    "rule", [PureRule(), ZeroConcentratedRule(), GaussianRule()], ids=lambda rule: rule.name
)
@pytest.mark.parametrize("amount", [Fraction(1, 3), Fraction(7, 10**9), Fraction(10**20)])
def test_a_claim_costs_what_it_claims(rule: Any, amount: Fraction) -> None:
    units = rule.charge(rule.claim(amount))
    assert amount * 10**20 <= units <= amount * 10**20 * (1 + Fraction(1, 10**20)) + 1


# -- several clauses, and parts of an epsilon ---------------------------------------------------------


def test_each_clause_costs_its_own_epsilon() -> None:
    budget = sf.Budget(epsilon=10, rule="pure", delta=1e-6)
    clause = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon={}) COUNT(DISTINCT who) AS n FROM trees"
    question = forest(budget).sql(f"{clause.format(1)} UNION ALL {clause.format(3)}")
    assert [cost.event.epsilon() for cost in question.priced().costs] == [1, 3]
    assert question.release().cost["epsilon"] == 4
    plain = forest(budget).sql(
        f"{clause.format(2)} UNION ALL SELECT COUNT(DISTINCT who) FROM trees WHERE size > 9"
    )
    assert [cost.event.epsilon() for cost in plain.priced().costs] == [2, 2]
    said = "has no privacy clause of its own: it costs as much as the first clause"
    assert said in repr(plain) and any(said in line for line in plain.price().lines())
    assert plain.price().record()["notes"] == list(plain.request.query_notes)
    release = plain.release()
    assert release.cost["epsilon"] == 4 and sum(said in note for note in release.notes) == 1
    assert said not in repr(question) and not question.request.query_notes


def test_clauses_keep_their_own_caps() -> None:
    text = (
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, max_groups_contributed={})"
        " tree, COUNT(DISTINCT who) AS n FROM trees GROUP BY tree"
    )
    priced = (
        forest(sf.Budget(epsilon=10, delta=1e-2)).sql(f"{text.format(1)} UNION ALL {text.format(2)}").priced()
    )
    assert [bounding.query.max_groups for bounding in priced.boundings] == [1, 2]


def test_an_aggregate_has_its_part_of_epsilon() -> None:
    text = (
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=10, group_selection_epsilon=2,"
        " max_groups_contributed=1) tree,"
        " COUNT(*, contribution_bounds_per_group => (0, 5), epsilon => 3) AS n,"
        " SUM(size, contribution_bounds_per_group => (0, 50), epsilon => .5) AS s,"
        " SUM(size, contribution_bounds_per_group => (0, 60)) AS t FROM trees GROUP BY tree"
    )
    budget = sf.Budget(epsilon=10, rule="pure", delta=1e-6)
    [cost] = forest(budget).sql(text).priced().costs
    assert [noise.event.epsilon() for noise in cost.noises] == [3, Fraction(1, 2), Fraction(9, 2)]
    assert [one.event.epsilon() for one in cost.selections if one.event is not None] == [2]
    [half] = forest(budget).sql(text, epsilon=5).priced().costs
    assert [noise.event.epsilon() for noise in half.noises] == [
        Fraction(3, 2),
        Fraction(1, 4),
        Fraction(9, 4),
    ]


@pytest.mark.parametrize("budget", BUDGETS, ids=lambda budget: budget.rule.name)
def test_parts_of_epsilon_cost_no_more_than_the_whole(budget: PrivacyBudget) -> None:
    text = (
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=8)"
        " COUNT(*, contribution_bounds_per_group => (0, 5), epsilon => {}),"
        " SUM(size, contribution_bounds_per_group => (0, 50), epsilon => {}) FROM trees"
    )
    for first, second in (("4", "4"), (".001", "7.999"), ("1", "2")):
        event = forest(budget).sql(text.format(first, second)).priced().event
        assert budget.rule.charge(event) <= budget.allowance(8) * 10**20 + 1
    with pytest.raises(QueryRefused, match="leave nothing"):
        forest(budget).sql(text.format("4", "4").replace(" FROM", ", COUNT(DISTINCT who) FROM")).priced()


# -- reports --------------------------------------------------------------------------------


def test_a_report_is_the_value_with_its_interval() -> None:
    clause = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=3, max_groups_contributed=2) "
    counted = "COUNT(*, contribution_bounds_per_group => (0, 5){})"
    averaged = "AVG(size, contribution_bounds_per_group => (0, 100){})"
    report = ", report_format => JSON"
    reported = f"{counted.format(report)} AS c, {averaged.format(report)} AS a"
    text = f"{clause} {reported}, {counted.format('')} AS n, {averaged.format('')} AS m"
    release = forest(sf.Budget(epsilon=10, delta=1e-3)).sql(f"{text} FROM trees").release()
    [(counts, averages, number, mean)] = release.rows
    intervals = release.intervals(0.95)
    counts, averages = json.loads(counts)["result"], json.loads(averages)["result"]
    (low, high), (left, right) = intervals["n"][0], intervals["m"][0]
    assert counts["value"] == number and averages["value"] == pytest.approx(mean)
    level = {"confidence_level": 0.95}
    assert counts["noise_confidence_interval"] == {
        **level,
        "lower_bound": low - number,
        "upper_bound": high - number,
    }
    expected = {**level, "lower_bound": pytest.approx(left), "upper_bound": pytest.approx(right)}
    assert averages["noise_confidence_interval"] == expected
    assert release.from_json(release.to_json()).rows == release.rows


def test_a_report_has_parts() -> None:
    ranks = "APPROX_QUANTILES(size, 2, contribution_bounds_per_row => (0, 100), report_format => {}){}"
    inner = (
        f"{CLAUSE.format(2)} JSON_QUERY_ARRAY({ranks.format('JSON', '.result')}) AS j,"
        f" {ranks.format('PROTO', '.values.values')} AS p,"
        " SUM(size, contribution_bounds_per_group => (0, 200), report_format => 'PROTO').value.int_value AS s"
        " FROM trees"
    )
    text = (
        "SELECT DOUBLE(j[OFFSET(2)].value), p[ORDINAL(3)].float_value, s,"
        f" p[OFFSET(0)].noise_confidence_interval.confidence_level FROM ({inner})"
    )
    [row] = forest().sql(text).release().rows
    assert row == (72, 72, 210 * CLONES, 0.95)


@pytest.mark.parametrize(
    "asked, parts",
    [
        ("AVG(size, contribution_bounds_per_group", 1),
        ("APPROX_QUANTILES(size, 2, contribution_bounds_per_row", 3),
    ],
)
def test_the_interval_of_what_nobody_has_is_all_that_the_bounds_allow(asked: str, parts: int) -> None:
    text = f"{CLAUSE.format(1)} {asked} => (1, 10), report_format => JSON) FROM trees WHERE size > 100"
    [[found]] = forest().sql(text).release().rows
    result = json.loads(found)["result"]
    interval = {"confidence_level": 0.95, "lower_bound": 1, "upper_bound": 10}
    expected = {"value": None, "noise_confidence_interval": interval}
    assert result == (expected if parts == 1 else [expected] * parts)


# -- public groups --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "source",
    [
        "trees RIGHT OUTER JOIN (SELECT DISTINCT tree FROM kinds) USING (tree)",
        "(SELECT DISTINCT tree FROM kinds) k LEFT JOIN trees USING (tree)",
        "trees RIGHT JOIN (SELECT DISTINCT tree FROM UNNEST(['ash', 'oak', 'yew']) AS tree) USING (tree)",
    ],
)
@pytest.mark.parametrize("groups", [2, "NULL"])
def test_an_outer_join_says_which_groups_there_are(source: str, groups: Any) -> None:
    clause = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1e20, delta=0, max_groups_contributed={},"
    asked = f"{clause.format(groups)} group_selection_strategy=PUBLIC_GROUPS)"
    counted = "tree, COUNT(*, contribution_bounds_per_group => (0, 9)) FROM"
    release = forest().sql(f"{asked} {counted} {source} GROUP BY tree").release()
    assert dict(release.rows) == {"ash": 3 * CLONES, "oak": 4 * CLONES, "yew": 0}
    with pytest.raises(QueryRefused, match="not declared"):
        forest().sql(f"{asked} {counted} trees GROUP BY tree").release()


def test_the_old_form_is_told_how_it_is_written_now() -> None:
    summed = "ANON_SUM(size CLAMPED BETWEEN 0 AND 9)"
    text = f"SELECT WITH ANONYMIZATION OPTIONS(epsilon=1, kappa=2) {summed} FROM trees"
    with pytest.raises(QueryRefused, match="old form") as caught:
        forest().sql(text)
    assert any("SUM(x, contribution_bounds_per_group => (0, 100))" in hint for hint in caught.value.hints)


def test_a_budget_of_one_renyi_order_cannot_reserve_what_is_not_known() -> None:
    budget = PrivacyBudget(epsilon=5, delta=1e-6, rule=RenyiRule(order=8))
    with pytest.raises(Unsupported, match="stands for all"):
        forest(budget).sql(f"{CLAUSE.format(2)} SUM(size) FROM trees", epsilon=1).priced()


@pytest.mark.soak
def test_an_audit_of_what_is_found_first_finds_no_more_than_is_claimed() -> None:
    clause = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, max_groups_contributed=NULL)"
    db = forest(sf.Budget(epsilon=3, delta=1e-6))
    assert examine_query(f"{clause} tree, SUM(size) AS s FROM trees GROUP BY tree", db, trials=1_000).passed
