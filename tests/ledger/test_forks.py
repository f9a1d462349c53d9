"""Forks: parent and child go on with connections of their own, and what either charges stays."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from sfumato.ledger import forks
from tests.ledger.places import Databases
from tests.processes import said

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")

BEGIN = """
import ctypes, os, signal, sys, threading, time
from sfumato.errors import LedgerError
from sfumato.ledger import Ledger
from sfumato.ledger.open_reservations import OpenReservations
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
spend(ledger)

def child():
    "Spend in another thread."
    done = []
    thread = threading.Thread(target=lambda: done.append(spend(ledger)))
    thread.start()
    thread.join(20)
    return len(done)

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

ENDED = """
ledger = opened(path)
spend(ledger)
reading, writing = os.pipe()
child = ctypes.PyDLL(None).fork()
if child == 0:
    os.close(writing)
    if sys.argv[2] == "used":
        try: spend(ledger)
        except LedgerError as error: print(error.code, flush=True)
    os.read(reading, 1)
    if sys.argv[2] == "closed": ledger.close()
    sys.exit(0)
ledger.close()
other = os.fork()
if other == 0:
    own = opened(path)
    print(spend(own), flush=True)
    os._exit(9)  # as if killed: what it charged is in the log alone
os.waitpid(other, 0)
os.close(writing)
os.waitpid(child, 0)
with opened(path) as ledger:
    print(*(entry.sequence for entry in ledger.history()))
"""

CONNECTING = """
import sfumato.ledger.store as store
from sfumato.ledger import forks
ledger = opened(path)
spend(ledger)
forks._WAIT = 0.2
in_child(lambda: 0)  # the connection is closed, and will be opened by who spends next
connect, begun, go = store.connect, threading.Event(), threading.Event()

def slow(*arguments):
    made = connect(*arguments)
    begun.set()
    go.wait(20)
    return made

store.connect = slow
thread = threading.Thread(target=spend, args=(ledger,))
thread.start()
begun.wait(20)
print(in_child(lambda: spend(ledger)), in_child(lambda: opened(path)), flush=True)
go.set()
thread.join()
store.connect = connect
print(in_child(lambda: spend(ledger) and "child"), spend(ledger) and "parent", len(ledger.history()))
"""

INTERRUPTED = """
ledger, other = opened(path), opened(sys.argv[2])
spend(ledger), spend(other)
journal = type(ledger._journal)
before = journal.before_fork

def interrupted(self, deadline):
    if self is ledger._journal:
        raise KeyboardInterrupt
    before(self, deadline)

journal.before_fork = interrupted
print(in_child(lambda: spend(ledger)), in_child(lambda: spend(other) and "child"), flush=True)
journal.before_fork = before
done = []
thread = threading.Thread(target=lambda: done.append((spend(ledger), opened(sys.argv[3]).close())))
thread.start()
thread.join(20)
print(len(done), in_child(lambda: spend(ledger) and "child"))
"""

OPENED_MEANWHILE = """
ledger = opened(path)
spend(ledger)
journal = type(ledger._journal)
before, threads, kept = journal.before_fork, [], []

def meanwhile(self, deadline):
    before(self, deadline)
    threads.append(threading.Thread(target=lambda: kept.append(opened(sys.argv[2]))))
    threads[0].start()
    threads[0].join(1)  # it should wait until the fork is over

journal.before_fork = meanwhile
print(in_child(lambda: spend(opened(sys.argv[2])) and "child"), len(threads))
"""

NO_LOG = """
import sfumato.ledger.store as store
from sfumato.ledger import connection
ledger = opened(path)
spend(ledger)
in_child(lambda: 0)
Log, synced = store.Log, []

def failing(path):
    store.Log = Log
    raise OSError(24, "Too many open files")

sync = connection._sync
def watched(file):
    synced.append(os.readlink(f"/proc/self/fd/{file}"))
    sync(file)

store.Log, connection._sync = failing, watched
try: spend(ledger)
except LedgerError as error: print(error.code)
spend(ledger)
print(bool(synced), any("deleted" in name for name in synced), ledger.verify() == ledger.head())
"""

SHARED_RESERVATION = """
ledger = opened(path)
with reserve(ledger) as reservation:
    print(in_child(lambda: reservation.commit(b"child") and "child"), flush=True)
    try: reservation.commit(b"parent")
    except LedgerError as error: print(error.code, ledger.release(reservation.sequence).decode())
ledger.verify()
"""

