"""Keys that nobody declared and that appear over time: what one person changes, delta, restarts, coverage."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from scipy.linalg import toeplitz
from scipy.stats import binom, norm

import sfumato as sf
from sfumato.continual.appearing_keys import AppearingKeys
from sfumato.continual.factorisation import square_root
from sfumato.continual.key_selection import key_thresholds
from sfumato.continual.rates import buffers
from sfumato.continual.series import total_deviations
from sfumato.continual.stream_release import StreamRelease
from sfumato.core.accountant import PrivacyBudget
from sfumato.core.gaussian import GaussianNoise
from sfumato.core.rules import GaussianRule, Rule, ZeroConcentratedRule
from sfumato.errors import EngineFailure
from sfumato.session.database import Database
from tests.continual.visits import FIRST, Visit, database, day, stream

HORIZON = 8
COUNTS = "SELECT place, COUNT(*) AS n FROM visits GROUP BY place"
SUMS = "SELECT place, COUNT(*) AS n, SUM(cost) AS cost FROM visits GROUP BY place"


def undeclared(rows: list[Visit], ledger: Path | None = None, **more: Any) -> Database:
    budget = PrivacyBudget(epsilon=100, delta=1e-6, keys_delta=1e-7)
    options = {"columns": {"cost": sf.between(0, 10)}, "budget": budget}
    return database(rows, ledger, **(options | more))


def keys_of(release: StreamRelease) -> list[str]:
    return [key[0] for key in release.outputs[max(release.outputs)]["keys"]]


def many(place: str, at: int, people: int, first: int) -> list[Visit]:
    return [(first + person, at, place, 5.0) for person in range(people)]


COMMON = [*many("m", 0, 300, 0), *many("z", 2, 300, 1000), *many("late", 4, 300, 2000)]
SHOWN = ["late", "m", "z"]  # in the order of keys, not in that in which they appeared


# -- what one person changes ------------------------------------------------------------------------


@pytest.fixture
def frozen(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Noise that is the same in every key and run, and the same choice of groups."""

    def draw(self: GaussianNoise, size: int | None = None) -> Any:
        return np.full(size or 1, max(1, int(self.deviation / 7)), dtype=np.int64)

    monkeypatch.setattr(GaussianNoise, "draw", draw)
    monkeypatch.setattr("secrets.randbits", lambda bits: 12345)
    yield


@pytest.fixture
def noisy(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, np.ndarray[Any, Any]]]:
    """All noisy values of each stream, shown or not: of each key a table of periods and numbers."""
    seen: list[dict[str, np.ndarray[Any, Any]]] = []
    original = AppearingKeys._published

    def published(self: AppearingKeys, found: Any) -> Any:
        whole = self._history(range(len(self._keys))).swapaxes(0, 1)
        seen.append({str(key[0]): table for key, table in zip(self._keys, whole, strict=True)})
        return original(self, found)

    monkeypatch.setattr(AppearingKeys, "_published", published)
    return seen


@pytest.mark.parametrize(
    ("periods", "options", "horizon"),
    [
        (2, {}, {}),
        (2, {"max_rows": 1}, {}),
        (2, {"max_rows_total": 4}, {}),
        (HORIZON, {"max_rows": 1}, {}),
        (2, {}, {"horizon": None, "design": 16}),
    ],
    ids=["weights", "units", "rows", "every day", "without an end"],
)
def test_one_person_changes_no_more_than_was_claimed(
    frozen: None, noisy: Any, periods: int, options: dict[str, Any], horizon: dict[str, Any]
) -> None:
    """Whoever brings a key before others do, and one that nobody else has; of keys not shown as well."""
    cap = sf.Participation(periods=periods, apart=3 if periods == 2 else 1)
    greedy: list[Visit] = [
        (999, at, place, 10.0) for at in range(HORIZON) for place in ("late", "mine") for _ in range(5)
    ]
    runs = []
    for rows in (COMMON, [*COMMON, *greedy]):
        asked = stream(undeclared(rows, **options), SUMS, participation=cap, epsilon=3, **horizon)
        runs.append((asked.advance(day(HORIZON)), noisy[-1]))
    (without, values), (with_her, others) = runs
    assert keys_of(without) == keys_of(with_her) == SHOWN, "what she alone holds is not shown"
    priced = without.stream
    c = np.linalg.inv(toeplitz(priced.factorisation.inverse(HORIZON), np.zeros(HORIZON)))
    nobody = np.concatenate((values["z"][:2], values["m"][2:]))  # the noise, where there are no rows
    changes = [others[key] - values.get(key, nobody) for key in others]
    events = {one.measure: one.event for one in priced.cost.noises}
    if priced.rule is not None and priced.rule.event is not None:
        events[""] = priced.rule.event
    assert list(events) == list(priced.numbers)
    for place, event in enumerate(events.values()):
        [(part, _)] = event.parts()
        moved = np.array([table[:, place] for table in changes], dtype=float) @ c.T
        share = float((moved**2).sum()) / float(part.l2_squared)  # type: ignore[attr-defined]
        assert 0 < share <= 1
        reached = 0.8 if horizon else 0.99  # a person's part goes on after these days
        assert share > reached or place or "max_rows_total" in options, "the claim is met"
    for name in priced.laws:  # and of what is published
        tables = [
            np.array([release.outputs[at]["measures"][name] for at in sorted(release.outputs)], dtype=object)
            for release in (without, with_her)
        ]
        assert np.flatnonzero((tables[0] - tables[1]).any(axis=1)).tolist() == list(cap.earliest(HORIZON))


