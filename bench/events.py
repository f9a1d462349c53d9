"""The `events` workload: ten million rows of a million users, and what user-level answers cost over it.

    W1  per region COUNT(*) and SUM(amount in [0, 100]), at most 3 regions per user
    W2  per word COUNT(*), keys not declared, at most 5 words per user
    W3  the cells of a median of age

Users are known by a number, or ("names") by a text; or each row is a unit ("rows").
Each is timed beside the plain query that any user-level answer contains (the floor), in turns, so
that whatever else the machine does disturbs both alike.

    python bench/events.py [rows] [file.duckdb]
"""

from __future__ import annotations

import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from sfumato.analysis.bounded import BoundedQuery, Factor, Measure, MeasureKind
from sfumato.backends import Source, open_tables
from sfumato.backends.duckdb import DuckDBBackend
from sfumato.catalog import Catalog, Field, Kind, Table, Unit
from sfumato.core.grid import Grid
from sfumato.plan.tree import ColumnRef, Scan

__all__ = ["FLOORS", "QUERIES", "catalog_of", "generate", "race"]

_FLOOR = (
    "SELECT sum(n), sum(s) FROM (SELECT {unit}, {key}, count(*) n, sum(amount) s FROM events GROUP BY ALL)"
)

FLOORS = {
    "W1": _FLOOR.format(unit="user_id", key="region"),
    "W1 selected": _FLOOR.format(unit="user_id", key="region"),
    "W2": _FLOOR.format(unit="user_id", key="word"),
    "W3": "SELECT median(age) FROM events",
    "W1 names": _FLOOR.format(unit="user_name", key="region"),
    "W2 names": _FLOOR.format(unit="user_name", key="word"),
    "W3 names": "SELECT median(age) FROM events",
    "W1 rows": "SELECT region, count(*), sum(amount) FROM events GROUP BY ALL",
    "W2 rows": "SELECT word, count(*) FROM events GROUP BY ALL",
    "W3 rows": "SELECT median(age) FROM events",
}
"""The plain queries, by workload."""


def generate(path: Path, rows: int) -> None:
    """Write the table `events`, the same for the same number of rows; a user has ten rows on average."""
    import duckdb

    users = max(1, rows // 10)
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            f"""
            CREATE TABLE events AS SELECT
                (hash(i * 7 + 1) % {users})::BIGINT AS user_id,
                'user-' || lpad((hash(i * 7 + 1) % {users})::VARCHAR, 8, '0') AS user_name,
                'r' || lpad((hash(i * 3 + 2) % 50)::VARCHAR, 2, '0') AS region,
                'w' || floor(pow(1000000.0, (hash(i * 11 + 3) % 1000003) / 1000003.0))::BIGINT AS word,
                ((hash(i * 13 + 5) % 12000) / 100.0)::DOUBLE AS amount,
                (hash(i * 17 + 1) % 100)::INTEGER AS age
            FROM range({rows}) AS t(i)
            """
        )


def catalog_of(source: Source, unit: str | None) -> Catalog:
    """Return the catalog of the table: users are protected, or rows."""
    fields = tuple(Field(name=field.name, kind=field.kind) for field in source.fields("events"))
    return Catalog((Table(name="events", fields=fields, unit=Unit(name="user", column=unit)),))


def _query(
    row_unit: bool,
    key: str | None,
    measures: tuple[Measure, ...],
    max_groups: int | None,
    declared: tuple[tuple[str], ...] | None = None,
) -> BoundedQuery:
    columns = (_REGION, _WORD, _AMOUNT, _AGE)
    keys = () if key is None else ((key, ColumnRef(name=f"events.{key}", kind=Kind.TEXT)),)
    return BoundedQuery(
        source=Scan(table="events", alias="events", columns=columns),
        row_unit=row_unit,
        keys=keys,
        grouping_sets=(tuple(range(len(keys))),),
        declared=declared,
        max_groups=max_groups,
        max_rows=20,
        measures=measures,
    )


_REGION = ColumnRef(name="events.region", kind=Kind.TEXT)
_WORD = ColumnRef(name="events.word", kind=Kind.TEXT)
_AMOUNT = ColumnRef(name="events.amount", kind=Kind.REAL)
_AGE = ColumnRef(name="events.age", kind=Kind.INTEGER)
_REGIONS = tuple((f"r{number:02}",) for number in range(50))
_AMOUNTS = Grid(step=Fraction(1, 2**14), lower=-50, upper=50)
_AGES = Grid(step=1, lower=0, upper=99)
_COUNT = Measure(name="n", kind=MeasureKind.MOMENT, sensitivity=20)
_SUM = Measure(
    name="s",
    kind=MeasureKind.MOMENT,
    factors=(Factor(expression=_AMOUNT, centre=50.0, grid=_AMOUNTS),),
    sensitivity=20 * _AMOUNTS.sensitivity,
)
_CELLS = Measure(
    name="c",
    kind=MeasureKind.CELLS,
    factors=(Factor(expression=_AGE, centre=0.0, grid=_AGES),),
    edges=tuple(float(edge) for edge in range(101)),
    weight=1024,
    sensitivity=20 * 1024,
)

QUERIES = {
    "W1": _query(False, "region", (_COUNT, _SUM), 3, _REGIONS),
    "W1 selected": _query(False, "region", (_COUNT, _SUM), 3),
    "W2": _query(False, "word", (_COUNT,), 5),
    "W3": _query(False, None, (_CELLS,), None),
    "W1 names": _query(False, "region", (_COUNT, _SUM), 3, _REGIONS),
    "W2 names": _query(False, "word", (_COUNT,), 5),
    "W3 names": _query(False, None, (_CELLS,), None),
    "W1 rows": _query(True, "region", (_COUNT, _SUM), None, _REGIONS),
    "W2 rows": _query(True, "word", (_COUNT,), None),
    "W3 rows": _query(True, None, (_CELLS,), None),
}
"""The bounded queries, by workload."""


def race(path: Path, *, times: int = 5, only: Iterable[str] | None = None) -> dict[str, tuple[float, float]]:
    """Return the median seconds of each workload and of its floor, taken in turns."""
    source = open_tables({"events": path})
    cursor = source.cursor()
    results = {}
    for name in only or QUERIES:
        unit = {"rows": None, "names": "user_name"}.get(name.split()[-1], "user_id")
        backend = DuckDBBackend(source, catalog_of(source, unit))
        ours: list[float] = []
        floors: list[float] = []
        for _ in range(times):
            floors.append(_seconds(partial(_plainly, cursor, FLOORS[name])))
            ours.append(_seconds(partial(backend.run, QUERIES[name])))
        results[name] = (statistics.median(ours), statistics.median(floors))
    return results


def _plainly(cursor: Any, text: str) -> None:
    cursor.execute(text).fetchall()


def _seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def main(arguments: list[str]) -> None:
    """Print the table."""
    rows = int(arguments[0]) if arguments else 10_000_000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(arguments[1]) if len(arguments) > 1 else Path(folder) / "events.duckdb"
        if not path.exists():
            generate(path, rows)
        print(f"{'':14}{'ours s':>10}{'floor s':>10}{'ratio':>8}")
        for name, (ours, floor) in race(path).items():
            print(f"{name:14}{ours:10.3f}{floor:10.3f}{ours / floor:8.2f}")
        print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.1f} GiB")


if __name__ == "__main__":
    main(sys.argv[1:])
