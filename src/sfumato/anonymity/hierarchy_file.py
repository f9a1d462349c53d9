"""Hierarchies from a TOML file, one table for each column:

[age]
intervals = [5, 10, 20]            # widths; each a multiple of the one before
low = 0
high = 120

[zip]
prefixes = [4, 3, 2]               # characters that are kept

[birth]
calendar = ["month", "year"]

[education]
csv = "education.csv"              # value, parent, its parent, ..; no header; beside this file

[marital_status.tree]
together = ["Married-civ-spouse", "Married-AF-spouse"]
alone = ["Never-married", "Divorced"]
"""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sfumato.anonymity.hierarchies import Calendar, Flat, Hierarchy, Intervals, Levels, Prefixes
from sfumato.errors import InvalidArgument

__all__ = ["read_hierarchies", "read_levels"]

_KINDS = {
    "intervals": "intervals = [5, 10, 20]",
    "prefixes": "prefixes = [4, 3, 2]",
    "calendar": 'calendar = ["month", "year"]',
    "csv": 'csv = "education.csv"',
    "tree": 'tree = { alone = ["single", "divorced"], together = ["married"] }',
    "flat": "flat = true",
}


def read_hierarchies(path: str | Path) -> dict[str, Hierarchy]:
    """Read hierarchies from a file; refuse what makes no sense, with the name of its column."""
    file = Path(path)
    try:
        written = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        raise InvalidArgument("the file of hierarchies cannot be read", place=str(path)) from None
    except tomllib.TOMLDecodeError as error:
        raise InvalidArgument(
            "the file of hierarchies is not TOML", place=f"{path}: {error}".splitlines()[0]
        ) from None
    found = {}
    for column, entry in written.items():
        place = f"{path}: {column}"
        try:
            found[column] = _hierarchy(entry, file.parent)
        except InvalidArgument as refusal:
            message = refusal.message if refusal.place is None else f"{refusal.message} ({refusal.place})"
            raise InvalidArgument(message, place=place, hints=refusal.hints) from None
    return found


def read_levels(path: str | Path) -> Levels:
    """Read a CSV file: in each line a value, its parent, the parent of that, and so on; no header.

    Cells are divided by semicolons if the first line has one, else by commas.
    """
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError):
        raise InvalidArgument("the file of a hierarchy cannot be read", place=str(path)) from None
    head = text.split("\n", 1)[0]
    parents: dict[str, tuple[str, ...]] = {}
    for row in csv.reader(text.splitlines(), delimiter=";" if ";" in head else ","):
        if not row:
            continue
        value, *chain = (cell.strip() for cell in row)
        if parents.setdefault(value, tuple(chain)) != tuple(chain):
            raise InvalidArgument(
                "a value has two lines that differ", place=str(path), hints=("each value has one parent",)
            )
    return Levels(parents=parents)


def _hierarchy(entry: Any, folder: Path) -> Hierarchy:
    kinds = [kind for kind in _KINDS if isinstance(entry, Mapping) and kind in entry]
    beside = {"low", "high"} if kinds == ["intervals"] else set()
    if len(kinds) != 1 or set(entry) - beside != set(kinds):
        raise InvalidArgument(
            "a column has one kind of hierarchy, and nothing beside it",
            hints=(f"one of {', '.join(_KINDS)}; intervals also have low and high",),
        )
    value = entry[kinds[0]]
    match kinds[0], value:
        case "intervals", list():
            return Intervals(widths=tuple(value), low=entry.get("low", 0), high=entry.get("high"))
        case "prefixes", list():
            return Prefixes(keep=tuple(value))
        case "calendar", list() if all(isinstance(step, str) for step in value):
            return Calendar(steps=tuple(value))
        case "csv", str():
            return read_levels(folder / value)
        case "tree", dict():
            return Levels.tree(value)
        case "flat", True:
            return Flat()
        case kind, _:
            raise InvalidArgument(f"`{kind}` is not written like that", hints=(_KINDS[kind],))
