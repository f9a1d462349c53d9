"""Time the ledger: durable spends a second with eight writers, beside bare SQLite, on a short and a long one.

A spend is a reservation and a commit, each confirmed by the disk. The rival does as little as a
program can: two inserts of the same size into a table, each in a transaction of its own, by as many
processes, with a write-ahead log and `synchronous=FULL`. It is run twice. With SQLite's own way of waiting,
whoever has the lock tends to keep it while the others sleep, for seconds: in a good round that is the speed
of one writer alone. Waiting as the ledger does, everybody is served. All are run one after the other,
round by round, in the same folder; the longest wait of each is shown.

Eight writers are threads of one process, as in a server, which are held to a share of bare SQLite; or eight
processes, which are not. Why: docs/decisions/2026-11-17-no-desk.md.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

from report import Row, show

from sfumato.core import PrivacyBudget
from sfumato.core.events import Pure
from sfumato.ledger import OWNER, Head, Ledger
from sfumato.ledger.connection import begin

WRITERS = 8
SECONDS = 3.0
SHORT = 1000
LOSS = Fraction(1, 1000)
LEAST = 1000
SHARE = 0.6
BODY, RELEASE = "x" * 700, b"y" * 200
HASHES = {"request_hash": "r" * 64, "data_version": "1", "policy_hash": "p" * 64, "analyst": OWNER}


def ledger_rows(*, rounds: int = 3, records: int = 1_000_000) -> Iterator[Row]:
    """Measure in turns; the best round of each counts, as everywhere in this benchmark."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("SFUMATO_BENCH_DIR")) as folder:
        short, long, bare = (Path(folder) / name for name in ("short.ledger", "long.ledger", "bare.sqlite"))
        _fill(short, SHORT)
        with Ledger.open(short) as ledger:
            ledger.verify()  # what `_fill` writes is what a ledger writes
        _open_bare(bare).close()
        if records:
            _fill(long, records)
        races = {"spend": short, "bare": bare, "spend alone": short, "bare alone": bare, "turns alone": bare}
        races |= {"long": long} if records else {}
        rates: dict[str, list[float]] = {what: [] for what in races}
        waits: dict[str, list[float]] = {what: [] for what in races}
        for _ in range(rounds):
            for what, path in races.items():
                rate, wait, _ = _race(what, path)
                rates[what].append(rate)
                waits[what].append(wait)
        ours, theirs, apart, bare_apart, turns_apart = (max(rates[what]) for what in list(races)[:5])
        spends = f"durable spends/s, {WRITERS} writers"
        alone = f"durable spends/s, {WRITERS} processes"
        yield from [
            Row(name=f"{spends}, of {LEAST}", ours=ours, rival=None, unit="/s", ratio=ours / LEAST, least=1),
            Row(name=f"{spends}: bare SQLite", ours=ours, rival=theirs, unit="/s", ratio=ours / theirs,
                least=SHARE),
            Row(name="  longest wait for a spend: bare SQLite", ours=max(waits["spend"]),
                rival=max(waits["bare"]), unit="s", ratio=max(waits["spend"]) / max(waits["bare"])),
            Row(name=f"{alone}: bare SQLite, one keeps the lock", ours=apart, rival=bare_apart, unit="/s",
                ratio=apart / bare_apart),
            Row(name=f"{alone}: bare SQLite that waits as we do", ours=apart, rival=turns_apart, unit="/s",
                ratio=apart / turns_apart),
            Row(name="  longest wait for a spend: bare SQLite", ours=max(waits["spend alone"]),
                rival=max(waits["bare alone"]), unit="s",
                ratio=max(waits["spend alone"]) / max(waits["bare alone"])),
        ]  # fmt: skip
        if records:
            last = max(rates["long"])
            yield Row(
                name=f"{spends}, after {records:,} records: after {SHORT:,}",
                ours=last,
                rival=ours,
                unit="/s",
                ratio=last / ours,
                least=0.8,
            )


def _open(path: Path) -> Ledger:
    ledger = Ledger.open(path)
    ledger.register("person", PrivacyBudget(epsilon=10**9))
    return ledger


def _open_bare(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, timeout=60)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE IF NOT EXISTS t (n INTEGER PRIMARY KEY, body TEXT, release BLOB)")
    return connection


