"""Workers that are killed while they spend; run in a process of its own, because it forks.

Each round forks a worker, which spends and reports what it was answered through a pipe; it is killed
with SIGKILL at a random moment, or kills itself as it is about to send its n-th statement to SQLite.
Then the ledger is opened afresh and compared with the reports.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from sfumato.errors import LedgerError
from tests.ledger.accounts import opened, raw, reserve

RANDOM_KILLS = 40
STEPS = 40


def work(path: Path, report: int, statements: int | None, key: str | None) -> None:
    """Spend until killed, telling of each reservation and each commit once it has returned."""
    ledger = opened(path, epsilon=1000)
    left = statements or 0

    def trace(_: str) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    if statements is not None:
        raw(ledger).set_trace_callback(trace)
    while True:
        with reserve(ledger, idempotency_key=key) as reservation:
            os.write(report, b"r%d\n" % reservation.sequence)
            reservation.commit(b"release %d" % reservation.sequence)
            os.write(report, b"c%d\n" % reservation.sequence)
        key = None


def killed(path: Path, *, statements: int | None = None, key: str | None = None) -> list[str]:
    """Run one worker until it is dead; return what it said."""
    reading, writing = os.pipe()
    worker = os.fork()
    if worker == 0:
        try:
            os.close(reading)
            work(path, writing, statements, key)
        finally:
            os._exit(1)
    os.close(writing)
    if statements is None:
        time.sleep(int.from_bytes(os.urandom(2), "big") / 2**16 * 0.06)
        os.kill(worker, signal.SIGKILL)
    _, status = os.waitpid(worker, 0)
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL, status
    with os.fdopen(reading) as said:
        return said.read().split()


def check(path: Path, said: list[str], answered: set[int]) -> None:
    """See that the ledger is sound and holds at least what was answered."""
    with opened(path, epsilon=1000) as ledger:
        ledger.verify()
        history = {entry.sequence: entry for entry in ledger.history("person")}
        for word in said:
            sequence = int(word[1:])
            assert sequence in history, "an answered reservation is lost"
            if word[0] == "c":
                assert ledger.release(sequence) == b"release %d" % sequence, "an answered release is lost"
            answered.add(sequence)
        assert ledger.spent("person") == sum(entry.cost for entry in history.values())
        assert ledger.spent("person") * 100 == len(history) >= len(answered)


def refused_as_burnt(path: Path, key: str) -> bool | None:
    """Return whether a key whose worker was killed is burnt; None if it was never reserved or answered."""
    with opened(path, epsilon=1000) as ledger:
        entries = [entry for entry in ledger.history() if entry.key == key]
        if not entries or entries[0].committed:
            return None
        try:
            reserve(ledger, idempotency_key=key)
        except LedgerError as error:
            return error.code == "SF607"
        return False


def main(folder: Path) -> None:
    """Kill, and kill again; a fresh ledger now and then, so that some kills meet a young one."""
    kills, answered = 0, 0
    for path, rounds in ((folder / str(number), RANDOM_KILLS // 5) for number in range(5)):
        so_far: set[int] = set()
        for _ in range(rounds):
            check(path, killed(path), so_far)
        kills, answered = kills + rounds, answered + len(so_far)
    path, so_far, seen, burnt = folder / "steps", set(), set(), 0
    for statements in range(STEPS):
        said = killed(path, statements=statements, key=f"key {statements}")
        check(path, said, so_far)
        verdict = refused_as_burnt(path, f"key {statements}")
        assert verdict is not False
        seen.add("".join(word[0] for word in said))
        burnt += verdict is True
    # Some died before the first reservation, some between it and its commit, some after that.
    assert seen >= {"", "r", "rc"} and burnt > 0
    print(f"killed {kills + STEPS} answered {answered + len(so_far)}")
