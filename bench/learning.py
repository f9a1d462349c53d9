"""Models of Adult and of patients at several epsilons, beside diffprivlib and OpenDP: errors and seconds.

    python bench/learning.py <adult.parquet> [the rivals' Python]

One row in five is a public test table (by its number, which is no attribute of anybody). Logistic regression
predicts the income from all other columns, linear regression the age, and the hours of work from the age
alone, for OpenDP's regression takes a single feature; and how an illness went on in 442 patients: the
diabetes table of scikit-learn, within bounds of a textbook. K-means divides people by their numbers. Rivals
get the same features, encoded by the same public bounds, and the same epsilon; diffprivlib's models and
OpenDP's regression are pure, which is stronger than (epsilon, delta): the rows say what a user of each gets
for the same epsilon, and not which mechanism is better for the same guarantee.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from report import Row, show
from sklearn.datasets import load_diabetes

import sfumato as sf
from sfumato.learn import AdditiveClassifier, KMeans, LinearRegression, LogisticRegression
from sfumato.learn.features import Features

__all__ = ["learning_rows"]

HERE = Path(__file__).parent
DELTA, RUNS, SECONDS = 1e-5, 5, 5.0
LEAST = {1.0: 0.845, 0.1: 0.835}  # accuracy of logistic regression
EPSILONS = (8.0, 1.0, 0.1)
LISTED = (
    "workclass", "education", "marital_status", "occupation", "relationship", "race", "sex", "native_country",
    "income",
)  # fmt: skip
BOUNDS = {
    "age": (17, 90),
    "fnlwgt": (0, 1_500_000),
    "education_num": (1, 16),
    "capital_gain": (0, 99_999),
    "capital_loss": (0, 4_500),
    "hours_per_week": (1, 99),
}

PATIENTS = {
    "age": (18, 80), "sex": (1, 2), "bmi": (15, 45), "bp": (60, 140), "s1": (90, 310), "s2": (40, 250),
    "s3": (20, 100), "s4": (2, 10), "s5": (3, 6.5), "s6": (55, 130), "progress": (0, 400),
}  # fmt: skip
CLUSTERS, CLUSTERED = 5, ["age", "education_num", "hours_per_week", "capital_gain", "capital_loss"]


def divided(path: str) -> tuple[sf.Database, pa.Table, pa.Table]:
    """Return a session with the private part, that part for the rivals, and the public part."""
    table = pq.read_table(path)
    columns: dict[str, Any] = {
        name: sf.one_of(*sorted({value for value in table[name].to_pylist() if value is not None}))
        for name in LISTED
    }
    columns |= {name: sf.between(*bounds) for name, bounds in BOUNDS.items()}
    public = pa.array([number % 5 == 0 for number in table["id"].to_pylist()])
    own = table.filter(pc.invert(public))
    budget = sf.Budget(epsilon=1000, delta=DELTA)
    database = sf.connect(own, name="adult", unit="id", columns=columns, budget=budget)
    return database, own, table.filter(public)


def ill_people() -> tuple[sf.Database, pa.Table, pa.Table]:
    """Return the same of patients."""
    data = load_diabetes(scaled=False)
    columns = {name: data.data[:, place] for place, name in enumerate(data.feature_names)}
    table = pa.table({"id": np.arange(len(data.target)), **columns, "progress": data.target})
    public = pa.array(np.arange(len(data.target)) % 5 == 0)
    own = table.filter(pc.invert(public))
    declared = {name: sf.between(*bounds) for name, bounds in PATIENTS.items()}
    budget = sf.Budget(epsilon=1000, delta=DELTA)
    database = sf.connect(own, name="patients", unit="id", columns=declared, budget=budget)
    return database, own, table.filter(public)


def learning_rows(path: str, rivals: str | None) -> Iterator[Row]:
    """Return all comparisons."""
    database, own, public = divided(path)
    table = database.table("adult")
    logistic = LogisticRegression(label="income", epsilon=1).priced(table).features
    ages = LinearRegression(label="age", epsilon=1).priced(table).features
    clustered = KMeans(clusters=CLUSTERS, epsilon=1, features=CLUSTERED).priced(table).features
    beside = {} if rivals is None else rival_figures(rivals, own, public, logistic, ages, clustered)
    for epsilon in EPSILONS:
        fits = [timed(LogisticRegression(label="income", epsilon=epsilon), table) for _ in range(RUNS)]
        ours = float(np.mean([model.score(public) for model, _ in fits]))
        yield Row(
            name=f"Adult, logistic regression, accuracy at epsilon {epsilon:g} (rival: diffprivlib)",
            ours=ours,
            rival=beside.get(f"logistic {epsilon:g}"),
            unit="",
            ratio=ours,
            least=LEAST.get(epsilon, 0.0),
        )
        slowest = max(seconds for _, seconds in fits)
        yield Row(
            name=f"Adult, logistic regression, slowest of {RUNS} fits at epsilon {epsilon:g}",
            ours=slowest,
            rival=beside.get(f"logistic {epsilon:g} seconds"),
            unit="s",
            ratio=slowest,
            most=SECONDS,
        )
    patients, _, tested = ill_people()
    regressions = (
        ("Adult, linear regression of age", table, public, "age", None, "linear", "diffprivlib"),
        ("Adult, hours of work by age", table, public, "hours_per_week", ["age"], "single", "OpenDP"),
        (
            "Patients, linear regression",
            patients.table("patients"),
            tested,
            "progress",
            None,
            "patients",
            "diffprivlib",
        ),
    )
    for what, own_rows, others, label, features, named, rival in regressions:
        truth = np.array(others[label].to_pylist(), dtype=np.float64)
        for epsilon in EPSILONS:
            errors = []
            for _ in range(RUNS):
                model = LinearRegression(label=label, features=features, epsilon=epsilon).fit(own_rows)
                errors.append(math.sqrt(np.square(model.predict(others) - truth).mean()))
            yield Row(
                name=f"{what}, RMSE at epsilon {epsilon:g} (rival: {rival})",
                ours=float(np.mean(errors)),
                rival=beside.get(f"{named} {epsilon:g}"),
                unit="",
                ratio=float(np.mean(errors) / truth.std()),
            )
    for epsilon in EPSILONS:
        curves = AdditiveClassifier(label="income", epsilon=epsilon)
        ours = float(np.mean([curves.fit(table).score(public) for _ in range(RUNS)]))
        name = f"Adult, additive model, accuracy at epsilon {epsilon:g} (rival: diffprivlib's regression)"
        yield Row(name=name, ours=ours, rival=beside.get(f"logistic {epsilon:g}"), unit="", ratio=ours)
        clusters = KMeans(clusters=CLUSTERS, epsilon=epsilon, features=CLUSTERED)
        ours = float(np.mean([-clusters.fit(table).score(public) for _ in range(RUNS)]))
        theirs = beside.get(f"clusters {epsilon:g}")
        yield Row(
            name=f"Adult, k-means, mean squared distance at epsilon {epsilon:g} (rival: diffprivlib)",
            ours=ours,
            rival=theirs,
            unit="",
            ratio=ours if theirs is None else ours / theirs,
        )


def timed(model: Any, table: Any) -> tuple[Any, float]:
    """Return a model that was fitted, and the seconds it took."""
    began = time.perf_counter()
    return model.fit(table), time.perf_counter() - began


def rival_figures(
    rivals: str, own: pa.Table, public: pa.Table, logistic: Features, ages: Features, clustered: Features
) -> dict[str, float]:
    """Return what the rivals reach, each in the rivals' environment."""
    with tempfile.TemporaryDirectory() as folder:
        given = Path(folder) / "given.npz"
        arrays = {}
        for part, table in (("own", own), ("public", public)):
            arrays[f"{part} logistic"] = logistic.of_public(table)
            arrays[f"{part} income"] = np.array([one == ">50K" for one in table["income"].to_pylist()])
            arrays[f"{part} clustered"] = clustered.of_public(table)
            arrays[f"{part} ages"] = ages.of_public(table)
            arrays[f"{part} age"] = np.array(table["age"].to_pylist(), dtype=np.float64)
            arrays[f"{part} hours"] = np.array(table["hours_per_week"].to_pylist(), dtype=np.float64)
        patients, own_patients, tested = ill_people()
        told = LinearRegression(label="progress", epsilon=1).priced(patients.table("patients")).features
        for part, table in (("own", own_patients), ("public", tested)):
            arrays[f"{part} patients"] = told.of_public(table)
            arrays[f"{part} progress"] = np.array(table["progress"].to_pylist(), dtype=np.float64)
        np.savez(given, **arrays)
        asked = {
            "progress": PATIENTS["progress"],
            "epsilons": EPSILONS,
            "runs": RUNS,
            "clusters": CLUSTERS,
            "norm": math.sqrt(len(logistic.columns)),
            "age": BOUNDS["age"],
            "hours": BOUNDS["hours_per_week"],
        }
        command = [rivals, str(HERE / "rival_learning.py"), str(given), json.dumps(asked)]
        answer = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    found: dict[str, float] = json.loads(answer.stdout)
    return found


if __name__ == "__main__":
    show(learning_rows(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None), {})
