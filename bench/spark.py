"""The events workload on a local Spark, beside its own GROUP BY, and how it grows with the table.

The session is warm: each statement ran once before. Both sides are timed in turns, from the client, with all
that it does. First it is checked that without caps on groups and values the same statements give the same
integers as DuckDB's backend.

    python bench/spark.py [rows]
    python bench/spark.py --growth     W1 over a million, ten and a hundred million rows, and the memory
                                       of the client and of the driver; executors are processes of their own
    python bench/spark.py --tumult PYTHON [rows]     W1 and W2 beside Tumult Analytics, in turns

PYTHON is that of Tumult's own environment. Tumult runs there on our version of Spark, in a JVM of its own:
with the same settings, over the same Parquet file, with the same epsilon and caps. Both sides are timed from
the opening of the table to the noisy answer. Spark has started before, and both were asked each question in
each form three times before, for Java compiles what runs often. Tumult is asked in two forms: with the caps
in each query, and ("cached") with the caps in a cached view. First it is checked that without caps and noise
Tumult gives the totals of DuckDB.
"""

from __future__ import annotations

import json
import math
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
from engines import ASKED, compare, in_turns, seconds
from events import catalog_of, generate
from queries import COLUMNS, OPTIONS, TEXTS
from report import Row, show

sys.path.insert(0, str(Path(__file__).parent.parent))

import sfumato as sf
from sfumato.backends.spark.backend import SparkBackend
from sfumato.backends.spark.source import SparkTables
from tests.conformance.spark_session import ABSENT, Spark, find_or_install

__all__ = ["spark_growth_rows", "spark_rows", "tumult_rows"]

MOST = {"W1": 1.4, "W2": 2.2, "histogram": 1.8, "distinct": 2.4}
MOST_OF_TUMULT = 0.2
WARM_UPS = 3
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
# Executors apart from the driver, so that what the driver needs can be seen: two, of one core each.
CLUSTER = {
    "spark.master": "local-cluster[2,1,4096]",
    "spark.executor.memory": "4g",
    "spark.executor.extraJavaOptions": "-XX:+UseParallelGC",
    "spark.driver.memory": "1g",
}


def spark_rows(*, rows: int = 10_000_000, times: int = 5) -> Iterator[Row]:
    """Start a Spark, compare with DuckDB's integers, and measure in turns."""
    with tempfile.TemporaryDirectory() as folder, _running() as session:
        backend, path = _opened(session, Path(folder), rows)
        compare(path, backend)
        for name, (query, floor) in ASKED.items():
            plainly = partial(_collected, session, floor)
            backend.run(query)
            plainly()
            ours, plain = in_turns(partial(backend.run, query), plainly, times)
            title = f"{name} on Spark, {rows:,} rows: its own GROUP BY user, key"
            yield Row(name=title, ours=ours, rival=plain, unit="s", ratio=ours / plain, most=MOST[name])


def spark_growth_rows(*, times: int = 3) -> Iterator[Row]:
    """Measure W1 over tables each ten times as large, on one cluster whose memory is the same for all."""
    before = None
    query, _ = ASKED["W1"]
    with tempfile.TemporaryDirectory() as folder, _running(**CLUSTER) as session:
        for rows in (10**6, 10**7, 10**8):
            backend, _ = _opened(session, Path(folder), rows)
            backend.run(query)
            own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
            old = _old_generation(session)
            old.resetPeakUsage()
            now = min(seconds(partial(backend.run, query)) for _ in range(times))
            more = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10 - own
            kept = old.getPeakUsage().getUsed() / 2**20
            if before is not None:
                title = f"W1 on Spark, {rows:,} rows: a tenth of them"
                yield Row(name=title, ours=now, rival=before, unit="s", ratio=now / before, most=12)
            title = f"W1 on Spark, {rows:,} rows: MiB of the client above those before it"
            yield Row(name=title, ours=more, rival=None, unit="MiB", ratio=more, most=64)
            title = f"W1 on Spark, {rows:,} rows: most MiB that the driver's JVM kept"
            yield Row(name=title, ours=kept, rival=None, unit="MiB", ratio=kept, most=256)
            before = now


