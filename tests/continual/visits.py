"""Invented visits, and streams over them."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa

import sfumato as sf
from sfumato.session.database import Database
from sfumato.session.stream import Stream

FIRST = datetime.date(2026, 1, 1)
SQL = "SELECT place, COUNT(*) AS n, SUM(cost) AS cost FROM visits GROUP BY place"
Visit = tuple[Any, int, str, float]  # whose, on which day from 0, where, for how much


def day(number: int) -> datetime.date:
    return FIRST + datetime.timedelta(days=number)


def visits_table(visits: Iterable[Visit], *, names: bool = False) -> pa.Table:
    rows = list(visits)
    moments = [datetime.datetime.combine(day(row[1]), datetime.time(12)) for row in rows]
    return pa.table(
        {
            "person": pa.array([row[0] for row in rows], pa.string() if names else pa.int64()),
            "day": pa.array([day(row[1]) for row in rows], pa.date32()),
            "at": pa.array(moments, pa.timestamp("us")),
            "place": pa.array([row[2] for row in rows], pa.string()),
            "cost": pa.array([row[3] for row in rows], pa.float64()),
        }
    )


def database(visits: Iterable[Visit] | list[Path], ledger: Path | None = None, **more: Any) -> Database:
    """Open visits, or the files that hold them."""
    given, names = list(visits), more.pop("names", False)
    files = bool(given) and isinstance(given[0], Path)
    options: dict[str, Any] = {
        "columns": {"place": sf.one_of("a", "b", "c"), "cost": sf.between(0, 10)},
        "max_groups": 2,
        "max_rows": 3,
        "budget": sf.Budget(epsilon=100, delta=1e-6),
    }
    origin = given if files else visits_table(given, names=names)
    return sf.connect(origin, name="visits", unit="person", ledger=ledger, **(options | more))


def stream(db: Database, sql: str = SQL, **more: Any) -> Stream:
    options: dict[str, Any] = {
        "name": "daily",
        "by": "day",
        "every": "day",
        "start": FIRST,
        "horizon": 8,
        "epsilon": 1,
    }
    return db.stream(sql, **(options | more))
