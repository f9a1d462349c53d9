"""Outputs land where they are sent: never on what they were made from, whole or not at all, through pipes."""

from __future__ import annotations

import json
import os
import resource
import stat
import subprocess
import threading
from pathlib import Path

import pytest

from tests.cli.programs import PROGRAM, environment, make_project, make_tables, program, sfumato

COUNT = "SELECT COUNT(*) AS n FROM people"
ASK = ("query", COUNT, "-e", "0.1")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    make_project(tmp_path)
    assert sfumato(tmp_path, *ASK).returncode == 0
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.mark.parametrize(
    "target",
    [
        "people.ledger",
        "people.ledger-key",
        "people.ledger-wal",
        "people.ledger-live",
        "people.parquet",
        "visits.parquet",
        "regions.csv",
        "sfumato.toml",
        "linked",
        "hard",
    ],
)
def test_nothing_lands_on_what_it_was_made_from(folder: Path, target: str) -> None:
    (folder / "linked").symlink_to("people.ledger")
    os.link(folder / "people.parquet", folder / "hard")
    before = contents(folder)
    commands = (
        (*ASK, "-o", target),
        ("ledger", "show", "6", "-o", target),
        ("ledger", "export", target),
        ("ledger", "export", target, "--ledger", "people.ledger", "--project", "none.toml"),
    )
    for words in commands:
        if "none.toml" in words and "ledger" not in target and target != "linked":
            continue  # a ledger by itself knows of no tables
        refused = sfumato(folder, *words, "--json-errors")
        error = json.loads(refused.stderr)["error"]
        assert (refused.returncode, error["place"]) == (2, "--output"), (words, error)
        assert error["hints"]
    assert contents(folder) == before, "nothing is written, and nothing is spent"


def test_init_does_not_write_over_the_ledger_or_the_data(tmp_path: Path) -> None:
    make_tables(tmp_path)
    before = contents(tmp_path)
    init = ("init", "people.parquet", "--unit", "person", "--yes", "--force")
    for more in (
        ("--project", "n.toml", "--ledger", "n.toml"),
        ("--project", "n.ledger-key", "--ledger", "n.ledger"),
        ("--project", "people.parquet"),
    ):
        refused = sfumato(tmp_path, *init, *more, "--json-errors")
        assert refused.returncode == 2, refused.stderr
        assert json.loads(refused.stderr)["error"]["place"] == "--project"
    assert contents(tmp_path) == before


def test_an_export_from_python_does_not_either(folder: Path) -> None:
    from sfumato.errors import InvalidArgument
    from sfumato.ledger import Ledger

    before = (folder / "people.ledger-key").read_bytes()
    with Ledger.open(folder / "people.ledger") as ledger:
        for name in ("people.ledger", "people.ledger-key"):
            with pytest.raises(InvalidArgument):
                ledger.export(folder / name)
        ledger.verify()
    assert (folder / "people.ledger-key").read_bytes() == before


def test_links_and_pipes_are_written_through_and_files_replaced(folder: Path) -> None:
    (folder / "old.csv").write_text("old")
    (folder / "old.csv").chmod(0o640)
    (folder / "link.csv").symlink_to("old.csv")
    assert sfumato(folder, *ASK, "-f", "csv", "-o", "link.csv").returncode == 0
    assert (folder / "link.csv").is_symlink() and (folder / "old.csv").read_text().startswith("n,n_low")
    assert stat.S_IMODE((folder / "old.csv").stat().st_mode) == 0o640
    os.mkfifo(folder / "pipe")
    read: list[str] = []
    for words in ((*ASK, "-f", "csv", "-o", "pipe"), ("ledger", "export", "pipe")):
        reader = threading.Thread(target=lambda: read.append((folder / "pipe").read_text()), daemon=True)
        reader.start()
        assert sfumato(folder, *words).returncode == 0
        assert stat.S_ISFIFO((folder / "pipe").stat().st_mode)
        reader.join()
    assert read[0].startswith("n,n_low") and json.loads(read[1].splitlines()[0])["sequence"] == 1
    assert not [path.name for path in folder.iterdir() if path.name.startswith(".sfumato-")]