def _old_generation(session: Any) -> Any:
    """Return the part of the driver's heap that holds what outlives the collection of young objects."""
    pools = session._jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans()
    [old] = [pool for pool in pools if pool.getName() == "PS Old Gen"]
    return old


def tumult_rows(
    python: str, versions: dict[str, str], *, rows: int = 10_000_000, times: int = 3
) -> Iterator[Row]:
    """Ask W1 and W2 of both, in turns; the versions of Tumult and of its Spark are added to `versions`."""
    with tempfile.TemporaryDirectory() as folder, _running() as session:
        _, path = _opened(session, Path(folder), rows)
        written = path.with_suffix(".parquet")
        with _tumult(python, written, session) as (asked, installed):
            versions |= installed
            _compare_exact(path, asked("exact"))
            for name, form in (("W1", ""), ("W1", " cached"), ("W2", ""), ("W2", " cached")):
                mine, theirs = partial(_released, session, written, name), partial(asked, name + form)
                in_turns(mine, theirs, WARM_UPS)
                ours, rival = in_turns(mine, theirs, times)
                title = f"{name} on Spark {versions['Spark']}, {rows:,} rows: Tumult{form}"
                yield Row(
                    name=title, ours=ours, rival=rival, unit="s", ratio=ours / rival, most=MOST_OF_TUMULT
                )


def _released(session: Any, written: Path, name: str) -> object:
    """Open the table, ask, and release."""
    budget = sf.Budget(epsilon=1, delta=1e-7 if name == "W2" else 0)
    frame = session.read.parquet(str(written))
    database = sf.connect(frame, name="events", unit="user_id", columns=COLUMNS, budget=budget)
    return database.sql(TEXTS[name], epsilon=1, **OPTIONS[name]).release()


@contextmanager
def _tumult(
    python: str, written: Path, session: Any
) -> Iterator[tuple[Callable[[str], Any], dict[str, str]]]:
    """Start Tumult on a Spark with our settings; yield how it is asked, and the versions."""
    names = ("spark.master", "spark.driver.host", "spark.driver.bindAddress", "spark.ui.enabled")
    settings = {name: session.sparkContext.getConf().get(name) for name in (*names, *SETTINGS)}
    command = [python, str(Path(__file__).parent / "rival_spark.py"), str(written), json.dumps(settings)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    with subprocess.Popen(command, **pipes) as process:  # type: ignore[call-overload]

        def answer() -> Any:
            line = process.stdout.readline()
            if not line:
                raise SystemExit("Tumult Analytics has ended without an answer")
            return json.loads(line)

        def asked(name: str) -> Any:
            print(name, file=process.stdin, flush=True)
            return answer()

        yield asked, answer()


def _compare_exact(path: Path, found: dict[str, tuple[int, float]]) -> None:
    """Hold Tumult's totals without noise against DuckDB's."""
    text = "SELECT region, count(*), sum(least(amount, 100)) FROM events GROUP BY region"
    with duckdb.connect(str(path), read_only=True) as connection:
        for region, count, total in connection.execute(text).fetchall():
            if found[region][0] != count or not math.isclose(found[region][1], total, rel_tol=1e-9):
                raise SystemExit("W1: other totals of Tumult than DuckDB's")


def _collected(session: Any, text: str) -> object:
    """Run a statement from its text on: a frame that is collected again would reuse what it has shuffled."""
    return session.sql(text).collect()


@contextmanager
def _running(**settings: str) -> Iterator[Any]:
    java = find_or_install()
    if java is None:
        raise SystemExit(ABSENT)
    with Spark(java, **{**SETTINGS, **settings}) as spark:
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
        case ["--tumult", python, *given]:
            versions: dict[str, str] = {}
            show(tumult_rows(python, versions, **({"rows": int(given[0])} if given else {})), versions)
        case [rows]:
            show(spark_rows(rows=int(rows)), {})
        case _:
            show(spark_rows(), {})
