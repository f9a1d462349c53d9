"""Put the events workload to Tumult Analytics on Spark, in the environment of its own.

It reads the name of a workload per line, asks, and writes the answer as a line of JSON: the caller times both
sides in turns. "exact" asks W1 with caps that cut nothing and without noise.

Tumult evaluates one aggregate at a time, and applies the caps each time. "cached" after a workload's name
makes the rows that the caps leave a cached view first: Tumult then applies the caps once.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import tempfile
import warnings
from typing import Any, TextIO

REGIONS = [f"r{number:02}" for number in range(50)]
EPSILON, DELTA = 1.0, 1e-7
MOST_ROWS = 20


def main() -> None:
    """Start Spark, and answer until the input ends."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("events", help="the events, a Parquet file")
    parser.add_argument("settings", help="the settings of Spark, as JSON")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # the JVM writes to it, too
    os.environ["PYSPARK_PYTHON"] = sys.executable
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        session = started(json.loads(options.settings), folder)
        serve(session, options.events, answers)
        session.stop()


def started(settings: dict[str, str], folder: str) -> Any:
    """Return a session of Spark with these settings, whose files are in the folder."""
    from pyspark.sql import SparkSession

    places = {"spark.local.dir": f"{folder}/local", "spark.sql.warehouse.dir": f"{folder}/warehouse"}
    return SparkSession.builder.config(map={**settings, **places}).getOrCreate()


def serve(session: Any, path: str, answers: TextIO) -> None:
    """Write the versions, then one answer per line that is read; each opens the table anew."""
    import pyspark
    import tmlt.analytics
    from tmlt.analytics.utils import cleanup

    versions = {"Tumult Analytics": tmlt.analytics.__version__, "Spark": pyspark.__version__}
    print(json.dumps(versions), file=answers, flush=True)
    for line in sys.stdin:
        name, *form = line.split()
        cached = form == ["cached"]
        events = session.read.parquet(path)
        match name:
            case "exact":
                answer = totals(events, len(REGIONS), 10**6, math.inf, cached=cached)
            case "W1":
                answer = totals(events, 3, MOST_ROWS, EPSILON, cached=cached)
            case "W2":
                answer = words(events, 5, MOST_ROWS, EPSILON, cached=cached)
            case _:
                raise ValueError(f"unknown workload {line!r}")
        print(json.dumps(answer), file=answers, flush=True)
        session.catalog.clearCache()  # a deleted view is still cached, and would be read
    cleanup()


def capped(
    events: Any, key: str, max_groups: int, max_rows: int, budget: Any, *, cached: bool
) -> tuple[Any, Any]:
    """Return a session of Tumult, and a query of the rows that the caps leave."""
    from tmlt.analytics import AddRowsWithID, MaxGroupsPerID, MaxRowsPerGroupPerID, QueryBuilder, Session

    session = Session.from_dataframe(budget, "events", events, protected_change=AddRowsWithID("user_id"))
    left = (
        QueryBuilder("events")
        .enforce(MaxGroupsPerID(key, max_groups))
        .enforce(MaxRowsPerGroupPerID(key, max_rows))
    )
    if not cached:
        return session, left
    session.create_view(left, "capped", cache=True)
    return session, QueryBuilder("capped")


def totals(
    events: Any, max_groups: int, max_rows: int, epsilon: float, *, cached: bool
) -> dict[str, list[float]]:
    """Return count and sum by region; half of epsilon is for each."""
    from tmlt.analytics import KeySet, PureDPBudget

    half = PureDPBudget(epsilon / 2)
    frame = events.select("user_id", "region", "amount")
    session, rows = capped(frame, "region", max_groups, max_rows, PureDPBudget(epsilon), cached=cached)
    groups = rows.groupby(KeySet.from_dict({"region": REGIONS}))
    counts = session.evaluate(groups.count(name="n"), half).collect()
    sums = session.evaluate(groups.sum("amount", low=0, high=100, name="s"), half).collect()
    if cached:
        session.delete_view("capped")
    found = {row["region"]: [row["n"]] for row in counts}
    for row in sums:
        found[row["region"]].append(row["s"])
    return found


def words(events: Any, max_groups: int, max_rows: int, epsilon: float, *, cached: bool) -> int:
    """Return how many words are found; half of epsilon finds them, the other half counts their rows."""
    from tmlt.analytics import ApproxDPBudget, KeySet

    budget = ApproxDPBudget(epsilon, DELTA)
    session, rows = capped(
        events.select("user_id", "word"), "word", max_groups, max_rows, budget, cached=cached
    )
    known = session.evaluate(rows.get_groups(["word"]), ApproxDPBudget(epsilon / 2, DELTA))
    counts = rows.groupby(KeySet.from_dataframe(known)).count(name="n")
    found = session.evaluate(counts, ApproxDPBudget(epsilon / 2, 0)).collect()
    if cached:
        session.delete_view("capped")
    return len(found)


if __name__ == "__main__":
    main()
