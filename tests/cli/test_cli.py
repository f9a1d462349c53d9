"""The command line: it runs, says what it is, starts quickly, and is documented."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sfumato import __version__
from sfumato.cli import app, main
from sfumato.errors import Unsupported
from tests.cli.programs import CANARY, PROGRAM, environment, make_project, program, sfumato
from tests.cli.reference import commands, reference, written

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


def test_the_module_runs_as_a_program(tmp_path: Path) -> None:
    assert program(tmp_path, "--version").stdout == f"sfumato {__version__}\n"


@pytest.mark.parametrize("arguments", [["--help"], ["query", "--help"], ["ledger", "--help"]])
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    code = f"import sys; sys.argv = ['sfumato', *{arguments!r}]; from sfumato.cli import main\n"
    code += "try: main()\nexcept SystemExit: pass\nprint('LOADED', *sys.modules)"
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment()
    )
    loaded = {name.split(".")[0] for name in shown.stdout.split("LOADED")[1].split()}
    assert not loaded & {"cryptography", "duckdb", "numpy", "prompt_toolkit", "pyarrow", "scipy", "sqlglot"}


def test_a_refusal_is_a_message_and_not_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(**_: object) -> None:
        raise Unsupported("not today", hints=("come back tomorrow",))

    monkeypatch.setattr("sfumato.cli.demo.run", refuse)
    monkeypatch.setattr(sys, "argv", ["sfumato", "demo"])
    with pytest.raises(SystemExit) as exit_:
        main()
    assert exit_.value.code == 3
    assert capsys.readouterr().err == "error[SF201]: not today\nhint: come back tomorrow\n"


def test_a_defect_does_not_quote_the_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ValueError(f"could not convert {CANARY}")

    make_project(tmp_path)
    monkeypatch.setattr("sfumato.session.question.answer", fail)
    for more in ((), ("--json-errors",)):
        done = sfumato(tmp_path, "query", "SELECT COUNT(*) FROM people", "-e", "0.1", *more)
        assert done.returncode == 1 and "ValueError" in done.stderr
        assert CANARY not in done.stderr and "Traceback" not in done.stderr
    assert json.loads(done.stderr)["error"]["exit"] == 1


def test_without_arguments_it_says_what_it_is(tmp_path: Path) -> None:
    shown = program(tmp_path)
    assert (shown.returncode, shown.stderr) == (0, "") and "Usage: sfumato" in shown.stdout
    assert program(tmp_path, "--help").stdout == shown.stdout


@pytest.mark.parametrize("words", [("-fjson",), ("-f", "json"), ("--format", "json"), ("--format=json",)])
def test_errors_are_json_however_the_option_is_written(tmp_path: Path, words: tuple[str, ...]) -> None:
    refused = sfumato(tmp_path, "query", "SELECT 1", "-e", "1", *words)
    assert json.loads(refused.stderr)["error"]["code"] == "SF701"


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, EOFError])
def test_an_interruption_is_exit_130(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interrupt: type[BaseException]
) -> None:
    def stop(*_: object, **__: object) -> None:
        raise interrupt

    monkeypatch.setattr("sfumato.cli.check.run", stop)
    assert sfumato(tmp_path, "check").returncode == 130


def test_every_command_is_documented() -> None:
    page = (ROOT / "docs" / "cli.md").read_text()
    assert {("demo",), ("init",), ("check",), ("query",), ("shell",), ("ledger", "verify")} <= set(commands())
    for words in commands():
        assert f"sfumato {' '.join(words)}" in page


def test_help_and_the_page_agree() -> None:
    assert written() == reference(), "run: python -m tests.cli.reference"


@pytest.mark.parametrize(("extra", "colours"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_colours_are_for_terminals_and_can_be_refused(
    tmp_path: Path, extra: dict[str, str], colours: bool
) -> None:
    leader, follower = pty.openpty()
    command = [*PROGRAM, "demo", "--basics"]
    variables = environment(TERM="xterm-256color", **extra)
    with subprocess.Popen(command, stdout=follower, cwd=tmp_path, env=variables) as running:
        os.close(follower)
        shown = b""
        while True:
            try:
                part = os.read(leader, 65536)
            except OSError:
                break
            if not part:
                break
            shown += part
        assert running.wait() == 0
    os.close(leader)
    assert b"Three releases" in shown and (b"\x1b[1;36m" in shown) is colours