def test_a_key_gives_the_same_bytes_in_every_format(folder: Path) -> None:
    sql = "SELECT region, COUNT(*) AS n, AVG(age) AS age FROM people GROUP BY region"
    for style in ("json", "csv", "markdown", "table", "parquet"):
        ask = ("query", sql, "-e", "0.1", "--key", style, "-f", style)
        for output in ("first", "again"):
            assert sfumato(folder, *ask, "-o", output).returncode == 0
        assert (folder / "first").read_bytes() == (folder / "again").read_bytes(), style


@pytest.mark.parametrize(
    "words", [ASK, ("budget",), ("ledger", "export"), ("--help",), ("ledger", "history")]
)
def test_a_reader_who_has_left_is_no_failure(folder: Path, words: tuple[str, ...]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [*PROGRAM, *words], cwd=folder, stdout=writing, stderr=subprocess.PIPE, env=environment(), check=False
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(("words", "hint"), [(ASK, "ledger show"), (("budget",), "room")])
def test_where_there_is_no_room_it_is_said_and_what_was_paid_for_is_kept(
    folder: Path, words: tuple[str, ...], hint: str
) -> None:
    """Standard output is a file that may not grow, as one on a full disk cannot."""
    full = folder / "full"
    full.write_bytes(b"x" * 200_000)

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))

    with full.open("ab") as out:
        done = subprocess.run(
            [*PROGRAM, *words, "--json-errors"],
            cwd=folder,
            stdout=out,
            stderr=subprocess.PIPE,
            env=environment(),
            preexec_fn=limit,
            check=False,
        )
    assert done.returncode == 2, done.stderr
    error = json.loads(done.stderr)["error"]
    assert hint in " ".join(error["hints"]) and error["place"] == "standard output"


@pytest.mark.soak
def test_letters_that_a_terminal_does_not_have(folder: Path) -> None:
    for words in (("budget",), ("ledger", "verify"), ("explain", COUNT, "-e", "0.1")):
        done = program(folder, *words, PYTHONIOENCODING="ascii")
        assert done.returncode == 0, done.stderr
    shown = program(folder, "budget", PYTHONIOENCODING="ascii").stdout
    assert "........" in shown and "?" not in shown
    text = (folder / "sfumato.toml").read_text()
    (folder / "sfumato.toml").write_text(f'{text}\n[policy.analysts."Zoë"]\nepsilon = 1\n', encoding="utf-8")
    assert program(folder, *ASK, "--analyst", "Zoë").returncode == 0
    told = program(folder, "budget", PYTHONIOENCODING="ascii")
    assert told.returncode == 0 and "Zo?, of epsilon 1" in told.stdout, told.stderr


@pytest.mark.parametrize(
    ("words", "begins"),
    [
        (("-o", "n.csv"), b"n,n_low,n_high\n"),
        (("-o", "n.JSON"), b"{\n"),
        (("-o", "n.parquet"), b"PAR1"),
        (("-o", "n.md"), b"| n"),
        (("-o", "n.txt", "--format", "csv"), b"n,"),
        (("-o", "n.csv", "--format", "csv"), b"n,"),
    ],
)
def test_the_ending_of_a_file_says_how_an_answer_is_written(
    folder: Path, words: tuple[str, ...], begins: bytes
) -> None:
    [charge, *_] = json.loads(sfumato(folder, "ledger", "history", "--format", "json").stdout)
    for command in (ASK, ("ledger", "show", str(charge["number"]))):
        done = sfumato(folder, *command, *words)
        assert done.returncode == 0, done.stderr
        assert (folder / words[1]).read_bytes().startswith(begins), command


@pytest.mark.parametrize(
    "words", [("-o", "n.xlsx"), ("-o", "n.html"), ("-o", "n.tsv"), ("-o", "n.csv", "--format", "json")]
)
def test_an_ending_that_the_answer_would_not_be_is_refused_before_anything_is_spent(
    folder: Path, words: tuple[str, ...]
) -> None:
    before = contents(folder)
    for command in (ASK, ("ledger", "show", "6")):
        refused = sfumato(folder, *command, *words, "--json-errors")
        error = json.loads(refused.stderr)["error"]
        assert (refused.returncode, error["place"]) == (2, "--output")
        assert ".csv" in error["hints"][0]
    assert contents(folder) == before
