"""Bounding: which measures are asked for and shared, where caps and keys come from, what is refused."""

from __future__ import annotations

import math
import random
import statistics
from fractions import Fraction
from typing import Any

import pytest

from sfumato.aggregates.answer import Answer
from sfumato.aggregates.registry import Function
from sfumato.analysis.bounded import Bounding, Measure, MeasureKind
from sfumato.analysis.bounding import bound
from sfumato.catalog import Catalog, Kind
from sfumato.errors import QueryRefused
from sfumato.plan.options import Options
from sfumato.plan.tree import Case, Filter, Join, Literal, PerUnit, Query, Union
from sfumato.plan.tree import ColumnRef as TreeColumn
from tests.analysis.questions import (
    AGE,
    AMOUNT,
    INCOME,
    MEMBER,
    REGION,
    ROWS,
    SCORE,
    WORD,
    aggregate,
    call,
    catalog,
    literal,
    question,
    scan,
)
from tests.analysis.reference import run

CAPS = Options(max_groups=3, max_rows=2)


def bounded(asked: Query, options: Options = CAPS, about: Catalog | None = None) -> Bounding:
    return bound(asked, catalog() if about is None else about, options)


def refusal(asked: Query, options: Options = CAPS, about: Catalog | None = None) -> QueryRefused:
    with pytest.raises(QueryRefused) as caught:
        bounded(asked, options, about)
    assert caught.value.hints or caught.value.code in ("SF407", "SF403")
    return caught.value


def measure(result: Bounding, name: str) -> Measure:
    return next(one for one in result.query.measures if one.name == name)


# -- shared measures ------------------------------------------------------------------------


def test_equal_measures_are_one() -> None:
    result = bounded(question(ROWS, ROWS, aggregate(Function.AVG, SCORE), aggregate(Function.VAR_POP, SCORE)))
    rows, _, average, variance = result.answers
    assert rows.measures[0] == average.measures[0] == variance.measures[0]  # score always has a value
    assert average.measures[1] == variance.measures[1]
    assert len(result.query.measures) == 3


def test_a_count_of_a_nullable_column_is_not_that_of_all_rows() -> None:
    result = bounded(question(ROWS, aggregate(Function.COUNT, AGE), aggregate(Function.AVG, AGE)))
    rows, count, average = result.answers
    assert count.measures[0] == average.measures[0] != rows.measures[0]
    assert len(result.query.measures) == 3


def test_correlation_takes_six_moments_that_covariance_shares() -> None:
    pair = (AGE, AMOUNT)
    result = bounded(question(aggregate(Function.CORR, *pair), aggregate(Function.COVAR_SAMP, *pair)))
    assert len(result.query.measures) == 6
    assert result.answers[1].measures == (*result.answers[0].measures[:3], result.answers[0].measures[5])


def test_moments_are_centred() -> None:
    result = bounded(question(aggregate(Function.AVG, AMOUNT)))
    (answer,) = result.answers
    assert answer.centre == 40.0
    grid = measure(result, answer.measures[1]).factors[0].grid
    assert (grid.lower, grid.upper) == (-60, 60)
    assert measure(result, answer.measures[1]).sensitivity == 2 * grid.sensitivity


def test_a_sum_is_centred_only_where_rows_are_counted_anyway() -> None:
    alone = bounded(question(aggregate(Function.SUM, SCORE)))
    assert len(alone.answers[0].measures) == 1 and alone.answers[0].centre == 0
    beside = bounded(question(aggregate(Function.SUM, SCORE), ROWS))
    assert beside.answers[0].measures[0] == beside.answers[1].measures[0]
    assert beside.answers[0].centre == 0.5
    nullable = bounded(question(aggregate(Function.SUM, AGE), ROWS))  # NULL adds nothing, as 0 does
    assert nullable.answers[0].measures[0] == nullable.answers[1].measures[0]
    assert nullable.answers[0].centre == 55
    positive = aggregate(Function.SUM, AGE, bounds_per_row=(5.0, 9.0))  # here 0 would be clamped to 5
    assert len(bounded(question(positive, ROWS)).answers[0].measures) == 1


