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
AMOUNT = pl.col("amount").fill_nan(0.0).fill_null(0.0)


def main() -> None:
    """Measure everything and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("people", help="the people of the accuracy table, a Parquet file")
    parser.add_argument("events", nargs="?", help="the events, a Parquet file; left out, nothing is timed")
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--repetitions", type=int, default=120)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    dp.enable_features("contrib")
    people = pl.read_parquet(options.people).lazy()
    names = ("COUNT", "SUM", "AVG", "MEDIAN by region", "MEDIAN")
    record: dict[str, Any] = {
        "versions": {name: version(name) for name in ("opendp", "polars")},
        "errors": {name: errors(name, people, options.repetitions) for name in names},
        "keys": {},
    }
    for form, loss in losses(1.0).items():
        asked = words(people, loss, 2).resolve()
        runs = [len(asked(people).collect()) for _ in range(options.repetitions)]
        record["keys"][form] = statistics.fmean(runs)
    if options.events is not None:
        events = pl.read_parquet(options.events).lazy()
        laplace, gaussian = losses(1.0).values()
        found: list[int] = []
        record["seconds"] = {
            "W1": seconds(
                lambda: totals(events, laplace, 3, 20, ("COUNT", "SUM"), 50).release().collect(),
                options.times,
            ),
            "W2": seconds(
                lambda: found.append(len(words(events, laplace, 20).release().collect())), options.times
            ),
        }
        record["W2 keys"] = {
            "Laplace": found[-1],
            "Gaussian": len(words(events, gaussian, 20).release().collect()),
        }
    json.dump(record, sys.stdout)


def seconds(action: Any, times: int) -> float:
    """Return the median time of an action."""
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        action()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def losses(epsilon: float) -> dict[str, Any]:
    """Return (epsilon, delta) in both forms that OpenDP knows, by the noise they bring."""
    return {
        "Laplace": dp.loss_of(epsilon=epsilon, delta=DELTA),
        "Gaussian": dp.loss_of(rho=rho(epsilon, DELTA / 2), delta=DELTA / 2),
    }


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
) -> Any:
    """Return the question for statistics by region."""
    longest = 10**8 if regions == 50 else 10**5  # its sums pay for the longest group that there may be
    margin = dp.polars.Margin(by=["region"], max_groups=regions, invariant="keys", max_length=longest)
    forms = {
        "COUNT": dp.len(signed=True),
        "SUM": AMOUNT.dp.sum((0.0, 100.0)),
        "MEDIAN": AMOUNT.dp.median(CANDIDATES),
    }
    return (
        ask(data, loss, margin)
        .truncate_per_group(max_rows, by=["region"], keep="first")
        .truncate_num_groups(max_groups, by=["region"], keep="first")
        .group_by("region")
        .agg(*(forms[name].alias(name) for name in wanted))
        .with_keys(pl.LazyFrame({"region": [f"r{number:02}" for number in range(regions)]}))
    )


def words(data: pl.LazyFrame, loss: Any, max_rows: int) -> Any:
    """Return the question for words and their counts."""
    margin = dp.polars.Margin(by=["word"], max_length=10**8, max_groups=10**7)
    return (
        ask(data, loss, margin)
        .truncate_per_group(max_rows, by=["word"], keep="first")
        .truncate_num_groups(5, by=["word"], keep="first")
        .group_by("word")
        .agg(dp.len(signed=True))
    )


def question(name: str, data: pl.LazyFrame, loss: Any) -> Any:
    """Return the question for one statistic, by region or of all."""
    if name == "MEDIAN":
        everything = dp.polars.Margin(by=[], max_length=10**6)
        query = ask(data, loss, everything).truncate_per_group(4, keep="first")
        return query.select(AMOUNT.dp.median(CANDIDATES).alias("MEDIAN"))
    wanted = (
        ("COUNT", "SUM") if name == "AVG" else (name.split()[0],)
    )  # its own mean needs public group sizes
    return totals(data, loss, 3, 2, wanted, 10)


def values(name: str, found: pl.DataFrame) -> list[float]:
    """Return the statistic from an answer, in the order of the regions."""
    if name == "MEDIAN":
        return [float(found.item())]
    found = found.sort("region")
    if name == "AVG":
        return (found["SUM"] / found["COUNT"]).to_list()
    return found[name.split()[0]].to_list()


def truth(name: str, data: pl.LazyFrame) -> list[float]:
    """Return the statistic itself."""
    amount = pl.col("amount")
    if name == "MEDIAN":
        return [float(data.select(amount.median()).collect().item())]
    form = {"COUNT": pl.len(), "SUM": amount.sum(), "AVG": amount.mean(), "MEDIAN": amount.median()}
    asked = form[name.split()[0]].alias("x")
    return data.group_by("region").agg(asked).sort("region").collect()["x"].to_list()


def errors(name: str, data: pl.LazyFrame, repetitions: int) -> dict[str, tuple[float, float]]:
    """Return the mean absolute error and its standard error, by form.

    The mechanism is made once: searching for its scale takes seconds, and finds the same each time.
    """
    exact = truth(name, data)
    results = {}
    for form, loss in losses(1.0).items():
        try:
            asked = question(name, data, loss).resolve()
        except dp.OpenDPException:  # not every form knows every statistic
            continue
        runs = repetitions * (4 if len(exact) == 1 else 1)
        found = [
            abs(x - e)
            for _ in range(runs)
            for x, e in zip(values(name, asked(data).collect()), exact, strict=True)
        ]
        results[form] = (statistics.fmean(found), statistics.stdev(found) / math.sqrt(len(found)))
    return results


if __name__ == "__main__":
    main()
