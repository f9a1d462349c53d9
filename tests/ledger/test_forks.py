"""Forks: parent and child go on with connections of their own, and what either charges stays."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.processes import said

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")

BEGIN = """
import ctypes, os, signal, sys, threading, time
from sfumato.errors import LedgerError
from sfumato.ledger import Ledger
from sfumato.ledger.desk import Desk
from sfumato.ledger.liveness import Liveness
from tests.ledger.accounts import opened, reserve

path = sys.argv[1]

def spend(ledger):
    with reserve(ledger) as reservation:
        reservation.commit(b"x")
    return reservation.sequence

def in_child(work, fork=os.fork):
    "Run work in a child; return what it returned, or the code of its refusal."
    reading, writing = os.pipe()
    child = fork()
    if child == 0:
        try:
            outcome = repr(work())
        except LedgerError as error:
            outcome = error.code
        except BaseException as error:
            outcome = repr(error)
        os.write(writing, outcome.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as report:
        outcome = report.read()
    os.waitpid(child, 0)
    return outcome
"""

CLOSED_ABOVE = """
ledger = opened(path)
spend(ledger)
turns = [os.pipe(), os.pipe()]
child = os.fork()
if child == 0:
    own = opened(path) if sys.argv[2] == "fresh" else ledger
    numbers = [spend(own)]
    os.write(turns[0][1], b"!")
    os.read(turns[1][0], 1)
    numbers.append(spend(own))
    print("child", *numbers, flush=True)
    os._exit(0)
os.read(turns[0][0], 1)
ledger.close()  # the last one, for all that the system knows of a child that inherited its locks
with opened(path) as newcomer:
    print("newcomer", spend(newcomer), flush=True)
os.write(turns[1][1], b"!")
os.waitpid(child, 0)
with opened(path) as ledger:
    ledger.verify()
    print("charged", *(entry.sequence for entry in ledger.history()))
"""

AMONG_THREADS = """
ledger = opened(path, 1000)
spend(ledger)
stop = threading.Event()
counts = []

def work():
    number = 0
    while not stop.is_set():
        spend(ledger)
        number += 1
    counts.append(number)

threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads: thread.start()

def child():
    "Use what was inherited, then what is opened afresh, and close both."
    spend(ledger)
    ledger.close()
    with opened(path, 1000) as own:
        spend(own)
    return "well"

for _ in range(10):
    time.sleep(0.01)
    print(in_child(child), flush=True)
stop.set()
for thread in threads: thread.join()
ledger.verify()
print(len(list(ledger.entries())) == sum(counts) + 21)
"""

REMEMBERED = """
opened(path).close()
with opened(path) as ledger:
    before = ledger.head().sequence  # read, and remembered, by a connection that has written nothing
    number = int(in_child(lambda: spend(ledger)))
    print(ledger.head().sequence - before, spend(ledger) - number, ledger.verify() == ledger.head())
"""

OWN = """
ledger = opened(path)
Desk.at(f"{path}-desk", ledger.path, create=True)
spend(ledger)
place = ledger._journal._clerk._place

def child():
    "Spend in another thread, and tell whether its place at the desk is another than the parent's."
    done = []
    thread = threading.Thread(target=lambda: done.append(spend(ledger)))
    thread.start()
    thread.join(20)
    own = ledger._journal._clerk._place
    return len(done), place is not None, own not in (None, place), Desk._known[f"{path}-desk"]._own == {own}

print(in_child(child))
with reserve(ledger, idempotency_key="k"):
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.close(writing)
        os.read(reading, 1)  # until the parent is gone
        try:
            reserve(ledger, idempotency_key="k")
        except LedgerError as error:
            print(error.code, flush=True)
        os._exit(0)
    sys.stdout.flush()
    os.close(reading)
    os._exit(0)  # as if killed: what it was working on is burnt
"""

UNTOLD = """
ledger = opened(path)
spend(ledger)
fork = ctypes.PyDLL(None).fork  # as foreign code forks: nobody is told
print(in_child(lambda: spend(ledger), fork), in_child(lambda: opened(path), fork))
with ledger._journal.writing():
    print(in_child(lambda: spend(ledger)), in_child(lambda: opened(path)))
print(spend(ledger) and "parent", ledger.verify() == ledger.head())
print(in_child(lambda: spend(ledger) and "child"))
print(len(ledger.history()))
"""

GUARDED = """
ledger = opened(path)
spend(ledger)
for guard in (Desk._guard, Liveness._guard, ledger._journal._turns._lock):
    held, go = threading.Event(), threading.Event()
    def hold():
        with guard:
            held.set()
            go.wait()
    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    print(in_child(lambda: reserve(ledger, idempotency_key=str(id(guard))).sequence and "well"), flush=True)
    go.set()
    thread.join()
"""


@pytest.mark.parametrize("connection", ["inherited", "fresh"])
def test_a_child_loses_nothing_when_its_parent_closes(tmp_path: Path, connection: str) -> None:
    """With locks copied by the fork, the log would be deleted under the child, and its charge with it."""
    outcome = said(BEGIN + CLOSED_ABOVE, tmp_path / "a", connection)
    numbers = {line.split()[0]: [int(word) for word in line.split()[1:]] for line in outcome}
    assert len(numbers["child"]) == 2 and len(numbers["newcomer"]) == 1
    assert {*numbers["child"], *numbers["newcomer"]} < set(numbers["charged"])
    assert len(numbers["charged"]) == 4


def test_forks_among_threads_that_spend_neither_hang_nor_lose_anything(tmp_path: Path) -> None:
    assert said(BEGIN + AMONG_THREADS, tmp_path / "a") == ["'well'"] * 10 + ["True"]


def test_a_parent_does_not_go_by_what_it_read_before_the_fork(tmp_path: Path) -> None:
    assert said(BEGIN + REMEMBERED, tmp_path / "a") == ["2 2 True"]


def test_a_child_has_locks_of_its_own_and_none_of_its_parents(tmp_path: Path) -> None:
    """Its threads are not kept waiting, its place is another, and what its parent left undone is burnt."""
    assert said(BEGIN + OWN, tmp_path / "a") == ["(1, True, True, True)", "SF607"]


def test_a_child_that_inherited_a_connection_is_refused(tmp_path: Path) -> None:
    """After a fork that nobody was told of, and one in the middle of a transaction; the parent goes on."""
    outcome = said(BEGIN + UNTOLD, tmp_path / "a")
    assert outcome == ["SF601 SF601", "SF601 SF601", "parent True", "'child'", "3"]


def test_a_child_waits_for_no_lock_of_a_thread_that_it_does_not_have(tmp_path: Path) -> None:
    assert said(BEGIN + GUARDED, tmp_path / "a") == ["'well'"] * 3