def test_units_are_rows_if_a_unit_weighs_one_row() -> None:
    result = bounded(
        question(ROWS, aggregate(Function.COUNT_UNITS), by=(REGION,)), Options(max_groups=1, max_rows=1)
    )
    assert [one.kind for one in result.query.measures] == [MeasureKind.UNITS]


# -- answers --------------------------------------------------------------------------------


def answer_from(answer: Answer, exact: dict[str, Any]) -> float:
    """Follow the rules of `aggregates.answer`, on exact integers."""
    m = [exact[name] for name in answer.measures]
    weight, x, y = float(answer.weight), float(answer.scale), float(answer.second_scale)
    n = m[0] * weight if isinstance(m[0], int) else 0.0
    match answer.function:
        case Function.COUNT | Function.COUNT_ROWS | Function.COUNT_UNITS | Function.COUNT_DISTINCT:
            return n
        case Function.SUM:
            return m[0] * x if len(m) == 1 else m[1] * x + answer.centre * n
        case Function.AVG:
            return answer.centre + m[1] * x / n
        case Function.VAR_POP | Function.VAR_SAMP | Function.STDDEV_POP | Function.STDDEV_SAMP:
            deviations = m[2] * x**2 - (m[1] * x) ** 2 / n
            sample = answer.function in (Function.VAR_SAMP, Function.STDDEV_SAMP)
            variance = deviations / (n - 1 if sample else n)
            root = answer.function in (Function.STDDEV_POP, Function.STDDEV_SAMP)
            return math.sqrt(variance) if root else variance
        case Function.COVAR_POP | Function.COVAR_SAMP:
            product = m[3] * x * y - m[1] * x * m[2] * y / n
            return product / (n - 1 if answer.function is Function.COVAR_SAMP else n)
        case Function.CORR:
            xx = m[3] * x**2 - (m[1] * x) ** 2 / n
            yy = m[4] * y**2 - (m[2] * y) ** 2 / n
            return (m[5] * x * y - m[1] * x * m[2] * y / n) / math.sqrt(xx * yy)
        case Function.QUANTILE:
            ranks = [sum(m[0][: place + 1]) / sum(m[0]) for place in range(len(m[0]))]
            place = next(place for place, rank in enumerate(ranks) if rank >= answer.quantiles[0])
            return answer.edges[place]
    raise AssertionError(answer.function)


SAMPLE = random.Random(5)
PEOPLE = [
    (
        person,
        {
            "v.age": SAMPLE.choice([None, SAMPLE.randint(0, 110)]),
            "v.amount": SAMPLE.choice([None, SAMPLE.uniform(-20, 100)]),
            "v.score": SAMPLE.random(),
            "v.region": "north",
            "v.word": SAMPLE.choice("abcdef"),
            "v.member": True,
        },
    )
    for person in range(300)
]


