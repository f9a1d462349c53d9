"""Threads that write at the same time share a transaction and a sync; each gets what is its own."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from sfumato.core.events import Pure
from sfumato.errors import BudgetExceeded, LedgerError
from sfumato.ledger import connection
from sfumato.ledger.group_commit import GroupCommit, WriteRequest
from sfumato.ledger.records import Signer
from tests.ledger.accounts import answer, opened, reserve
from tests.processes import said


def together(number: int, work: Callable[[int], object]) -> list[object]:
    """Run work in as many threads, and return what came of each: a value, or an exception."""
    outcomes: list[object] = [None] * number

    def run(place: int) -> None:
        try:
            outcomes[place] = work(place)
        except BaseException as error:
            outcomes[place] = error

    threads = [threading.Thread(target=run, args=(place,)) for place in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
    return outcomes


def never() -> None:
    raise AssertionError("only a request whose leader was interrupted waits for the disk by itself")


def test_many_threads_cost_few_syncs_and_every_charge_is_there(tmp_path: Path, monkeypatch) -> None:
    """Sixteen threads spend five times each, on a disk that takes its time: far fewer than 160 syncs."""
    syncs = []

    def slow(file: int) -> None:
        time.sleep(0.005)
        syncs.append(file)
        os.fdatasync(file)

    with opened(tmp_path / "a", 1000) as ledger:
        reserve(ledger).commit(b"first")
        monkeypatch.setattr(connection, "_sync", slow)

        def spend(place: int) -> list[int]:
            numbers = []
            for _ in range(5):
                with reserve(ledger) as reservation:
                    reservation.commit(f"{place}".encode())
                numbers.append(reservation.sequence)
            return numbers

        done = together(16, spend)
        assert len(syncs) < 100
        numbers = [number for each in done for number in each]  # type: ignore[attr-defined]
        assert len(set(numbers)) == 80
        for place, each in enumerate(done):
            for number in each:  # type: ignore[attr-defined]
                assert ledger.release(number) == f"{place}".encode()
        assert ledger.verify() == ledger.head()
        assert len(ledger.history()) == 81


def test_the_last_of_the_budget_goes_to_as_many_as_it_is_for(folder: Path) -> None:
    """Ten fit; twenty ask at once. A refusal in a shared transaction takes nothing from the others."""
    with opened(folder / "a", 1) as ledger:
        done = together(20, lambda _: reserve(ledger, Pure(loss=Fraction(1, 10))).sequence)
        refused = [one for one in done if isinstance(one, BudgetExceeded)]
        assert len(refused) == 10 and len({one for one in done if isinstance(one, int)}) == 10
        assert ledger.verify() == ledger.head()


def test_a_section_that_fails_halfway_leaves_nothing_and_the_others_stay(folder: Path) -> None:
    with opened(folder / "a", 1000) as ledger:
        reserve(ledger).commit(b"first")
        before = ledger.head().sequence
        journal, started = ledger._journal, threading.Barrier(8)

        def work(place: int) -> object:
            def section() -> int:
                link = journal.append(Signer(at=1, public_key="x"))  # something was written when it fails
                if place % 2:
                    raise RuntimeError(f"{place}")
                return link.sequence

            started.wait()
            return journal.write(section)

        done = together(8, work)
        assert [str(one) for one in done[1::2]] == ["1", "3", "5", "7"]
        assert sorted(done[::2]) == list(range(before + 1, before + 5))  # type: ignore[type-var]
        assert ledger.head().sequence == before + 4


def test_after_a_section_that_fails_the_next_charges_on_top_of_those_before(
    folder: Path, monkeypatch
) -> None:
    """A charge must not go by the totals that were read before the others of its transaction."""
    with opened(folder / "a") as ledger:
        answer(ledger)
        sections: list[Any] = []

        def collect(section: Any) -> None:
            sections.append(section)
            raise InterruptedError

        with monkeypatch.context() as patch:
            patch.setattr(ledger._journal, "write", collect)
            for _ in range(2):
                with pytest.raises(InterruptedError):
                    reserve(ledger)

        def fails() -> None:
            raise ValueError

        requests = [WriteRequest(section) for section in (sections[0], fails, sections[1])]
        ledger._journal._write(requests)
        assert [type(request.error) for request in requests] == [type(None), ValueError, type(None)]
        assert ledger.spent("person") * 100 == 3 == len(ledger.history())
        ledger.verify()


def test_whoever_waits_too_long_is_refused_and_nothing_of_it_is_written() -> None:
    group, at_work, go = GroupCommit(), threading.Event(), threading.Event()
    written: list[str] = []

    def write(requests: list[WriteRequest]) -> None:
        at_work.set()
        go.wait(20)
        for request in requests:
            request.result = request.section()

    request = WriteRequest(lambda: written.append("first"))
    first = threading.Thread(target=group.run, args=(request, write, never, 20.0))
    first.start()
    at_work.wait(20)
    with pytest.raises(LedgerError) as refusal:
        group.run(WriteRequest(lambda: written.append("second")), write, never, 0.02)
    assert refusal.value.code == "SF604"
    go.set()
    first.join(20)
    group.run(WriteRequest(lambda: written.append("third")), write, never, 20.0)
    assert written == ["first", "third"]


def test_a_write_that_fails_as_a_whole_is_everybodys_failure_and_the_next_is_not() -> None:
    group, waiting = GroupCommit(), threading.Event()
    failing = True

    def write(requests: list[WriteRequest]) -> None:
        if failing:
            waiting.wait(20)
            raise OSError("the disk is gone")
        for request in requests:
            request.result = request.section()

    def work(place: int) -> object:
        return group.run(WriteRequest(lambda: place), write, never, 20.0)

    threading.Timer(0.3, waiting.set).start()
    done = together(6, work)
    assert all(isinstance(one, OSError) for one in done)
    failing = False
    assert together(6, work) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(("written", "code"), [(False, "SF604"), (None, "SF601")])
def test_nobody_is_told_that_nothing_was_charged_unless_that_is_certain(
    written: bool | None, code: str
) -> None:
    """SF604 says so, and lets a caller try again; where the outcome is not known, it is SF601."""
    group, at_work, go = GroupCommit(), threading.Event(), threading.Event()

    def write(requests: list[WriteRequest]) -> None:
        if len(requests) == 1:
            at_work.set()
            go.wait(20)
            return
        for request in requests:
            request.written = written
        raise KeyboardInterrupt

    def work(place: int) -> object:
        if place:
            at_work.wait(20)
        return group.run(WriteRequest(lambda: place), write, never, 20.0)

    waiting = threading.Thread(target=lambda: (_until(lambda: len(group._waiting) == 2), go.set()))
    waiting.start()
    done = together(3, work)
    waiting.join(20)
    assert sorted(type(one).__name__ for one in done[1:]) == ["KeyboardInterrupt", "_LeaderInterrupted"]
    [told] = [one for one in done if isinstance(one, LedgerError)]
    assert told.code == code


def _until(there: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not there() and time.monotonic() < deadline:
        pass


def test_a_sync_that_fails_answers_nobody(tmp_path: Path, monkeypatch) -> None:
    def failing(_: int) -> None:
        time.sleep(0.05)
        raise OSError(5, "Input/output error")

    ledger = opened(tmp_path / "a", 1000)
    reserve(ledger).commit(b"first")
    monkeypatch.setattr(connection, "_sync", failing)
    done = together(6, lambda _: reserve(ledger))
    assert all(isinstance(one, LedgerError) and one.code == "SF601" for one in done)


INTERRUPTED = """
import sys, threading
import sfumato.ledger.connection as connection
from tests.ledger.accounts import answer, opened, reserve