def test_nothing_tells_of_keys_that_are_not_shown(tmp_path: Path) -> None:
    """False alarm below 1e-9: the key of one person is shown with the chance of the delta, 4e-10."""
    rows = [*COMMON, (5000, 0, "hidden-key", 1.0)]
    db = undeclared(rows, tmp_path / "ledger")
    release = stream(db, COUNTS, epsilon=3).advance(day(HORIZON))
    assert keys_of(release) == SHOWN
    db.ledger.close()
    [state] = (tmp_path / "ledger-streams").iterdir()
    assert b"hidden-key" in state.read_bytes()
    assert b"hidden-key" not in (tmp_path / "ledger").read_bytes()


# -- delta --------------------------------------------------------------------------------------------


def test_discrete_noise_is_below_normal_noise_and_one() -> None:
    """The tail of `key_selection`, from the exact law."""
    for square in (1.0, 1.3, 2.0, 5.5, 40.0):
        law = GaussianNoise(Fraction(square))
        for level in range(-40, 41):
            chance = math.fsum(law.mass(abs(x)) for x in range(level, 80))
            assert chance <= norm.sf((level - 1) / math.sqrt(square)) * (1 + 1e-9)


@pytest.mark.parametrize(
    ("each", "days", "epsilon"), [(1, 1, 0.1), (4, 1, 0.1), (1, 16, 200)], ids=["one", "four", "every day"]
)
def test_keys_of_one_person_are_shown_with_a_chance_of_at_most_delta(
    each: int, days: int, epsilon: float
) -> None:
    """Of people who alone hold their keys, at most a share of delta see one of them; false alarms: 1e-9."""
    people = 1200 // each // days
    rows: list[Visit] = [
        (who, at, f"{who}-{own}", 1.0) for who in range(people) for at in range(days) for own in range(each)
    ]
    budget = PrivacyBudget(epsilon=epsilon, delta=0.41, keys_delta=0.4)
    db = undeclared(rows, max_groups=each, max_rows=1, budget=budget)
    cap = sf.Participation(periods=days)
    asked = stream(db, COUNTS, horizon=16, epsilon=epsilon, participation=cap)
    told = {key.split("-")[0] for key in keys_of(asked.advance(day(16)))}
    delta = asked.priced().keys_delta
    assert delta == Fraction(4, 10)
    assert len(told) < binom.isf(1e-9, people, float(delta))
    assert days > 1 or len(told) > binom.ppf(1e-9, people, 0.1), "nor is it far less"


