"""Put the queries to OpenDP's Polars path, in the rivals' environment, and print what was measured as JSON.

Groups are truncated with keep="first": the default, "sample", fails with the polars that OpenDP
pins ("multiple fields with name .."). It keeps one group less than it is told to, so the people of
the accuracy table have that many: errors are those of noise alone.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import time
import warnings
from importlib.metadata import version
from typing import Any

import opendp.prelude as dp
import polars as pl

DELTA = 1e-7
CANDIDATES = [step / 10 for step in range(1001)]


def main() -> None:
    """Measure everything and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("events", help="the events, a Parquet file")
    parser.add_argument("people", help="the people of the accuracy table, a Parquet file")
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--repetitions", type=int, default=4)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    dp.enable_features("contrib")
    people = pl.read_parquet(options.people).lazy()
    record: dict[str, Any] = {
        "versions": {name: version(name) for name in ("opendp", "polars")},
        "errors": {
            name: errors(name, people, options.repetitions) for name in ("COUNT", "SUM", "AVG", "MEDIAN")
        },
        "keys": max(
            statistics.fmean(len(words(people, loss, 2)) for _ in range(options.repetitions))
            for loss in losses(1.0)
        ),
    }
    events = pl.read_parquet(options.events).lazy()
    found: list[int] = []
    record["seconds"] = {
        "W1": seconds(lambda: totals(events, losses(1.0)[0], 3, 20, ("COUNT", "SUM"), 50), options.times),
        "W2": seconds(lambda: found.append(len(words(events, losses(1.0)[0], 20))), options.times),
    }
    record["W2 keys"] = found[-1]
    json.dump(record, sys.stdout)


def seconds(action: Any, times: int) -> float:
    """Return the median time of an action."""
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        action()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def losses(epsilon: float) -> list[Any]:
    """Return (epsilon, delta) in both forms that OpenDP knows: with Laplace noise, and with Gaussian."""
    return [
        dp.loss_of(epsilon=epsilon, delta=DELTA),
        dp.loss_of(rho=rho(epsilon, DELTA / 2), delta=DELTA / 2),
    ]


def rho(epsilon: float, delta: float) -> float:
    """Return the zCDP that implies (epsilon, delta): Canonne, Kamath and Steinke (2020)."""

    def implied(value: float) -> float:
        orders = (1 + 10 ** (power / 100) for power in range(-300, 500))
        return min(
            math.exp(min(700.0, (a - 1) * (a * value - epsilon) + a * math.log1p(-1 / a))) / (a - 1)
            for a in orders
        )

    low, high = 0.0, epsilon
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if implied(middle) <= delta else (low, middle)
    return low


def ask(data: pl.LazyFrame, loss: Any, margin: Any) -> Any:
    """Return a query whose people are protected."""
    return dp.Context.compositor(
        data=data,
        privacy_unit=dp.unit_of(contributions=1, identifier=pl.col("user_id")),
        privacy_loss=loss,
        split_evenly_over=1,
        margins=[margin],
    ).query()


def totals(
    data: pl.LazyFrame, loss: Any, max_groups: int, max_rows: int, wanted: tuple[str, ...], regions: int
) -> dict[str, list[float]]:
    """Return counts and sums by region."""
    margin = dp.polars.Margin(by=["region"], max_groups=regions, invariant="keys", max_length=10**8)
    amount = pl.col("amount").fill_nan(0.0).fill_null(0.0)
    forms = {"COUNT": dp.len(signed=True), "SUM": amount.dp.sum((0.0, 100.0))}
    query = (
        ask(data, loss, margin)
        .truncate_per_group(max_rows, by=["region"], keep="first")
        .truncate_num_groups(max_groups, by=["region"], keep="first")
        .group_by("region")
        .agg(*(forms[name].alias(name) for name in wanted))
        .with_keys(pl.LazyFrame({"region": [f"r{number:02}" for number in range(regions)]}))
    )
    found = query.release().collect().sort("region")
    return {name: found[name].to_list() for name in wanted}


def words(data: pl.LazyFrame, loss: Any, max_rows: int) -> list[str]:
    """Return the words that pass."""
    margin = dp.polars.Margin(by=["word"], max_length=10**8, max_groups=10**7)
    query = (
        ask(data, loss, margin)
        .truncate_per_group(max_rows, by=["word"], keep="first")
        .truncate_num_groups(5, by=["word"], keep="first")
        .group_by("word")
        .agg(dp.len(signed=True))
    )
    found: list[str] = query.release().collect()["word"].to_list()
    return found


def answer(name: str, data: pl.LazyFrame, loss: Any) -> list[float]:
    """Return one statistic, by region or of all."""
    if name == "MEDIAN":
        query = ask(data, loss, dp.polars.Margin(by=[], max_length=10**6)).truncate_per_group(4, keep="first")
        amount = pl.col("amount").fill_nan(0.0).fill_null(0.0)
        return [float(query.select(amount.dp.median(CANDIDATES)).release().collect().item())]
    if name == "AVG":  # its own mean needs public group sizes
        found = totals(data, loss, 3, 2, ("COUNT", "SUM"), 10)
        return [s / n for s, n in zip(found["SUM"], found["COUNT"], strict=True)]
    return totals(data, loss, 3, 2, (name,), 10)[name]


def truth(name: str, data: pl.LazyFrame) -> list[float]:
    """Return the statistic itself."""
    amount = pl.col("amount")
    if name == "MEDIAN":
        return [float(data.select(amount.median()).collect().item())]
    form = {"COUNT": pl.len(), "SUM": amount.sum(), "AVG": amount.mean()}[name]
    return data.group_by("region").agg(form.alias("x")).sort("region").collect()["x"].to_list()


def errors(name: str, data: pl.LazyFrame, repetitions: int) -> float:
    """Return the mean absolute error, of whichever form is better."""
    exact = truth(name, data)
    results = []
    for loss in losses(1.0):
        try:
            runs = [answer(name, data, loss) for _ in range(repetitions)]
        except dp.OpenDPException:  # not every form knows every statistic
            continue
        results.append(statistics.fmean(abs(x - e) for run in runs for x, e in zip(run, exact, strict=True)))
    return min(results, default=math.nan)


if __name__ == "__main__":
    main()
