"""A stream of many groups: a year of days of 10,000 groups, in seconds and memory, and the noise it keeps.

    python bench/stream_groups.py

Each stream is measured in a process of its own, over the same invented rows: one with a horizon, whose state
holds all its noise, and one without an end, whose state holds a few numbers for each group.
"""

from __future__ import annotations

import datetime
import json
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from report import Row, show

import sfumato as sf

__all__ = ["stream_group_rows"]

SECONDS, GIGABYTES = 60.0, 2.0
FIRST = datetime.date(2025, 1, 1)
DAYS = 365


def stream_group_rows(groups: int = 10_000, rows: int = 200_000) -> Iterator[Row]:
    """Measure a year of days; the noise that a stream without an end keeps must not grow."""
    for kind in ("horizon", "endless"):
        command = [sys.executable, __file__, kind, str(groups), str(rows)]
        answer = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
        title = f"{groups:,} groups x {DAYS} days, {'a horizon' if kind == 'horizon' else 'no end'}"
        seconds, memory, (early, late) = answer["seconds"], answer["gigabytes"], answer["noise"]
        yield from [
            Row(name=title, ours=seconds, rival=None, unit="s", ratio=seconds, most=SECONDS),
            Row(name=f"{title}: memory", ours=memory, rival=None, unit="GB", ratio=memory, most=GIGABYTES),
        ]
    yield Row(
        name=f"{title}: bytes of noise kept for a group (rival: after {DAYS // 10} days)",
        ours=late / groups,
        rival=early / groups,
        unit="",
        ratio=late / early,
        most=1.0,
    )


def _measured(kind: str, groups: int, rows: int) -> dict[str, Any]:
    people = np.arange(rows)
    table = pa.table(
        {
            "person": people,
            "day": pa.array(np.datetime64(FIRST) + people % DAYS, pa.date32()),
            "place": people * 7919 % groups,
        }
    )
    with tempfile.TemporaryDirectory() as folder:
        db = sf.connect(
            table,
            name="visits",
            unit="person",
            columns={"place": sf.one_of(*range(groups))},
            max_rows=1,
            max_groups=1,
            budget=sf.Budget(epsilon=3, delta=1e-6),
            ledger=Path(folder) / "ledger",
        )
        stream = db.stream(
            "SELECT place, COUNT(*) AS n FROM visits GROUP BY place",
            name="daily",
            by="day",
            every="day",
            start=FIRST,
            horizon=DAYS if kind == "horizon" else None,
            epsilon=1,
        )
        begun, kept = time.perf_counter(), []
        for until in (DAYS // 10, DAYS):
            published = stream.advance(FIRST + datetime.timedelta(days=until))
            [state] = (Path(folder) / "ledger-streams").iterdir()
            with closing(sqlite3.connect(state)) as opened:
                kept += opened.execute("SELECT sum(length(content)) FROM noise").fetchone()
        assert len(published.total()) == groups
        seconds = time.perf_counter() - begun
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    return {"seconds": seconds, "gigabytes": memory, "noise": kept}


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(_measured(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
    else:
        show(stream_group_rows(), {})