when, sync = sys.argv[2], connection._sync
ledger = opened(sys.argv[1], 1000)
reserve(ledger).commit(b"first")
journal, go, outcomes = ledger._journal, threading.Event(), {}

def until(group_has):
    while not group_has(): pass

def spend(name):
    try: outcomes[name] = reserve(ledger, request_hash=name).record.request_hash
    except BaseException as error: outcomes[name] = getattr(error, "code", type(error).__name__)

def blocking(file):
    go.wait()
    connection._sync = interrupted
    sync(file)

def interrupted(file):
    connection._sync = sync
    if when == "after": raise KeyboardInterrupt
    sync(file)

append, appended = journal.append, []
def interrupted_append(record, release=None):
    appended.append(record)
    if when == "before" and len(appended) == 3: raise KeyboardInterrupt  # two of three are written
    return append(record, release)

connection._sync, type(journal).append = blocking, lambda _, *arguments: interrupted_append(*arguments)
threads = [threading.Thread(target=spend, args=("one",))]
threads[0].start()
until(lambda: journal._group._busy)
for name in ("two", "three"):
    threads.append(threading.Thread(target=spend, args=(name,)))
    threads[-1].start()
    until(lambda: len(journal._group._waiting) == len(threads) - 1)
go.set()
for thread in threads: thread.join()
ledger.verify()
print(*(outcomes[name] for name in ("one", "two", "three")))
print(*(entry.request_hash for entry in ledger.entries()))
"""


@pytest.mark.parametrize("when", ["before", "after"])
def test_whoever_waited_for_an_interrupted_leader_is_charged_or_told_that_it_is_not(
    tmp_path: Path, when: str
) -> None:
    """Before the commit: nothing was written. After it: the follower waits for the disk itself."""
    outcomes, charged = said(INTERRUPTED, tmp_path / "a", when)
    follower = "SF604" if when == "before" else "three"
    assert outcomes == f"one KeyboardInterrupt {follower}"
    assert charged == ("request one" if when == "before" else "request one two three")


FORKED = """
import os, sys
from tests.ledger.accounts import answer, opened, reserve
with opened(sys.argv[1], 1000) as ledger:
    reserve(ledger).commit(b"first")
    ledger._journal._group._busy = True  # as if another thread were at work at the fork
    child = os.fork()
    if not child:
        try:
            with reserve(ledger) as reservation:
                reservation.commit(b"child")
            os._exit(0)
        except BaseException:
            os._exit(1)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    ledger._journal._group._busy = False
    print(*(entry.committed for entry in ledger.history()))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_waits_for_no_thread_of_its_parent(tmp_path: Path) -> None:
    assert said(FORKED, tmp_path / "a") == ["0", "True True"]
