"""The events workload on PostgreSQL, beside the plain query that any user-level answer contains.

    W1         per region COUNT(*) and SUM(amount in [0, 100]), at most 3 regions per user
    W2         per word COUNT(*), keys not declared, at most 5 words per user
    histogram  per region the cells of age, at most 3 regions per user
    distinct   per region the number of different words, at most 3 regions and 5 words per user

The floor is GROUP BY user, key with COUNT(*) and SUM(amount), consumed by the server itself: with settings
as below, and again with those of our transactions; the faster one counts. Both sides are timed in turns, from
the client, with all that it does. First it is checked that without caps on groups and values the same
statements give the same integers as DuckDB's backend.

    python bench/postgres.py [rows]
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import psycopg
from events import QUERIES, catalog_of, generate
from report import Row, show

sys.path.insert(0, str(Path(__file__).parent.parent))

from sfumato.analysis.bounded import BoundedQuery, Measure, MeasureKind
from sfumato.backends import open_tables
from sfumato.backends.duckdb import DuckDBBackend
from sfumato.backends.postgres.backend import PostgresBackend
from sfumato.backends.postgres.source import PostgresTables
from sfumato.catalog import Kind
from sfumato.plan.tree import ColumnRef
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
FLOOR = (
    "SELECT sum(n), sum(s) FROM"
    " (SELECT user_id, {key}, count(*) AS n, sum(amount) AS s FROM events GROUP BY user_id, {key}) AS g"
)
TABLE = (
    'CREATE TABLE events (user_id bigint, user_name text COLLATE "C", region text COLLATE "C",'
    ' word text COLLATE "C", amount double precision, age integer)'
)
WORDS = Measure(
    name="d",
    kind=MeasureKind.DISTINCT,
    value=ColumnRef(name="events.word", kind=Kind.TEXT),
    max_values=5,
    sensitivity=15,
)
ASKED: dict[
    str, tuple[BoundedQuery, str, float | None]
] = {  # with the key of the floor, and the most allowed
    "W1": (QUERIES["W1"], "region", 1.2),
    "W2": (QUERIES["W2"], "word", 2.0),
    "histogram": (replace(QUERIES["W1"], measures=QUERIES["W3"].measures), "region", 2.2),
    "distinct": (replace(QUERIES["W1"], measures=(WORDS,)), "region", 2.2),
}


def postgres_rows(*, rows: int = 10_000_000, times: int = 5) -> list[Row]:
    """Start a server, load the events, compare with DuckDB's integers, and measure in turns."""
    programs = find_or_install()
    if programs is None:
        raise SystemExit(ABSENT)
    with tempfile.TemporaryDirectory() as folder, Server(programs, **ANALYTIC) as server:
        path = Path(folder) / "events.duckdb"
        generate(path, rows)
        _load(path, server.address)
        backend = _backend(server.address)
        _compare(path, backend)
        return _race(server.address, backend, rows, times)


def _load(path: Path, address: str) -> None:
    """Copy the table through a pipe, and let the server look at it."""
    write = "import duckdb, sys; duckdb.connect(sys.argv[1], read_only=True).execute(sys.argv[2])"
    copy = "COPY events TO '/dev/stdout' (FORMAT csv, HEADER false)"
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


def _compare(path: Path, backend: PostgresBackend) -> None:
    """Hold the integers against DuckDB's; each engine has its own hash, so caps that choose are lifted."""
    source = open_tables({"events": path})
    other = DuckDBBackend(source, catalog_of(source, "user_id"))
    for name, (query, _, _) in ASKED.items():
        measures = tuple(
            replace(one, max_values=10**6) if one.kind is MeasureKind.DISTINCT else one
            for one in query.measures
        )
        lifted = replace(query, measures=measures, max_groups=10**6)
        [ours], [theirs] = backend.run(lifted).reveal(), other.run(lifted).reveal()
        if list(ours.keys) != list(theirs.keys):
            raise SystemExit(f"{name}: other keys than DuckDB's")
        for one in measures:
            if not np.array_equal(ours.measures[one.name], theirs.measures[one.name]):
                raise SystemExit(f"{name}: other integers than DuckDB's")


def _race(address: str, backend: PostgresBackend, rows: int, times: int) -> list[Row]:
    found = []
    for name, (query, key, most) in ASKED.items():
        plain, same, ours = [], [], []
        for _ in range(times):
            plain.append(_seconds(partial(_floor, address, key, {})))
            ours.append(_seconds(partial(backend.run, query)))
            same.append(_seconds(partial(_floor, address, key, OURS)))
        floor, mine = min(map(statistics.median, (plain, same))), statistics.median(ours)
        title = f"{name} on PostgreSQL, {rows:,} rows: its own GROUP BY user, key"
        found.append(Row(name=title, ours=mine, rival=floor, unit="s", ratio=mine / floor, most=most))
    return found


def _floor(address: str, key: str, settings: dict[str, str]) -> None:
    with psycopg.connect(address) as connection:
        for name, value in settings.items():
            connection.execute(f"SET LOCAL {name} = {value}")
        connection.execute(FLOOR.format(key=key)).fetchall()


def _seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # this role may do more than read
    show(postgres_rows(rows=int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000), {})
