"""Race the rivals: one run on one machine, a table, and bench/results.json.

A row with a requirement that does not hold makes the exit code 1.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from cases import ACCOUNTING, DRAWS, SCALES, SIGMA, Case, Part, best, gaussian_epsilon
from rich.console import Console
from rich.table import Table

from sfumato import __version__
from sfumato.core import Composition, discrete_gaussian, discrete_laplace, events

HERE = Path(__file__).parent
IMPORT_SECONDS = 0.3
TIGHT = 1.001


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One comparison; `ratio` is stated so that the requirement reads off it."""

    name: str
    ours: float
    rival: float | None
    unit: str
    ratio: float
    least: float = 0.0
    most: float = math.inf

    @property
    def required(self) -> str:
        """The requirement, in words."""
        if self.most < math.inf:
            return f"{self.least:g} to {self.most:g}" if self.least else f"at most {self.most:g}"
        return f"at least {self.least:g}" if self.least else ""

    @property
    def passed(self) -> bool:
        """Whether the requirement holds; True where there is none."""
        return self.least <= self.ratio <= self.most


def main() -> int:
    """Measure, print, write; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rivals", required=True, help="the Python of the rivals' environment")
    parser.add_argument("--times", type=int, default=5, help="timings per entry; the best one counts")
    parser.add_argument("--rival-draws", type=int, default=DRAWS, help="samples drawn by the slow rival")
    options = parser.parse_args()

    command = [options.rivals, str(HERE / "rivals.py")]
    command += ["--times", str(options.times), "--draws", str(options.rival_draws)]
    answer = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    rivals = json.loads(answer.stdout)
    rows = [
        *sampler_rows(rivals["samplers"], options.times),
        *(row for case in ACCOUNTING for row in accounting_rows(case, rivals["accounting"], options.times)),
        *(import_row(name, options.times) for name in ("sfumato", "sfumato.core")),
    ]
    show(rows, rivals["versions"])
    write(rows, rivals)
    return 0 if all(row.passed for row in rows) else 1


# -- samplers ---------------------------------------------------------------------------


def sampler_rows(rivals: dict[str, float], times: int) -> list[Row]:
    """Compare a million draws with the exact rival, with numpy's normal, and across scales."""
    generator = np.random.default_rng()
    rows = []
    for law, draw in (("gaussian", discrete_gaussian), ("laplace", discrete_laplace)):
        draw(SIGMA, size=DRAWS)  # tables are built once per scale
        ours, floats = math.inf, math.inf
        for _ in range(times):  # in turns, so that a busy moment of the machine meets both
            ours = min(ours, best(lambda draw=draw: draw(SIGMA, size=DRAWS), times=2))
            floats = min(floats, best(lambda: generator.normal(0, SIGMA, DRAWS), times=2))
        exact = rivals[f"opendp {law}"]
        title = f"1e6 discrete {law.capitalize()}, scale {SIGMA}"
        rows.append(
            Row(name=f"{title}: OpenDP", ours=ours, rival=exact, unit="s", ratio=exact / ours, least=100)
        )
        rows.append(
            Row(
                name=f"{title}: numpy normal",
                ours=ours,
                rival=floats,
                unit="s",
                ratio=floats / ours,
                least=0.5,
            )
        )
        seconds = dict.fromkeys(SCALES, math.inf)
        for _ in range(2 * times):
            for scale in SCALES:
                once = best(lambda draw=draw, scale=scale: draw(scale, size=DRAWS), times=1)
                seconds[scale] = min(seconds[scale], once)
        slowest, fastest = max(seconds.values()), min(seconds.values())
        rows.append(
            Row(
                name=f"{title.split(',')[0]}, slowest against fastest of scales 1 to 1e9",
                ours=slowest,
                rival=fastest,
                unit="s",
                ratio=slowest / fastest,
                most=3,
            )
        )
    return rows


# -- accounting -------------------------------------------------------------------------


def accounting_rows(case: Case, rivals: dict[str, dict[str, Any]], times: int) -> list[Row]:
    """Compare the epsilon that is claimed with the truth, and the time with the rival's."""
    rival = rivals[case.name]
    batch = [event_of(part) for part in case.parts]
    ours = Composition(batch).epsilon(case.delta)
    truth = true_epsilon(case, batch, rival)
    seconds = best(lambda: Composition(batch).epsilon(case.delta), times=times)
    return [
        Row(
            name=f"{case.name}: epsilon against the truth",
            ours=ours,
            rival=truth,
            unit="",
            ratio=ours / truth,
            least=1,
            most=TIGHT,
        ),
        Row(
            name=f"{case.name}: epsilon beside dp-accounting",
            ours=ours,
            rival=rival.get("epsilon"),
            unit="",
            ratio=ours / rival.get("epsilon", math.nan),
        ),
        Row(
            name=f"{case.name}: time",
            ours=seconds,
            rival=rival.get("seconds"),
            unit="s",
            ratio=rival.get("seconds", math.nan) / seconds,
            least=1 if case.required else 0,
        ),
    ]


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


# -- what is printed and kept -----------------------------------------------------------


def show(rows: list[Row], versions: dict[str, str]) -> None:
    """Print the table."""
    table = Table(title=f"sfumato {__version__} beside " + ", ".join(f"{k} {v}" for k, v in versions.items()))
    for heading in ("what", "ours", "rival", "ratio", "required", ""):
        table.add_column(heading, justify="right" if heading in {"ours", "rival", "ratio"} else "left")
    for row in rows:
        verdict = "" if not row.required else "[green]pass[/]" if row.passed else "[bold red]FAIL[/]"
        cells = (number(row.ours, row.unit), number(row.rival, row.unit), f"{row.ratio:,.6g}", row.required)
        table.add_row(row.name, *cells, verdict)
    Console(width=None if sys.stdout.isatty() else 160).print(table)


def number(value: float | None, unit: str) -> str:
    """Return a measured number for people to read."""
    return "" if value is None else f"{value:.4f} {unit}" if unit else f"{value:.6f}"


def write(rows: list[Row], rivals: dict[str, Any]) -> None:
    """Write everything that was measured as JSON; infinities and NaN become text."""
    record = {
        "sfumato": __version__,
        "python": platform.python_version(),
        "machine": {"processor": platform.machine(), "system": platform.system()},
        "rows": [{**asdict(row), "required": row.required, "passed": row.passed} for row in rows],
        "rivals": rivals,
    }
    (HERE / "results.json").write_text(json.dumps(finite(record), indent=2, allow_nan=False) + "\n")


def finite(value: Any) -> Any:
    """Return the same structure with every float that JSON lacks spelled out."""
    match value:
        case dict():
            return {key: finite(item) for key, item in value.items()}
        case list():
            return [finite(item) for item in value]
        case float() if not math.isfinite(value):
            return str(value)
        case _:
            return value


if __name__ == "__main__":
    sys.exit(main())
