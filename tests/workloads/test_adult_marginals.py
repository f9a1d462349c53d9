"""Marginals of real people: measured errors are the predicted ones, up to all 3-way tables of Adult."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import sfumato as sf

ADULT = Path(__file__).parent.parent / "data" / "adult.parquet"
FEW = ("education", "marital_status", "occupation", "relationship", "race", "sex", "income", "hours_per_week")
MORE = ("workclass", "native_country", "age", "fnlwgt", "capital_gain", "capital_loss")
BOUNDS = {
    "hours_per_week": (1, 100),
    "age": (17, 102),
    "fnlwgt": (0, 1_500_000),
    "capital_gain": (0, 100_000),
    "capital_loss": (0, 5_000),
}
BINS = {"hours_per_week": 99, "age": 85, "fnlwgt": 100, "capital_gain": 100, "capital_loss": 100}


@pytest.mark.parametrize(
    ("names", "ways", "cells"),
    [
        pytest.param(FEW, 2, 6_352, id="eight columns, 2-way"),
        pytest.param((*FEW, *MORE), 3, 20_894_536, id="all, 3-way", marks=pytest.mark.soak),
    ],
)
def test_measured_errors_are_the_predicted_ones(names: tuple[str, ...], ways: int, cells: int) -> None:
    """The sum of squared errors of each table is as predicted.

    The error of a table of cells is a sum of independent parts, one per residual A, each of prod (n_i - 1)
    dimensions d of variance a, normal but for steps far below it. By Laurent and Massart (2000), Lemma 1,
    their sum of squares is above its mean by 2 sqrt(x sum d a^2) + 2 x max a, or below by the first of both,
    with chance at most e^-x each: with x = ln(2 tables / 1e-9) all tables together have a false alarm
    below 1e-9. Power: variances that are 25% off are caught in the larger tables.
    """
    table = pq.read_table(ADULT, columns=["id", *names])
    columns: dict[str, Any] = {
        name: sf.between(*BOUNDS[name])
        if name in BOUNDS
        else sf.one_of(*sorted({value for value in table[name].to_pylist() if value is not None}))
        for name in names
    }
    db = sf.connect(
        table,
        name="adult",
        unit="id",
        columns=columns,
        max_rows=1,
        max_groups=1,
        budget=sf.Budget(epsilon=1, delta=1e-6),
    )
    bins = {name: number for name, number in BINS.items() if name in names}
    absent = [name for name in names if table[name].null_count]
    release = db.marginals(names, ways=ways, bins=bins, missing=absent, weights="tables", epsilon=1).release()
    assert release.cells == cells
    codes = []
    for name, column in zip(names, release.columns, strict=True):
        given = table[name].to_pylist()
        if name in BINS:
            (low, high), number = BOUNDS[name], BINS[name]
            edges = [-(-(low * number + (high - low) * i) // number) for i in range(1, number)]
            codes.append(np.searchsorted(edges, given, side="right"))
        else:
            codes.append(np.array([column.labels.index(value) for value in given]))
    plan, variances = release.estimates.plan, release.estimates.noise.variances
    x = math.log(2 * len(plan.tables) / 1e-9)
    sizes = [base.size for base in plan.bases]
    for one in plan.tables:
        shape = [sizes[i] for i in one]
        truth = np.zeros(shape)
        np.add.at(truth, tuple(codes[i] for i in one), 1)
        error = release.table(*(names[i] for i in one)).counts - truth
        parts = []
        for residual in plan.measured_for(one):
            inside = math.prod(sizes[i] for i in residual)
            outside = math.prod(sizes[i] for i in one if i not in residual)
            each = variances[plan.residuals.index(residual)] / inside**2 / outside
            parts.append((math.prod(sizes[i] - 1 for i in residual), each))
        mean = sum(d * a for d, a in parts)
        assert math.isclose(mean, plan.table_variance(one, variances) * math.prod(shape))
        spread = 2 * math.sqrt(x * sum(d * a * a for d, a in parts))
        found = float((error**2).sum())
        assert mean - spread <= found <= mean + spread + 2 * x * max(a for _, a in parts)
