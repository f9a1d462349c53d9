"""Clocks that are wrong, processes that race, prices that floats make otherwise."""

from __future__ import annotations

import datetime
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from sfumato.continual import pricing
from sfumato.core.events import Event
from sfumato.core.gaussian import GaussianNoise
from sfumato.errors import InvalidArgument
from tests.continual.visits import Visit, database, day, stream
from tests.processes import start

SOME: list[Visit] = [(person, person % 8, "abc"[person % 3], 5.0) for person in range(60)]


def at(monkeypatch: pytest.MonkeyPatch, moment: datetime.datetime) -> None:
    monkeypatch.setattr("sfumato.session.stream._clock", lambda: moment)


def test_a_moment_after_the_clock_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A typing error in a year would publish the whole horizon, empty, and for ever."""
    at(monkeypatch, datetime.datetime(2026, 1, 3, 12, tzinfo=datetime.UTC))
    asked = stream(database(SOME))
    with pytest.raises(InvalidArgument, match="later than the clock"):
        asked.advance("2062-01-01")
    assert asked.database.balance.spent_units == 0
    assert len(asked.advance("2026-01-03")) == 2


def test_a_clock_that_jumps(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It is believed if the owner says so; one that went back changes nothing."""
    now = datetime.datetime.now(datetime.UTC)
    first = now.date() - datetime.timedelta(weeks=3)
    asked = stream(database([], tmp_path / "ledger"), every="week", start=first, horizon=50)
    at(monkeypatch, now)
    assert len(asked.advance()) == 3
    at(monkeypatch, now + datetime.timedelta(weeks=12))
    assert len(asked.advance()) == 15, "weeks without a run: all that is over, in order"
    at(monkeypatch, now + datetime.timedelta(weeks=27))
    with pytest.raises(InvalidArgument, match="more than 100 days"):
        asked.advance()
    assert len(asked.show()) == 15
    at(monkeypatch, now)
    before = asked.show().outputs
    assert asked.advance().outputs == before
    at(monkeypatch, now + datetime.timedelta(weeks=27))
    assert len(asked.advance(first + datetime.timedelta(weeks=17))) == 17


def test_a_stream_goes_on_with_the_noise_that_was_charged(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Another machine may price noise otherwise, in the last digits: it is the same stream."""
    begun = stream(database(SOME, tmp_path / "ledger"))
    laws = begun.advance(day(2)).stream.laws
    original = pricing._over_the_horizon

    def more(*given: Any) -> tuple[GaussianNoise, Event, int]:
        law, event, steps = original(*given)
        return GaussianNoise(law.parameter * (1 + Fraction(1, 10**9))), event, steps

    monkeypatch.setattr(pricing, "_over_the_horizon", more)
    again = stream(database(SOME, tmp_path / "ledger"))
    assert again.priced().laws != laws
    assert again.advance(day(4)).stream.laws == again.show().stream.laws == laws


RACING = """
import json, sys
from pathlib import Path
from tests.continual.visits import database, day, stream
asked = stream(database([(person, person % 3, "a", 5.0) for person in range(9)], Path(sys.argv[1])))
print("ready", flush=True)
sys.stdin.readline()
for until in (1, 2, 3):
    found = asked.advance(day(until)).outputs
print(json.dumps({str(at): json.dumps(one, sort_keys=True, default=str) for at, one in found.items()}))
"""


def test_two_processes_at_once(tmp_path: Path) -> None:
    """Every period is published once, for one charge, and both see the same."""
    with start(RACING, tmp_path / "ledger") as one, start(RACING, tmp_path / "ledger") as other:
        for process in (one, other):
            assert process.stdout is not None and process.stdout.readline() == "ready\n"
        for process in (one, other):
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        told = [json.loads(process.communicate(timeout=60)[0]) for process in (one, other)]
    assert told[0] == told[1] and len(told[0]) == 3
    db = database(SOME, tmp_path / "ledger")
    assert db.balance.spent_units == db.terms.rule.charge(stream(db).priced().event)
    db.ledger.verify()
