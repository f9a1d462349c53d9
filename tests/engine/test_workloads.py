"""Workloads: many questions, one reservation, one event; what is common is measured once.

Replay: the shared queries of a workload stay inside the box that their events are charged for.
"""

from __future__ import annotations

import importlib
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.analysis import Bounding, Cost, bound, price
from sfumato.analysis.shared_measurements import share
from sfumato.core.events import Composed
from sfumato.core.rules import UNITS
from sfumato.errors import BudgetExceeded, InvalidArgument, SfumatoError
from sfumato.plan.options import Options
from sfumato.plan.sql import parse
from sfumato.release import Published
from sfumato.release.workload_release import WorkloadRelease
from tests.engine.questions import questions
from tests.engine.replay import BUDGET, Replay, differences, leaves, record
from tests.engine.worlds import CATALOG, NEIGHBOURS, crowd, newcomer

ROOT = Path(__file__).parent.parent.parent
ROWS = 900
PEOPLE = pa.table(
    {
        "person": [at // 2 for at in range(ROWS)],
        "region": [("north", "south", "west")[at % 3] for at in range(ROWS)],
        "kind": [("a", "b")[at % 2] for at in range(ROWS)],
        "age": [20 + at % 60 for at in range(ROWS)],
    }
)
COUNT = "SELECT region, COUNT(*) AS n FROM people GROUP BY region"
MEAN = "SELECT region, COUNT(*) AS n, AVG(age) AS age FROM people GROUP BY region ORDER BY region"
TOTAL = "SELECT SUM(age) AS total FROM people"


def database(**changes: Any) -> sf.Database:
    arguments: dict[str, Any] = {
        "unit": "person",
        "name": "people",
        "columns": {
            "age": sf.between(0, 110),
            "region": sf.one_of("north", "south", "west"),
            "kind": sf.one_of("a", "b"),
        },
        "budget": sf.Budget(epsilon=3, delta=1e-7),
        "max_groups": 2,
        "max_rows": 1,
    }
    return sf.connect(PEOPLE, **{**arguments, **changes})


@pytest.fixture(scope="module")
def db() -> sf.Database:
    """A database for what spends nothing."""
    return database()


# -- what is common is measured once -------------------------------------------------------------


def test_the_same_count_in_ten_questions_is_one_measurement() -> None:
    db = database()
    asked = db.workload([COUNT] * 9 + [MEAN], epsilon=1)
    assert len(asked.priced().shared) == 1 and len(asked.priced().shared[0].cost.noises) <= 3
    alone = db.sql(COUNT, epsilon=1)
    cheaper = db.workload([alone] * 10)
    assert cheaper.priced().event.mu() == alone.priced().event.mu()
    released = cheaper.release()
    assert len({one.rows for one in released}) == 1
    assert db.balance.spent == db.terms.rule.charge(alone.priced().event) / Fraction(UNITS)


def test_answers_cover_and_are_those_of_each_question() -> None:
    """Each of 17 intervals of level 1 - 1e-11 misses with chance 1e-11: a false alarm below 2e-10.

    Power: measures that are mixed up between questions, or noise that is stated and not added.
    """
    truth = {"north": 300, "south": 300, "west": 300}
    db = database(unit=None, max_groups=None, max_rows=None)
    several = {
        "n": COUNT,
        "mean": MEAN,
        "sum": TOTAL,
        "kinds": "SELECT kind, COUNT(*) FILTER (age < 50) AS young, COUNT(*) AS n FROM people GROUP BY kind",
        "region_again": "SELECT COUNT(*) + 0 AS n, region FROM people GROUP BY region ORDER BY region DESC",
    }
    released = db.workload(several, epsilon=2).release()
    assert released.names == tuple(several) and released["mean"].columns == ("region", "n", "age")
    level = 1 - 1e-11
    for name in ("n", "mean", "region_again"):
        pairs = zip(released[name].column("region"), released[name].intervals(level)["n"], strict=True)
        assert all(low <= truth[region] <= high for region, (low, high) in pairs)
    for region, (low, high) in zip(truth, released["mean"].intervals(level)["age"], strict=True):
        ages = [
            age
            for age, where in zip(PEOPLE["age"].to_pylist(), PEOPLE["region"].to_pylist(), strict=True)
            if where == region
        ]
        assert low <= sum(ages) / len(ages) <= high
    [(low, high)] = released["sum"].intervals(level)["total"]
    assert low <= sum(PEOPLE["age"].to_pylist()) <= high
    kinds = released["kinds"]
    assert all(low <= 225 <= high for low, high in kinds.intervals(level)["young"])
    assert all(low <= 450 <= high for low, high in kinds.intervals(level)["n"])
    assert released["n"].column("n") == released["mean"].column("n")  # one measurement


def test_one_reservation_and_one_event_that_is_stored(tmp_path: Path) -> None:
    ledger = tmp_path / "people.ledger"
    db = database(ledger=ledger)
    released = db.workload({"a": COUNT, "b": TOTAL}, epsilon=0.5).release(key="monthly", purpose="report")
    [entry] = db.ledger.history()
    assert isinstance(entry.event, Composed) and released.receipt["reservation"] == str(entry.sequence)
    stored = db.ledger.release(entry.sequence).decode()
    assert stored == released.to_json() == Published.from_json(stored).to_json()
    spent = db.balance.spent
    again = database(ledger=ledger).workload({"a": COUNT, "b": TOTAL}, epsilon=0.5).release(key="monthly")
    assert again.to_json() == released.to_json() and db.balance.spent == spent
    with pytest.raises(SfumatoError):  # another workload under the same key
        db.workload({"a": COUNT, "c": TOTAL}, epsilon=0.5).release(key="monthly")
    with pytest.raises(SfumatoError):
        WorkloadRelease.from_json(db.sql(COUNT, epsilon=0.1).release().to_json())


# -- how epsilon is divided ----------------------------------------------------------------------


def test_targets_are_met_the_fixed_stay_and_the_rest_share_what_is_left(db: sf.Database) -> None:
    fixed = db.sql(TOTAL, epsilon=0.3)
    asked = db.workload(
        {"fixed": fixed, "target": COUNT, "named": MEAN, "rest": "SELECT COUNT(*) AS n FROM people"},
        epsilon=2,
        errors={"target": 40, "named": {"n": 60, "age": 20}},
        size=300,
    )
    found = {(name, column): float(error.split()[0][1:]) for name, column, error in asked.price().errors}
    assert found["target", "n"] <= 40 and found["named", "n"] <= 40 and found["named", "age"] <= 20
    [alone] = fixed.priced().costs
    held = next(one for one in asked.priced().questions if one.request == fixed.request)
    assert held.costs == (alone,)
    priced = asked.priced()
    assert priced.epsilon <= 2
    spent = db.terms.rule.charge(priced.event) / Fraction(UNITS)
    assert Fraction(99, 100) * db.terms.allowance(2) <= spent <= db.terms.allowance(2)
    cheap = db.workload({"target": COUNT}, errors={"target": 40})
    assert cheap.priced().epsilon <= db.sql(COUNT).within(40).epsilon


@pytest.mark.parametrize("rule", [{"delta": 0}, {"delta": 1e-7}])
def test_the_epsilon_is_that_of_the_loss_distributions(rule: dict[str, float]) -> None:
    """The whole is private at the stated epsilon, and no dearer than by the budget's own rule."""
    db = database(budget=sf.Budget(epsilon=3, **rule))
    priced = db.workload([COUNT, TOTAL, MEAN], epsilon=1).priced()
    assert priced.epsilon <= 1
    if rule["delta"]:
        assert priced.event.delta(float(priced.epsilon)) <= float(db.terms.delta_loss) * (1 + 1e-4)
        one_by_one = sum(one.epsilon for one in priced.questions)
        assert priced.epsilon < one_by_one
    else:
        assert priced.event.epsilon() == priced.epsilon


@pytest.mark.parametrize(
    ("asked", "options", "said"),
    [
        ({"a": COUNT}, {"errors": {"a": 0.001}}, "no budget reaches the error of `a`"),
        ({"a": COUNT, "b": MEAN}, {"errors": {"b": {"age": 0.1}}}, "`b`"),
        ({"a": COUNT}, {"errors": {"b": 5}}, "no question is called `b`"),
        ({"a": COUNT}, {}, "it is not said what `a` may cost"),
        ({"a": COUNT, "b": TOTAL}, {"epsilon": 0.1, "errors": {"a": 5}}, "leave nothing for the rest"),
        ({"a": COUNT}, {"epsilon": 0.1, "errors": {"a": 5}}, "above the 0.1 of the workload"),
        ({"a": COUNT}, {"epsilon": -1}, "epsilon"),
        ({}, {"epsilon": 1}, "one question at least"),
        (COUNT, {"epsilon": 1}, "a list of questions"),
        ([3], {"epsilon": 1}, "`q1` is no question"),
        ({3: COUNT}, {"epsilon": 1}, "names that are texts"),
        (["SELECT * FROM people"], {"epsilon": 1}, "rows of people"),
    ],
)
def test_what_makes_no_sense_is_refused_before_the_charge(
    db: sf.Database, asked: Any, options: Any, said: str
) -> None:
    with pytest.raises(SfumatoError, match=said):
        db.workload(asked, **options).priced()
    assert db.balance.spent_units == 0


def test_a_workload_that_does_not_fit_is_refused_as_a_whole() -> None:
    db = database(budget=sf.Budget(epsilon=1, delta=1e-7))
    too_much = db.workload([COUNT, TOTAL], epsilon=2)
    assert too_much.price().refusal is not None
    with pytest.raises(BudgetExceeded):
        too_much.release()
    assert db.balance.spent_units == 0
    with pytest.raises(InvalidArgument):
        db.workload({"a": database().sql(COUNT, epsilon=0.1)})


def test_what_is_shown_before_and_after(db: sf.Database) -> None:
    asked = db.workload({"regions": COUNT, "<b>": TOTAL}, epsilon=1)
    assert (
        "regions  n: ±" in repr(asked) and "one by one" in repr(asked) and "nothing is spent" in repr(asked)
    )
    assert "for each question" in repr(asked)
    assert "<b>" not in asked._repr_html_() and "<td" in asked._repr_html_()
    assert "will be refused" in db.workload([COUNT])._repr_html_()
    assert "will be refused" in repr(db.workload([COUNT]))
    steps: list[str] = []
    released = database().workload({"regions": COUNT, "<b>": TOTAL}, epsilon=1).release(progress=steps.append)
    assert "pricing" in steps and "computing 2 of 2" in steps
    assert "<b>" not in released._repr_html_() and "all together: epsilon" in repr(released)


# -- cheaper than one by one ---------------------------------------------------------------------


def test_fifty_questions_about_adults_cost_less_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    bench = importlib.import_module("workload")
    assert len(set(bench.QUESTIONS)) == 50
    charged, epsilon = bench.workload_rows(str(ROOT / "tests" / "data" / "adult.parquet"))
    assert charged.ratio < 0.8 and epsilon.ratio < 0.3


# -- record and replay ---------------------------------------------------------------------------

CAPS: dict[str, Any] = {"max_groups": 2, "max_rows": 2, "max_distinct": 2}
SHARED = (
    "SELECT v.region, COUNT(*) FROM visits AS v GROUP BY v.region",
    "SELECT v.region, COUNT(*), SUM(v.amount) FROM visits AS v GROUP BY v.region",
    "SELECT v.region, COUNT(DISTINCT v.word), COUNT(DISTINCT v.person) FROM visits AS v GROUP BY v.region",
    "SELECT v.region, MEDIAN(v.age), AVG(v.qty) FROM visits AS v GROUP BY v.region",
    "SELECT v.word, COUNT(*) FROM visits AS v GROUP BY v.word",
    "SELECT v.word, SUM(v.qty), COUNT(DISTINCT v.person) FROM visits AS v GROUP BY v.word",
)


def asked_alone() -> list[tuple[Bounding, Cost]]:
    """Return questions of every kind, bounded and priced each by itself, at several epsilons."""
    generated = [(one.text, one.options) for one in questions(3, 12)]
    asked = []
    for place, (text, options) in enumerate([*((text, CAPS) for text in SHARED), *generated]):
        (named,) = parse(text, CATALOG).queries
        bounding = bound(named.query, CATALOG, Options(**options))
        epsilon = Fraction(1 + place % 3, 4)
        asked.append((bounding, price(bounding, BUDGET, epsilon=epsilon, options=Options())))
    return asked


def test_nothing_has_more_noise_than_alone_or_costs_more() -> None:
    asked = asked_alone()
    found = share(asked)
    for one in found:
        for use in one.uses:
            own = use.cost(one.cost)
            for noise in asked[use.place][1].noises:
                shared = own.noise(noise.measure, noise.grouping_set)
                assert shared.law.half_width(0.95) <= noise.law.half_width(0.95)
        for selection in one.cost.selections:
            if selection.measure is not None:  # the noise that is shown is the one that decided
                assert one.cost.noise(selection.measure, selection.grouping_set).law == selection.law
    rule = BUDGET.rule
    together = sum(rule.charge(one.cost.event) for one in found)
    assert together < sum(rule.charge(cost.event) for _, cost in asked)
    assert sum(one.cost.keys_delta for one in found) <= sum(cost.keys_delta for _, cost in asked)


def shared_replays() -> list[Replay]:
    """Return the shared queries of a workload of all these, with their prices."""
    asked = asked_alone()
    found = share(asked)
    assert len(found) < len(asked) and max(len(one.uses) for one in found) >= 4
    return [Replay(one.bounding, one.cost, one.bounding.query) for one in found]


def wrongs(replays: list[Replay]) -> list[str]:
    world, found = crowd(0, people=12, rows=60), []
    before = world.opened()
    neighbours = [(kind, (world + newcomer(kind, 0, 1000)).opened()) for kind in NEIGHBOURS[:4]]
    for replay in replays:
        first = record(replay.run, before, threads=1)
        found += differences(first, record(replay.run, before, threads=2))
        for kind, after in neighbours:
            more = leaves(replay, first, record(replay.run, after, threads=1))
            found += [f"{kind}: {wrong}" for wrong in more]
    return found


def test_one_person_more_stays_in_the_box_of_a_workload() -> None:
    assert wrongs(shared_replays()) == []


def test_an_event_that_shared_noise_does_not_pay_for_is_seen() -> None:
    """The lie: a shared measure has the noise of one question, and is charged for that of another."""
    replays = shared_replays()
    lie = max(replays, key=lambda one: len(one.query.measures))
    plain = [noise for noise in lie.cost.noises if noise.finding is None]
    swapped = {one.measure: other.event for one, other in zip(plain, plain[1:] + plain[:1], strict=True)}
    cheap = [replace(one, event=swapped.get(one.measure, one.event)) for one in lie.cost.noises]
    assert wrongs([replace(lie, cost=replace(lie.cost, noises=tuple(cheap)))]) != []
