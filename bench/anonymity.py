"""Time k-anonymity: a million rows with six quasi-identifiers measured and generalised, beside pycanon.

The people are invented: a ZIP code of 2,000, unequally peopled, a date of birth within ninety
years, sex, race, education, marital status, and an illness. They are read from a Parquet file, as an owner
would. pycanon walks over its classes one by one, so with a sensitive column it gets a thousandth of the rows.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from report import Row, show

from sfumato.anonymity import Calendar, Goal, Hierarchy, Levels, Prefixes, measure, reach

__all__ = ["anonymity_rows"]

ROWS = 1_000_000
FEW = 1_000
MEASURE_SECONDS, REACH_SECONDS = 2.0, 30.0
QUASI = ("zip", "birth", "sex", "race", "education", "marital")
EDUCATION = {
    "school": ["none", "primary", "9th", "10th", "11th", "12th", "diploma"],
    "some college": ["college", "associate", "trade"],
    "degree": ["bachelor", "master", "professional", "doctorate"],
}
MARITAL = {"together": ["married", "partner"], "alone": ["single", "divorced", "widowed", "separated"]}
HIERARCHIES: dict[str, Hierarchy] = {
    "zip": Prefixes(keep=(4, 3, 2, 1)),
    "birth": Calendar(steps=("month", "year", "decade", "century")),
    "education": Levels.tree(EDUCATION),
    "marital": Levels.tree(MARITAL),
}


def anonymity_rows(*, rows: int = ROWS, times: int = 3) -> Iterator[Row]:
    """Measure and generalise; the best of some timings counts, as everywhere in this benchmark."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("SFUMATO_BENCH_DIR")) as folder:
        path, few = Path(folder) / "people.parquet", Path(folder) / "few.parquet"
        _write(path, rows)
        _write(few, FEW)
        seconds, _ = _best(lambda: measure(path, QUASI, sensitive="illness"), times)
        title = f"{rows:,} rows, {len(QUASI)} quasi-identifiers"
        what = f"k, risks, l and t, share of {MEASURE_SECONDS:g} s"
        yield _within(f"{title}: {what}", seconds, MEASURE_SECONDS)
        for name, goal, options in _tasks():
            seconds, made = _best(lambda goal=goal, options=options: _reach(path, goal, options), 1)
            assert made.after.k >= goal.k
            what = f"{name} ({made.loss.certainty:.1%} lost), share of {REACH_SECONDS:g} s"
            yield _within(f"{title}: {what}", seconds, REACH_SECONDS)
        yield from _beside_pycanon(path, few, rows, times)


def _tasks() -> list[tuple[str, Goal, dict[str, Any]]]:
    recoding = {"method": "recoding", "hierarchies": HIERARCHIES, "suppress": 0.05}
    diverse = Goal(k=10, l=3, t=0.3)
    return [
        ("Mondrian to k = 10", Goal(k=10), {}),
        ("Mondrian to k = 10, l = 3, t = 0.3", diverse, {"sensitive": "illness"}),
        ("recoding to k = 10", Goal(k=10), recoding),
        ("recoding to k = 10, l = 3, t = 0.3", diverse, recoding | {"sensitive": "illness"}),
    ]


def _reach(path: Path, goal: Goal, options: dict[str, Any]) -> Any:
    made = reach(path, QUASI, goal, **options)
    assert made.table.num_rows == made.after.rows  # the table is made when it is asked for
    return made


def _beside_pycanon(path: Path, few: Path, rows: int, times: int) -> Iterator[Row]:
    import pandas as pd
    from pycanon import anonymity as rival

    quasi = list(QUASI)
    frame, small = pd.read_parquet(path), pd.read_parquet(few)
    for each in (frame, small):
        each["birth"] = each["birth"].astype(str)  # it knows no dates
    ours, _ = _best(lambda: measure(path, QUASI).k, times)
    theirs, k = _best(lambda: rival.k_anonymity(frame, quasi), 1)
    assert k == measure(path, QUASI).k
    yield Row(
        name=f"k of {rows:,} rows, reading included: pycanon, without reading",
        ours=ours,
        rival=theirs,
        unit="s",
        ratio=theirs / ours,
        least=1,
    )
    ours, measured = _best(lambda: measure(few, QUASI, sensitive="illness"), times)
    theirs, t = _best(lambda: rival.t_closeness(small, quasi, ["illness"]), 1)
    assert abs(t - measured.diversity[0].t) < 1e-9
    yield Row(
        name=f"everything about {FEW:,} rows: t alone, pycanon",
        ours=ours,
        rival=theirs,
        unit="s",
        ratio=theirs / ours,
        least=1,
    )


def _write(path: Path, rows: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    draw = np.random.default_rng(11)  # invented people; a seed is for examples, never for noise
    towns, ills = draw.dirichlet(np.full(2_000, 0.7)), draw.dirichlet(np.full(12, 3))
    births = np.datetime64("2020-01-01") - (draw.beta(1.3, 1.8, rows) * 90 * 365.25).astype("timedelta64[D]")
    table = {
        "zip": np.char.zfill((10_000 + 37 * draw.choice(2_000, rows, p=towns)).astype(str), 5),
        "birth": births,
        "sex": draw.choice(["f", "m"], rows),
        "race": draw.choice(["a", "b", "c", "d", "e"], rows, p=[0.6, 0.2, 0.12, 0.05, 0.03]),
        "education": draw.choice([name for names in EDUCATION.values() for name in names], rows),
        "marital": draw.choice([name for names in MARITAL.values() for name in names], rows),
        "illness": draw.choice([f"illness {number}" for number in range(12)], rows, p=ills),
    }
    pq.write_table(pa.table(table), path)


def _best(run: Callable[[], Any], times: int) -> tuple[float, Any]:
    seconds, result = [], None
    for _ in range(times):
        start = time.perf_counter()
        result = run()
        seconds.append(time.perf_counter() - start)
    return min(seconds), result


def _within(name: str, seconds: float, limit: float) -> Row:
    return Row(name=name, ours=seconds, rival=None, unit="s", ratio=seconds / limit, most=1)


if __name__ == "__main__":
    show(anonymity_rows(), {})
