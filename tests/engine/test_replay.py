"""Record and replay: with the salt frozen, one person more moves the integers inside the claimed box.

Hundreds of generated questions over generated worlds, with one thread and with two, in two orders of
rows. Exact integers do not depend on threads or order. Between neighbours at most max_groups groups
move, each measure by at most its reach, never further than the events are charged for; nothing else
differs: no statement, no shape, no order, no type, no error. Lies planted on purpose are caught by
the same checker.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

from sfumato.analysis import bound, price
from sfumato.analysis.bounded import Measure, MeasureKind
from sfumato.analysis.missing_limits import missing_limits
from sfumato.backends import Source, relations
from sfumato.backends.bounding import block_values
from sfumato.backends.duckdb import backend, by_unit
from sfumato.backends.duckdb.compile import compile_query
from sfumato.backends.duckdb.engine import Engine
from sfumato.catalog import Kind
from sfumato.core import Grid
from sfumato.plan.options import Options
from sfumato.plan.sql import parse
from sfumato.release import weighted_selection
from tests.engine.questions import Asked, questions
from tests.engine.replay import BUDGET, Replay, differences, leaves, planned, record
from tests.engine.worlds import CATALOG, NEIGHBOURS, World, crowd, newcomer
from tests.soaked import rest_soaked

SIZES = ((12, 60), (40, 200), (1, 1), (5, 0))  # people and rows; the last world is empty
BATCHES, EACH = 12, 22


@cache
def base(place: int) -> World:
    people, rows = SIZES[place]
    return crowd(place, people=people, rows=rows)


@cache
def opened(place: int, more: str | None, shuffled: bool) -> Source:
    """Return a world's tables, with one person more or without; shuffled ones run on two threads."""
    world = base(place) if more is None else base(place) + newcomer(more, place, 1000 + place)
    return world.opened(threads=2, shuffled=place) if shuffled else world.opened()


def wrongs(replay: Replay, world: int, kinds: tuple[str, ...]) -> Iterator[str]:
    """Tell everything that is wrong about one question in one world."""

    def run(more: str | None, shuffled: bool) -> Any:
        return record(replay.run, opened(world, more, shuffled), threads=2 if shuffled else 1)

    before = run(None, False)
    yield from (f"order or threads: {wrong}" for wrong in differences(before, run(None, True)))
    for place, kind in enumerate(kinds):
        after = run(kind, True)
        yield from (f"{kind}: {wrong}" for wrong in leaves(replay, before, after))
        if not place:
            yield from (
                f"{kind}, order or threads: {wrong}" for wrong in differences(after, run(kind, False))
            )


@pytest.mark.parametrize("batch", rest_soaked(range(BATCHES), BATCHES, of_soak=2))
def test_one_person_more_stays_in_the_box(batch: int) -> None:
    found = []
    for place, asked in enumerate(questions(batch, EACH)):
        kinds = tuple(NEIGHBOURS[(batch + place * 3 + step) % len(NEIGHBOURS)] for step in (0, 2))
        world = random.Random(f"{batch} {place}").choice((0, 0, 0, 1, 1, 2, 3))
        found += [(asked.text, asked.options, wrong) for wrong in wrongs(planned(asked), world, kinds)]
    assert found == []


def test_what_is_said_before_data_is_read_knows_no_data() -> None:
    """The catalog's fields, the plan, the texts and the price: the same for all worlds, and on every run."""
    fields = [
        [
            opened(world, more, False).fields(table)
            for table in ("visits", "orders", "named", "lone", "places")
        ]
        for world, more in ((0, None), (0, "extreme"), (0, "absent"), (2, None), (3, None))
    ]
    assert all(one == fields[0] for one in fields)
    for asked in questions(99, 26):
        first, second = planned(asked), planned(asked)
        assert repr(first) == repr(second)
        assert compile_query(first.query, CATALOG) == compile_query(second.query, CATALOG)
        assert first.cost.keys_delta <= BUDGET.keys_delta


