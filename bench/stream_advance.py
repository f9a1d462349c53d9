"""One advance of a stream over a million new rows, beside the same question asked plainly about these rows.

    python bench/stream_advance.py [rows of a day]

A week is published before it, so that there are people to remember: without a cap on days, with the default
of one day of a person, and with caps of more days, of which the lower one may be reached by some. Late rows
are left out, but in the last lines, where late rows of a week count, as by default. "0.1% are late" says that
a row in a thousand does come late: it is in the file of another day, up to a week after its own. With a cap
of more days what was seen is remembered and read, and there is no requirement.
Each is timed in turns with the plain question, on tables that were just opened; the best times count.
"""

from __future__ import annotations

import datetime
import math
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from report import Row, show

import sfumato as sf
from sfumato.session.stream import Stream

__all__ = ["advance_rows"]

FIRST = datetime.date(2026, 1, 1)
BEFORE = 7  # days that are published already
ASKED = "SELECT place, COUNT(*) AS n, SUM(cost) AS cost FROM visits {} GROUP BY place"
STREAMS: dict[str, tuple[dict[str, Any], float]] = {
    "without a cap on days": ({"participation": sf.Participation(periods=365), "late": 0}, 2),
    "one day of a person": ({"late": 0}, 2),
    "at most 30 days of a person": ({"participation": sf.Participation(periods=30), "late": 0}, 2),
    "at most 5 days of a person": ({"participation": sf.Participation(periods=5), "late": 0}, 2),
    "one day of a person, late rows of a week": ({}, 2),
    "one day of a person, 0.1% are late": ({}, 2),
    "at most 30 days of a person, 0.1% are late": ({"participation": sf.Participation(periods=30)}, math.inf),
}


def _write(folder: Path, rows: int, late: float = 0) -> list[str]:
    """Write a file for each day; a person has two rows in a day, or so; a share of rows is of days before."""
    generator, files = np.random.default_rng(1), []
    for at in range(BEFORE + 1):
        day = FIRST + datetime.timedelta(days=at)
        table = {
            "person": generator.integers(0, rows, rows // 2)[generator.integers(0, rows // 2, rows)],
            "day": pa.array(np.datetime64(day) - _delays(generator, rows, at, late), pa.date32()),
            "place": pa.array(np.array(["a", "b", "c"])[generator.integers(0, 3, rows)]),
            "cost": generator.random(rows) * 10,
        }
        files.append(str(folder / f"{day}.parquet"))
        pq.write_table(pa.table(table), files[-1])
    return files


def _delays(generator: np.random.Generator, rows: int, most: int, late: float) -> Any:
    """Return by how many days rows are late: a share of them by one day up to `most`."""
    delays = np.zeros(rows, dtype=int)
    if late and most:
        some = generator.random(rows) < late
        delays[some] = generator.integers(1, most + 1, some.sum())
    return delays


def _opened(files: list[str], ledger: Path) -> sf.Database:
    return sf.connect(
        files,
        name="visits",
        unit="person",
        columns={"place": sf.one_of("a", "b", "c"), "cost": sf.between(0, 10)},
        max_groups=2,
        max_rows=3,
        budget=sf.Budget(epsilon=1000, delta=1e-6),
        ledger=ledger,
    )


def _stream(database: sf.Database, options: dict[str, Any]) -> Stream:
    place = {"name": "daily", "by": "day", "every": "day", "start": FIRST, "horizon": 365, "epsilon": 1}
    return database.stream(ASKED.format(""), **place, **options)


def _timed(action: Any) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def advance_rows(rows: int = 1_000_000, times: int = 3) -> Iterator[Row]:
    """Return how much longer one advance takes than the plain question."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        in_time = _write(folder, rows)
        (folder / "late").mkdir()
        some_late = _write(folder / "late", rows, 0.001)
        today = FIRST + datetime.timedelta(days=BEFORE)
        for said, (options, most) in STREAMS.items():
            files = some_late if said.endswith("0.1% are late") else in_time
            begun = folder / "begun"
            begun.mkdir()
            database = _opened(files[:-1], begun / "ledger")
            _stream(database, options).advance(today)
            database.ledger.close()
            ours = plain = math.inf
            for number in range(times):
                ledger = shutil.copytree(begun, folder / f"copy {number}") / "ledger"
                stream = _stream(_opened(files, ledger), options)
                ours = min(ours, _timed(lambda s=stream: s.advance(today + datetime.timedelta(days=1))))
                question = ASKED.format(f"WHERE day >= DATE '{today}'")
                asked = _opened(files, ledger).sql(question, epsilon=1, noise="gaussian")
                plain = min(plain, _timed(asked.release))
                shutil.rmtree(ledger.parent)
            shutil.rmtree(begun)
            yield Row(
                name=f"a day of {rows:,} rows in a stream, {said} (rival: the plain question)",
                ours=ours,
                rival=plain,
                unit="s",
                ratio=ours / plain,
                most=most,
            )


if __name__ == "__main__":
    show(advance_rows(*map(int, sys.argv[1:])), {})
