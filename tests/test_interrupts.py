"""Ctrl-C stops a question at once, and says whether it was charged: real signals, in real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import sfumato as sf
from sfumato.interrupts import deferred, interruptible
from sfumato.ledger import Ledger, Reservation
from tests.cli.programs import environment, make_project
from tests.processes import start
from tests.test_session import QUESTION, database


@pytest.fixture(autouse=True)
def _as_in_a_terminal() -> Iterator[None]:
    """Ctrl-C is not ignored, as it is in what a shell runs in the background; processes inherit that."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


# A statement of the engine that ends in no time that anybody waits; it says that it has begun.
ENDLESS = """
from sfumato.backends.duckdb.engine import Engine
whole = Engine.table
def endless(engine, sql):
    print("running", flush=True)
    return whole(engine, "SELECT count(*) FROM range(10000000000) a, range(1000000) b WHERE a.range % 7 = 3")
Engine.table = endless
"""

PYTHON = """
from tests.test_session import QUESTION, database
db = database()
try:
    db.sql(QUESTION, epsilon=0.5).release()
except KeyboardInterrupt as stop:
    print(stop)
Engine.table = whole
print(db.balance.spent > 0, len(db.sql(QUESTION, epsilon=0.5).release()))
"""

WAITING = """
import threading
from tests.test_session import QUESTION, database
db, held, done = database(), threading.Event(), threading.Event()
def hold():
    with db.backend.admitted():
        held.set()
        done.wait()
def tell(step):
    threading.Thread(target=hold).start()
    held.wait()
    print("running", flush=True)
try:
    db.sql(QUESTION, epsilon=0.5).release(progress=tell)
except KeyboardInterrupt as stop:
    print(stop, db.balance.spent)
finally:
    done.set()
"""


# An action that Ctrl-C does not end, as an engine that is deep in its own code does not.
STOPPED = """
import threading
from sfumato.interrupts import interruptible
stopped, seen = threading.Event(), []
def action():
    print("running", flush=True)
    try:
        stopped.wait(60)
    except BaseException as error:
        seen.append(error)
    return "ended by itself"
try:
    print(interruptible(action, stopped.set))
except KeyboardInterrupt:
    print("interrupted", stopped.is_set(), seen)
"""


def interrupted(script: str) -> list[str]:
    """Return what a script says after Ctrl-C, which comes when it says that it is running."""
    with start(script) as worker:
        assert worker.stdout is not None and worker.stdout.readline() == "running\n"
        worker.send_signal(signal.SIGINT)
        said = worker.communicate(timeout=60)[0].splitlines()
    assert worker.returncode == 0, said
    return [line for line in said if line != "running"]


def test_the_engine_stops_and_the_question_is_charged() -> None:
    told, after = interrupted(ENDLESS + PYTHON)
    assert told.startswith("interrupted: the question was charged, as reservation ")
    assert "was not answered; what was charged stays spent" in told
    assert after == "True 3", "the engine answers the next question"


def test_an_action_is_stopped_and_never_interrupted_itself() -> None:
    """Without a thread of its own it would be the action that is hit, and nobody would stop it."""
    assert interrupted(STOPPED) == ["interrupted True []"]


def test_a_question_that_waits_is_not_charged() -> None:
    assert interrupted(WAITING) == ["interrupted: nothing was charged 0"]


def test_on_the_command_line(tmp_path: Path) -> None:
    make_project(tmp_path)
    driver = f"{ENDLESS}\nfrom sfumato.cli import main\nmain()"
    asked = ("query", "SELECT region, COUNT(*) AS n FROM people GROUP BY region", "-e", "0.5")
    with subprocess.Popen(
        [sys.executable, "-c", driver, *asked],
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as worker:
        assert worker.stdout is not None and worker.stdout.readline() == "running\n"
        worker.send_signal(signal.SIGINT)
        errors = worker.communicate(timeout=60)[1]
    assert worker.returncode == 130, errors
    assert "interrupted: the question was charged, as reservation " in errors and "Traceback" not in errors
    assert len(Ledger.open(tmp_path / "people.ledger").history("person")) == 1


def interrupting(monkeypatch: pytest.MonkeyPatch, owner: type, name: str) -> None:
    """Let Ctrl-C come in the middle of a call: it is noted before the call has done anything."""
    whole = getattr(owner, name)

    def halfway(*arguments: Any, **options: Any) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        return whole(*arguments, **options)

    monkeypatch.setattr(owner, name, halfway)


def test_a_charge_is_never_half_known(monkeypatch: pytest.MonkeyPatch) -> None:
    db = database()
    interrupting(monkeypatch, Ledger, "reserve")
    with pytest.raises(KeyboardInterrupt, match=r"was charged, as reservation .* was not answered"):
        db.sql(QUESTION, epsilon=0.5).release()
    assert db.balance.spent > 0


def test_an_answer_that_is_stored_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    db = database()
    interrupting(monkeypatch, Reservation, "commit")
    with pytest.raises(KeyboardInterrupt, match="its answer is kept") as stopped:
        db.sql(QUESTION, epsilon=0.5).release()
    [entry] = db.ledger.history()
    assert f"db.ledger.release({entry.sequence})" in str(stopped.value)
    assert len(sf.Release.from_json(db.ledger.release(entry.sequence).decode())) == 3


def test_what_is_priced_when_it_is_stopped_is_not_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    db = database()

    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    asked = (
        db.sql(QUESTION, epsilon=0.5),
        db.workload([QUESTION], epsilon=0.5),
        db.marginals(["region"], ways=1, epsilon=0.5),
    )
    for question in asked:
        monkeypatch.setattr(type(question), "priced", stop)
        with pytest.raises(KeyboardInterrupt, match="nothing was charged"):
            question.release()
    assert db.balance.spent == 0


def test_a_deferred_interrupt_comes_at_the_end_of_the_block() -> None:
    done = []
    with pytest.raises(KeyboardInterrupt), deferred():
        os.kill(os.getpid(), signal.SIGINT)
        done.append("all")
    assert done == ["all"] and signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_what_an_action_raises_comes_through() -> None:
    def fail() -> None:
        raise RuntimeError("its own")

    with pytest.raises(RuntimeError, match="its own"):
        interruptible(fail, lambda: None)
    assert interruptible(lambda: 7, lambda: None) == 7
