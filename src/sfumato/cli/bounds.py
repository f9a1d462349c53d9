"""`sfumato bounds`: estimate the bounds of a column privately. Spends."""

from __future__ import annotations

import json
from typing import Any

from sfumato.cli.project import open_tables
from sfumato.cli.screen import screen, working
from sfumato.errors import InvalidArgument
from sfumato.session.pricing import price_of

__all__ = ["run"]


def run(
    column: str,
    *,
    epsilon: float | None,
    table: str | None,
    share: float,
    key: str | None,
    analyst: str | None,
    dry_run: bool,
    project: str,
    as_json: bool,
) -> None:
    """Ask for bounds, and show them as the line of a project file."""
    if epsilon is None:
        raise InvalidArgument(
            "estimating bounds spends budget, so it needs a price",
            place="--epsilon",
            hints=(
                "--epsilon 0.1, for example",
                "bounds that are known beforehand cost nothing: declare them",
            ),
        )
    database = open_tables(project, analyst=analyst, free=dry_run).database
    question = database.bounds(column, table=table, epsilon=epsilon, share=share)
    if dry_run:
        price = price_of(question)
        screen().print(json.dumps({"price": price.record()}) if as_json else "\n".join(price.lines()))
        return
    with working("charging, computing, adding noise"):
        release = question.release(key=key)
    ends = release.one()
    if ends["low"] is None or ends["high"] is None:  # an answer like any other: it was paid for
        if as_json:
            screen().print(json.dumps({"column": column, "between": None}))
            return
        screen().print(f"# {column}: no bounds could be told from noise; what was asked for is spent")
        screen().print("# ask with more epsilon, or declare what you know beforehand")
        return
    found = release.between()
    low, high = (_number(end) for end in (found.lower, found.upper))
    if as_json:
        screen().print(json.dumps({"column": column, "between": [low, high]}))
        return
    screen().print(f"{column} = {{ between = [{low}, {high}] }}")


def _number(end: Any) -> Any:
    whole = getattr(end, "denominator", 0) == 1
    return int(end) if whole else str(end) if hasattr(end, "isoformat") else float(end)
