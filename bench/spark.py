"""The events workload on a local Spark, beside its own GROUP BY, and how it grows with the table.

The session is warm: each statement ran once before. Both sides are timed in turns, from the client, with all
that it does. First it is checked that without caps on groups and values the same statements give the same
integers as DuckDB's backend.

    python bench/spark.py [rows]
    python bench/spark.py --growth     W1 over a million, ten and a hundred million rows
"""

from __future__ import annotations

import resource
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
from engines import ASKED, compare, in_turns, seconds
from events import catalog_of, generate
from report import Row, show

sys.path.insert(0, str(Path(__file__).parent.parent))

from sfumato.backends.spark.backend import SparkBackend
from sfumato.backends.spark.source import SparkTables
from tests.conformance.spark_session import ABSENT, Spark, find_or_install

__all__ = ["spark_growth_rows", "spark_rows"]

MOST = {"W1": 1.4, "W2": 2.2, "histogram": 1.8, "distinct": 2.4}
SETTINGS = {
    "spark.driver.memory": "6g",
    "spark.driver.extraJavaOptions": "-XX:+UseParallelGC",
    "spark.sql.shuffle.partitions": "8",
    "spark.default.parallelism": "8",
    "spark.sql.files.maxPartitionBytes": "32m",
    "spark.sql.codegen.wholeStage": "true",  # as Spark is delivered; tests of few rows are interpreted
    "spark.sql.codegen.factoryMode": "FALLBACK",
    "spark.sql.adaptive.enabled": "true",
}


def spark_rows(*, rows: int = 10_000_000, times: int = 5) -> list[Row]:
    """Start a Spark, compare with DuckDB's integers, and measure in turns."""
    found = []
    with tempfile.TemporaryDirectory() as folder, _running() as session:
        backend, path = _opened(session, Path(folder), rows)
        compare(path, backend)
        for name, (query, floor) in ASKED.items():
            plainly = partial(_collected, session, floor)
            backend.run(query)
            plainly()
            ours, plain = in_turns(partial(backend.run, query), plainly, times)
            title = f"{name} on Spark, {rows:,} rows: its own GROUP BY user, key"
            found.append(
                Row(name=title, ours=ours, rival=plain, unit="s", ratio=ours / plain, most=MOST[name])
            )
    return found


def spark_growth_rows(*, times: int = 3) -> list[Row]:
    """Measure W1 over tables each ten times as large, in one JVM whose memory is the same for all."""
    found, before = [], None
    query, _ = ASKED["W1"]
    with tempfile.TemporaryDirectory() as folder, _running() as session:
        for rows in (10**6, 10**7, 10**8):
            backend, _ = _opened(session, Path(folder), rows)
            backend.run(query)
            own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
            now = min(seconds(partial(backend.run, query)) for _ in range(times))
            if before is not None:
                title = f"W1 on Spark, {rows:,} rows: a tenth of them"
                found.append(Row(name=title, ours=now, rival=before, unit="s", ratio=now / before, most=12))
            title = f"W1 on Spark, {rows:,} rows: MiB of the client above those before it"
            more = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10 - own
            found.append(Row(name=title, ours=more, rival=None, unit="MiB", ratio=more, most=64))
            before = now
    return found


def _collected(session: Any, text: str) -> object:
    """Run a statement from its text on: a frame that is collected again would reuse what it has shuffled."""
    return session.sql(text).collect()


@contextmanager
def _running() -> Iterator[Any]:
    java = find_or_install()
    if java is None:
        raise SystemExit(ABSENT)
    with Spark(java, **SETTINGS) as spark:
        yield spark.session


def _opened(session: Any, folder: Path, rows: int) -> tuple[SparkBackend, Path]:
    """Write the events, and open them."""
    path, written = folder / f"{rows}.duckdb", folder / f"{rows}.parquet"
    generate(path, rows)
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"COPY events TO '{written}' (FORMAT parquet)")
    frame = session.read.parquet(str(written))
    frame.createOrReplaceTempView("events")
    tables = SparkTables(session, {"events": frame})
    return tables.backend(catalog_of(tables, "user_id")), path


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--growth"]:
            show(spark_growth_rows(), {})
        case [rows]:
            show(spark_rows(rows=int(rows)), {})
        case _:
            show(spark_rows(), {})
