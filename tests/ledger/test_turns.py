"""Threads that write at the same time share a transaction and a sync; each gets what is its own."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

from sfumato.core.events import Pure
from sfumato.errors import BudgetExceeded, LedgerError
from sfumato.ledger import log
from sfumato.ledger.records import Signer
from sfumato.ledger.turns import Errand, Turns
from tests.ledger.accounts import opened, reserve
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


def test_many_threads_cost_few_syncs_and_every_charge_is_there(tmp_path: Path, monkeypatch) -> None:
    """Sixteen threads spend five times each, on a disk that takes its time: far fewer than 160 syncs."""
    syncs = []

    def slow(file: int) -> None:
        time.sleep(0.005)
        syncs.append(file)
        os.fdatasync(file)

    with opened(tmp_path / "a", 1000) as ledger:
        reserve(ledger).commit(b"first")
        monkeypatch.setattr(log, "_sync", slow)

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


def test_the_last_of_the_budget_goes_to_as_many_as_it_is_for(tmp_path: Path) -> None:
    """Ten fit; twenty ask at once. A refusal in a shared transaction takes nothing from the others."""
    with opened(tmp_path / "a", 1) as ledger:
        done = together(20, lambda _: reserve(ledger, Pure(loss=Fraction(1, 10))).sequence)
        refused = [one for one in done if isinstance(one, BudgetExceeded)]
        assert len(refused) == 10 and len({one for one in done if isinstance(one, int)}) == 10
        assert ledger.verify() == ledger.head()


def test_a_section_that_fails_halfway_leaves_nothing_and_the_others_stay(tmp_path: Path) -> None:
    with opened(tmp_path / "a", 1000) as ledger:
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


def test_whoever_waits_too_long_is_refused_and_nothing_of_it_is_written() -> None:
    turns, at_work, go = Turns(), threading.Event(), threading.Event()
    written: list[str] = []

    def write(errands: list[Errand]) -> None:
        at_work.set()
        go.wait(20)
        for errand in errands:
            errand.result = errand.section()

    first = threading.Thread(target=turns.run, args=(Errand(lambda: written.append("first")), write, 20.0))
    first.start()
    at_work.wait(20)
    with pytest.raises(LedgerError) as refusal:
        turns.run(Errand(lambda: written.append("second")), write, 0.02)
    assert refusal.value.code == "SF604"
    go.set()
    first.join(20)
    turns.run(Errand(lambda: written.append("third")), write, 20.0)
    assert written == ["first", "third"]


def test_a_write_that_fails_as_a_whole_is_everybodys_failure_and_the_next_is_not() -> None:
    turns, waiting = Turns(), threading.Event()
    failing = True

    def write(errands: list[Errand]) -> None:
        if failing:
            waiting.wait(20)
            raise OSError("the disk is gone")
        for errand in errands:
            errand.result = errand.section()

    def work(place: int) -> object:
        return turns.run(Errand(lambda: place), write, 20.0)

    threading.Timer(0.3, waiting.set).start()
    done = together(6, work)
    assert all(isinstance(one, OSError) for one in done)
    failing = False
    assert together(6, work) == [0, 1, 2, 3, 4, 5]


def test_a_sync_that_fails_answers_nobody(tmp_path: Path, monkeypatch) -> None:
    def failing(_: int) -> None:
        time.sleep(0.05)
        raise OSError(5, "Input/output error")

    ledger = opened(tmp_path / "a", 1000)
    reserve(ledger).commit(b"first")
    monkeypatch.setattr(log, "_sync", failing)
    done = together(6, lambda _: reserve(ledger))
    assert all(isinstance(one, LedgerError) and one.code == "SF601" for one in done)


FORKED_TURN = """
import os, sys
from tests.ledger.accounts import opened, reserve
with opened(sys.argv[1], 1000) as ledger:
    reserve(ledger).commit(b"first")
    ledger._journal._turns._busy = True  # as if another thread were at work at the fork
    child = os.fork()
    if not child:
        try:
            with reserve(ledger) as reservation:
                reservation.commit(b"child")
            os._exit(0)
        except BaseException:
            os._exit(1)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    ledger._journal._turns._busy = False
    print(*(entry.committed for entry in ledger.history()))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_waits_for_no_thread_of_its_parent(tmp_path: Path) -> None:
    assert said(FORKED_TURN, tmp_path / "a") == ["0", "True True"]
