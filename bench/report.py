"""What a benchmark says: rows with requirements, a table, and bench/results.json."""

from __future__ import annotations

import json
import math
import platform
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

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


def show(rows: list[Row], versions: dict[str, str]) -> None:
    """Print the table."""
    beside = " beside " + ", ".join(f"{k} {v}" for k, v in versions.items()) if versions else ""
    table = Table(title=f"sfumato {__version__}{beside}")
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
