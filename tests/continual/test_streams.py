"""Streams end to end: what one person changes over the horizon, coverage, one charge, and bad input."""

from __future__ import annotations

import datetime
import math
import os
import shutil
import sqlite3
import stat
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, norm

import sfumato as sf
from sfumato.continual.periods import Periods, moment
from sfumato.continual.state import StreamState, _refusing
from sfumato.continual.stream_release import StreamRelease
from sfumato.core.accountant import PrivacyBudget
from sfumato.core.gaussian import GaussianNoise
from sfumato.core.rules import GaussianRule, Rule, ZeroConcentratedRule
from sfumato.errors import EngineFailure, InvalidArgument, LedgerError, SfumatoError, Unsupported
from sfumato.session.stream import Stream
from tests.continual.test_factorisation import matrix
from tests.continual.visits import FIRST, Visit, database, day, stream
from tests.processes import start
from tests.soaked import rest_soaked

HORIZON = 8
SOME: list[Visit] = [(person, person % HORIZON, "abc"[person % 3], 5.0) for person in range(60)]


def outputs(release: StreamRelease) -> dict[str, np.ndarray[Any, Any]]:
    """Return what was published of each measure, in units: a row for each period, a column for each group."""
    stream = release.stream
    return {
        name: np.array(
            [
                np.array(output["measures"][name], dtype=object) / output["steps"][name]
                for _, output in sorted(release.outputs.items())
            ]
        )
        for name in stream.laws
    }


# -- what it costs --------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", [GaussianRule(), ZeroConcentratedRule()], ids=lambda rule: rule.name)
def test_a_stream_costs_no_more_than_one_release(rule: Rule) -> None:
    db = database(SOME, budget=PrivacyBudget(epsilon=100, delta=1e-6, rule=rule))
    asked = stream(db, horizon=365, participation=sf.Participation(periods=3, apart=7))
    one, whole = asked.question.priced().costs[0], asked.priced().cost
    assert 0.9999 * rule.charge(one.event) < rule.charge(whole.event) <= rule.charge(one.event)
    for single, wide in zip(one.noises, whole.noises, strict=True):
        grown = wide.law.variance / single.law.variance / asked.priced().steps(wide.measure) ** 2
        length = asked.priced().factorisation.l2_squared(asked.participation)
        assert 1 <= grown / length < 1.0001


def test_a_year_of_days_for_the_price_of_one_release() -> None:
    asked = stream(database([], max_groups=1, max_rows=1), horizon=365)
    shown = repr(asked)
    assert "epsilon 1 for all of them together" in shown and "nothing is spent" in shown
    ours, fresh, anew = asked.baseline().ways
    assert (round(ours.total, 3), round(fresh.total, 2)) == (2.944, 19.10), "the published figures"
    assert ours.period == pytest.approx(1.936, abs=1e-3) and fresh.period == 1
    assert ours.epsilon == fresh.epsilon == 1 < 30 < anew.epsilon < 31
    name, error = asked.baseline().release or ("", 0.0)
    assert name == "n" and f"±{error:.3g} (1 x)" in shown
    assert ours.errors is not None and f"±{ours.errors[0]:.3g} (2.94 x)" in shown
    assert ours.errors[0] == pytest.approx(2.944 * error, rel=0.03)  # whole numbers
    assert "total of n after 365 days" in asked.baseline()._repr_html_()
    apart = stream(database([]), "SELECT AVG(cost) FROM visits", participation=sf.Participation(periods=4))
    assert apart.baseline().release is None and apart.baseline().ways[1].period == 2


def test_no_way_errs_as_little_for_as_little() -> None:
    """The stream as priced: its widest interval of totals is that of the table."""
    asked = stream(database([], max_groups=1, max_rows=1), "SELECT COUNT(*) AS n FROM visits", epsilon=0.1)
    [(low, high)] = asked.advance(day(HORIZON)).total().intervals()["n"]  # type: ignore[misc]
    assert asked.baseline().ways[0].errors is not None
    assert (high - low) / 2 == asked.baseline().ways[0].errors[0]


