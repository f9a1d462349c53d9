"""A stream that is killed again and again: every day is published once, with the same bytes, for one charge.

Run in a process of its own, because it forks. Each round forks a worker that opens the data, advances the
stream one day at a time and tells what it was given of each; it is killed with SIGKILL at a random moment.
Then another one goes on. A stream that is over is followed by the next one.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import select
import signal
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import sfumato as sf
from sfumato.continual.stored_outputs import stored_output
from sfumato.session.stream import Stream
from tests.continual.visits import FIRST, day


def make(folder: Path, days: int) -> None:
    people = range(1000)
    table = {
        "person": list(people),
        "day": pa.array([day(one % days) for one in people], pa.date32()),
        "place": [f"p{one % 3}" for one in people],
    }
    pq.write_table(pa.table(table), folder / "visits.parquet")


def opened(folder: Path, number: int, days: int) -> Stream:
    """Open a stream: every other one has no end, or groups that are not declared and appear over time."""
    db = sf.connect(
        folder / "visits.parquet",
        name="visits",
        unit="person",
        max_rows=1,
        max_groups=1,
        budget=sf.Budget(epsilon=1000, delta=1e-6),
        ledger=folder / "ledger",
    )
    return db.stream(
        "SELECT COUNT(*) AS n FROM visits"
        if number % 2
        else "SELECT place, COUNT(*) AS n FROM visits GROUP BY place",
        name=f"daily-{number}",
        by="day",
        every="day",
        start=FIRST,
        horizon=None if number % 4 in (0, 3) else days,
        epsilon=1,
        participation=sf.Participation(periods=2 if number % 3 else 1, apart=5),
    )


def hashes(stream: Stream) -> dict[int, str]:
    """Return what is published of each day, as hashes."""
    entry, ledger = stream._entry(), stream.database.ledger
    assert entry is not None
    stored = {at: stored_output(ledger, entry.sequence, at) for at in range(1, entry.taken + 1)}
    return {at: hashlib.sha256(one).hexdigest() for at, one in stored.items() if one is not None}


def work(folder: Path, number: int, days: int, report: int) -> None:
    stream = opened(folder, number, days)
    os.write(report, b"ready\n")
    for until in range(1, days + 1):
        stream.advance(day(until))
        os.write(report, f"{json.dumps(sorted(hashes(stream).items())[-1])}\n".encode())


def killed(folder: Path, number: int, days: int, patience: float) -> tuple[list[tuple[int, str]], bool]:
    """Return what a worker told before it was killed, and whether it was: it may have come to the end."""
    reading, writing = os.pipe()
    worker = os.fork()
    if worker == 0:
        try:
            os.close(reading)
            work(folder, number, days, writing)
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb", buffering=0) as said:
        assert said.read(6) == b"ready\n"
        select.select([], [], [], random.uniform(0, patience))
        os.kill(worker, signal.SIGKILL)
        lines = said.readall().split(b"\n")[:-1]
    _, status = os.waitpid(worker, 0)
    return [(int(at), text) for at, text in map(json.loads, lines)], os.WIFSIGNALED(status)


def main(folder: Path, kills: int, days: int, patience: float) -> None:
    make(folder, days)
    done, number = 0, 1
    told: dict[tuple[int, int], str] = {}
    while done < kills:
        found, was_killed = killed(folder, number, days, patience)
        done += was_killed
        for at, text in found:
            assert told.setdefault((number, at), text) == text, "a day was published twice, differently"
        if not was_killed:
            number += 1
    for one in range(1, number + 1):
        stream = opened(folder, one, days)
        stream.advance(day(days))
        published = hashes(stream)
        assert sorted(published) == list(range(1, days + 1))
        assert all(published[at] == text for (which, at), text in told.items() if which == one)
    ledger = stream.database.ledger
    entries = [entry for entry in ledger.entries() if entry.key is not None]
    assert len(entries) == number and all(entry.taken == days for entry in entries), "one charge for each"
    assert stream.database.balance.spent_units == sum(
        stream.database.terms.rule.charge(entry.event) for entry in entries
    )
    ledger.verify()
    print(f"{done} kills, {number} streams, {len(told)} days told")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))
