"""The command line: it runs, says what it is, and is documented."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from sfumato import __version__
from sfumato.cli import app, main
from sfumato.errors import Unsupported

ROOT = Path(__file__).parent.parent.parent


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    return result.output


def test_version() -> None:
    assert run("--version") == f"sfumato {__version__}\n"


def test_version_matches_the_project_file() -> None:
    assert f'version = "{__version__}"' in (ROOT / "pyproject.toml").read_text()
    assert f"## [{__version__}]" in (ROOT / "CHANGELOG.md").read_text()


def test_the_module_runs_as_a_program() -> None:
    command = [sys.executable, "-m", "sfumato", "--version"]
    result = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT / "src")
    assert result.stdout == f"sfumato {__version__}\n"


def test_a_refusal_is_a_message_and_not_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse() -> None:
        raise Unsupported("not today", hints=("come back tomorrow",))

    monkeypatch.setattr("sfumato.cli.demo.run", refuse)
    monkeypatch.setattr(sys, "argv", ["sfumato", "demo"])
    with pytest.raises(SystemExit) as exit_:
        main()
    assert exit_.value.code == 2
    assert capsys.readouterr().err == "error[SF201]: not today\nhint: come back tomorrow\n"


def test_every_command_is_documented() -> None:
    pages = "".join(page.read_text() for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
    commands = get_command(app).commands  # type: ignore[attr-defined]
    assert "demo" in commands
    for name in commands:
        assert f"sfumato {name}" in pages, f"no page mentions `sfumato {name}`"
