"""Race the rivals on one machine: each row is printed as it ends; all are written to bench/results.json.

A row with a requirement that does not hold makes the exit code 1.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from anonymity import anonymity_rows
from cases import ACCOUNTING, DRAWS, SCALES, SIGMA, Case, Part, best, gaussian_epsilon
from fairness import fairness_rows
from hierarchy import hierarchy_rows
from hostile import hostile_rows
from ladder import ladder_rows
from learning import learning_rows
from ledger import ledger_rows
from local import local_rows
from marginals import marginal_rows
from networks import network_rows
from postgres import postgres_rows
from queries import large_rows, query_rows
from rare import rare_rows
from report import Row, show, write
from server_ledger import server_ledger_rows
from spark import spark_growth_rows, spark_rows, tumult_rows
from stream_advance import advance_rows
from stream_errors import stream_error_rows
from stream_groups import stream_group_rows
from workload import workload_rows

from sfumato.core import Composition, discrete_gaussian, discrete_laplace, events

HERE = Path(__file__).parent
IMPORT_SECONDS = 0.3
TIGHT = 1.001


def main() -> int:
    """Measure, print, write; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rivals", required=True, help="the Python of the rivals' environment")
    parser.add_argument("--tumult", help="the Python of Tumult's environment; left out, it is not asked")
    parser.add_argument("--times", type=int, default=5, help="timings per entry; the best one counts")
    parser.add_argument("--rival-draws", type=int, default=DRAWS, help="samples drawn by the slow rival")
    parser.add_argument(
        "--rows", type=int, default=10_000_000, help="rows of the events workload; 0: leave it out"
    )
    parser.add_argument(
        "--large", action="store_true", help="only the events workload over a hundred million rows"
    )
    parser.add_argument("--records", type=int, default=1_000_000, help="length of the long ledger; 0: none")
    options = parser.parse_args()
    if options.large:
        rows = show(chain(large_rows(), spark_growth_rows()), {})
        return 0 if all(row.passed for row in rows) else 1

    rivals: dict[str, Any] = {"versions": {}}
    rows = show(all_rows(options, rivals), rivals["versions"])
    write(rows, rivals)
    return 0 if all(row.passed for row in rows) else 1


def all_rows(options: argparse.Namespace, rivals: dict[str, Any]) -> Iterator[Row]:
    """Measure one section after the other; the measurements of rivals are added to `rivals`."""
    command = [options.rivals, str(HERE / "rivals.py")]
    command += ["--times", str(options.times), "--draws", str(options.rival_draws)]
    answer = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    found = json.loads(answer.stdout)
    rivals["versions"].update(found.pop("versions"))
    rivals |= found
    yield from sampler_rows(rivals["samplers"], options.times)
    for case in ACCOUNTING:
        yield from accounting_rows(case, rivals["accounting"], options.times)
    yield from rare_rows()
    for name in ("sfumato", "sfumato.core"):
        yield import_row(name, options.times)
    yield from ledger_rows(records=options.records)
    yield from server_ledger_rows()
    yield from anonymity_rows()
    adult = str(HERE.parent / "tests" / "data" / "adult.parquet")
    yield from workload_rows(adult)
    yield from marginal_rows(adult, options.rivals)
    yield from hierarchy_rows()
    yield from ladder_rows()
    yield from hostile_rows()
    yield from learning_rows(adult, options.rivals)
    yield from fairness_rows()
    yield from stream_error_rows(options.rivals)
    yield from stream_group_rows()
    yield from advance_rows()
    yield from network_rows()
    yield from local_rows(options.rivals, rivals.setdefault("local", {}), times=options.times)
    if options.rows:
        queries = rivals.setdefault("queries", {})
        yield from query_rows(options.rivals, queries, rows=options.rows, times=options.times)
        yield from postgres_rows(rows=options.rows, times=options.times)
        yield from spark_rows(rows=options.rows, times=options.times)
        if options.tumult:
            yield from tumult_rows(options.tumult, rivals.setdefault("tumult", {}), rows=options.rows)


# -- samplers ---------------------------------------------------------------------------