@pytest.mark.parametrize("horizon", [30, None])
def test_thresholds_take_delta_and_no_more(horizon: int | None) -> None:
    """Over all periods together, also where there is no last one."""
    noise = buffers(16) if horizon is None else square_root(horizon)
    cap, delta, size = sf.Participation(periods=2, apart=3), Fraction(1, 1000), 10**6
    levels = key_thresholds(
        GaussianNoise(Fraction(size**2)),
        noise,
        cap,
        each=size,
        keys=4,
        delta=delta,
        horizon=horizon,
        until=30,
    )
    own = np.where(np.arange(30) < 3, 1, 2)  # in how many periods somebody may have been
    chances = 4 * norm.sf((np.array(levels) / size - own) / total_deviations(noise, 30))
    at = np.arange(1, 31)
    assert chances == pytest.approx(float(delta) / (at * (at + 1) if horizon is None else 30), rel=1e-3)
    assert chances.sum() < (delta if horizon else delta * (1 - Fraction(1, 31)))


@pytest.mark.parametrize("rule", [GaussianRule(), ZeroConcentratedRule()], ids=lambda rule: rule.name)
@pytest.mark.parametrize("options", [{}, {"max_groups": 1}, {"max_rows": 1}], ids=["weights", "own", "units"])
def test_all_periods_are_charged_once_with_their_delta(rule: Rule, options: dict[str, Any]) -> None:
    budget = PrivacyBudget(epsilon=100, delta=1e-6, keys_delta=1e-7, rule=rule)
    db = undeclared(COMMON, budget=budget, **options)
    asked = stream(db, SUMS, horizon=365, participation=sf.Participation(periods=3, apart=7))
    one, whole = asked.question.priced().costs[0], asked.priced().cost
    assert 0.999 * rule.charge(one.event) < rule.charge(whole.event) <= rule.charge(one.event)
    assert whole.keys_delta == one.keys_limit == whole.keys_limit
    assert whole.delta - whole.keys_delta == one.delta - one.keys_delta
    for until in (1, 2):
        asked.advance(day(until))
        assert db.balance.keys_spent_units == math.ceil(whole.keys_delta * 10**20)


# -- what is published --------------------------------------------------------------------------------


