"""What the command line writes stays as it is; what an earlier version charged is answered again, free."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sfumato.ledger import Ledger
from tests.cli.programs import sfumato
from tests.golden.asked import DATA
from tests.golden.commands import COMMANDS
from tests.golden.project import project_of, same_everywhere, told

WRITTEN = DATA / "commands"


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_write_what_they_wrote_and_charge_nothing(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "golden"
    folder.mkdir()
    project_of(folder)
    with Ledger.open(folder / "people.ledger") as ledger:
        head = ledger.head()
    assert told(name, folder) == (WRITTEN / f"{name.replace(' ', '_')}.txt").read_text(encoding="utf-8")
    with Ledger.open(folder / "people.ledger") as ledger:
        assert ledger.head() == head


def test_a_ledger_of_an_earlier_version_goes_on(tmp_path: Path) -> None:
    project_of(tmp_path)
    with same_everywhere():
        asked = sfumato(tmp_path, "query", "SELECT COUNT(*) AS n FROM people", "-e", "1", "-k", "new")
    assert asked.returncode == 0, asked.stderr
    with Ledger.open(tmp_path / "people.ledger") as ledger:
        assert [entry.key for entry in ledger.newest(2)].count("new") == 1
        assert ledger.verify() == ledger.head()


def test_a_stream_of_an_earlier_version_goes_on(tmp_path: Path) -> None:
    """Its state was written after the fourth day; the fifth is published from it, without a charge."""
    project_of(tmp_path)
    with same_everywhere():
        spent = json.loads(sfumato(tmp_path, "budget", "-f", "json").stdout)["spent"]
        advanced = sfumato(tmp_path, "stream", "advance", "daily", "--now", "2026-01-06")
        assert advanced.stdout == "5 of 30 days are published\n", advanced.stderr
        assert json.loads(sfumato(tmp_path, "budget", "-f", "json").stdout)["spent"] == spent


def test_every_command_that_is_kept_is_run() -> None:
    assert {path.stem for path in WRITTEN.glob("*.txt")} == {name.replace(" ", "_") for name in COMMANDS}
