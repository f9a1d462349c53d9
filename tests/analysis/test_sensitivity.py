"""The box: with one unit more, at most max_groups groups move, each measure by at most its reach.

Proved for random rows on a slow engine that follows the documented rules, NULL, NaN, infinities and
values out of bounds included. Claims that are too small by one are planted and caught.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.aggregates.registry import Function
from sfumato.analysis.bounded import BoundedQuery, MeasureKind
from sfumato.analysis.bounding import bound
from sfumato.catalog import Kind
from sfumato.plan.options import Options
from sfumato.plan.tree import Aggregate, Cast, Expression, Query
from tests.analysis.questions import (
    AGE,
    AMOUNT,
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
)
from tests.analysis.reference import run

OLD = call(">", AGE, literal(50), kind=Kind.BOOLEAN)
AGGREGATES: list[Aggregate] = [
    ROWS,
    aggregate(Function.COUNT, AGE),
    aggregate(Function.COUNT, WORD),
    aggregate(Function.COUNT_ROWS, where=OLD),
    aggregate(Function.COUNT_ROWS, bounds_per_group=(0.0, 3.0)),
    aggregate(Function.COUNT_UNITS),
    aggregate(Function.COUNT_UNITS, where=OLD),
    aggregate(Function.COUNT_DISTINCT, WORD),
    aggregate(Function.SUM_DISTINCT, AGE),
    aggregate(Function.SUM, AGE),
    aggregate(Function.SUM, AMOUNT, where=OLD),
    aggregate(Function.SUM, call("*", AMOUNT, AGE)),
    aggregate(Function.SUM, AMOUNT, bounds_per_group=(-30.0, 50.5)),
    aggregate(Function.SUM, MEMBER),
    aggregate(Function.SUM, AMOUNT, bounds_per_row=(0.0, 0.3)),
    aggregate(Function.AVG, AMOUNT),
    aggregate(Function.AVG, SCORE),
    aggregate(Function.VAR_SAMP, AGE),
    aggregate(Function.STDDEV_POP, AMOUNT),
    aggregate(Function.COVAR_POP, AGE, AMOUNT),
    aggregate(Function.CORR, AGE, SCORE),
    aggregate(Function.REGR_SLOPE, AGE, AMOUNT),
    aggregate(Function.QUANTILE, AGE, quantiles=(0.5,)),
    aggregate(Function.MIN, AMOUNT),
    aggregate(Function.HISTOGRAM, REGION),
    aggregate(Function.MODE, REGION),
    aggregate(Function.HISTOGRAM, AMOUNT),
    aggregate(Function.AVG, Cast(operand=OLD, kind=Kind.INTEGER)),
]
KEYS: list[tuple[Expression, ...]] = [(), (REGION,), (WORD,), (REGION, WORD), (REGION, MEMBER)]

WILD = [None, math.nan, math.inf, -math.inf, 0, 7, 110, 111, -5, Fraction(1, 3), Fraction(99, 2), 10**15]
WHOLE = [None, 0, 7, 51, 110, 111, -5, 10**15]
ROW = st.fixed_dictionaries(
    {
        "v.age": st.sampled_from(WHOLE),
        "v.amount": st.sampled_from(WILD),
        "v.score": st.sampled_from([0, 1, Fraction(1, 2), Fraction(7, 3)]),
        "v.region": st.sampled_from([None, "north", "south", "east", "nowhere"]),
        "v.member": st.sampled_from([None, False, True]),
        "v.word": st.sampled_from([None, "a", "b", "c", "d"]),
    }
)


def changes(query: BoundedQuery, before: list[Any], after: list[Any]) -> list[list[dict[str, list[int]]]]:
    """Return for each grouping set and group by how much each measure (or each of its cells) differs."""
    found = []
    for old, new in zip(before, after, strict=True):
        groups = []
        for key in old.keys() | new.keys():
            difference = {}
            for measure in query.measures:
                width = len(measure.edges) - 1 if measure.kind is MeasureKind.CELLS else 1
                a, b = (side.get(key, {}).get(measure.name, [0] * width) for side in (old, new))
                a, b = ([one] if isinstance(one, int) else one for one in (a, b))
                difference[measure.name] = [y - x for x, y in zip(a, b, strict=True)]
            if any(any(one) for one in difference.values()):
                groups.append(difference)
        found.append(groups)
    return found


def violations(query: BoundedQuery, rows: list[tuple[int, Any]], more: list[Any]) -> list[str]:
    """Return how adding the rows of one more unit leaves the claimed box."""
    newcomer = [(99, row) for row in more]
    # the newcomer's rows stand among the others': nothing may depend on their order
    after = run(query, [*newcomer[1:], *rows[::-1], *newcomer[:1]])
    wrong = []
    groups = query.max_groups or 1
    for place, moved in enumerate(changes(query, run(query, rows), after)):
        if len(moved) > groups:
            wrong.append(f"{len(moved)} groups moved")
        finest = len(query.grouping_sets[place]) == len(query.keys)
        for measure in query.measures:
            sizes = [sum(abs(one) for one in group[measure.name]) for group in moved]
            if finest and max(sizes, default=0) > measure.sensitivity:
                wrong.append(f"{measure.name} moved by {max(sizes)}, not {measure.sensitivity}")
            if sum(sizes) > groups * measure.sensitivity:
                wrong.append(f"{measure.name} moved by {sum(sizes)} altogether")
    return wrong


QUERIES = st.builds(
    lambda some, by, deep: question(
        *some, by=by, sets=tuple(tuple(range(n)) for n in range(len(by), -1, -1)) if deep else None
    ),
    st.lists(st.sampled_from(AGGREGATES), min_size=1, max_size=4),
    st.sampled_from(KEYS),
    st.booleans(),
)
OPTIONS = st.builds(
    lambda groups, rows, distinct: Options(max_groups=groups, max_rows=rows, max_distinct=distinct),
    st.integers(1, 3),
    st.integers(1, 3),
    st.integers(1, 3),
)


@settings(max_examples=400)
@given(
    QUERIES,
    OPTIONS,
    st.lists(st.tuples(st.integers(0, 3), ROW), max_size=6),
    st.lists(ROW, min_size=1, max_size=8),
)
def test_one_unit_stays_in_the_box(
    asked: Query, options: Options, rows: list[tuple[int, Any]], more: list[Any]
) -> None:
    assert violations(bound(asked, catalog(), options).query, rows, more) == []


ORDINARY: dict[str, Any] = {
    "v.age": 110,
    "v.amount": 100,
    "v.score": 1,
    "v.region": "north",
    "v.member": True,
    "v.word": "a",
}


@pytest.mark.parametrize("place", range(len(AGGREGATES)))
def test_reaches_are_attained(place: int) -> None:
    """So that a claim one smaller is caught by the test above: for some rows the box is just large enough."""
    query = bound(
        question(AGGREGATES[place], by=(REGION,)), catalog(), Options(max_groups=2, max_rows=3)
    ).query
    more = [
        {**ORDINARY, "v.region": region, "v.word": word, "v.age": age}
        for region in ("north", "south", "east")
        for word, age in (("a", 110), ("b", 110), ("c", 110))
    ]
    assert violations(query, [], more) == []
    attained = 0
    for measure in query.measures:
        smaller = tuple(
            replace(one, sensitivity=one.sensitivity - 1)
            if one == measure and one.kind is not MeasureKind.DISTINCT
            else one
            for one in query.measures
        )
        attained += bool(violations(replace(query, measures=smaller), [], more))
    kinds = {measure.kind for measure in query.measures}
    assert attained >= 1 or kinds == {MeasureKind.DISTINCT}
    fewer = replace(query, max_groups=1)
    claimed = run(query, [(99, row) for row in more])
    assert len(claimed[0]) == 2  # of three regions, two are kept
    assert len(run(fewer, [(99, row) for row in more])[0]) == 1


def test_a_planted_claim_is_caught() -> None:
    """An engine that forgets to clamp, or a cap that is not applied, leaves the box."""
    query = bound(question(aggregate(Function.SUM, AMOUNT)), catalog(), Options(max_rows=2)).query
    (measure,) = query.measures
    uncapped = replace(query, max_rows=None)
    assert violations(uncapped, [], [ORDINARY] * 5)
    wide = replace(measure.factors[0], grid=replace_bounds(measure.factors[0].grid))
    unclamped = replace(query, measures=(replace(measure, factors=(wide,)),))
    assert violations(unclamped, [], [{**ORDINARY, "v.amount": 101}] * 2)
    assert not violations(query, [], [{**ORDINARY, "v.amount": 101}] * 2)


def replace_bounds(grid: Any) -> Any:
    from sfumato.core import Grid

    return Grid(step=grid.step, lower=-1000, upper=1000)


def test_rows_as_units_cost_one_row_each() -> None:
    from tests.analysis.questions import scan

    asked = question(ROWS, aggregate(Function.SUM, AMOUNT), by=(REGION,), source=scan("rows"))
    query = bound(asked, catalog(), Options()).query
    assert query.row_unit and query.max_rows == 1 and query.max_groups is None
    assert violations(query, [(0, ORDINARY)], [{**ORDINARY, "v.amount": -1e9}]) == []
