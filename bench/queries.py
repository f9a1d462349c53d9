"""The query engine beside plain DuckDB and OpenDP's Polars path, through the public door.

    W1  per region COUNT(*) and SUM(amount in [0, 100]), at most 3 regions per user
    W2  per word COUNT(*), keys not declared, at most 5 words per user
    W3  the median of age

on the events of events.py, with users as units, known by number or by name, and with rows as units; questions
in the manner of TPC-H; the first answer from a Parquet file in a fresh process; peak memory; and errors at
equal epsilon, delta and caps.

    python bench/queries.py --rivals <python> [--rows 10000000]
    python bench/queries.py --large          a hundred million rows: seconds and peak memory
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from accuracy import (
    DELTA,
    EPSILON,
    accuracy_rows,
    budgets,
    group_rows,
    key_rows,
    labour_rows,
    people_keys,
    write_people,
)
from events import FLOORS, generate
from report import Row, show
from tpch import tpch_rows

import sfumato as sf

__all__ = ["large_rows", "query_rows"]

HERE = Path(__file__).parent
REGIONS = tuple(f"r{number:02}" for number in range(50))
COLUMNS = {"region": sf.one_of(*REGIONS), "amount": sf.between(0, 100), "age": sf.between(0, 99)}
TEXTS = {
    "W1": "SELECT region, COUNT(*) AS n, SUM(amount) AS s FROM events GROUP BY region",
    "W2": "SELECT word, COUNT(*) AS n FROM events GROUP BY word",
    "W3": "SELECT MEDIAN(age) AS age FROM events",
}
OPTIONS = {
    "W1": {"max_groups": 3, "max_rows": 20},
    "W2": {"max_groups": 5, "max_rows": 20},
    "W3": {"max_rows": 20},
}
MOST = {"W1": 2.0, "W2": 2.5, "W3": 3.0, "W1 names": 1.4, "W2 names": 1.8, "W3 names": 1.5}
UNITS = {"users": "user_id", "names": "user_name", "rows": None}
FIRST = """\
import sfumato as sf
db = sf.connect({path!r}, unit="user_id", max_rows=20, max_groups=3, budget=sf.Budget(epsilon=1, delta=1e-7))
print(db.sql("SELECT region, COUNT(*) AS n FROM events GROUP BY region", epsilon=0.5).release())
"""
LARGE_ROWS, LARGE_SECONDS, LARGE_GIGABYTES = 100_000_000, 60, 10


def query_rows(
    rivals: str,
    rival: dict[str, Any],
    *,
    rows: int,
    times: int,
    repetitions: int = 120,
    rival_times: int = 3,
) -> Iterator[Row]:
    """Return all comparisons; the measurements of the rival are added to `rival`."""
    with tempfile.TemporaryDirectory() as folder:
        events, parquet = Path(folder) / "events.duckdb", Path(folder) / "events.parquet"
        million, people = Path(folder) / "million" / "events.parquet", Path(folder) / "people.parquet"
        write_data(events, parquet, million, rows)
        write_people(people)
        users: dict[str, float] = {}  # our seconds by workload
        for row in floor_rows(events, times):
            users.setdefault(row.name.partition(", users")[0], row.ours)
            yield row
        yield memory_row(events)
        yield first_row(million, times)
        command = [rivals, str(HERE / "rival_queries.py"), str(people), str(parquet)]
        command += ["--times", str(rival_times), "--repetitions", str(repetitions)]
        answer = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        rival |= json.loads(answer.stdout)
        for name in ("W1", "W2"):
            ours = users[name]
            theirs = rival["seconds"][name]
            title = f"{name}, users: OpenDP"
            yield Row(name=title, ours=ours, rival=theirs, unit="s", ratio=theirs / ours, least=6)
        yield from tpch_rows(scale=rows / 10_000_000, times=times)
        yield from key_rows("W2, users: keys", _event_keys(events), rival["W2 keys"])
        yield from accuracy_rows(people, rival, repetitions)
        yield from labour_rows(max(1, repetitions // 6))
        yield from group_rows(repetitions)
        yield from key_rows("keys found, small table", people_keys(people, repetitions), rival["keys"])


def write_data(events: Path, parquet: Path, million: Path, rows: int) -> None:
    """Write the tables."""
    import duckdb

    generate(events, rows)
    million.parent.mkdir()
    with duckdb.connect(str(events), read_only=True) as connection:
        connection.execute("SET enable_progress_bar = false")
        connection.execute(f"COPY events TO '{parquet}'")
        connection.execute(f"COPY (FROM events LIMIT 1000000) TO '{million}'")


def connect(path: Path, unit: str | None, budget: Any) -> Any:
    """Return the events."""
    return sf.connect(path, name="events", unit=unit, columns=COLUMNS, budget=budget)


def _event_keys(events: Path) -> dict[str, tuple[float, float]]:
    """Return how many words are found, by kind of budget: one answer each, for words are many."""
    found = {}
    for kind, budget in budgets(keys=True).items():
        question = connect(events, "user_id", budget).sql(TEXTS["W2"], epsilon=EPSILON, **OPTIONS["W2"])
        number = len(question.release())
        found[kind] = float(number), number**0.5 / 10  # rank by rank a key is in or out: well within that
    return found


# -- time and memory --------------------------------------------------------------------


def floor_rows(path: Path, times: int) -> Iterator[Row]:
    """Compare with what plain DuckDB takes, in turns, medians."""
    import duckdb

    with duckdb.connect(str(path), read_only=True) as plain:
        plain.execute("SET enable_progress_bar = false")
        for kind, unit in UNITS.items():
            for name, text in TEXTS.items():
                own = name if kind == "users" else f"{name} {kind}"
                # A budget for these questions and no more, for what a key needs depends on it.
                database = connect(path, unit, sf.Budget(epsilon=times, delta=DELTA))
                floor = FLOORS[own]
                options = OPTIONS[name] if unit else {}
                ours, floors = [], []
                for _ in range(times):
                    floors.append(_seconds(lambda floor=floor: plain.execute(floor).fetchall()))
                    question = database.sql(text, epsilon=1, **options)
                    ours.append(_seconds(question.release))
                mine, least = statistics.median(ours), statistics.median(floors)
                most = MOST[own] if unit else max(3.0, (least + 0.1) / least)
                title = f"{name}, {kind} as units: the floor in DuckDB"
                yield Row(name=title, ours=mine, rival=least, unit="s", ratio=mine / least, most=most)


def memory_row(path: Path) -> Row:
    """State the peak memory of the three workloads in a process of their own."""
    gigabytes = _alone(path)["gigabytes"]
    return Row(name="W1, W2, W3: peak memory", ours=gigabytes, rival=None, unit="GB", ratio=gigabytes)


def large_rows(rows: int = LARGE_ROWS) -> Iterator[Row]:
    """Hold each workload over a hundred million rows of ten million users against its limits."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.duckdb"
        generate(path, rows)
        for name in TEXTS:
            taken = _alone(path, name)
            for unit, key, most in (("s", name, LARGE_SECONDS), ("GB", "gigabytes", LARGE_GIGABYTES)):
                title = f"{name}, users as units, {rows:.0e} rows"
                yield Row(name=title, ours=taken[key], rival=None, unit=unit, ratio=taken[key], most=most)


