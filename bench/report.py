"""Rows of a benchmark with their requirements: printed one by one, and written to bench/results.json."""

from __future__ import annotations

import json
import math
import platform
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sfumato import __version__

__all__ = ["Row", "finite", "number", "show", "write"]

HERE = Path(__file__).parent


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


def show(rows: Iterable[Row], versions: Mapping[str, str]) -> list[Row]:
    """Print each row as soon as it is measured, with the seconds that it took; return all rows.

    The versions of rivals are printed last: some are known only once their rows are measured.
    """
    shown = []
    print(f"{'':4}  {'seconds':>7}  {'ours':>14}  {'rival':>14}  {'ratio':>10}  {'required':14}  measured")
    began = time.perf_counter()
    for row in rows:
        ended = time.perf_counter()
        verdict = "" if not row.required else "pass" if row.passed else "FAIL"
        cells = (number(row.ours, row.unit), number(row.rival, row.unit), f"{row.ratio:,.6g}")
        figures = f"{cells[0]:>14}  {cells[1]:>14}  {cells[2]:>10}  {row.required:14}"
        print(f"{verdict:4}  {ended - began:7.1f}  {figures}  {row.name}", flush=True)
        shown.append(row)
        began = ended
    rivals = ", ".join(f"{name} {version}" for name, version in versions.items())
    print(f"sfumato {__version__}" + (f"; rivals: {rivals}" if rivals else ""), flush=True)
    return shown


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