# -- what one person changes ------------------------------------------------------------------------


@pytest.fixture
def frozen(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The same noise in every run, and the same choice of groups."""

    def draw(self: GaussianNoise, size: int | None = None) -> Any:
        steps = np.arange(size or 1, dtype=np.int64) * 7919 % 1009 - 504
        return steps * max(1, int(self.deviation / 300))

    monkeypatch.setattr(GaussianNoise, "draw", draw)
    monkeypatch.setattr("secrets.randbits", lambda bits: 12345)
    yield


def changed(release: StreamRelease, other: StreamRelease) -> dict[str, float]:
    """Return by how much C x differs in two runs with the same noise, as a part of what was claimed."""
    stream = release.stream
    c = matrix(stream.factorisation, 300 if stream.periods.design else len(release))[:, : len(release)]
    one, two = outputs(release), outputs(other)
    found = {}
    for noise in stream.cost.noises:
        [(event, _)] = noise.event.parts()
        claimed = float(event.l2_squared / stream.steps(noise.measure) ** 2)  # type: ignore[attr-defined]
        difference = (one[noise.measure] - two[noise.measure]).astype(float)
        found[noise.measure] = float(((c @ difference) ** 2).sum()) / claimed
    return found


CAPS = [(1, 1), (2, 3), (3, 2), (HORIZON, 1), (3, HORIZON)]


@pytest.mark.parametrize(("periods", "apart"), CAPS)
@pytest.mark.parametrize("names", rest_soaked([False, True], 2), ids=["numbers", "names"])
def test_one_person_changes_no_more_than_was_claimed(
    frozen: None, periods: int, apart: int, names: bool
) -> None:
    """Whoever is there every day, with many rows everywhere; or not at all."""
    some = [(str(row[0]) if names else row[0], *row[1:]) for row in SOME]
    who: Any = "greedy" if names else 999
    greedy: list[Visit] = [
        (who, at, place, 10.0) for at in range(HORIZON) for place in "abc" for _ in range(5)
    ]
    cap = sf.Participation(periods=periods, apart=apart)
    now = day(HORIZON)
    runs = [
        stream(database(rows, names=names), participation=cap, horizon=HORIZON).advance(now)
        for rows in ([*some, *greedy], some)
    ]
    parts = changed(*runs)
    assert max(parts.values()) <= 1, parts
    assert max(parts.values()) > 0.99, "the claim is met: whoever is there as early as allowed"
    difference = (outputs(runs[0])["m0"] - outputs(runs[1])["m0"]).any(axis=1)
    assert np.flatnonzero(difference).tolist() == list(cap.earliest(HORIZON))


def test_the_cap_holds_across_restarts_and_new_data(frozen: None, tmp_path: Path) -> None:
    cap = sf.Participation(periods=2, apart=2)
    runs = []
    for name, greedy in (("with", True), ("without", False)):
        release = None
        for until in range(1, HORIZON + 1):  # each day opens the data as it is then
            rows = [row for row in SOME if row[1] < until]
            if greedy:
                rows += [(999, at, place, 10.0) for at in range(until) for place in "abc" for _ in range(5)]
            db = database(rows, tmp_path / name)
            release = stream(db, participation=cap, horizon=HORIZON).advance(day(until))
            db.ledger.close()
        runs.append(release)
    assert runs[0] is not None and runs[1] is not None
    assert 0.99 < max(changed(runs[0], runs[1]).values()) <= 1
    moved = (outputs(runs[0])["m0"] - outputs(runs[1])["m0"]).any(axis=1)
    assert np.flatnonzero(moved).tolist() == [0, 2]


@pytest.mark.parametrize(("by", "every"), [("day", "day"), ("at", "hour")])
def test_a_row_is_in_one_period(frozen: None, by: str, every: str) -> None:
    """Also where it is the first moment of one, which is the end of the one before."""
    runs = []
    for more in ([(999, 1, "a", 1.0)], []):
        db = database([*SOME, *more], max_groups=1)
        asked = stream(db, by=by, every=every, horizon=40, participation=sf.Participation(periods=40))
        runs.append(outputs(asked.advance("2026-01-04"))["m0"])
    moved = (runs[0] - runs[1]).any(axis=1)
    assert np.flatnonzero(moved).tolist() == [1 if every == "day" else 24 + 12]


def test_a_stream_without_an_end_changes_no_more_than_was_claimed(frozen: None) -> None:
    """Also where somebody is there before and after the steps of its periods become finer."""
    cap, endless = sf.Participation(periods=2, apart=17), {"horizon": None, "design": 16}
    greedy: list[Visit] = [(999, at, place, 10.0) for at in range(19) for place in "abc" for _ in range(5)]
    runs = [
        stream(database(rows), participation=cap, **endless).advance(day(19))
        for rows in ([*SOME, *greedy], SOME)
    ]
    moved = (outputs(runs[0])["m0"] - outputs(runs[1])["m0"]).any(axis=1)
    assert np.flatnonzero(moved).tolist() == [0, 17]
    assert 0.999 < max(changed(*runs).values()) <= 1, "over all periods to come"


@pytest.mark.parametrize("endless", [{}, {"horizon": None, "design": 16}], ids=["horizon", "endless"])
def test_restarts_go_on_with_the_same_noise(frozen: None, tmp_path: Path, endless: dict[str, Any]) -> None:
    until, days = (HORIZON, range(1, HORIZON + 1)) if not endless else (18, (1, 16, 17, 18))
    at_once = stream(database(SOME), **endless).advance(day(until))
    for until in days:
        db = database(SOME, tmp_path / "ledger")
        by_day = stream(db, **endless).advance(day(until))
        db.ledger.close()
    measures = [
        {number: output["measures"] for number, output in release.outputs.items()}
        for release in (at_once, by_day)
    ]
    assert measures[0] == measures[1]
    [state] = (tmp_path / "ledger-streams").iterdir()
    with sqlite3.connect(state) as connection:
        kept = [connection.execute(f"SELECT count(*) FROM {kind}").fetchone() for kind in ("noise", "output")]
        connection.execute("DELETE FROM noise")
    connection.close()
    assert kept == [(1,) if endless else (HORIZON,), (1,)], "where there is no end, noise does not add up"
    if endless:
        with pytest.raises(LedgerError) as refusal:
            stream(database(SOME, tmp_path / "ledger"), **endless).advance(day(19))
        assert refusal.value.code == "SF613"


def test_a_stream_without_an_end_says_so() -> None:
    asked = stream(database(SOME), horizon=None, design=16, participation=sf.Participation(periods=3))
    assert "days from 2026-01-01 on, without an end, designed for 16" in repr(asked)
    published = asked.advance(day(18))
    assert not any("designed for" in note for note in published.total(16).notes)
    assert any(
        "past the 16 periods that the stream is designed for" in note for note in published.total().notes
    )
    assert repr(published).startswith("stream `daily`: 18 days published")
    summed = np.floor(outputs(published)["m0"].sum(axis=0).astype(float) + 0.5)
    assert published.total().column("n") == summed.tolist(), "steps of two sizes are added up"
    assert stream(database([]), horizon=None).periods.design == 365
    assert len(stream(database([]), horizon=9000).priced().factorisation.rates) == 7  # type: ignore[union-attr]


# -- how far off it is ------------------------------------------------------------------------------


def test_intervals_cover() -> None:
    """Of 3,000 groups each interval misses with a chance of 1/20 at most; false alarms: 1e-9.

    Also those of differences and trends, whose periods share noise. Intervals half as wide again miss 10.
    """
    places = [f"p{number}" for number in range(3000)]
    rows: list[Visit] = [(number, number % 5, place, 1.0) for number, place in enumerate(places)]
    db = database(rows, columns={"place": sf.one_of(*places), "cost": sf.between(0, 10)}, max_groups=1)
    asked = stream(db, "SELECT place, COUNT(*) AS n FROM visits GROUP BY place", horizon=5)
    published = asked.advance(day(5))
    whose = {place: number % 5 for number, place in enumerate(places)}
    most = binom.isf(1e-9 / 6, len(places), 0.05)
    least = binom.ppf(1e-9 / 6, len(places), 0.03)  # nor are they far too wide
    truths = [
        (published.period(3), lambda place: int(whose[place] == 2)),
        (published.total(), lambda place: 1),
        (published.window(2, 4), lambda place: int(1 <= whose[place] <= 3)),
        (published.difference(1, 5), lambda place: int(whose[place] == 4) - int(whose[place] == 0)),
        (
            published.difference((1, 2), (3, 5)),
            lambda place: int(whose[place] >= 2) - int(whose[place] <= 1),
        ),
        (published.trend(), lambda place: (whose[place] - 2) / 10),  # least squares over days 1 to 5
    ]
    for release, truth in truths:
        keys, [name] = release.column(release.columns[0]), release.intervals()
        misses = 0
        for key, interval in zip(keys, release.intervals()[name], strict=True):
            assert interval is not None
            misses += not interval[0] <= truth(key) <= interval[1]
        assert least <= misses <= most, release.notes


@pytest.mark.parametrize("more", [Fraction(1, 4), pytest.param(Fraction(1, 12), id="too little")])
def test_rounding_is_counted(more: Fraction) -> None:
    """A rounded normal error is beyond any half-width no more often than the law that intervals use says.

    It is proved in `stream_release`; here over six orders of magnitude of deviations, and at the two ends of
    the proof's cases. Power: the variance of rounding alone, 1/12, would not do.
    """
    low = 1.0
    for deviation in (*np.geomspace(1e-3, 1e3, 60), 0.3, math.sqrt(0.171), 0.5):
        law = GaussianNoise(Fraction(deviation**2) + more)
        for half in {0, 1, 2, 5, *(int(deviation * times) for times in (0.5, 1, 2, 4, 6))}:
            chance = 2 * norm.sf((half + 0.5) / deviation)
            if chance > 1e-290:
                low = min(low, 2 * law.tail(half + 1) / chance)
    assert low >= 1 - 1e-9 if more == Fraction(1, 4) else low < 0.97


def test_trends() -> None:
    """A slope per day, also where a day failed; narrower than days with independent errors would give."""
    rows: list[Visit] = [(1000 * at + number, at, "a", 1.0) for at in range(8) for number in range(100 * at)]
    db = database(rows, columns={"place": sf.one_of("a"), "cost": sf.between(0, 10)}, max_rows=1)
    sql = 'SELECT COUNT(*) AS "a ""count""", SUM(cost) AS cost FROM visits'
    published = stream(db, sql, epsilon=50).advance(day(8))
    [rise, cost] = (trend := published.trend()).columns
    assert (rise, cost) == ('a "count"_per_day', "cost_per_day") and len(trend) == 1
    assert trend.column(rise)[0] == pytest.approx(100, abs=1) and trend.column(cost)[0] == pytest.approx(
        100, abs=10
    )
    gap = replace(published, outputs={at: one for at, one in published.outputs.items() if at not in (3, 4)})
    assert gap.trend().column(rise)[0] == pytest.approx(100, abs=1)
    assert any("2 of 8 periods were skipped" in note for note in gap.trend().notes)
    pair = published.trend(2, "2026-01-03")
    assert pair.columns == trend.columns
    assert pair.column(rise) == published.difference(2, 3).column('a "count"')
    with pytest.raises(InvalidArgument, match="two published periods"):
        published.trend(3, 3)
    with pytest.raises(InvalidArgument, match="skipped"):
        gap.difference((1, 3), (5, 7))


def test_totals_err_as_the_theory_says() -> None:
    """The width of an interval follows the deviation of a total, not the sum of those of its parts."""
    db = database([], columns={"place": sf.one_of("a"), "cost": sf.between(0, 10)})
    published = stream(db, "SELECT COUNT(*) AS n FROM visits", horizon=40, epsilon=0.01).advance(day(40))
    column = np.cumprod([1.0, *((2 * k - 1) / (2 * k) for k in range(1, 40))])  # the square root

    def width(release: sf.Release) -> float:
        [interval] = release.intervals()["n"]
        assert interval is not None
        return float(interval[1] - interval[0])

    total, first = width(published.total()), width(published.total(1))
    assert total / first == pytest.approx(np.sqrt(2.240), rel=0.01)  # S_40 of the square root
    apart = np.hypot(width(published.period(39)), width(published.period(40)))
    assert width(published.difference(39, 40)) > 1.05 * apart, "neighbours share noise of opposite signs"
    assert width(published.window(39, 40)) < 0.95 * apart
    lower = np.linalg.inv(
        np.array([[column[s - t] if s >= t else 0.0 for t in range(40)] for s in range(40)])
    )
    slope = (np.arange(40) - 19.5) / ((np.arange(40) - 19.5) ** 2).sum()
    [(low, high)] = published.trend().intervals()["n_per_day"]  # type: ignore[misc]
    assert (high - low) / first == pytest.approx(float(np.linalg.norm(slope @ lower)), rel=0.01)
    assert (high - low) < 0.6 * first * np.linalg.norm(slope), "days with independent errors have more"


def test_means_and_post_processing() -> None:
    """False alarm below 1e-9: margins of 6.5 deviations of a day's count, 7 of the total, 12 of the mean."""
    rows: list[Visit] = [(number, number % 4, "a", 4.0) for number in range(4000)]
    sql = "SELECT AVG(cost) AS mean, COUNT(*) * 2 AS twice FROM visits"
    published = stream(database(rows), sql, horizon=4).advance(day(4))
    total = published.total()
    assert total.columns == ("mean", "twice")
    assert total.column("mean")[0] == pytest.approx(4, abs=0.5)
    assert total.column("twice")[0] == pytest.approx(8000, rel=0.06)
    for totals, last in ((True, 8000), (False, 2000)):
        series = published.series(totals=totals)
        assert series.column_names[:2] == ["day", "mean"] and series.num_rows == 4
        assert series.column("twice")[3].as_py() == pytest.approx(last, rel=0.2)
    with pytest.raises(Unsupported, match="differences"):
        published.difference(1, 2)


# -- one charge, one publication ----------------------------------------------------------------------


def test_one_charge_and_each_period_once(tmp_path: Path) -> None:
    db = database(SOME, tmp_path / "ledger")
    asked = stream(db)
    with pytest.raises(InvalidArgument, match="not begun"):
        asked.show()
    assert len(asked.start()) == 0
    spent = db.balance.spent_units
    assert spent == db.terms.rule.charge(asked.priced().event)
    for now, known in [("2026-01-03", 2), ("2026-01-03T23:59:59", 2), ("2026-01-01", 2), ("2026-01-06", 5)]:
        before = dict(asked.show().outputs)
        after = asked.advance(now)
        assert len(after) == known and {one: after.outputs[one] for one in before} == before
    assert len(asked.advance("2030-01-01")) == HORIZON == len(asked.advance("2031-01-01"))
    assert db.balance.spent_units == spent
    db.ledger.verify()
    folder = tmp_path / "ledger-streams"
    [state] = folder.iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700 and stat.S_IMODE(state.stat().st_mode) == 0o600


def test_what_is_published_does_not_follow_the_data(tmp_path: Path) -> None:
    first = stream(database(SOME, tmp_path / "ledger")).advance(day(2)).outputs
    late: list[Visit] = [(5000 + number, 0, "a", 1.0) for number in range(500)]
    again = stream(database([*SOME, *late], tmp_path / "ledger")).advance(day(3)).outputs
    assert {1: again[1], 2: again[2]} == first, "late rows change nothing, and enter no other day"


def test_periods_by_moments() -> None:
    """False alarm below 1e-9: the count of an hour has a deviation of 21, and a margin of 200."""
    rows: list[Visit] = [(number, 0, "a", 1.0) for number in range(2000)]
    asked = stream(database(rows), "SELECT COUNT(*) AS n FROM visits", by="at", every="hour", horizon=24)
    published = asked.advance(day(1))
    counts = [published.period(hour + 1).column("n")[0] for hour in range(24)]
    assert int(np.argmax(counts)) == 12 and counts[12] > 1800
    assert published.period("2026-01-01T12:30").column("n") == [counts[12]]


@pytest.mark.parametrize(
    ("every", "start", "horizon", "now", "ended"),
    [
        ("hour", "2026-03-29T00:00", 48, "2026-03-29T03:59:59", 3),  # no clock is put forward in UTC
        ("day", "2026-02-27", 9, "2026-03-01", 2),
        ("week", "2026-01-01", 9, "2026-01-15", 2),
        ("month", "2025-12-01", 9, "2026-02-28T23:59", 2),
        ("month", "2025-12-01", 3, "2036-01-01", 3),
        ("day", "2026-01-01", 9, "2020-01-01", 0),
    ],
)
def test_periods(every: str, start: str, horizon: int, now: str, ended: int) -> None:
    periods = Periods(every=every, start=moment(start, "start"), horizon=horizon)
    assert periods.ended(moment(now, "now")) == ended
    assert all(periods.end(number) == periods.begin(number + 1) for number in range(1, horizon))


# -- what goes wrong --------------------------------------------------------------------------------


def test_a_period_that_fails_is_never_published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    db = database(SOME, tmp_path / "ledger")
    asked = stream(db)
    asked.advance(day(2))
    with monkeypatch.context() as patched:
        patched.setattr(type(db.backend), "run", lambda *_, **__: (_ for _ in ()).throw(EngineFailure()))
        with pytest.raises(EngineFailure):
            asked.advance(day(3))
    published = asked.advance(day(5))
    assert sorted(published.outputs) == [1, 2, 4, 5] and len(published) == 5
    assert published.skipped == ("2026-01-03",)
    with pytest.raises(InvalidArgument, match="skipped"):
        published.period(3)
    assert any("1 of 5 periods were skipped" in note for note in published.total().notes)


class Killed(BaseException):
    """Ends a call as a kill does: nothing after it runs, and nothing is put on record."""


@pytest.mark.parametrize("where", ["before", "after"])
def test_killed_around_the_commit_of_the_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """What was committed is published; what was not is computed afresh, for nothing of it was seen."""
    short: dict[str, Any] = {"late": 1, "participation": sf.Participation(periods=HORIZON, apart=2)}
    asked = stream(database(SOME, tmp_path / "ledger"), **short)
    asked.advance(day(2))
    kept: list[bytes] = []
    original = StreamState.commit

    def commit(self: StreamState, periods: Any, **more: Any) -> None:
        if where == "after":
            original(self, periods, **more)
            kept.append(periods[-1].output)
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(StreamState, "commit", commit)
        patched.setattr(
            "sfumato.ledger.reservation.Reservation._store", lambda *_: (_ for _ in ()).throw(Killed)
        )
        with pytest.raises(Killed):
            asked.advance(day(3))
    assert len(asked.show()) == 2
    asked.database.ledger.close()
    again = stream(database(SOME[:10], tmp_path / "ledger"), **short)  # the data has changed meanwhile
    assert len(again.advance(day(4))) == 4
    if where == "after":
        entry = again._entry()
        assert entry is not None and again.database.ledger.release(entry.sequence, step=3) == kept[0]


ADVANCES = """
import sys
from pathlib import Path
from sfumato.continual.state import StreamState
from tests.continual.visits import database, day, stream

original = StreamState.commit

def commit(self, *periods, **more):
    original(self, *periods, **more)
    print("committed", flush=True)
    sys.stdin.readline()

StreamState.commit = commit
stream(database([(1, 0, "a", 5.0)], Path(sys.argv[1]))).advance(day(2))
"""


def test_a_stream_that_another_process_advances_is_busy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has not ended. The file of locks may be deleted meanwhile: the state has a lock of its own."""
    monkeypatch.setattr("sfumato.continual.state._WAIT", 0.05)
    with start(ADVANCES, tmp_path / "ledger") as other:
        assert other.stdin is not None and other.stdout is not None
        assert other.stdout.readline() == "committed\n"
        (tmp_path / "ledger-live").unlink()
        asked = stream(database(SOME, tmp_path / "ledger"))
        with pytest.raises(LedgerError, match="try again") as refusal:
            asked.advance(day(2))
        assert refusal.value.code == "SF604"
        other.communicate("\n\n", timeout=120)
    assert other.returncode == 0 and len(asked.advance(day(3))) == 3


@pytest.mark.parametrize("code", [sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN])
def test_a_state_that_cannot_be_reached_now_has_not_ended_its_stream(code: int) -> None:
    failed = sqlite3.OperationalError("secret")
    failed.sqlite_errorcode = code
    with pytest.raises(LedgerError) as refusal, _refusing("place"):
        raise failed
    assert refusal.value.code == "SF601" and "secret" not in str(refusal.value)


HARMS = ["missing", "old", "truncated", "altered", "half", "another format", "forgetful", "other"]


@pytest.mark.parametrize("harm", HARMS)
def test_a_state_that_is_not_the_newest_ends_the_stream(tmp_path: Path, harm: str) -> None:
    db = database(SOME, tmp_path / "ledger")
    other = stream(db, name="other")
    other.advance(day(1))
    asked = stream(db)
    asked.advance(day(1))
    entry, beside = asked._entry(), other._entry()
    assert entry is not None and beside is not None
    state = tmp_path / "ledger-streams" / f"{entry.sequence}.sqlite"
    kept = tmp_path / "kept"
    shutil.copy(state, kept)
    asked.advance(day(2))
    spent = db.balance.spent_units
    match harm:
        case "missing":
            state.unlink()
        case "old":
            shutil.copy(kept, state)
        case "truncated":
            os.truncate(state, state.stat().st_size // 2)
        case "altered":
            with sqlite3.connect(state) as connection:
                connection.execute("UPDATE noise SET content = zeroblob(length(content)) WHERE period = 1")
            connection.close()
        case "half":
            with sqlite3.connect(state) as connection:
                connection.execute("DELETE FROM noise WHERE period = 1")
            connection.close()
        case "another format":
            with sqlite3.connect(state) as connection:
                connection.execute("PRAGMA user_version = 1")
            connection.close()
        case "forgetful":
            with sqlite3.connect(state) as connection:
                connection.execute("DELETE FROM remembered")
            connection.close()
        case "other":
            shutil.copy(tmp_path / "ledger-streams" / f"{beside.sequence}.sqlite", state)
    for _ in range(2):  # a refusal does not keep the state open
        with pytest.raises(LedgerError) as refusal:
            asked.advance(day(3))
        assert refusal.value.code == "SF613" and len(asked.show()) == 2
    assert ("another format" in str(refusal.value)) is (harm == "another format")
    assert db.balance.spent_units == spent, "it is not charged again"


def test_an_older_ledger_does_not_publish_what_later_periods_were(tmp_path: Path) -> None:
    """The state is two periods further on: what it holds is the output of another period."""
    folder, kept = tmp_path / "now", tmp_path / "kept"
    folder.mkdir()
    for until in (1, 3):
        db = database(SOME, folder / "ledger")
        stream(db).advance(day(until))
        db.ledger.close()
        if until == 1:
            shutil.copytree(folder, kept)
    shutil.rmtree(kept / "ledger-streams")
    shutil.copytree(folder / "ledger-streams", kept / "ledger-streams")
    asked = stream(database(SOME, kept / "ledger"))
    with pytest.raises(LedgerError) as refusal:
        asked.advance(day(2))
    assert refusal.value.code == "SF613" and len(asked.show()) == 1


@pytest.mark.parametrize(
    "other",
    [
        {"sql": "SELECT place, COUNT(*) AS n FROM visits GROUP BY place"},
        {"participation": sf.Participation(periods=2)},
        {"horizon": 9},
        {"start": day(1)},
        {"by": "at"},
        {"epsilon": 2},
    ],
)
def test_another_stream_of_the_same_name_is_refused(tmp_path: Path, other: dict[str, Any]) -> None:
    db = database(SOME)
    stream(db).advance(day(2))
    spent = db.balance.spent_units
    asks: list[Callable[[Stream], object]] = [lambda one: one.advance(day(3)), Stream.show]
    for ask in asks:
        with pytest.raises(LedgerError) as refusal:
            ask(stream(db, **other))
        assert refusal.value.code == "SF606" and db.balance.spent_units == spent
        assert "was begun with another question" in str(refusal.value)


def test_another_schema_or_cap_is_refused(tmp_path: Path) -> None:
    stream(database(SOME, tmp_path / "ledger")).advance(day(1))
    with pytest.raises(LedgerError) as refusal:
        stream(database(SOME, tmp_path / "ledger", max_rows=4)).advance(day(2))
    assert refusal.value.code == "SF606"


@pytest.mark.parametrize(
    ("sql", "options", "said"),
    [
        ("SELECT QUANTILE(cost, 0.5) FROM visits", {}, "quantiles"),
        ("SELECT place, COUNT(*) AS n FROM visits GROUP BY ROLLUP (place)", {}, "ROLLUP"),
        ("SELECT COUNT(*) AS n FROM visits", {"by": "place"}, "`place` is text; in a CSV file"),
        ("SELECT COUNT(*) AS n FROM visits", {"by": "nothing"}, "a date or a timestamp"),
        ("SELECT COUNT(*) AS n FROM visits", {"every": "year"}, "no period is called"),
        ("SELECT COUNT(*) AS n FROM visits", {"start": "2026-01-01T12:00"}, "a whole day"),
        ("SELECT COUNT(*) AS n FROM visits", {"every": "month", "start": "2026-01-02"}, "a whole month"),
        ("SELECT COUNT(*) AS n FROM visits", {"start": "yesterday"}, "a date or a moment"),
        ("SELECT COUNT(*) AS n FROM visits", {"horizon": 0}, "a horizon"),
        ("SELECT COUNT(*) AS n FROM visits", {"horizon": 10**7}, "9999"),
        ("SELECT COUNT(*) AS n FROM visits", {"design": 100}, "designed for its horizon"),
        ("SELECT COUNT(*) AS n FROM visits", {"horizon": None, "design": 5}, "a design horizon is 16"),
        (
            "SELECT COUNT(*) AS n FROM visits",
            {"horizon": None, "participation": sf.Participation(periods=10**7)},
            "in at most 1,048,576 periods",
        ),
        ("SELECT COUNT(*) AS n FROM visits", {"name": "../daily"}, "no name of a stream"),
        ("SELECT COUNT(*) AS n FROM visits", {"participation": 3}, "a cap on periods"),
        ("SELECT COUNT(*) AS n FROM visits", {"every": "hour"}, "hours"),
    ],
)
def test_what_is_not_proved_or_makes_no_sense_is_refused(
    sql: str, options: dict[str, Any], said: str
) -> None:
    db = database(SOME)
    with pytest.raises(SfumatoError, match=said):
        stream(db, sql, **options).advance(FIRST)
    assert db.balance.spent_units == 0


def test_rows_that_are_units_are_refused() -> None:
    import pyarrow as pa

    table = pa.table({"day": [datetime.date(2026, 1, 1)]})
    db = sf.connect(table, name="visits", unit=None, budget=sf.Budget(epsilon=1, delta=1e-6))
    with pytest.raises(Unsupported, match="each row is a unit"):
        stream(db, "SELECT COUNT(*) AS n FROM visits").start()


# -- kills ------------------------------------------------------------------------------------------

KILLED = """
import sys
from pathlib import Path
from tests.continual.killed_streams import main
main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))
"""


@pytest.mark.parametrize(
    ("kills", "days"),
    [
        (4, 8),
        pytest.param(40, 40, marks=pytest.mark.soak),
        pytest.param(200, 100, marks=pytest.mark.night),
    ],
    ids=["few", "some", "many"],
)
def test_kills(tmp_path: Path, kills: int, days: int) -> None:
    """Every day is published once, for one charge, whenever a process is killed (`killed_streams`)."""
    with start(KILLED, tmp_path, kills, days, 0.15) as worker:
        told = worker.communicate(timeout=900)[0]
    assert worker.returncode == 0 and told.startswith(f"{kills} kills")
