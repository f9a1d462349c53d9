"""An answer as text, CSV, JSON, Markdown or Parquet. Everything in a release may be shown to anybody."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from sfumato.errors import InvalidArgument
from sfumato.pages import PageTable
from sfumato.release.answers import rows_flagged
from sfumato.release.display import short
from sfumato.release.published import Published
from sfumato.release.release import Release
from sfumato.release.workload_release import WorkloadRelease

if TYPE_CHECKING:
    import pyarrow

__all__ = ["rendered", "rendered_series"]

_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # how texts begin that spreadsheets evaluate


def rendered(release: Published, style: str, level: float) -> bytes:
    """Return what was published as the bytes of a format; each aggregate with its interval of a level."""
    if isinstance(release, WorkloadRelease):
        return _several(release, style, level)
    if isinstance(release, Release):
        return _one(release, style, level)
    if style not in ("table", "json"):
        raise InvalidArgument(
            f"what was learned is no {style} file", place="--format", hints=("--format json",)
        )
    return f"{release.to_json() if style == 'json' else repr(release)}\n".encode()


def _one(release: Release, style: str, level: float) -> bytes:
    """Return the answer of one question."""
    match style:
        case "csv":
            wide = release.with_intervals(level)
            return _csv(wide.columns, zip(*wide.values, strict=True))
        case "json":
            return (json.dumps(_record(release, level), indent=2, ensure_ascii=False) + "\n").encode()
        case "markdown":
            return release.document(level=level).markdown(framed=False).encode()
        case "parquet":
            return _parquet(release.to_arrow(level))
        case _:
            return f"{release!r}\n".encode()


def rendered_series(table: pyarrow.Table, style: str, level: float) -> bytes:
    """Return answers about many periods, with ends of intervals in columns of their own, in a format."""
    heads, columns = table.column_names, [column.to_pylist() for column in table.itercolumns()]
    rows = list(zip(*columns, strict=True))
    match style:
        case "csv":
            return _csv(heads, rows)
        case "json":
            records = [dict(zip(heads, map(_plain, row), strict=True)) for row in rows]
            whole = {"columns": heads, "rows": records, "level": level}
            return (json.dumps(whole, indent=2, ensure_ascii=False) + "\n").encode()
        case "parquet":
            return _parquet(table)
        case _:
            cells = [[short(value) for value in row] for row in rows]
            sides = "" if style == "markdown" else "r" * len(heads)
            shown = PageTable(heads=tuple(heads), rows=cells, sides=sides)
            return f"{shown.markdown() if style == 'markdown' else shown.text()}\n".encode()


def _several(workload: WorkloadRelease, style: str, level: float) -> bytes:
    """Return the answers of a workload, one after the other; a table of a file format has one answer."""
    named = list(zip(workload.names, workload.releases, strict=True))
    match style:
        case "json":
            answers = {name: _record(one, level) for name, one in named}
            whole = {"level": level, "answers": answers, **_paid(workload)}
            return (json.dumps(whole, indent=2, ensure_ascii=False) + "\n").encode()
        case "markdown":
            return workload.document(level=level).markdown(framed=False).encode()
        case "csv" | "parquet":
            hint = "--format json holds several answers"
            raise InvalidArgument(f"several answers are no {style} file", place="--format", hints=(hint,))
        case _:
            return f"{workload!r}\n".encode()


def _parquet(table: pyarrow.Table) -> bytes:
    import pyarrow.parquet as pq

    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


def _csv(columns: Iterable[str], rows: Iterable[Iterable[Any]]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(map(_cell, columns))
    writer.writerows(map(_cell, row) for row in rows)
    return text.getvalue().encode()


def _cell(value: Any) -> Any:
    """Return a cell of a CSV file; a text that a spreadsheet would run as a formula gets a quote first."""
    if isinstance(value, str) and value.startswith(_FORMULA):
        return f"'{value}"
    return "" if value is None else value


def _record(release: Release, level: float) -> dict[str, Any]:
    """Return an answer as JSON has it: the same for a release that was just made and one that was stored."""
    ends, nothing = release.intervals(level), release.no_information(level)
    rows = [dict(zip(release.columns, map(_plain, row), strict=True)) for row in release.rows]
    return {
        "columns": list(release.columns),
        "rows": rows,
        "level": level,
        "intervals": {name: _plain(pairs) for name, pairs in ends.items()},
        "no_information": {name: found for name, flags in nothing.items() if (found := rows_flagged(flags))},
        **_paid(release),
        "notes": list(release.remarks(level)),
    }


def _paid(release: Release | WorkloadRelease) -> dict[str, Any]:
    return {
        "cost": _plain({name: value for name, value in release.cost.items() if name != "events"}),
        "receipt": _plain(dict(release.receipt)),
    }


def _plain(value: Any) -> Any:
    """Return a value as JSON has it; what JSON has no number for becomes text."""
    match value:
        case dict():
            return {name: _plain(value[name]) for name in sorted(value)}
        case list() | tuple():
            return [_plain(each) for each in value]
        case Fraction() | Decimal():
            return float(value)
        case float() if value != value or value in (float("inf"), float("-inf")):
            return str(value)
        case None | bool() | int() | float() | str():
            return value
        case _:
            return str(value)
