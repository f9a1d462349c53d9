"""Time a ledger on a server: durable spends a second of eight processes, beside bare PostgreSQL.

A spend is a reservation and a commit, each confirmed by the server's disk. The rival does as little as a
program can: two inserts of the same size, each in a transaction of its own, by as many processes. It is run
twice: each process for itself, where the server syncs many commits at once and nobody waits for anybody; and
one writer at a time, as a chain must be written, under the lock that the ledger takes, kept until the commit.
The server is started here with PostgreSQL's own `fsync` and `synchronous_commit`: both are on.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
from report import Row, show

sys.path.insert(0, str(Path(__file__).parent.parent))

from ledger import BODY, HASHES, LOSS, RELEASE, SECONDS, WRITERS

from sfumato.core import PrivacyBudget
from sfumato.core.events import Pure
from sfumato.ledger import Ledger
from sfumato.ledger.postgres.connection import WRITER
from tests.conformance.server import ABSENT, Server, find_or_install


def server_ledger_rows(*, rounds: int = 3) -> Iterator[Row]:
    """Measure in turns; the best round of each counts."""
    programs = find_or_install()
    if programs is None:
        raise SystemExit(ABSENT)
    with Server(programs, fsync="on") as server:
        host = server.address.split()[0].removeprefix("host=")
        address = f"postgresql://postgres@/postgres?host={host}"
        _opened(address).close()
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute("CREATE TABLE t (n bigserial PRIMARY KEY, body text, release bytea)")
        rates: dict[str, list[float]] = {"spend": [], "bare": [], "turns": []}
        for _ in range(rounds):
            for what, measured in rates.items():
                measured.append(_race(what, address))
        with Ledger.open(address) as ledger:
            ledger.verify()
    ours, bare, turns = (max(measured) for measured in rates.values())
    name = f"durable spends/s on a server, {WRITERS} processes"
    yield Row(name=f"{name}: bare PostgreSQL", ours=ours, rival=bare, unit="/s", ratio=ours / bare)
    yield Row(name=f"{name}: one writer at a time", ours=ours, rival=turns, unit="/s", ratio=ours / turns)


def _opened(address: str) -> Ledger:
    ledger = Ledger.open(address)
    ledger.register("person", PrivacyBudget(epsilon=10**9))
    return ledger


def _race(what: str, address: str) -> float:
    command = [sys.executable, __file__, what, address]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    workers = [subprocess.Popen(command, **pipes) for _ in range(WRITERS)]  # type: ignore[call-overload]
    for worker in workers:
        worker.stdout.readline()
    for worker in workers:
        worker.stdin.write("go\n")
        worker.stdin.flush()
    return sum(int(worker.communicate()[0]) for worker in workers) / SECONDS


def _work(what: str, address: str) -> None:
    ledger = _opened(address) if what == "spend" else None
    connection = psycopg.connect(address, autocommit=True)
    print("ready", flush=True)
    sys.stdin.readline()
    count, end = 0, time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        if ledger is not None:
            with ledger.reserve("person", Pure(loss=LOSS), 0, **HASHES) as reservation:
                reservation.commit(RELEASE)
        else:
            for release in (None, RELEASE):
                lock = f"; SELECT pg_advisory_xact_lock({WRITER})" if what == "turns" else ""
                connection.execute(f"BEGIN{lock}")
                connection.execute("INSERT INTO t (body, release) VALUES (%s, %s)", (BODY, release))
                connection.execute("COMMIT")
        count += 1
    print(count)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        _work(*sys.argv[1:])
    else:
        show(server_ledger_rows(), {})