GUARDED = """
ledger = opened(path)
spend(ledger)
for guard in (OpenReservations._guard, ledger._journal._group._lock):
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
def test_a_child_loses_nothing_when_its_parent_closes(soaked_folder: Path, connection: str) -> None:
    """With locks copied by the fork, the log would be deleted under the child, and its charge with it."""
    outcome = said(BEGIN + CLOSED_ABOVE, soaked_folder / "a", connection)
    numbers = {line.split()[0]: [int(word) for word in line.split()[1:]] for line in outcome}
    assert len(numbers["child"]) == 2 and len(numbers["newcomer"]) == 1
    assert {*numbers["child"], *numbers["newcomer"]} < set(numbers["charged"])
    assert len(numbers["charged"]) == 4


def test_forks_among_threads_that_spend_neither_hang_nor_lose_anything(soaked_folder: Path) -> None:
    assert said(BEGIN + AMONG_THREADS, soaked_folder / "a") == ["'well'"] * 10 + ["True"]


def test_a_parent_does_not_go_by_what_it_read_before_the_fork(soaked_folder: Path) -> None:
    assert said(BEGIN + REMEMBERED, soaked_folder / "a") == ["2 2 True"]


def test_a_child_has_locks_of_its_own_and_none_of_its_parents(soaked_folder: Path) -> None:
    """Its threads are not kept waiting, and what its parent left undone is burnt."""
    assert said(BEGIN + OWN, soaked_folder / "a") == ["1", "SF607"]


def test_a_child_that_inherited_a_connection_is_refused(tmp_path: Path) -> None:
    """After a fork that nobody was told of, and one in the middle of a transaction; the parent goes on."""
    outcome = said(BEGIN + UNTOLD, tmp_path / "a")
    assert outcome == ["SF601 SF601", "SF601 SF601", "parent True", "'child'", "3"]


@pytest.mark.soak
def test_a_child_cannot_use_its_parents_connection_to_a_server(databases: Databases) -> None:
    """Nothing but a connection is shared: one of its own is as good as anybody's."""
    outcome = said(
        BEGIN + UNTOLD.replace("opened(path), fork", "spend(opened(path)) and 'own', fork"), databases / "a"
    )
    assert outcome[0] == "SF601 'own'" and outcome[2:4] == ["parent True", "'child'"]


@pytest.mark.parametrize("child", ["used", "closed", "untouched"])
def test_a_child_that_ends_takes_nobodys_log_with_it(tmp_path: Path, child: str) -> None:
    """It inherited a connection; freed at its end, that would delete a log by name, whoever's it is."""
    outcome = said(BEGIN + ENDED, tmp_path / "a", child)
    assert outcome[:-2] == (["SF601"] if child == "used" else [])
    number, charged = outcome[-2], outcome[-1].split()
    assert len(charged) == 2 and number in charged


def test_a_child_of_a_fork_while_a_ledger_was_being_opened_is_refused(tmp_path: Path) -> None:
    assert said(BEGIN + CONNECTING, tmp_path / "a") == ["SF601 SF601", "'child' parent 4"]


def test_a_fork_whose_preparation_was_interrupted_leaves_nothing_locked(soaked_folder: Path) -> None:
    assert said(BEGIN + INTERRUPTED, *(soaked_folder / name for name in "abc")) == [
        "SF601 'child'",
        "1 'child'",
    ]


def test_no_ledger_is_opened_during_a_fork(soaked_folder: Path) -> None:
    assert said(BEGIN + OPENED_MEANWHILE, *(soaked_folder / name for name in "ab")) == ["'child' 1"]


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="no list of open files")
def test_a_log_that_cannot_be_opened_again_is_not_replaced_by_the_old_one(tmp_path: Path) -> None:
    assert said(BEGIN + NO_LOG, tmp_path / "a") == ["SF601", "True False True"]


def test_a_reservation_that_two_processes_have_is_answered_once(soaked_folder: Path) -> None:
    assert said(BEGIN + SHARED_RESERVATION, soaked_folder / "a") == ["'child'", "SF608 child"]


def test_a_child_waits_for_no_lock_of_a_thread_that_it_does_not_have(soaked_folder: Path) -> None:
    assert said(BEGIN + GUARDED, soaked_folder / "a") == ["'well'"] * 2


def test_a_ledger_that_is_collected_while_others_are_looked_through() -> None:
    """The collector runs in the middle of anything: here, while two files are compared."""
    others = [(-1, number) for number in range(100)]

    class Collected:
        def __eq__(self, other: object) -> bool:
            for each in others:
                forks.count(each, 1)
            return False

        __hash__ = object.__hash__

    file: Any = Collected()
    forks.count(file, 1)
    assert not forks.inherited((-2, 0))
    for each in (*others, file):
        forks.count(each, -1)