@pytest.mark.parametrize("caps", [CAPS, Options(max_groups=1, max_rows=1)])
def test_answers_follow_from_exact_measures(caps: Options) -> None:
    both = [
        (row["v.age"], row["v.amount"]) for _, row in PEOPLE if None not in (row["v.age"], row["v.amount"])
    ]
    ages = [row["v.age"] for _, row in PEOPLE if row["v.age"] is not None]
    amounts = [row["v.amount"] for _, row in PEOPLE if row["v.amount"] is not None]
    x, y = zip(*both, strict=True)
    covariance = statistics.covariance(x, y)
    truths = {
        aggregate(Function.COUNT, AGE): len(ages),
        ROWS: len(PEOPLE),
        aggregate(Function.SUM, AGE): sum(ages),
        aggregate(Function.SUM, SCORE): sum(row["v.score"] for _, row in PEOPLE),
        aggregate(Function.AVG, AMOUNT): statistics.mean(amounts),
        aggregate(Function.VAR_SAMP, AGE): statistics.variance(ages),
        aggregate(Function.STDDEV_POP, AMOUNT): statistics.pstdev(amounts),
        aggregate(Function.COVAR_SAMP, AGE, AMOUNT): covariance,
        aggregate(Function.COVAR_POP, AGE, AMOUNT): covariance * (len(x) - 1) / len(x),
        aggregate(Function.CORR, AGE, AMOUNT): statistics.correlation(x, y),
        aggregate(Function.QUANTILE, AGE, quantiles=(0.5,)): statistics.median_low(ages),
        aggregate(Function.COUNT_UNITS): 300,
        aggregate(Function.COUNT_DISTINCT, WORD): 6,
    }
    result = bounded(question(*truths, by=(REGION,)), caps)
    exact = run(result.query, PEOPLE)[0][("north",)]
    for answer, truth in zip(result.answers, truths.values(), strict=True):
        assert answer_from(answer, exact) == pytest.approx(truth, rel=1e-4), answer
        assert answer.lower is None or answer.lower <= truth
        assert answer.upper is None or truth <= answer.upper


def test_a_sum_put_back_from_the_count_of_all_rows_knows_null_from_the_middle() -> None:
    result = bounded(question(ROWS, aggregate(Function.SUM, AGE)))
    exact = run(result.query, PEOPLE)[0][()]
    truth = sum(row["v.age"] or 0 for _, row in PEOPLE)
    assert answer_from(result.answers[1], exact) == pytest.approx(truth)


def test_a_unit_with_many_rows_keeps_its_weight_in_a_histogram() -> None:
    """Truncated to whole rows, a unit with ten different values and max_rows=2 would vanish."""
    result = bounded(question(aggregate(Function.QUANTILE, AGE, quantiles=(0.5,))))
    (cells,) = result.query.measures
    exact = run(result.query, [(1, {**PEOPLE[0][1], "v.age": age}) for age in range(10)])[0][()]
    assert sum(exact[cells.name]) * result.answers[0].weight == pytest.approx(2, rel=0.01)


# -- grids ----------------------------------------------------------------------------------


def test_cells_of_quantiles() -> None:
    result = bounded(question(aggregate(Function.MIN, AMOUNT), aggregate(Function.MAX, AGE)))
    low, high = result.answers
    assert low.quantiles == (0.005,) and high.quantiles == (0.995,)
    assert 1024 <= len(low.edges) - 1 <= 4096 and low.edges[0] == -20 and low.edges[-1] >= 100
    assert len(high.edges) - 1 == 111 and high.points
    factor = measure(result, low.measures[0]).factors[0]
    for value in (-20, -19.99, 0, 33.3, 99.999, 100):
        place = factor.grid.to_integer(Fraction(value) - Fraction(factor.centre))
        assert low.edges[place] <= value <= low.edges[place + 1]


def test_histogram_of_a_declared_list_and_of_numbers() -> None:
    result = bounded(question(aggregate(Function.HISTOGRAM, REGION), aggregate(Function.HISTOGRAM, AMOUNT)))
    named, binned = result.answers
    assert named.labels == ("north", "south", "east") and len(named.edges) == 4
    assert len(binned.edges) == 21 and binned.edges[0] == -20 and binned.edges[-1] == pytest.approx(100)


def test_integers_of_one_value_and_of_wide_bounds_have_a_grid() -> None:
    one = bounded(question(aggregate(Function.SUM, literal(1))))
    assert one.answers[0].integer
    wide = call("*", AGE, literal(10**12), kind=Kind.INTEGER)
    result = bounded(question(aggregate(Function.VAR_POP, wide)))
    assert all(one.sensitivity < 2**62 for one in result.query.measures)
    half = bounded(question(aggregate(Function.SUM, literal(0.1))))
    assert measure(half, half.answers[0].measures[0]).sensitivity > 1


# -- caps -----------------------------------------------------------------------------------


