"""A project on disk whose ledger is kept, and what the command line says about it.

The version of a table's data holds the path and the times of its file, and a copy has others. Here the name
of the file is its version.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from unittest.mock import patch

import pyarrow.parquet as pq
import typer.main

from sfumato.backends.files import Files
from sfumato.ledger import Ledger
from tests.cli.programs import sfumato
from tests.golden.asked import copy_kept, people
from tests.golden.commands import COMMANDS, FILES

__all__ = ["KEPT", "fixed", "project_of", "same_everywhere", "told"]

KEPT = Path(__file__).parents[1] / "data" / "golden" / "project"
_PROJECT = """\
ledger = "people.ledger"

[tables.people]
path = "people.parquet"
unit = "person"
max_groups = 1
max_rows = 1

[tables.people.columns]
region = { one_of = ["north", "south", "west"] }
age = { between = [18, 80] }
income = { between = [0, 5100] }
ill = { one_of = [true, false] }

[tables.regions]
path = "regions.csv"
public = true

[budget]
epsilon = 1000
delta = 1e-6
people = 900

[workloads.yearly]
file = "many.sql"
epsilon = 1
size = 300

[marginals.tables]
table = "people"
columns = ["region", "ill", "age"]
ways = 2
bins = { age = 4 }
epsilon = 1
"""
_STREAM = """
[streams.{name}]
question = "SELECT region, COUNT(*) AS n FROM people GROUP BY region"
by = "day"
every = "{every}"
start = 2026-01-01
horizon = 30
epsilon = 1
"""
_get_command = cache(typer.main.get_command)
_ANALYSTS = "\n[policy]\nceiling = 2\n\n[policy.analysts.anna]\nepsilon = 3\n"


def project_of(folder: Path, *, kept: Path | None = KEPT) -> None:
    """Write a project into an empty folder, with the ledger that is kept, or with a new one."""
    streams = "".join(
        _STREAM.format(name=name, every=every) for name, every in (("daily", "day"), ("weekly", "week"))
    )
    (folder / "sfumato.toml").write_text(_PROJECT + streams, encoding="utf-8")
    (folder / "shared.toml").write_text(_PROJECT + _ANALYSTS, encoding="utf-8")
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    pq.write_table(people(), folder / "people.parquet")
    if kept is None:
        Ledger.open(folder / "people.ledger").close()
    else:
        copy_kept(kept, folder)


def told(name: str, folder: Path) -> str:
    """Return what the commands of one kind write, one after another: on the screen, and into files."""
    with same_everywhere():
        numbers = _numbers(folder)
        return "".join(_told(folder, words, numbers) for words in COMMANDS[name])


def _told(folder: Path, words: Sequence[str], numbers: dict[str, int]) -> str:
    """Return what one command writes. A word `@key` stands for the number of the charge under that key."""
    before = {path.name for path in folder.iterdir()}
    given = [str(numbers.get(word[1:], 0)) if word.startswith("@") else word for word in words]
    ended = sfumato(folder, *given)
    found = [f"==== sfumato {' '.join(words)}: {ended.returncode}", ended.stdout]
    if ended.stderr:
        found += ["---- standard error", ended.stderr]
    for path in sorted(folder.iterdir()):
        if path.name not in before and not path.name.startswith("people.ledger"):
            found += [f"---- {path.name}", fixed(path.read_text(encoding="utf-8"))]
            if path.suffix != ".json":  # a model is for a later command
                path.unlink()
    return "".join(f"{text.replace(str(folder), 'FOLDER').rstrip(os.linesep)}\n" for text in found if text)


def fixed(page: str) -> str:
    """Return a page without its style sheet, its moment and its version: other tests hold these."""
    page = re.sub(r"<style>.*?</style>", "<style></style>", page, flags=re.DOTALL)
    return re.sub(r"Made .{16} UTC by sfumato [0-9.]+", "Made by sfumato", page)


def _numbers(folder: Path) -> dict[str, int]:
    """Return the number of the charge of each key."""
    listed = sfumato(folder, "ledger", "history", "-n", "0", "-f", "json").stdout
    return {one["key"]: one["number"] for one in json.loads(listed)} if listed.startswith("[") else {}


@contextmanager
def same_everywhere() -> Iterator[None]:
    """Let a copy of a file be the same file; let no setting of the caller's change what is written."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SFUMATO_")}
    with ExitStack() as stack:
        stack.enter_context(patch.dict(os.environ, {**kept, "COLUMNS": "100"}, clear=True))
        for name in ("state", "states"):
            stack.enter_context(patch.object(Files, name, property(_names)))
        stack.enter_context(patch.object(Files, "identities", lambda files, fields: _names(files)))
        stack.enter_context(patch.object(typer.main, "get_command", _get_command))  # it takes long each time
        yield


def _names(files: Files) -> tuple[str, ...]:
    return tuple(os.path.basename(path) for path in files.paths)
