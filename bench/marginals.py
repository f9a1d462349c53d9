"""All tables of two columns of Adult at one (epsilon, delta): error and seconds, beside other ways.

    python bench/marginals.py <adult.parquet> [the rivals' Python]

Beside residuals: each table measured by itself, with the cost divided as well as possible; one full table,
where it fits; and OpenDP, which measures each table and, where private-pgm is installed beside it, fits a
model to them. Errors are the root of the mean squared error of all cells; those of OpenDP and of ours are
measured against the truth of this public data, the others are exact.
"""

from __future__ import annotations

import json
import math
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq
from report import Row, show

import sfumato as sf
from sfumato.session.marginals import MarginalsQuestion
from sfumato.workloads.marginals import PricedMarginals

__all__ = ["marginal_rows"]

HERE = Path(__file__).parent
EPSILON, DELTA = 1.0, 1e-6
SECONDS, GIGABYTES = 60.0, 8.0
LISTED = (
    "workclass", "education", "marital_status", "occupation", "relationship", "race", "sex", "native_country",
    "income",
)  # fmt: skip
BINS = {"age": 85, "fnlwgt": 100, "capital_gain": 100, "capital_loss": 100, "hours_per_week": 99}
BOUNDS = {
    "age": (17, 102),
    "fnlwgt": (0, 1_500_000),
    "capital_gain": (0, 100_000),
    "capital_loss": (0, 5_000),
    "hours_per_week": (1, 100),
}
FEW = ("marital_status", "relationship", "race", "sex", "income")  # a full table of 840 cells


def connect(path: str) -> sf.Database:
    """Return the data, with the values and bounds of the code book."""
    table = pq.read_table(path, columns=list(LISTED))
    columns: dict[str, Any] = {
        name: sf.one_of(*sorted({value for value in table[name].to_pylist() if value is not None}))
        for name in LISTED
    }
    columns |= {name: sf.between(*bounds) for name, bounds in BOUNDS.items()}
    budget = sf.Budget(epsilon=20, delta=2 * DELTA, keys_delta=DELTA)
    return sf.connect(path, name="adult", unit=None, columns=columns, budget=budget)


def ask(database: sf.Database, ways: int, names: tuple[str, ...] = (*LISTED, *BINS)) -> MarginalsQuestion:
    """Ask for all tables of so many columns."""
    bins = {name: number for name, number in BINS.items() if name in names}
    absent = [name for name in ("workclass", "occupation", "native_country") if name in names]
    return database.marginals(names, ways=ways, bins=bins, missing=absent, epsilon=EPSILON)


def codes_of(path: str, question: MarginalsQuestion) -> dict[str, npt.NDArray[np.int64]]:
    """Return the cell of every row in every column, by a second way."""
    table = pq.read_table(path)
    found = {}
    for column in question.workload.columns:
        values = table[column.name].to_pylist()
        if column.name in BINS:
            low, high = BOUNDS[column.name]
            edges = [
                math.ceil(low + (high - low) * i / BINS[column.name]) for i in range(1, BINS[column.name])
            ]
            found[column.name] = np.searchsorted(edges, values, side="right")
        else:
            found[column.name] = np.array([column.labels.index(value) for value in values])
    return found


def rmse(squares: float, cells: int) -> float:
    """Return the root of a mean square."""
    return math.sqrt(squares / cells)


def cost_of(priced: PricedMarginals) -> float:
    """Return the privacy cost sum p / s of the noise of a workload: 1 over the variance of one count."""
    return sum(p / s for p, s in zip(priced.plan.sensitivities_squared, priced.variances, strict=True))


def marginal_rows(path: str, rivals: str | None) -> Iterator[Row]:
    """Return all comparisons."""
    database = connect(path)
    question = ask(database, 2)
    priced = question.priced()
    sizes = [len(column.labels) for column in question.workload.columns]
    names = [column.name for column in question.workload.columns]
    cells = [math.prod(sizes[i] for i in table) for table in priced.plan.tables]
    began = time.perf_counter()
    release = question.release()
    seconds = time.perf_counter() - began
    codes = codes_of(path, question)
    squares = 0.0
    for table in release.tables:
        truth = np.zeros([sizes[names.index(name)] for name in table])
        np.add.at(truth, tuple(codes[name] for name in table), 1)
        squares += float(((release.table(*table).counts - truth) ** 2).sum())
    ours = rmse(squares, sum(cells))
    predicted = priced.plan.rmse(priced.variances)
    each = math.sqrt(sum(map(math.sqrt, cells)) ** 2 / cost_of(priced) / sum(cells))
    yield from [
        Row(
            name="2-way tables of Adult, RMSE measured (rival: predicted)",
            ours=ours, rival=predicted, unit="", ratio=ours / predicted, least=0.98, most=1.02,
        ),
        Row(
            name="2-way tables of Adult, RMSE (rival: each by itself, cost divided as well as possible)",
            ours=predicted, rival=each, unit="", ratio=predicted / each, most=1.0,
        ),
        _full_table(database),
    ]  # fmt: skip
    if rivals is not None:
        yield from _opendp(rivals, codes, sizes, names, ours, seconds)
    yield from _three_ways(database)


def _full_table(database: sf.Database) -> Row:
    priced = ask(database, 2, FEW).priced()
    sizes = [base.size for base in priced.plan.bases]
    cells = [math.prod(sizes[i] for i in table) for table in combinations(range(len(sizes)), 2)]
    # every cell of the full table has variance 1 / cost; a cell of a smaller table is a sum of some of them
    full = math.sqrt(math.prod(sizes) * len(cells) / cost_of(priced) / sum(cells))
    ours = priced.plan.rmse(priced.variances)
    name = f"2-way tables of {len(FEW)} columns, RMSE (rival: summed from one full table)"
    return Row(name=name, ours=ours, rival=full, unit="", ratio=ours / full, most=1.0)


def _opendp(
    python: str, codes: dict[str, Any], sizes: list[int], names: list[str], ours: float, seconds: float
) -> Iterator[Row]:
    given = {
        "epsilon": EPSILON,
        "delta": DELTA,
        "sizes": dict(zip(names, sizes, strict=True)),
        "codes": {name: column.tolist() for name, column in codes.items()},
    }
    command = [python, str(HERE / "rival_marginals.py")]
    answer = subprocess.run(
        command,
        input=json.dumps(given).encode(),
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    for what, measured in json.loads(answer.stdout).items():
        yield from [
            Row(
                name=f"2-way tables of Adult, RMSE (rival: OpenDP, {what})",
                ours=ours, rival=measured["rmse"], unit="", ratio=ours / measured["rmse"], most=1.0,
            ),
            Row(
                name=f"2-way tables of Adult, seconds (rival: OpenDP, {what})",
                ours=seconds, rival=measured["seconds"], unit="s", ratio=seconds / measured["seconds"],
            ),
        ]  # fmt: skip


def _three_ways(database: sf.Database) -> Iterator[Row]:
    question = ask(database, 3)
    began = time.perf_counter()
    release = question.release()
    for names in release.tables:
        release.table(*names)
    seconds = time.perf_counter() - began
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
    what = f"3-way tables of Adult, {release.cells:,} cells"
    yield Row(name=f"{what}, seconds", ours=seconds, rival=None, unit="s", ratio=seconds, most=SECONDS)
    yield Row(name=f"{what}, memory", ours=memory, rival=None, unit="GB", ratio=memory, most=GIGABYTES)


if __name__ == "__main__":
    show(marginal_rows(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None), {})
