"""Regressions and clusters of Adult by diffprivlib and OpenDP, in the rivals' environment, as JSON.

diffprivlib's models are told the bounds of every feature and the largest norm of a row, OpenDP's the bounds
of its only feature; what none of them is told it would read off the data, which is not private.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from typing import Any

import numpy as np
import opendp.prelude as dp
from diffprivlib.models import KMeans, LinearRegression, LogisticRegression


def main() -> None:
    """Measure everything and print one JSON object."""
    warnings.simplefilter("ignore")
    data, asked = dict(np.load(sys.argv[1])), json.loads(sys.argv[2])
    found: dict[str, float] = {}
    for epsilon in asked["epsilons"]:
        name, runs = f"{epsilon:g}", range(asked["runs"])
        fits = [logistic(data, epsilon, asked["norm"]) for _ in runs]
        found[f"logistic {name}"] = float(np.mean([score for score, _ in fits]))
        found[f"logistic {name} seconds"] = max(seconds for _, seconds in fits)
        for what, features, label in (("linear", "ages", "age"), ("patients", "patients", "progress")):
            errors = [linear(data, epsilon, features, label, asked[label]) for _ in runs]
            found[f"{what} {name}"] = float(np.mean(errors))
        found[f"clusters {name}"] = float(np.mean([clusters(data, epsilon, asked["clusters"]) for _ in runs]))
        errors = [single(data, epsilon, asked["age"], asked["hours"]) for _ in runs]
        found[f"single {name}"] = float(np.mean(errors))
    print(json.dumps(found))


def logistic(data: dict[str, Any], epsilon: float, norm: float) -> tuple[float, float]:
    """Return the accuracy of one fit, and its seconds."""
    began = time.perf_counter()
    model = LogisticRegression(epsilon=epsilon, data_norm=norm, max_iter=1000)
    model.fit(data["own logistic"].astype(np.float64), data["own income"])
    seconds = time.perf_counter() - began
    return model.score(data["public logistic"].astype(np.float64), data["public income"]), seconds


def linear(
    data: dict[str, Any], epsilon: float, features: str, label: str, bounds: tuple[float, float]
) -> float:
    """Return the root of the mean squared error of one fit."""
    model = LinearRegression(epsilon=epsilon, bounds_X=(-1.0, 1.0), bounds_y=tuple(bounds))
    model.fit(data[f"own {features}"].astype(np.float64), data[f"own {label}"])
    found = model.predict(data[f"public {features}"].astype(np.float64))
    errors = np.clip(found, *bounds) - data[f"public {label}"]
    return float(np.sqrt(np.square(errors).mean()))


def clusters(data: dict[str, Any], epsilon: float, number: int) -> float:
    """Return the mean squared distance of public rows to the nearest centre of one fit."""
    model = KMeans(n_clusters=number, epsilon=epsilon, bounds=(-1.0, 1.0))
    centres = model.fit(data["own clustered"].astype(np.float64)).cluster_centers_
    gaps = data["public clustered"].astype(np.float64)[:, None, :] - centres[None, :, :]
    return float(np.square(gaps).sum(axis=2).min(axis=1).mean())


def single(
    data: dict[str, Any], epsilon: float, bounds: tuple[float, float], label: tuple[float, float]
) -> float:
    """Return the error of OpenDP's Theil-Sen regression on one feature, at the scale that costs epsilon."""
    dp.enable_features("contrib", "idealized-numerics", "floating-point", "honest-but-curious")

    def made(scale: float) -> Any:
        return dp.sklearn.linear_model.LinearRegression(
            dp.max_divergence(), x_bounds=[tuple(bounds)], y_bounds=tuple(label), scale=scale
        )

    scale = dp.binary_search(lambda one: made(one).measurement.map(1) <= epsilon, bounds=(1e-3, 1e6))
    model = made(scale).fit(X=data["own age"][:, None], y=data["own hours"])
    errors = np.clip(model.predict(data["public age"][:, None]), *label) - data["public hours"]
    return float(np.sqrt(np.square(errors).mean()))


if __name__ == "__main__":
    main()
