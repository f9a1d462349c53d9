"""The query engine beside plain DuckDB and OpenDP's Polars path, through the public door.

    W1  per region COUNT(*) and SUM(amount in [0, 100]), at most 3 regions per user
    W2  per word COUNT(*), keys not declared, at most 5 words per user
    W3  the median of age

on the events of events.py, with users as units and with rows as units; the first answer from a
Parquet file in a fresh process; peak memory; and errors at equal epsilon, delta and caps.

    python bench/queries.py --rivals <python> [--rows 10000000]
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from events import FLOORS, generate
from report import Row, show

import sfumato as sf

__all__ = ["query_rows"]

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
MOST = {"W1": 2.0, "W2": 2.5, "W3": 3.0}
FIRST = """\
import sfumato as sf
db = sf.connect({path!r}, unit="user_id", max_rows=20, max_groups=3, budget=sf.Budget(epsilon=1, delta=1e-7))
print(db.sql("SELECT region, COUNT(*) AS n FROM events GROUP BY region", epsilon=0.5).release())
"""
PEOPLE = """
SELECT p AS user_id, 'r' || lpad(((hash(p) % 10 + g * 3) % 10)::VARCHAR, 2, '0') AS region,
       'w' || i || '_' || floor(pow(3000.0, (hash(p * 5 + i) % 100003) / 100003.0))::BIGINT AS word,
       ((hash(p * 17 + i * 29 + g) % 10001) / 100.0)::DOUBLE AS amount