def sampler_rows(rivals: dict[str, float], times: int) -> Iterator[Row]:
    """Compare a million draws with the exact rival, with numpy's normal, and across scales."""
    generator = np.random.default_rng()
    for law, draw in (("gaussian", discrete_gaussian), ("laplace", discrete_laplace)):
        draw(SIGMA, size=DRAWS)  # tables are built once per scale
        ours, floats = math.inf, math.inf
        for _ in range(times):  # in turns, so that a busy moment of the machine meets both
            ours = min(ours, best(lambda draw=draw: draw(SIGMA, size=DRAWS), times=2))
            floats = min(floats, best(lambda: generator.normal(0, SIGMA, DRAWS), times=2))
        exact = rivals[f"opendp {law}"]
        title = f"1e6 discrete {law.capitalize()}, scale {SIGMA}"
        yield Row(name=f"{title}: OpenDP", ours=ours, rival=exact, unit="s", ratio=exact / ours, least=100)
        yield Row(
            name=f"{title}: numpy normal",
            ours=ours,
            rival=floats,
            unit="s",
            ratio=floats / ours,
            least=0.5,
        )
        seconds = dict.fromkeys(SCALES, math.inf)
        for _ in range(2 * times):
            for scale in SCALES:
                once = best(lambda draw=draw, scale=scale: draw(scale, size=DRAWS), times=1)
                seconds[scale] = min(seconds[scale], once)
        slowest, fastest = max(seconds.values()), min(seconds.values())
        yield Row(
            name=f"{title.split(',')[0]}, slowest against fastest of scales 1 to 1e9",
            ours=slowest,
            rival=fastest,
            unit="s",
            ratio=slowest / fastest,
            most=3,
        )


# -- accounting -------------------------------------------------------------------------


def accounting_rows(case: Case, rivals: dict[str, dict[str, Any]], times: int) -> Iterator[Row]:
    """Compare the epsilon that is claimed with the truth, and the time with the rival's."""
    rival = rivals[case.name]
    batch = [event_of(part) for part in case.parts]
    ours = Composition(batch).epsilon(case.delta)
    truth = true_epsilon(case, batch, rival)
    seconds = best(lambda: Composition(batch).epsilon(case.delta), times=times)
    yield Row(
        name=f"{case.name}: epsilon against the truth",
        ours=ours,
        rival=truth,
        unit="",
        ratio=ours / truth,
        least=1,
        most=TIGHT,
    )
    yield Row(
        name=f"{case.name}: epsilon beside dp-accounting",
        ours=ours,
        rival=rival.get("epsilon"),
        unit="",
        ratio=ours / rival.get("epsilon", math.nan),
    )
    yield Row(
        name=f"{case.name}: time",
        ours=seconds,
        rival=rival.get("seconds"),
        unit="s",
        ratio=rival.get("seconds", math.nan) / seconds,
        least=1 if case.required else 0,
    )


def event_of(part: Part) -> events.Event:
    """Return our event of one part, repeated."""
    event: events.Event
    match part.kind:
        case "gaussian":
            event = events.Gaussian(sigma=part.noise)
        case "subsampled":
            event = events.PoissonSubsampled(event=events.Gaussian(sigma=part.noise), rate=part.rate)
        case "laplace":
            event = events.Laplace(scale=part.noise)
        case "discrete laplace":
            event = events.DiscreteLaplace(scale=part.noise, sensitivity=1)
        case "discrete gaussian":
            event = events.DiscreteGaussian(sigma_squared=part.noise**2, sensitivity=1)
        case _:
            raise ValueError(f"unknown mechanism {part.kind!r}")
    return events.Repeated(event=event, times=part.count)


def true_epsilon(case: Case, batch: list[events.Event], rival: dict[str, Any]) -> float:
    """Return the exact epsilon where a closed form exists, else the best proven lower bound."""
    if all(part.kind == "gaussian" for part in case.parts):
        mu = math.sqrt(sum(part.count / part.noise**2 for part in case.parts))
        return gaussian_epsilon(mu, case.delta)
    ours, _ = Composition(batch).epsilon_bounds(case.delta)
    # Far out the rival's lower bound drowns in the round-off of its transform, and is none.
    return max(ours, rival.get("lower", 0.0)) if case.delta >= 1e-9 else ours


# -- import -----------------------------------------------------------------------------


def import_row(module: str, times: int) -> Row:
    """Time an import in fresh processes."""
    code = f"import time; s = time.perf_counter(); import {module}; print(time.perf_counter() - s)"
    seconds = min(
        float(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True).stdout)
        for _ in range(2 * times)
    )
    name = f"import {module}, share of {IMPORT_SECONDS} s"
    return Row(name=name, ours=seconds, rival=None, unit="s", ratio=seconds / IMPORT_SECONDS, most=1)


if __name__ == "__main__":
    sys.exit(main())