def test_caps_come_from_the_question_then_the_table() -> None:
    asked = question(ROWS, by=(WORD,))
    table = catalog(max_groups=7, max_rows=5)
    assert bounded(asked, Options(), table).query.max_groups == 7
    assert bounded(asked, Options(max_groups=2), table).query.max_groups == 2
    assert bounded(asked, Options(), table).query.measures[0].sensitivity == 5


@pytest.mark.parametrize(
    ("asked", "options", "name"),
    [
        (question(ROWS, by=(WORD,)), Options(max_rows=1), "groups"),
        (question(ROWS), Options(), "rows"),
        (question(aggregate(Function.COUNT_DISTINCT, WORD)), Options(), "different values"),
    ],
)
def test_a_missing_cap_is_refused(asked: Query, options: Options, name: str) -> None:
    error = refusal(asked, options)
    assert error.code == "SF405" and name in error.message


def test_distinct_values_are_capped() -> None:
    def sensitivity(options: Options, value: Any) -> int:
        asked = question(aggregate(Function.COUNT_DISTINCT, value))
        return bounded(asked, options).query.measures[0].sensitivity

    assert sensitivity(Options(max_distinct=9), WORD) == 9
    assert sensitivity(Options(max_rows=5), WORD) == 5
    assert sensitivity(Options(max_rows=5), REGION) == 3  # there are no more


def test_caps_that_no_answer_depends_on_are_not_asked_for() -> None:
    assert bounded(question(aggregate(Function.COUNT_UNITS)), Options()).query.max_rows is None
    summed = question(aggregate(Function.SUM, INCOME, bounds_per_group=(0.0, 10.0)))
    assert bounded(summed, Options()).query.measures[0].clamp is not None


def test_a_unit_that_was_aggregated_to_one_row_needs_no_caps() -> None:
    visits = TreeColumn(name="visits", kind=Kind.INTEGER)
    per_person = PerUnit(source=scan(), keys=(), aggregates=(("visits", ROWS),))
    capped = call("least", visits, literal(20), kind=Kind.INTEGER)
    result = bounded(
        question(aggregate(Function.AVG, capped), ROWS, by=(capped,), source=per_person), Options()
    )
    assert result.query.max_groups is None and result.query.max_rows == 1
    assert result.answers[0].lower == 0 and result.answers[0].upper == 20
    error = refusal(question(aggregate(Function.AVG, visits), source=per_person), Options())
    assert error.code == "SF405" and any("LEAST(visits, 20)" in hint for hint in error.hints)
    keyed = PerUnit(source=scan(), keys=(("region", REGION),), aggregates=(("visits", ROWS),))
    assert refusal(question(ROWS, source=keyed), Options()).code == "SF405"


# -- keys -----------------------------------------------------------------------------------


def test_declared_keys_are_the_product_of_their_lists() -> None:
    result = bounded(question(ROWS, by=(REGION, MEMBER)))
    assert result.query.declared is not None and len(result.query.declared) == 6
    assert not result.select_keys
    assert bounded(question(ROWS)).query.declared == ((),)


def test_undeclared_keys_are_selected() -> None:
    assert bounded(question(ROWS, by=(REGION, WORD))).select_keys
    assert bounded(
        question(ROWS, by=(REGION,)), Options(max_groups=1, max_rows=1, keys="selected")
    ).select_keys
    error = refusal(question(ROWS, by=(WORD,)), Options(max_groups=1, max_rows=1, keys="declared"))
    assert error.code == "SF405"


def test_keys_that_the_question_lists_are_known_if_they_never_are_null() -> None:
    old = call(">", AGE, literal(50), kind=Kind.BOOLEAN)
    text = [Literal(value=value, kind=Kind.TEXT) for value in ("old", "young")]
    case = Case(branches=((old, text[0]),), otherwise=text[1], kind=Kind.TEXT)
    assert bounded(question(ROWS, by=(case,))).query.declared == (("old",), ("young",))
    open_case = Case(branches=((old, text[0]),), otherwise=Literal(value=None, kind=None), kind=Kind.TEXT)
    assert bounded(question(ROWS, by=(open_case,))).select_keys
    assert bounded(question(ROWS, by=(old,))).select_keys  # NULL where age is


