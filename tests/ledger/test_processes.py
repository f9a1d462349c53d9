"""Several processes on one ledger: races, forks, and workers that are killed."""

from __future__ import annotations

import threading
from fractions import Fraction as F
from pathlib import Path

import pytest

from sfumato.errors import BudgetExceeded, LedgerError
from tests.ledger.accounts import answer, opened, reserve
from tests.processes import start

SPEND = """
import sys
from sfumato.errors import BudgetExceeded
from tests.ledger.accounts import answer, opened
ledger = opened(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
outcomes = []
for _ in range(50):
    try:
        answer(ledger)
        outcomes.append(True)
    except BudgetExceeded:
        outcomes.append(False)
print(sum(outcomes), len(outcomes))
"""

ASK = """
import sys, threading, time
from tests.ledger.accounts import opened, reserve
ledgers = [opened(sys.argv[1]) for _ in range(5)]
print("ready", flush=True)
sys.stdin.readline()
said = []
def ask(ledger, number):
    with reserve(ledger, idempotency_key="k") as reservation:
        if reservation.replayed is None:
            time.sleep(0.05)
            reservation.commit(f"{sys.argv[2]}.{number}".encode())
            said.append("made")
        else:
            said.append(reservation.replayed.decode())
threads = [threading.Thread(target=ask, args=(ledger, number)) for number, ledger in enumerate(ledgers)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(*said)
"""

FORK = """
import os, sys
from sfumato.errors import LedgerError
from tests.ledger.accounts import answer, opened
place = sys.argv[1]
ledger = opened(None if place == "memory" else place)
answer(ledger)
children = []
for _ in range(4):
    child = os.fork()
    if child == 0:
        try:
            for _ in range(5):
                answer(ledger)
        except LedgerError as error:
            os._exit(7 if "forked" in error.message else 8)
        except BaseException:
            os._exit(9)
        os._exit(0)
    children.append(child)
codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
answer(ledger)
print(*codes, ledger.spent("person") * 100, ledger.verify().sequence > 0)
"""


def run_together(script: str, count: int, *arguments: object) -> list[str]:
    """Start processes, let them begin at one time, and return what each of them printed."""
    workers = [start(script, *arguments, number) for number in range(count)]
    for worker in workers:
        assert worker.stdout is not None and worker.stdout.readline() == "ready\n"
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    said = [worker.communicate()[0] for worker in workers]
    assert [worker.returncode for worker in workers] == [0] * count
    return said


def test_eight_processes_race_for_a_hundred_spends(folder):
    """Each of 400 calls is answered within the stated wait (else SF604 would end its process)."""
    opened(folder / "a").close()
    outcomes = [tuple(map(int, said.split())) for said in run_together(SPEND, 8, folder / "a")]
    assert sum(granted for granted, _ in outcomes) == 100
    assert all(asked == 50 for _, asked in outcomes)
    with opened(folder / "a") as ledger:
        assert ledger.remaining("person") == 0 and len(ledger.history()) == 100
        assert all(entry.committed for entry in ledger.history())
        ledger.verify()


def test_processes_that_begin_a_ledger_at_once_begin_one(soaked_folder):
    outcomes = run_together(SPEND, 3, soaked_folder / "a")
    assert sum(int(said.split()[0]) for said in outcomes) == 100
    with opened(soaked_folder / "a") as ledger:
        ledger.verify()
    if isinstance(soaked_folder, Path):
        assert [path.name for path in soaked_folder.iterdir() if path.name.endswith(".new")] == []


def test_twenty_callers_with_one_key_get_one_answer(soaked_folder):
    """Four processes of five threads ask at once: one pays and makes the answer, the others get its bytes."""
    opened(soaked_folder / "a").close()
    said = "".join(run_together(ASK, 4, soaked_folder / "a")).split()
    assert len(said) == 20 and said.count("made") == 1
    assert len(set(said)) == 2
    with opened(soaked_folder / "a") as ledger:
        assert ledger.spent("person") == F(1, 100)
        assert answer(ledger, idempotency_key="k").decode() in said


