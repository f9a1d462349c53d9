"""Whoever asks real questions and is killed: charged, computed, noised, stored and signed, or not answered.

Run in a process of its own, because it forks. Each round forks a worker that opens a project as an analyst
does, asks one question after another and tells of each answer once it has it; it is killed with SIGKILL at a
random moment, with another at work beside it. Then the ledger is compared with what they told.
"""

from __future__ import annotations

import json
import os
import select
import signal
import time
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import sfumato as sf
import sfumato.backends.duckdb
import sfumato.plan.sql
from sfumato.ledger import Ledger

QUESTION = "SELECT place, COUNT(*) AS n FROM people GROUP BY place ORDER BY place"
PROJECT = """
ledger = "LEDGER"

[tables.people]
path = "people.parquet"
unit = "person"
max_groups = 1
max_rows = 1
columns.place = { one_of = [0, 1, 2] }

[budget]
epsilon = 100000
"""


def make(folder: Path, place: str) -> None:
    people = {"person": list(range(300)), "place": [number % 3 for number in range(300)]}
    pq.write_table(pa.table(people), folder / "people.parquet")
    (folder / "sfumato.toml").write_text(PROJECT.replace("LEDGER", place))
    Ledger.open(place).close()


def work(folder: Path, report: int) -> None:
    """Ask until killed."""
    db = sf.open(folder / "sfumato.toml")
    while True:
        release = db.sql(QUESTION, epsilon=1).release()
        told = json.dumps([release.receipt["reservation"], release.to_json()])
        os.write(report, f"{told}\n".encode())


def begin(folder: Path) -> tuple[int, int]:
    reading, writing = os.pipe()
    worker = os.fork()
    if worker == 0:
        try:
            os.close(reading)
            work(folder, writing)
        finally:
            os._exit(1)
    os.close(writing)
    return worker, reading


def told(worker: int, reading: int) -> list[tuple[int, str]]:
    """Kill a worker; return the answers that it told of, as far as it came with the last one."""
    os.kill(worker, signal.SIGKILL)
    with os.fdopen(reading, "rb") as said:
        lines = said.read().split(b"\n")[:-1]
    _, status = os.waitpid(worker, 0)
    assert os.WIFSIGNALED(status), "it died by itself"
    return [(int(number), text) for number, text in map(json.loads, lines)]


def compare(place: str, answers: Iterable[tuple[int, str]]) -> int:
    """See that the ledger is sound, holds every answer that was given, and charged each of them."""
    given = dict(answers)
    with Ledger.open(place, create=False) as ledger:
        ledger.verify()
        spent = ledger.spent("person") if ledger.units() else Fraction(0)
        charges = ledger.history()  # read later: the other goes on asking
        assert all(ledger.release(number).decode() == text for number, text in given.items())
        assert given.keys() <= {charge.sequence for charge in charges if charge.committed}
        assert all(charge.cost == 1 for charge in charges) and len(given) <= spent <= len(charges)
        return len(given)


def main(folder: Path, place: str, kills: int) -> None:
    """Kill, and kill again."""
    make(folder, place)
    answers: list[tuple[int, str]] = []
    workers = [begin(folder) for _ in range(2)]
    for number in range(kills):
        if number % 2:  # while the data is opened, or after the first answer, whenever that is
            select.select([workers[0][1]], [], [])
        time.sleep(int.from_bytes(os.urandom(2), "big") / 2**16 * 0.6)
        answers += told(*workers.pop(0))
        if number + 2 < kills:
            workers.append(begin(folder))
        if number % 10 == 9:
            compare(place, answers)
    answered = compare(place, answers)
    with Ledger.open(place, create=False) as ledger:
        assert ledger.spent("person") == len(ledger.history()), "nobody is at work any more"
    print(f"killed {kills} answered {answered}")
