"""The command line as users have it: a fresh process in a folder with a project."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

ROOT = Path(__file__).parent.parent.parent
PROGRAM = [sys.executable, "-m", "sfumato"]
CANARY = "canary-7f3a9"  # a private value; it must never be seen

PROJECT = """\
ledger = "people.ledger"

[tables.people]
path = "people.parquet"
unit = "person"
max_groups = 1
max_rows = 1

[tables.people.columns]
age = { between = [0, 110] }
region = { one_of = ["north", "south"] }

[tables.visits]
path = "visits.parquet"
unit = "person"
max_groups = 2
max_rows = 3
columns.cost = { between = [0, 100] }

[tables.regions]
path = "regions.csv"
public = true

[budget]
epsilon = 2
delta = 1e-6
"""


def environment(**more: str) -> dict[str, str]:
    """Return the environment of a program: nothing of the caller's that would change what it does."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SFUMATO_")}
    return {**kept, "PYTHONPATH": str(ROOT / "src"), "COLUMNS": "100", **more}


def program(
    folder: Path, *arguments: str, given: str | None = None, **more: str
) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder, in a process of its own."""
    return subprocess.run(
        [*PROGRAM, *arguments],
        cwd=folder,
        input=given,
        stdin=subprocess.DEVNULL if given is None else None,
        capture_output=True,
        text=True,
        env=environment(**more),
        timeout=120,
        check=False,
    )


def sfumato(folder: Path, *arguments: str, given: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder, as `program` does, but in this process: an import is paid for once."""
    from sfumato.cli import main

    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    held, where = (sys.argv, sys.stdin), os.getcwd()
    sys.argv, sys.stdin = ["sfumato", *arguments], io.StringIO(given or "")
    os.chdir(folder)
    code: object = 0
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main()
    except SystemExit as exit_:
        code = exit_.code
    finally:
        (sys.argv, sys.stdin), _ = held, os.chdir(where)
    assert isinstance(code, int)
    texts = [stream.buffer.getvalue().decode() for stream in (out, err)]  # type: ignore[attr-defined]
    return subprocess.CompletedProcess(list(arguments), code, *texts)


def make_tables(folder: Path, people: int = 3_000) -> None:
    """Write tables about invented people; one of them has a name that must stay a secret."""
    numbers = range(people)
    regions = ["north" if number % 3 else "south" for number in numbers]
    names = [CANARY if number == 17 else "someone" for number in numbers]
    ages = [20 + number % 60 for number in numbers]
    table = {"person": list(numbers), "region": regions, "age": ages, "name": names}
    pq.write_table(pa.table(table), folder / "people.parquet")
    whose = [number // 2 for number in range(2 * people)]
    pq.write_table(pa.table({"person": whose, "cost": [50.0] * len(whose)}), folder / "visits.parquet")
    (folder / "regions.csv").write_text("name,country\nnorth,A\nsouth,B\n")


def destroy_values(path: Path) -> None:
    """Overwrite every value of a Parquet, CSV or DuckDB file, and not its schema: to decode one fails."""
    if path.suffix == ".csv":
        header = path.read_bytes().partition(b"\n")[0]
        path.write_bytes(header + b'\n\xff\xfe,"\n')
        return
    if path.suffix == ".duckdb":
        with duckdb.connect(path, read_only=True) as connection:
            [(table,)] = connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()
            blocks = connection.execute(
                f"SELECT DISTINCT block_id FROM pragma_storage_info('{table}')"
            ).fetchall()
        raw = bytearray(path.read_bytes())
        for (block,) in blocks:
            if block is not None and block >= 0:  # after three headers; a block begins with its checksum
                start, end = (3 * 4096 + (block + more) * 2**18 for more in (0, 1))
                raw[start + 8 : end] = b"\xff" * (end - start - 8)
        path.write_bytes(raw)
        return
    pq.write_table(pq.read_table(path), path, write_statistics=False)  # their ends are values, too
    raw = path.read_bytes()
    footer = 8 + int.from_bytes(raw[-8:-4], "little")
    path.write_bytes(raw[:4] + b"\xff" * (len(raw) - footer - 4) + raw[-footer:])


def make_project(folder: Path, text: str = PROJECT, *, ledger: bool = True) -> Path:
    """Write the tables, a project file, and its empty ledger."""
    from sfumato.ledger import Ledger

    make_tables(folder)
    path = folder / "sfumato.toml"
    path.write_text(text)
    if ledger:
        Ledger.open(folder / "people.ledger").close()
    return path
