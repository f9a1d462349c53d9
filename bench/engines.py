"""The events workload as engines are asked that bound contributions themselves.

    W1         per region COUNT(*) and SUM(amount in [0, 100]), at most 3 regions per user
    W2         per word COUNT(*), keys not declared, at most 5 words per user
    histogram  per region the cells of age, at most 3 regions per user
    distinct   per region the number of different words, at most 3 regions and 5 words per user

The floor is GROUP BY user, key with COUNT(*) and SUM(amount), consumed by the engine itself.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from events import QUERIES, catalog_of

from sfumato.analysis.bounded import BoundedQuery, Measure, MeasureKind
from sfumato.backends import Backend, open_tables
from sfumato.backends.duckdb import DuckDBBackend
from sfumato.catalog import Kind
from sfumato.plan.tree import ColumnRef

__all__ = ["ASKED", "compare", "in_turns", "seconds"]

FLOOR = (
    "SELECT sum(n), sum(s) FROM"
    " (SELECT user_id, {key}, count(*) AS n, sum(amount) AS s FROM events GROUP BY user_id, {key}) AS g"
)
_WORDS = Measure(
    name="d",
    kind=MeasureKind.DISTINCT,
    value=ColumnRef(name="events.word", kind=Kind.TEXT),
    max_values=5,
    sensitivity=15,
)
ASKED: dict[str, tuple[BoundedQuery, str]] = {
    "W1": (QUERIES["W1"], FLOOR.format(key="region")),
    "W2": (QUERIES["W2"], FLOOR.format(key="word")),
    "histogram": (replace(QUERIES["W1"], measures=QUERIES["W3"].measures), FLOOR.format(key="region")),
    "distinct": (replace(QUERIES["W1"], measures=(_WORDS,)), FLOOR.format(key="region")),
}
"""The bounded query and the floor of each workload."""


def compare(path: Path, backend: Backend) -> None:
    """Hold the integers against DuckDB's; each engine has its own hash, so caps that choose are lifted."""
    source = open_tables({"events": path})
    other = DuckDBBackend(source, catalog_of(source, "user_id"))
    for name, (query, _) in ASKED.items():
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


def in_turns(ours: Callable[[], object], floor: Callable[[], object], times: int) -> tuple[float, float]:
    """Return the median seconds of both."""
    pairs = [(seconds(ours), seconds(floor)) for _ in range(times)]
    mine, plain = zip(*pairs, strict=True)
    return statistics.median(mine), statistics.median(plain)


def seconds(action: Callable[[], object]) -> float:
    """Return how long something takes; what was written before is on the disk first, and disturbs nobody."""
    os.sync()
    start = time.perf_counter()
    action()
    return time.perf_counter() - start