def test_a_missing_key_can_be_given_a_name() -> None:
    unknown = Literal(value="unknown", kind=Kind.TEXT)
    named = call("coalesce", REGION, unknown, kind=Kind.TEXT)
    declared = bounded(question(ROWS, by=(named,))).query.declared
    assert declared == (("north",), ("south",), ("east",), ("unknown",))


def test_a_unit_is_in_no_more_groups_than_there_are() -> None:
    assert bounded(question(ROWS, by=(REGION,)), Options(max_groups=50, max_rows=1)).query.max_groups == 3


# -- refusals -------------------------------------------------------------------------------


def test_a_sum_without_bounds_is_refused_with_a_caret() -> None:
    error = refusal(question(aggregate(Function.SUM, INCOME)))
    assert error.code == "SF405"
    assert str(error).splitlines()[:3] == [
        "error[SF405]: SUM needs bounds on `income`",
        "  SELECT SUM(income) FROM visits",
        "             ^^^^^^",
    ]
    assert "income = between(0, 1000)" in error.hints[0]


@pytest.mark.parametrize(
    "function", [Function.AVG, Function.VAR_POP, Function.QUANTILE, Function.MAX, Function.HISTOGRAM]
)
def test_nothing_is_answered_without_bounds(function: Function) -> None:
    assert refusal(question(aggregate(function, INCOME))).code == "SF405"
    assert refusal(question(aggregate(function, call("exp", INCOME)))).code == "SF405"


def test_bounds_may_come_from_the_question() -> None:
    low = call(">=", INCOME, literal(0), kind=Kind.BOOLEAN)
    high = call("<", INCOME, literal(500), kind=Kind.BOOLEAN)
    both = call("and", low, high, kind=Kind.BOOLEAN)
    for asked in (
        question(aggregate(Function.AVG, INCOME), source=Filter(source=scan(), condition=both)),
        question(aggregate(Function.AVG, INCOME, where=both)),
        question(aggregate(Function.AVG, INCOME, bounds_per_row=(0.0, 500.0))),
        question(aggregate(Function.AVG, call("least", call("greatest", INCOME, literal(0)), literal(500)))),
    ):
        answer = bounded(asked).answers[0]
        assert (answer.lower, answer.upper) == (0, 500)
    either = call("or", low, high, kind=Kind.BOOLEAN)
    wide = question(aggregate(Function.AVG, INCOME), source=Filter(source=scan(), condition=either))
    assert refusal(wide).code == "SF405"


def test_text_and_group_bounds_are_refused_where_they_mean_nothing() -> None:
    assert refusal(question(aggregate(Function.SUM, WORD))).code == "SF403"
    assert refusal(question(aggregate(Function.AVG, AGE, bounds_per_group=(0.0, 1.0)))).code == "SF405"


def test_units_that_differ_or_rows_that_repeat_are_refused() -> None:
    joined = Join(left=scan(), right=scan("others", "o"), condition=None, on_unit=True, outer=False)
    assert refusal(question(ROWS, source=joined)).code == "SF406"
    for left, right in (("public", "rows"), ("rows", "rows")):
        copied = Join(left=scan(left), right=scan(right, "r"), condition=None, on_unit=False, outer=False)
        assert refusal(question(ROWS, source=copied)).code == "SF406"
    beside = Join(left=scan("rows"), right=scan("public", "p"), condition=None, on_unit=False, outer=False)
    assert bound(question(ROWS, source=beside), catalog(), Options()).query.row_unit  # if one row matches
    twice = Union(sources=(scan("rows"), scan("rows")))
    assert refusal(question(ROWS, source=twice)).code == "SF406"
    assert refusal(question(ROWS, source=scan("public"))).code == "SF407"


def test_too_many_declared_keys_are_refused() -> None:
    many = question(ROWS, by=(REGION,) * 13)
    assert refusal(many).code == "SF405"