def test_questions_are_of_every_kind() -> None:
    """The generator would be of little use if it asked the same thing every time."""
    asked = [planned(one) for batch in range(4) for one in questions(batch, EACH)]
    kinds = {measure.kind for one in asked for measure in one.query.measures}
    assert kinds == set(MeasureKind)
    assert {one.query.declared is None for one in asked} == {True, False}
    assert {len(one.query.grouping_sets) for one in asked} >= {1, 2, 4}
    assert any(measure.clamp for one in asked for measure in one.query.measures)
    assert {one.kind for each in asked for one in each.bounding.answers} >= {Kind.DATE, Kind.TIMESTAMP}
    assert any(one.query.row_unit for one in asked) and any(one.query.max_groups is None for one in asked)
    assert {one.query.choice.per for one in asked if one.query.choice is not None} == {(), (0,)}
    assert {noise.law.name for one in asked for noise in one.cost.noises} == {"laplace", "gaussian"}


# -- lies -----------------------------------------------------------------------------------

CAPS: dict[str, Any] = {"max_groups": 2, "max_rows": 2, "max_distinct": 2, "noise": "gaussian"}
PLAIN = (
    "SELECT v.region, COUNT(*), SUM(v.amount), COUNT(DISTINCT v.word), COUNT(DISTINCT v.person), "
    "MEDIAN(v.age) FROM visits AS v GROUP BY v.region"
)
WORDS = "SELECT v.word, COUNT(*), SUM(v.qty) FROM visits AS v GROUP BY v.word"
CLAMPED = "SELECT SUM(v.amount, contribution_bounds_per_group => (-7, 40.5)) FROM visits AS v"
DATES = (
    "SELECT v.region, MEDIAN(v.day), QUANTILE(v.at, [0.1, 0.9]), HISTOGRAM(v.day)"
    " FROM visits AS v GROUP BY v.region"
)
CHOSEN = (
    "SELECT v.region, MODE(v.member), MODE(v.qty), SUM(DISTINCT v.qty), SUM(DISTINCT v.age - 30)"
    " FROM visits AS v GROUP BY v.region"
)
SIGNED = "SUM(CASE WHEN region = 'north' THEN 3 ELSE -1 END) AS s"  # one person moves sums up and down
LARGEST = f"SELECT ARG_MAX(region, s) FROM (SELECT region, {SIGNED} FROM visits GROUP BY region)"
LARGEST_OF_EACH = (
    "SELECT region, ARG_MIN(member, n) FROM (SELECT region, member, COUNT(*) AS n FROM visits"
    " GROUP BY region, member) GROUP BY region"
)
ROLLED_WORDS = "SELECT v.word, v.age, COUNT(*) FROM visits AS v GROUP BY ROLLUP(v.word, v.age)"
ROLLED = (
    "SELECT v.region, v.member, COUNT(*), AVG(v.age) FROM visits AS v GROUP BY ROLLUP(v.region, v.member)"
)


BLOCKS = (
    "SELECT v.region, COUNT(*), SAMPLE_AND_AGGREGATE(MAX(v.amount), -1, 60, blocks => 4),"
    " SAMPLE_AND_AGGREGATE(CORR(v.age, v.amount), -1, 1, blocks => 3) FROM visits AS v GROUP BY v.region"
)
ROLLED_BLOCKS = (
    "SELECT v.region, v.word, SAMPLE_AND_AGGREGATE(KURTOSIS(v.amount), -2, 5, blocks => 3),"
    " SAMPLE_AND_AGGREGATE(ENTROPY(v.word), 0, 4, blocks => 3)"
    " FROM visits AS v GROUP BY ROLLUP(v.region, v.word)"
)

WITHOUT = (
    "SELECT COUNT(*) FROM visits AS v WHERE"
    " NOT EXISTS (SELECT 1 FROM orders AS o WHERE o.buyer = v.person AND o.cost > 1e300)"
)
TOGETHER = "SELECT SUM(o.cost) FROM visits AS v, orders AS o WHERE v.person = o.buyer"


def caught(replay: Replay, world: int = 0) -> list[str]:
    """Return what the checker says of a question over all neighbours."""
    return list(wrongs(replay, world, NEIGHBOURS))


def honest(text: str) -> Replay:
    return planned(Asked(text, CAPS))


def claiming(replay: Replay, **changes: Any) -> Replay:
    """Return a replay that runs what was planned, and claims something else."""
    return replace(replay, bounding=replace(replay.bounding, query=replace(replay.query, **changes)))


