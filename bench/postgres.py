"""The events workload on PostgreSQL, beside the plain query that any user-level answer contains.

The workload and its floor are those of engines.py. The floor runs with the server's settings, as below, and
again with those of our transactions; the faster one counts. Both sides are timed in turns, from
the client, with all that it does. First it is checked that without caps on groups and values the same
statements give the same integers as DuckDB's backend.

    python bench/postgres.py [rows]
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import psycopg
from engines import ASKED, compare, seconds
from events import catalog_of, generate
from report import Row, show

sys.path.insert(0, str(Path(__file__).parent.parent))

from sfumato.backends.postgres.backend import PostgresBackend
from sfumato.backends.postgres.source import PostgresTables
from tests.conformance.server import ABSENT, Server, find_or_install

__all__ = ["postgres_rows"]

ANALYTIC = {  # of a server with 16 GB for questions like these, on two processors
    "shared_buffers": "4GB",
    "work_mem": "1GB",
    "hash_mem_multiplier": "1",
    "maintenance_work_mem": "1GB",
    "max_parallel_workers": "2",
    "max_parallel_workers_per_gather": "2",
    "max_wal_size": "16GB",
    "jit": "off",
}
OURS = {"jit": "off", "parallel_tuple_cost": "0.01"}  # of our transactions, what plans depend on
TABLE = (
    'CREATE TABLE events (user_id bigint, user_name text COLLATE "C", region text COLLATE "C",'
    ' word text COLLATE "C", amount double precision, age integer)'
)
MOST = {"W1": 1.2, "W2": 2.0, "histogram": 2.2, "distinct": 2.2}


def postgres_rows(*, rows: int = 10_000_000, times: int = 5) -> Iterator[Row]:
    """Start a server, load the events, compare with DuckDB's integers, and measure in turns."""
    programs = find_or_install()
    if programs is None:
        raise SystemExit(ABSENT)
    with tempfile.TemporaryDirectory() as folder, Server(programs, **ANALYTIC) as server:
        path = Path(folder) / "events.duckdb"
        generate(path, rows)
        _load(path, server.address)
        backend = _backend(server.address)
        compare(path, backend)
        yield from _race(server.address, backend, rows, times)


def _load(path: Path, address: str) -> None:
    """Copy the table through a pipe, and let the server look at it."""
    write = "import duckdb, sys; duckdb.connect(sys.argv[1], read_only=True).execute(sys.argv[2])"
    copy = "SET enable_progress_bar = false; COPY events TO '/dev/stdout' (FORMAT csv, HEADER false)"
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(TABLE)
        with (
            subprocess.Popen(
                [sys.executable, "-c", write, str(path), copy], stdout=subprocess.PIPE
            ) as giving,
            connection.cursor().copy("COPY events FROM STDIN (FORMAT csv)") as taking,
        ):
            assert giving.stdout is not None
            while block := giving.stdout.read(2**20):
                taking.write(block)
        connection.execute("VACUUM ANALYZE events")


def _backend(address: str) -> PostgresBackend:
    tables = PostgresTables(address, {"events": ("public", "events")})
    return tables.backend(catalog_of(tables, "user_id"))


def _race(address: str, backend: PostgresBackend, rows: int, times: int) -> Iterator[Row]:
    for name, (query, floor) in ASKED.items():
        plain, same, ours = [], [], []
        for _ in range(times):
            plain.append(seconds(partial(_plainly, address, floor, {})))
            ours.append(seconds(partial(backend.run, query)))
            same.append(seconds(partial(_plainly, address, floor, OURS)))
        least, mine = min(map(statistics.median, (plain, same))), statistics.median(ours)
        title = f"{name} on PostgreSQL, {rows:,} rows: its own GROUP BY user, key"
        yield Row(name=title, ours=mine, rival=least, unit="s", ratio=mine / least, most=MOST[name])


def _plainly(address: str, floor: str, settings: dict[str, str]) -> None:
    with psycopg.connect(address) as connection:
        for name, value in settings.items():
            connection.execute(f"SET LOCAL {name} = {value}")
        connection.execute(floor).fetchall()


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # this role may do more than read
    show(postgres_rows(rows=int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000), {})