def _alone(path: Path, *names: str) -> dict[str, float]:
    """Run workloads in a process of their own; return the seconds of each, and the peak memory."""
    command = [sys.executable, str(HERE / "queries.py"), "--alone", str(path), *names]
    found: dict[str, float] = json.loads(
        subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    )
    return found


def measure_alone(path: Path, names: Iterable[str]) -> None:
    """Run workloads, and print the seconds of each and the peak memory as JSON."""
    found = {}
    for name in names or TEXTS:
        database = connect(path, "user_id", sf.Budget(epsilon=EPSILON, delta=DELTA))
        found[name] = _seconds(database.sql(TEXTS[name], epsilon=EPSILON, **OPTIONS[name]).release)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    json.dump({**found, "gigabytes": peak / 1e9}, sys.stdout)


def first_row(path: Path, times: int) -> Row:
    """Time a whole process, from its start to its first printed answer about a million rows.

    Modules are compiled once, as installing the package would do.
    """
    program = FIRST.format(path=str(path))
    assert program.count("\n") <= 4
    command = [sys.executable, "-c", program]
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(path.parent / "compiled")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)

    def run() -> None:
        subprocess.run(command, check=True, capture_output=True, env=environment)

    run()
    taken = [_seconds(run) for _ in range(times)]
    name = f"first answer, 1e6 rows of Parquet, {program.count(chr(10))} lines, fresh process"
    return Row(
        name=name, ours=statistics.median(taken), rival=None, unit="s", ratio=statistics.median(taken), most=1
    )


def _seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def main() -> int:
    """Measure and print; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rivals", help="the Python of the rivals' environment")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--repetitions", type=int, default=120)
    parser.add_argument("--large", action="store_true", help="only the run over a hundred million rows")
    parser.add_argument("--alone", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.alone is not None:
        measure_alone(Path(options.alone[0]), options.alone[1:])
        return 0
    if options.large:
        rows = show(large_rows(), {})
    else:
        given = {"rows": options.rows, "times": options.times, "repetitions": options.repetitions}
        rows = show(query_rows(options.rivals, {}, **given), {})
    return 0 if all(row.passed for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