@pytest.mark.parametrize(
    "text",
    rest_soaked(
        [PLAIN, WORDS, LARGEST_OF_EACH, CLAMPED, ROLLED, DATES, BLOCKS, ROLLED_BLOCKS, CHOSEN, LARGEST], 2
    ),
)
def test_the_truth_is_not_caught(text: str) -> None:
    assert caught(honest(text)) == []
    assert caught(honest(text), 3) == []


@pytest.mark.parametrize("text", rest_soaked([PLAIN, WORDS, CLAMPED, ROLLED, DATES, CHOSEN, LARGEST], 2))
def test_reaches_that_are_too_small_are_caught(text: str) -> None:
    """Each measure by itself: half of its reach is too little for somebody."""
    plan = honest(text)
    for measure in plan.query.measures:
        if measure.sensitivity > 1:
            measures = tuple(
                replace(one, sensitivity=one.sensitivity // 2) if one == measure else one
                for one in plan.query.measures
            )
            lying = claiming(plan, measures=measures)
            alone = 3 if measure.kind is MeasureKind.DISTINCT else 0  # where nobody else has these values
            found = caught(lying, alone)
            assert any(f"{measure.name} moved by" in wrong for wrong in found), measure.name


@pytest.mark.parametrize("text", [PLAIN, WORDS, ROLLED])
def test_a_group_too_few_is_caught(text: str) -> None:
    assert any("groups moved" in wrong for wrong in caught(claiming(honest(text), max_groups=1)))


@pytest.mark.parametrize("text", [PLAIN, WORDS, ROLLED, CHOSEN, LARGEST_OF_EACH])
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_a_price_for_fewer_groups_is_caught(text: str, noise: Any) -> None:
    """The box is right, and the events are not."""
    plan = honest(text)
    one_group, options = claiming(plan, max_groups=1).bounding, Options(noise=noise)
    cheap = price(one_group, BUDGET, epsilon=Fraction(1, 2), options=options)
    assert any("paid for" in wrong for wrong in caught(replace(plan, cost=cheap)))


@pytest.mark.parametrize("text", [PLAIN, WORDS, ROLLED])
def test_an_engine_that_keeps_all_groups_is_caught(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class All(by_unit.PackedChoice):
        def __init__(self, **options: Any) -> None:
            super().__init__(**{**options, "max_groups": None})

    monkeypatch.setattr(by_unit, "PackedChoice", All)
    assert any("groups moved" in wrong or "altogether" in wrong for wrong in caught(honest(text)))


@pytest.mark.parametrize("text", [PLAIN, WORDS, ROLLED, CHOSEN, LARGEST])
def test_an_engine_that_keeps_all_rows_is_caught(text: str) -> None:
    plan = honest(text)
    assert any("moved by" in wrong for wrong in caught(replace(plan, run=replace(plan.query, max_rows=None))))


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("text", [PLAIN, WORDS, ROLLED])
def test_an_engine_that_ignores_the_cap_over_all_groups_is_caught(text: str, noise: str) -> None:
    caps = {**CAPS, "max_groups": 3, "max_rows": 3, "max_rows_total": 4, "noise": noise}
    plan = planned(Asked(text, caps))
    assert plan.query.max_total == 4 and caught(plan) == []
    lying = replace(plan, run=replace(plan.query, max_total=None))
    assert any("paid for" in wrong for wrong in caught(lying))


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_a_choice_at_a_higher_rate_is_caught(noise: str) -> None:
    """Half as much again as was paid for; and a rate for counts that could fall while others rise."""
    plan = planned(Asked(CHOSEN, {**CAPS, "noise": noise}))
    for change in ({"epsilon": Fraction(3, 2)}, {"sensitivity": Fraction(1, 2)}):
        noises = tuple(
            one
            if one.choice is None
            else replace(
                one,
                choice=replace(
                    one.choice,
                    **{name: part * getattr(one.choice, name) for name, part in change.items()},  # type: ignore[arg-type]
                ),
            )
            for one in plan.cost.noises
        )
        lying = replace(plan, cost=replace(plan.cost, noises=noises))
        assert any("a choice may lose" in wrong for wrong in caught(lying))


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_a_sum_that_rises_and_falls_and_is_taken_for_a_count_is_caught(
    noise: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Asked(LARGEST, {**CAPS, "noise": noise})
    monkeypatch.setattr(Measure, "span", property(lambda measure: measure.sensitivity))
    assert any("a choice may lose" in wrong for wrong in caught(planned(asked)))


def test_an_engine_that_keeps_all_values_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    class All(by_unit.PackedChoice):
        def __init__(self, **options: Any) -> None:
            super().__init__(**{**options, "distinct": tuple(100 for _ in options["distinct"])})

    monkeypatch.setattr(by_unit, "PackedChoice", All)
    assert any("moved by" in wrong for wrong in caught(honest(CHOSEN), 3))


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("text", [WORDS, ROLLED_WORDS])
def test_weights_for_fewer_groups_are_caught(text: str, noise: Any) -> None:
    """Weights of which each would be right for half as many groups; and an event that pays for less."""
    plan = planned(Asked(text, {**CAPS, "noise": noise}))
    assert caught(plan) == [] and all(one.rounds for one in plan.cost.selections)
    for selection in plan.cost.selections:
        cheap = tuple(replace(one, event=replace(one.event, **_half(one.event))) for one in selection.rounds)
        lying = replace(plan.cost, selections=(replace(selection, rounds=cheap),))
        assert any("weights moved" in wrong for wrong in caught(replace(plan, cost=lying)))


def _half(event: Any) -> dict[str, Any]:
    if hasattr(event, "sensitivity"):
        return {"sensitivity": event.sensitivity * 3 // 4}
    return {"l2_squared": event.l2_squared / 2}


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_the_search_for_caps_that_are_left_out_stays_in_the_box(noise: Any) -> None:
    """A private quantile of which nothing but a choice is made; one that is charged half is caught."""
    text = (
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1, delta = 1e-7, privacy_unit_column = person)"
        " word, COUNT(*, contribution_bounds_per_group => (0, 5)) AS n FROM visits GROUP BY word"
    )
    _, [limit] = missing_limits(parse(text, CATALOG), CATALOG, opened(0, None, False).backend(CATALOG))
    (named,) = limit.request.queries
    bounding = bound(named.query, CATALOG, limit.request.options)
    plan = Replay(
        bounding,
        price(bounding, BUDGET, epsilon=Fraction(1, 2), options=Options(noise=noise)),
        bounding.query,
    )
    [search] = plan.cost.noises
    assert search.finding is not None and not search.finding.intervals and not search.finding.anchor
    assert caught(plan) == []
    half = tuple(replace(one, loss=one.loss / 2) for one in search.event.events)  # type: ignore[attr-defined]
    lying = replace(plan.cost, noises=(replace(search, event=replace(search.event, events=half)),))
    assert any("a choice may lose" in wrong for wrong in caught(replace(plan, cost=lying)))


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_weights_that_are_not_divided_are_caught(noise: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planned(Asked(WORDS, {**CAPS, "noise": noise}))
    monkeypatch.setattr(weighted_selection, "_weight", lambda selection, groups: selection.grid)
    assert any("weights moved" in wrong for wrong in caught(plan))


def test_a_unit_that_counts_twice_in_a_coarse_group_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Members of a coarser set that were not made different."""
    monkeypatch.setattr(by_unit, "different_pairs", lambda owners, values: (owners, values))
    plan = planned(Asked(ROLLED_WORDS, {**CAPS, "noise": "gaussian"}))
    assert any("weights moved" in wrong for wrong in caught(plan))


def test_an_engine_that_does_not_clamp_is_caught() -> None:
    plan = honest(CLAMPED)
    (measure,) = plan.query.measures
    free = replace(plan.query, measures=(replace(measure, clamp=None),), max_rows=None)
    assert any("moved by" in wrong for wrong in caught(replace(plan, run=free)))
    plan = honest("SELECT SUM(v.amount) FROM visits AS v")
    (measure,) = plan.query.measures
    (factor,) = measure.factors
    wide = replace(factor, grid=Grid(step=factor.grid.step, lower=-1000, upper=1000))
    free = replace(plan.query, measures=(replace(measure, factors=(wide,)),))
    assert any("moved by" in wrong for wrong in caught(replace(plan, run=free)))


def test_a_person_in_several_blocks_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that are dealt out to blocks one by one: somebody's rows change several of them."""
    monkeypatch.setattr(
        block_values, "blocks_of", lambda hashes, salt, number: np.arange(len(hashes)) % number
    )
    found = caught(honest(BLOCKS))
    assert any("moved by" in wrong for wrong in found) and any("order or threads" in wrong for wrong in found)


def test_blocks_that_are_not_clamped_are_caught() -> None:
    plan = honest(BLOCKS)
    wide = Grid(step=Fraction(1, 4), lower=-(2**30), upper=2**30)
    measures = tuple(
        one if one.blocks is None else replace(one, blocks=replace(one.blocks, grid=wide))
        for one in plan.query.measures
    )
    assert any(
        "moved by" in wrong for wrong in caught(replace(plan, run=replace(plan.query, measures=measures)))
    )


def test_blocks_of_groups_that_do_not_count_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_values, "kept_rows", lambda units, *_: np.ones(len(units), dtype=np.bool_))
    assert any("groups moved" in wrong for wrong in caught(honest(BLOCKS)))


@pytest.mark.parametrize("text", [PLAIN, WORDS])
def test_a_choice_that_looks_at_others_is_caught(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a person keeps changes with the number of all rows: one person more moves everybody."""
    honestly = by_unit.bound_contributions

    def nosy(rows: Any, packing: Any, choice: Any, **options: Any) -> Any:
        return honestly(rows, packing, replace(choice, salt=len(rows.units)), **options)

    monkeypatch.setattr(by_unit, "bound_contributions", nosy)
    assert any("moved" in wrong for wrong in caught(honest(text)))


@pytest.mark.parametrize("text", [PLAIN, WORDS, ROLLED])
def test_a_choice_by_order_is_caught(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that forgets the row it reads last."""
    honestly = by_unit.bound_contributions

    def hasty(rows: Any, packing: Any, choice: Any, **options: Any) -> Any:
        shorter = replace(
            rows,
            units=rows.units[:-1],
            words=tuple(word[:-1] for word in rows.words),
            values=tuple(value[:-1] for value in rows.values),
        )
        return honestly(shorter, packing, choice, **options)

    monkeypatch.setattr(by_unit, "bound_contributions", hasty)
    assert any("order or threads" in wrong for wrong in caught(honest(text)))


@pytest.mark.parametrize("text", [WITHOUT, TOGETHER])
def test_a_join_that_forgets_the_unit_is_caught(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody has such an order until somebody comes: then all rows go, if whose it is does not matter."""
    assert caught(honest(text)) == []
    matched = relations.Relations._matched
    monkeypatch.setattr(
        relations.Relations,
        "_matched",
        lambda self, left, right, join: matched(self, left, right, replace(join, on_unit=False)),
    )
    assert any("moved by" in wrong for wrong in caught(honest(text)))


def test_a_choice_by_threads_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    honestly = by_unit.bound_contributions

    def threaded(rows: Any, packing: Any, choice: Any, *, threads: int) -> Any:
        return honestly(rows, packing, replace(choice, salt=threads), threads=threads)

    monkeypatch.setattr(by_unit, "bound_contributions", threaded)
    assert any("order or threads" in wrong for wrong in caught(honest(WORDS)))


def test_an_engine_that_stumbles_over_somebody_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    honestly = by_unit.bound_contributions

    def frail(rows: Any, *more: Any, **options: Any) -> Any:
        if len(rows.units) > 150:
            raise MemoryError
        return honestly(rows, *more, **options)

    monkeypatch.setattr(by_unit, "bound_contributions", frail)
    assert any("error" in wrong for wrong in caught(honest(PLAIN)))


def test_a_statement_that_knows_the_data_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    honestly = Engine.columns

    def telling(engine: Any, sql: str) -> Any:
        rows = engine._cursor._cursor.execute("SELECT count(*) FROM visits").fetchall()
        return honestly(engine, f"{sql} /* {rows} */")

    monkeypatch.setattr(Engine, "columns", telling)
    assert any("statements" in wrong for wrong in caught(honest(PLAIN)))


@pytest.mark.parametrize("text", [PLAIN, ROLLED])
def test_declared_groups_that_are_left_out_are_caught(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that shows the groups that somebody is in, and not the others."""
    honestly = backend._exact

    def sparing(*given: Any) -> Any:
        groups = honestly(*given)
        there = np.flatnonzero(next(iter(groups.measures.values())))
        measures = {name: values[there] for name, values in groups.measures.items()}
        return replace(groups, keys=[groups.keys[int(at)] for at in there], measures=measures)

    monkeypatch.setattr(backend, "_exact", sparing)
    assert any("declared keys" in wrong for wrong in caught(honest(text), 3))
