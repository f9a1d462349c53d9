"""`sfumato bounds` and `sfumato caps`: estimate privately what a project file should declare. Spends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from sfumato.cli.options import EstimateOptions, Plain
from sfumato.cli.screen import say
from sfumato.cli.spending import released
from sfumato.errors import InvalidArgument

if TYPE_CHECKING:
    from sfumato.release import Release
    from sfumato.session import SqlQuestion

__all__ = ["bounds", "caps"]


def bounds(
    *,
    column: Annotated[str, Argument(help="The column whose bounds are not known beforehand.")],
    table: Annotated[str | None, Option("--table", help="Its table, if several have it.")] = None,
    share: Annotated[float, Option("--share", help="The share of values that may lie outside.")] = 0.0,
    options: EstimateOptions,
) -> None:
    """Estimate the bounds of a column privately, and show the line for the project file. Spends."""
    release = _estimated("bounds", options, example="0.1", column=column, table=table, share=share)
    if release is None:
        return
    ends = release.one()
    if ends["low"] is None or ends["high"] is None:  # an answer like any other: it was paid for
        between = None
        line = f"# {column}: no bounds could be told from noise; what was asked for is spent\n"
        line += "# ask with more epsilon, or declare what you know beforehand"
    else:
        found = release.between()
        between = [_number(found.lower), _number(found.upper)]
        line = f"{column} = {{ between = [{between[0]}, {between[1]}] }}"
    say({"column": column, "between": between}, line, as_json=options.style is Plain.json)


def caps(
    *,
    table: Annotated[str | None, Argument(help="The private table, if there are several.")] = None,
    by: Annotated[
        list[str] | None, Option("--by", help="A column that questions group by; may be repeated.")
    ] = None,
    share: Annotated[float, Option("--share", help="The share of units to keep whole.")] = 0.95,
    limit: Annotated[int, Option("--limit", help="No cap above this is told.")] = 100,
    options: EstimateOptions,
) -> None:
    """Estimate privately the caps that leave most units whole, and show the lines for the project. Spends."""
    release = _estimated("caps", options, example="0.5", table=table, by=by or None, share=share, limit=limit)
    if release is None:
        return
    found, notes = release.one(), list(release.remarks())
    intervals = {name: pairs[0] for name, pairs in release.intervals().items()}
    lines = []
    for name, value in found.items():
        told = f"# {name}: it could not be told from noise"
        if value is not None and (interval := intervals[name]) is not None:
            told = f"{name} = {value}  # 95% interval: {interval[0]} to {interval[1]}"
        lines.append(told)
    text = "\n".join([*lines, *(f"# {note}" for note in notes)])
    record = {"caps": found, "intervals": intervals, "notes": notes}
    say(record, text, as_json=options.style is Plain.json)


def _estimated(what: str, options: EstimateOptions, *, example: str, **asked: Any) -> Release | None:
    """Ask for bounds or caps, and release them; with `dry_run`, show the price and return None."""
    from sfumato.cli.project import open_tables

    if options.epsilon is None:
        raise InvalidArgument(
            f"estimating {what} spends budget, so it needs a price",
            place="--epsilon",
            hints=(
                f"--epsilon {example}, for example",
                f"{what} that are known beforehand cost nothing: declare them",
            ),
        )
    _, database = open_tables(options.project, analyst=options.analyst, free=options.dry_run)
    question: SqlQuestion = getattr(database, what)(epsilon=options.epsilon, **asked)
    return released(question, options, purpose=options.purpose)


def _number(end: Any) -> Any:
    whole = getattr(end, "denominator", 0) == 1
    return int(end) if whole else str(end) if hasattr(end, "isoformat") else float(end)
