"""`sfumato caps`: estimate privately how many rows and groups of a unit should count. Spends."""

from __future__ import annotations

import json

from sfumato.cli.project import open_tables
from sfumato.cli.screen import screen, working
from sfumato.errors import InvalidArgument
from sfumato.session.pricing import price_of

__all__ = ["run"]


def run(
    table: str | None,
    *,
    by: tuple[str, ...],
    epsilon: float | None,
    share: float,
    limit: int,
    key: str | None,
    analyst: str | None,
    dry_run: bool,
    project: str,
    as_json: bool,
) -> None:
    """Ask for caps, and show them as lines of a project file."""
    if epsilon is None:
        raise InvalidArgument(
            "estimating caps spends budget, so it needs a price",
            place="--epsilon",
            hints=("--epsilon 0.5, for example", "caps that are known beforehand cost nothing: declare them"),
        )
    database = open_tables(project, analyst=analyst, free=dry_run).database
    question = database.caps(table, by=by or None, epsilon=epsilon, share=share, limit=limit)
    if dry_run:
        price = price_of(question)
        screen().print(json.dumps({"price": price.record()}) if as_json else "\n".join(price.lines()))
        return
    with working("charging, computing, adding noise"):
        release = question.release(key=key)
    caps = release.one()
    if as_json:
        ends = {name: pairs[0] for name, pairs in release.intervals().items()}
        screen().print(json.dumps({"caps": caps, "intervals": ends, "notes": list(release.remarks())}))
        return
    intervals = release.intervals()
    for name, value in caps.items():
        told = f"# {name}: it could not be told from noise"
        if value is not None and (interval := intervals[name][0]) is not None:
            low, high = interval
            told = f"{name} = {value}  # 95% interval: {low} to {high}"
        screen().print(told)
    for note in release.remarks():
        screen().print(f"# {note}")