FROM range(5000) AS people(p), range(2) AS groups(g), range(2) AS rows(i)
"""
"""People within all caps: two regions of ten each, two rows in each; two words, two rows of each."""
DELTA = 1e-7


def query_rows(rivals: str, *, rows: int, times: int) -> tuple[list[Row], dict[str, Any]]:
    """Return all comparisons, and what was measured of the rival."""
    with tempfile.TemporaryDirectory() as folder:
        events, parquet = Path(folder) / "events.duckdb", Path(folder) / "events.parquet"
        million, people = Path(folder) / "million" / "events.parquet", Path(folder) / "people.parquet"
        write_data(events, parquet, million, people, rows)
        found = [
            *floor_rows(events, times),
            memory_row(events),
            first_row(million, times),
        ]
        keys = len(connect(events, "user_id").sql(TEXTS["W2"], epsilon=1, **OPTIONS["W2"]).release())
        command = [rivals, str(HERE / "rival_queries.py"), str(parquet), str(people)]
        answer = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        rival = json.loads(answer.stdout)
        for name in ("W1", "W2"):
            ours = next(row.ours for row in found if row.name.startswith(f"{name}, users"))
            theirs = rival["seconds"][name]
            found.append(
                Row(
                    name=f"{name}, users: OpenDP",
                    ours=ours,
                    rival=theirs,
                    unit="s",
                    ratio=theirs / ours,
                    least=6,
                )
            )
        theirs = rival["W2 keys"]
        found.append(
            Row(
                name="W2, users: keys, OpenDP", ours=keys, rival=theirs, unit="", ratio=keys / theirs, least=1
            )
        )
        return [*found, *accuracy_rows(people, rival)], rival


def write_data(events: Path, parquet: Path, million: Path, people: Path, rows: int) -> None:
    """Write the tables."""
    import duckdb

    generate(events, rows)
    million.parent.mkdir()
    with duckdb.connect(str(events), read_only=True) as connection:
        connection.execute("SET enable_progress_bar = false")
        connection.execute(f"COPY events TO '{parquet}'")
        connection.execute(f"COPY (FROM events LIMIT 1000000) TO '{million}'")
        connection.execute(f"COPY ({PEOPLE}) TO '{people}'")


def connect(path: Path, unit: str | None, **options: Any) -> Any:
    """Return the events, with a budget that lasts."""
    budget = sf.Budget(epsilon=10_000, delta=DELTA)
    return sf.connect(path, name="events", unit=unit, columns=COLUMNS, budget=budget, **options)


# -- time and memory --------------------------------------------------------------------


def floor_rows(path: Path, times: int) -> list[Row]:
    """Compare with what plain DuckDB takes, in turns, medians."""
    import duckdb

    rows = []
    with duckdb.connect(str(path), read_only=True) as plain:
        plain.execute("SET enable_progress_bar = false")
        for unit, kind in (("user_id", "users"), (None, "rows")):
            database = connect(path, unit)
            for name, text in TEXTS.items():
                floor = FLOORS[name if unit else f"{name} rows"]
                options = OPTIONS[name] if unit else {}
                ours, floors = [], []
                for _ in range(times):
                    floors.append(_seconds(lambda floor=floor: plain.execute(floor).fetchall()))
                    question = database.sql(text, epsilon=1, **options)
                    ours.append(_seconds(question.release))
                mine, least = statistics.median(ours), statistics.median(floors)
                most = MOST[name] if unit else max(3.0, (least + 0.1) / least)
                title = f"{name}, {kind} as units: the floor in DuckDB"
                rows.append(Row(name=title, ours=mine, rival=least, unit="s", ratio=mine / least, most=most))
    return rows


def memory_row(path: Path) -> Row:
    """State the peak memory of the three workloads in a process of their own."""
    answer = subprocess.run(
        [sys.executable, str(HERE / "queries.py"), "--memory", str(path)],
        check=True,
        capture_output=True,
        text=True,
    )
    gigabytes = float(answer.stdout.split()[-1])
    return Row(name="W1, W2, W3: peak memory", ours=gigabytes, rival=None, unit="GB", ratio=gigabytes)


def measure_memory(path: Path) -> None:
    """Run the three workloads and print the peak, in gigabytes."""
    database = connect(path, "user_id")
    for name, text in TEXTS.items():
        database.sql(text, epsilon=1, **OPTIONS[name]).release()
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform == "darwin" else 1)
    print(kilobytes * 1024 / 1e9)


def first_row(path: Path, times: int) -> Row:
    """Time a whole process, from its start to its first printed answer about a million rows."""
    program = FIRST.format(path=str(path))
    assert program.count("\n") <= 4
    taken = [
        _seconds(lambda: subprocess.run([sys.executable, "-c", program], check=True, capture_output=True))
        for _ in range(times)
    ]
    name = f"first answer, 1e6 rows of Parquet, {program.count(chr(10))} lines, fresh process"
    return Row(
        name=name, ours=statistics.median(taken), rival=None, unit="s", ratio=statistics.median(taken), most=1
    )


def _seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


# -- errors -----------------------------------------------------------------------------


def accuracy_rows(people: Path, rival: dict[str, Any], repetitions: int = 10) -> list[Row]:
    """Compare mean absolute errors at epsilon 1, delta 1e-7 and equal caps, with a tenth for chance."""
    import duckdb

    columns = {"region": sf.one_of(*REGIONS[:10]), "amount": sf.between(0, 100)}
    budget = sf.Budget(epsilon=10_000, delta=DELTA, keys_delta=DELTA / 2)
    about = {"name": "people", "unit": "user_id", "columns": columns}
    database = sf.connect(people, **about, budget=budget)
    pure = sf.connect(
        people, **about, budget=sf.Budget(epsilon=10_000)
    )  # delta 0 promises more, with Laplace noise
    plain = duckdb.connect()
    plain.read_parquet(str(people)).create_view("people")
    rows = []
    for name in ("COUNT", "SUM", "AVG", "MEDIAN"):
        argument = "*" if name == "COUNT" else "amount"
        text = f"SELECT region, {name}({argument}) AS x FROM people GROUP BY region ORDER BY region"
        caps = {"max_groups": 3, "max_rows": 2}
        if name == "MEDIAN":
            text, caps = "SELECT MEDIAN(amount) AS x FROM people", {"max_rows": 4}
        exact = [row[-1] for row in plain.execute(text).fetchall()]
        found = []
        for each in (
            database,
            pure,
        ):  # the rival too is measured with both kinds of noise, and its better one counts
            asked = [each.sql(text, epsilon=1, **caps) for _ in range(repetitions)]
            runs = [question.release().column("x") for question in asked]
            found.append(
                statistics.fmean(abs(x - e) for run in runs for x, e in zip(run, exact, strict=True))
            )
        ours, theirs = min(found), rival["errors"][name]
        title = f"{name}: mean absolute error, better noise: OpenDP"
        rows.append(Row(name=title, ours=ours, rival=theirs, unit="", ratio=ours / theirs, most=1.1))
        title = f"{name}: mean absolute error, budget with delta: OpenDP"
        rows.append(Row(name=title, ours=found[0], rival=theirs, unit="", ratio=found[0] / theirs))
    text = "SELECT word, COUNT(*) AS n FROM people GROUP BY word"
    counts = [
        len(database.sql(text, epsilon=1, max_groups=5, max_rows=2).release()) for _ in range(repetitions)
    ]
    ours, theirs = statistics.fmean(counts), rival["keys"]
    ratio = ours / theirs if theirs else math.inf
    return [
        *rows,
        Row(name="keys found, small table: OpenDP", ours=ours, rival=theirs, unit="", ratio=ratio, least=1),
    ]


def main() -> int:
    """Measure and print; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rivals", help="the Python of the rivals' environment")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--memory", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.memory is not None:
        measure_memory(options.memory)
        return 0
    rows, rival = query_rows(options.rivals, rows=options.rows, times=options.times)
    show(rows, rival["versions"])
    return 0 if all(row.passed for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