def test_restarts_and_failures_change_nothing(
    frozen: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key keeps its noise from period 1 on, whether it appeared before or after a restart."""
    published = []
    for untils in ((2, 3, 8), (1, 2, 3, 5, 8)):
        ledger = tmp_path / str(len(untils))
        for until in untils:
            db = undeclared(COMMON, ledger)
            with monkeypatch.context() as patched:
                if until == 3:
                    patched.setattr(type(db.backend), "run", Mock(side_effect=EngineFailure()))
                with pytest.raises(EngineFailure) if until == 3 else nullcontext():
                    release = stream(db, SUMS, epsilon=3, late=0).advance(day(until))
            db.ledger.close()
        published.append({at: output["measures"] for at, output in release.outputs.items()})
        assert keys_of(release) == ["late", "m"], "all rows of `z` were in the period that failed"
    assert published[0] == published[1] and sorted(published[0]) == [1, 2, 4, 5, 6, 7, 8]


def test_values_before_a_key_was_found() -> None:
    """False alarm below 1e-9: the one person of the first day is shown with a chance below the delta, 2e-10;
    the last total is 24 deviations above its threshold, and margins of single days are 10 or more."""
    rows = [row for at in range(HORIZON) for row in many("slow", at, 1 + 4 * at, 10_000 * (at + 1))]
    asked = stream(undeclared([*rows, *COMMON], max_groups=1, max_rows=1), COUNTS, epsilon=2)
    shown = [keys_of(asked.advance(day(until))) for until in range(1, HORIZON + 1)]
    assert shown[0] == ["m"] and shown[-1] == ["late", "m", "slow", "z"]
    assert all(set(before) <= set(after) for before, after in pairwise(shown))
    published = asked.show()
    first = dict(zip(published.period(1).column("place"), published.period(1).column("n"), strict=True))
    assert abs(first["slow"] - 1) < 40 and abs(first["late"]) < 40
    change = published.difference(4, 5)
    assert abs(dict(zip(change.column("place"), change.column("n"), strict=True))["late"] - 300) < 60
    assert published.series().num_rows == HORIZON * 4
    assert any("intervals do not allow for that choice" in note for note in published.total().notes)


def test_keys_of_a_stream_without_an_end(frozen: None, tmp_path: Path) -> None:
    """Past its design horizon steps become finer, and restarts still change nothing."""
    rows = [row for at in range(18) for row in many("slow", at, 20, 1000 * (at + 1))]
    published = []
    for untils in ((18,), (15, 17, 18)):
        for until in untils:
            db = undeclared([*rows, *many("zeal", 17, 400, 0)], tmp_path / str(len(untils)), max_groups=1)
            release = stream(db, COUNTS, epsilon=3, horizon=None, design=16).advance(day(until))
            db.ledger.close()
        published.append({at: output["measures"] for at, output in release.outputs.items()})
    assert published[0] == published[1] and len(published[0]) == 18
    assert keys_of(release) == ["slow", "zeal"]
    totals = dict(zip(release.total().column("place"), release.total().column("n"), strict=True))
    assert abs(totals["slow"] - 360) < 60 and abs(totals["zeal"] - 400) < 60


@pytest.mark.soak
def test_keys_after_a_year_beside_one_release() -> None:
    """Words as people use them, a few often and most seldom: a stream finds some later, and fewer.

    False alarm below 1e-9, as normal tails over all words and days add up: 2e-11 that a large word is missed,
    4e-11 that one of a fifth of the threshold is found. For that the delta of keys has to be this small. One
    release finds 63 words, and 90 or more with a chance of 1e-46; the stream finds 18 large ones, and more.
    """
    chosen = np.minimum(np.random.default_rng(7).zipf(1.3, size=30_000), 20_000).tolist()
    rows: list[Visit] = [(who, who % 365 - 365, f"w{word}", 1.0) for who, word in enumerate(chosen)]
    sizes = Counter(row[2] for row in rows)
    budget = PrivacyBudget(epsilon=2, delta=1e-6, keys_delta=1e-16)
    db = undeclared(rows, max_groups=1, max_rows=1, budget=budget)
    once = db.sql(COUNTS, epsilon=1, noise="gaussian").release().column("place")
    asked = stream(db, COUNTS, horizon=365, start=day(-365))
    found = keys_of(asked.advance(FIRST))
    level = asked.priced().thresholds(365)[-1] / asked.priced().steps("m0")
    large = {word for word, people in sizes.items() if people > 1.6 * level}
    assert large <= set(found) and len(found) > len(once) / 5
    assert min(sizes[word] for word in found) > level / 5


def test_a_stream_without_keys_yet_is_empty() -> None:
    """False alarm below 1e-9: five people are 6.3 deviations below the thresholds of both days."""
    published = stream(undeclared(COMMON[:5]), COUNTS).advance(day(2))
    assert len(published.total()) == 0 and "2 of 8" in repr(published)


def test_keys_of_all_kinds_are_one_key_each() -> None:
    """NULL, too (and NaN is NULL): the same key every day, and in the order of all keys."""
    rows: list[Visit] = []
    for at in range(4):
        for place, cost in enumerate((float("nan"), None, 1.5, -0.0)):
            start = 1000 * (4 * at + place)
            rows += [(start + person, at, "x", cost) for person in range(200)]  # type: ignore[misc]
    sql = "SELECT cost, COUNT(*) AS n FROM visits GROUP BY cost"
    db = undeclared(rows, columns={}, max_groups=1, max_rows=1)
    total = stream(db, sql, epsilon=3, horizon=4).advance(day(4)).total()
    assert total.column("cost") == [0.0, 1.5, None]
    assert [round(count, -2) for count in total.column("n")] == [800, 800, 1600]


def test_intervals_cover_keys_far_above_the_threshold() -> None:
    """Of 2,000 keys each interval misses with a chance of 1/20 at most, 1/50 at least; false alarms: 1e-9."""
    rows = [row for key in range(2000) for row in many(f"k{key}", key % 4, 90 + key % 7, 1000 * key)]
    db = undeclared(rows, max_groups=1, max_rows=1)
    published = stream(db, COUNTS, horizon=4, epsilon=3).advance(day(4))
    most = binom.isf(1e-9 / 2, 2000, 0.05)
    for release, when in ((published.total(), None), (published.period(2), 1)):
        keys = [int(key[1:]) for key in release.column("place")]
        assert len(keys) == 2000
        truths = [90 + key % 7 if when is None or key % 4 == when else 0 for key in keys]
        pairs = zip(truths, release.intervals()["n"], strict=True)
        misses = sum(not interval[0] <= truth <= interval[1] for truth, interval in pairs if interval)
        assert binom.ppf(1e-9 / 2, 2000, 0.02) <= misses <= most
