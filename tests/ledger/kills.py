"""Workers that are killed while they spend; run in a process of its own, because it forks.

Each round forks a worker, which spends and reports what it was answered (r, c) through a pipe. It is killed
with SIGKILL at a random moment, with others at work beside it; or it kills itself at a step of the path
(before and after the reservation, during the query, before and after the commit), or as it is about to send
its n-th statement to the database. Then the ledger is compared with the reports.
"""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from pathlib import Path

from sfumato.errors import LedgerError
from sfumato.ledger import Ledger
from tests.ledger.accounts import before_each_statement, opened, reserve
from tests.ledger.places import Databases

RANDOM_KILLS = 400
AT_ONCE = 4
STATEMENTS = 50
STEPS = ("before reserve", "after reserve", "query", "before commit", "after commit")
EACH_STEP = 12
EPSILON = 100_000


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def work(
    path: Path | str, report: int, *, step: str | None, before: int, statements: int | None, key: str
) -> None:
    """Spend until killed, telling of each reservation and each commit once it has returned.

    `before` spends pass unharmed; then it dies at a step, or after a number of statements.
    """
    ledger = opened(path, epsilon=EPSILON)
    left = statements or 0

    def trace(_: str) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            die()

    if statements is not None:
        before_each_statement(ledger, trace)
    spends = 0
    while True:
        now = step if spends == before else None
        if now == "before reserve":
            die()
        request = f"{key} {spends}"
        only = key if spends == before else None
        with reserve(ledger, idempotency_key=only, request_hash=request) as reservation:
            if now == "after reserve":
                die()
            os.write(report, b"r%d\n" % reservation.sequence)
            if now == "query":
                die()
            release = b"release %d" % reservation.sequence
            if now == "before commit":
                die()
            reservation.commit(release)
            if now == "after commit":
                die()
            os.write(report, b"c%d\n" % reservation.sequence)
        spends += 1


def start(path: Path | str, **how: object) -> tuple[int, int]:
    """Fork a worker; return its process and the end of the pipe that it reports through."""
    reading, writing = os.pipe()
    worker = os.fork()
    if worker == 0:
        try:
            os.close(reading)
            settings = {"step": None, "before": 0, "statements": None, "key": "k", **how}
            work(path, writing, **settings)  # type: ignore[arg-type]
        finally:
            os._exit(1)
    os.close(writing)
    return worker, reading


def reaped(worker: int, reading: int) -> list[str]:
    """Wait until a worker is dead; return what it said."""
    _, status = os.waitpid(worker, 0)
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL, status
    with os.fdopen(reading) as said:
        return said.read().split()


def compare(ledger: Ledger, said: list[str]) -> None:
    """See that the ledger holds at least what was answered."""
    for word in said:
        sequence = int(word[1:])
        (entry,) = ledger.history(after=sequence - 1, limit=1)
        assert entry.sequence == sequence, "an answered reservation is lost"
        if word[0] == "c":
            assert ledger.release(sequence) == b"release %d" % sequence, "an answered release is lost"


def audit(ledger: Ledger, answered: int) -> None:
    """See that the ledger is sound, adds up, and holds no less than what was answered."""
    ledger.verify()
    requests = [entry.request_hash for entry in ledger.entries()]
    assert ledger.spent("person") * 100 == len(requests) >= answered
    assert len(set(requests)) == len(requests), "one call was charged twice"


def random_kills(folder: Path | Databases, share: int) -> tuple[int, int]:
    """Kill one of four at a random moment and start another; a fresh ledger now and then."""
    kills, answered, each = 0, 0, RANDOM_KILLS // (4 * share)
    for number in range(4):
        path = folder / str(number)
        so_far, words = 0, list[str]()
        workers = [start(path, key=f"first {one}") for one in range(AT_ONCE)]
        for round_ in range(each):
            time.sleep(int.from_bytes(os.urandom(2), "big") / 2**16 * 0.03)
            worker, reading = workers.pop(0)
            os.kill(worker, signal.SIGKILL)
            words += reaped(worker, reading)
            kills += 1
            if round_ + AT_ONCE < each:
                workers.append(start(path, key=f"{number} {round_}"))
            if round_ % 10 == 9:
                with opened(path, epsilon=EPSILON) as ledger:
                    compare(ledger, words)
                so_far += sum(word[0] == "r" for word in words)
                words.clear()
        with opened(path, epsilon=EPSILON) as ledger:
            audit(ledger, so_far)
        answered += so_far
    return kills, answered


def outcome(ledger: Ledger, key: str) -> str:
    """Return what became of a key whose worker was killed: unknown, burnt or answered."""
    entries = [entry for entry in ledger.entries() if entry.key == key]
    if not entries:
        return "unknown"
    try:
        with reserve(ledger, idempotency_key=key, request_hash=entries[0].request_hash) as reservation:
            assert reservation.replayed == b"release %d" % reservation.sequence
            return "answered"
    except LedgerError as error:
        assert error.code == "SF607", error
        return "burnt"


def step_kills(folder: Path | Databases, share: int) -> tuple[int, int]:
    """Die at each named step, after a few spends; what became of the key is known exactly."""
    expected = dict(zip(STEPS, ("unknown", "burnt", "burnt", "burnt", "answered"), strict=True))
    path, kills, answered = folder / "steps", 0, 0
    for step in STEPS:
        for number in range(0, EACH_STEP, share):
            key = f"{step} {number}"
            said = reaped(*start(path, step=step, before=number % 4, key=key))
            answered += sum(word[0] == "r" for word in said)
            kills += 1
            with opened(path, epsilon=EPSILON) as ledger:
                compare(ledger, said)
                assert outcome(ledger, key) == expected[step], step
    with opened(path, epsilon=EPSILON) as ledger:
        audit(ledger, answered)
    return kills, answered


def statement_kills(folder: Path | Databases, share: int) -> tuple[int, int]:
    """Die before the n-th statement, for every n of the first two spends and more."""
    path, answered, seen = folder / "statements", 0, Counter[str]()
    rounds = range(0, STATEMENTS, min(share, 2))  # a spend on a server is a few statements
    for statements in rounds:
        key = f"key {statements}"
        said = reaped(*start(path, statements=statements, key=key))
        answered += sum(word[0] == "r" for word in said)
        with opened(path, epsilon=EPSILON) as ledger:
            compare(ledger, said)
            seen[outcome(ledger, key)] += 1
    with opened(path, epsilon=EPSILON) as ledger:
        audit(ledger, answered)
    assert set(seen) == {"unknown", "burnt", "answered"}, seen  # before, between and after
    return len(rounds), answered


def main(folder: Path | Databases, share: int) -> None:
    """Kill, and kill again: all of it, or every so many."""
    counts = [kind(folder, share) for kind in (random_kills, step_kills, statement_kills)]
    print(f"killed {sum(kills for kills, _ in counts)} answered {sum(number for _, number in counts)}")