def _fill(path: Path, records: int) -> None:
    """Make a ledger long at once: one spend is made, the others repeat it with numbers and totals."""
    with _open(path) as ledger:
        with ledger.reserve("person", Pure(loss=LOSS), 0, **HASHES) as reservation:
            reservation.commit(RELEASE)
        head, one = ledger.head(), reservation.record.units
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.row_factory = sqlite3.Row
        rows = connection.execute("SELECT * FROM records ORDER BY sequence DESC LIMIT 2").fetchall()[::-1]
        charge, answer = map(dict, rows)
        columns = ", ".join(charge)
        insert = f"INSERT INTO records ({columns}) VALUES ({', '.join('?' * len(charge))})"
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(insert, _copies(charge, answer, one, head, records))
        connection.execute("COMMIT")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _copies(
    charge: dict[str, Any], answer: dict[str, Any], one: int, head: Head, records: int
) -> Iterator[tuple[Any, ...]]:
    first, previous = charge["sequence"], head.hash
    for number, sequence in enumerate(range(head.sequence + 1, records, 2), start=2):
        for row, old, new in (
            (charge, f'"spent":"{one}"', f'"spent":"{one * number}"'),
            (answer, f'"reservation":"{first}"', f'"reservation":"{sequence}"'),
        ):
            here = sequence + (row is answer)
            body = row["body"].replace(old, new)
            body = body.replace(f'"sequence":"{row["sequence"]}"', f'"sequence":"{here}"')
            digest = hashlib.sha256(f"{previous}\n{body}".encode()).hexdigest()
            changed = {**row, "sequence": here, "previous": previous, "hash": digest, "body": body}
            changed["reservation"] = sequence if row is answer else None
            yield tuple(changed.values())
            previous = digest


def _race(what: str, path: Path) -> tuple[float, float, float]:
    """Return spends a second of all writers together, the longest wait, and the median one.

    Writers are threads of one process; or, alone, a process each.
    """
    command = [sys.executable, __file__, what, str(path)]
    processes = WRITERS if what.endswith("alone") else 1
    workers = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(processes)
    ]
    for worker in workers:
        assert worker.stdout is not None
        worker.stdout.readline()
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    said = [worker.communicate()[0].split() for worker in workers]
    counts, longest, medians = zip(*(map(float, words) for words in said), strict=True)
    return sum(counts) / SECONDS, max(longest), statistics.median(medians)


def _work(what: str, path: Path) -> None:
    ledger = _open(path) if what.startswith(("spend", "long")) else None
    threads = 1 if what.endswith("alone") else WRITERS
    waits: list[list[float]] = [[] for _ in range(threads)]
    ends: list[float] = []
    start = threading.Barrier(threads + 1)

    def write(own: list[float]) -> None:
        once = _writer(what, path, ledger)
        start.wait()
        start.wait()
        while (began := time.perf_counter()) < ends[0]:
            once()
            own.append(time.perf_counter() - began)

    workers = [threading.Thread(target=write, args=(own,)) for own in waits]
    for worker in workers:
        worker.start()
    start.wait()
    print("ready", flush=True)
    sys.stdin.readline()
    ends.append(time.perf_counter() + SECONDS)
    start.wait()
    for worker in workers:
        worker.join()
    every = [wait for own in waits for wait in own]
    print(len(every), max(every), statistics.median(every))


def _writer(what: str, path: Path, ledger: Ledger | None) -> Callable[[], None]:
    """Return what one writer does once: a spend, or two commits of bare SQLite on a connection of its own."""
    if ledger is not None:
        event = Pure(loss=LOSS)

        def spend() -> None:
            with ledger.reserve("person", event, 0, **HASHES) as reservation:
                reservation.commit(RELEASE)

        return spend
    connection = _open_bare(path)
    turns = what.startswith("turns")
    if turns:
        connection.execute("PRAGMA busy_timeout = 0")

    def insert() -> None:
        for release in (None, RELEASE):
            if turns:
                begin(connection, "BEGIN IMMEDIATE", time.monotonic() + 60)
            else:
                connection.execute("BEGIN IMMEDIATE")
            connection.execute("INSERT INTO t (body, release) VALUES (?, ?)", (BODY, release))
            connection.execute("COMMIT")

    return insert


if __name__ == "__main__":
    if len(sys.argv) == 3:
        _work(sys.argv[1], Path(sys.argv[2]))
    else:
        show(ledger_rows(records=int(sys.argv[1]) if len(sys.argv) == 2 else 1_000_000), {})