def test_an_answer_that_arrives_while_one_looks_is_not_taken_for_burnt(folder, monkeypatch):
    """The first commits just before the second asks whether it is alive: the second must look again."""
    with (
        opened(folder / "a") as first,
        opened(folder / "a") as second,
        reserve(first, idempotency_key="k") as reservation,
    ):
        reservations = type(second._journal.open_reservations)

        def late(self: object, sequence: int) -> bool:
            if reservation._open:
                reservation.commit(b"made")
            return False

        monkeypatch.setattr(reservations, "alive", late)
        assert answer(second, idempotency_key="k") == b"made"


def test_threads_share_one_ledger(folder):
    with opened(folder / "a", epsilon=F(1, 2)) as ledger:
        granted = []

        def spend() -> None:
            for _ in range(10):
                try:
                    answer(ledger)
                except BudgetExceeded:
                    continue
                granted.append(1)

        threads = [threading.Thread(target=spend) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(granted) == 50 and ledger.remaining("person") == 0
        ledger.verify()


def test_forked_children_spend_from_the_same_budget(folder):
    said, _ = start(FORK, folder / "a").communicate()
    assert said.split() == ["0", "0", "0", "0", "22", "True"]


def test_a_forked_child_cannot_use_a_ledger_in_memory():
    said, _ = start(FORK, "memory").communicate()
    assert said.split() == ["7", "7", "7", "7", "2", "True"]


def test_whoever_finds_a_writer_at_work_waits_no_longer_than_stated(folder):
    with opened(folder / "a") as busy, opened(folder / "a", wait=0.05) as ledger:
        with busy._journal.writing():
            with pytest.raises(LedgerError) as refusal:
                reserve(ledger)
            assert refusal.value.code == "SF604" and "nothing was charged" in str(refusal.value)
            assert ledger.spent("person") == 0  # reading goes on
        with reserve(ledger) as reservation:
            with busy._journal.writing(), pytest.raises(LedgerError) as refusal:
                reservation.commit(b"noisy")
            assert refusal.value.code == "SF604"
            assert refusal.value.hints == (
                "what was reserved before stays charged, and nothing was answered",
            )
            reservation.commit(b"noisy")
        assert ledger.spent("person") == F(1, 100) and ledger.history()[0].committed


@pytest.mark.parametrize(
    ("place", "share", "kills"),
    [
        ("tmp_path", 4, 140),
        ("databases", 16, 54),
        pytest.param("tmp_path", 1, 510, marks=pytest.mark.soak),
        pytest.param("databases", 4, 140, marks=[pytest.mark.soak, pytest.mark.timeout(1200)]),
    ],
)
def test_a_killed_worker_loses_nothing_that_was_answered(request, place, share, kills):
    """Killed at random moments among other writers, at every step, before every statement (see `kills`).

    A kill leaves the page cache alone: this shows order and atomicity, not that the disk kept its word.
    """
    script = "import sys; from tests.ledger.kills import main; from tests.ledger.places import folder_of\n"
    folder = request.getfixturevalue(place)
    worker = start(script + "main(folder_of(sys.argv[1]), int(sys.argv[2]))", folder, share)
    said, _ = worker.communicate()
    assert worker.returncode == 0 and said.startswith(f"killed {kills} answered"), said


@pytest.mark.parametrize("kills", [3, pytest.param(24, marks=pytest.mark.soak)])
def test_whoever_asks_and_is_killed_was_charged_for_all_that_was_answered(tmp_path, soaked_folder, kills):
    """Kills through the whole path, from a project file to a signed release (see `killed_answers`)."""
    script = "import sys; from pathlib import Path; from tests.ledger.killed_answers import main\n"
    script += "main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))"
    worker = start(script, tmp_path, soaked_folder / "people", kills)
    said, _ = worker.communicate()
    assert worker.returncode == 0 and said.startswith(f"killed {kills} answered"), said
    assert int(said.split()[-1]) >= kills // 2, "every second one is killed after its first answer"
