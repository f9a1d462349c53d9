"""The shell, on a terminal and from a pipe."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from sfumato.cli.prompt import Names, whole
from sfumato.cli.shell import COMMANDS, Shell
from sfumato.session import open_project
from tests.cli.programs import PROJECT, make_project, sfumato
from tests.cli.terminal import Terminal


def spent(folder: Path) -> float:
    return float(json.loads(sfumato(folder, "budget", "--format", "json").stdout)["spent"])


def test_a_conversation_on_a_terminal(tmp_path: Path) -> None:
    """Completion, many lines, the price as it is typed, a question not paid for, one that is, and the end."""
    make_project(tmp_path)
    history = tmp_path / "state" / "history"
    with Terminal(tmp_path, "shell", SFUMATO_HISTORY=str(history)) as terminal:
        terminal.expect("sfumato>")
        terminal.send("SELECT COUNT(*) AS n FROM people;\r")
        terminal.expect(".epsilon 0.5 sets it")
        terminal.expect("sfumato>")
        terminal.send(".epsilon 0.2\r")
        terminal.expect("epsilon 0.2\n")
        terminal.expect("sfumato>")
        terminal.send("SELECT COUNT(*) AS n\r")
        terminal.expect("..>")
        terminal.send("FROM peo")
        terminal.expect("people")
        terminal.send("\t;")
        terminal.expect("of the budget")
        terminal.expect("n ±")
        terminal.send("\r")
        terminal.expect("spend? [y/N]")
        terminal.send("n\r")
        terminal.expect("nothing was spent")
        terminal.expect("sfumato>")
        assert spent(tmp_path) == 0
        terminal.send("\x1b[A")  # the line before, from history
        terminal.expect("people;")
        terminal.send("\r")
        terminal.expect("spend? [y/N]")
        terminal.send("y\r")
        terminal.expect("± covers 95%")
        terminal.expect("sfumato>")
        terminal.send(".budget\r")
        terminal.expect("more like it fit")
        terminal.expect("sfumato>")
        terminal.send("\x04")
        assert terminal.wait() == 0
    assert spent(tmp_path) > 0
    assert "FROM people;" in history.read_text() and history.stat().st_mode & 0o077 == 0


def test_a_script_from_a_pipe(tmp_path: Path) -> None:
    make_project(tmp_path)
    script = """\
.help
.tables
.explain SELECT COUNT(*) AS n FROM people
.format csv

SELECT region, COUNT(*) AS n
FROM people GROUP BY region ORDER BY region;
.budget
"""
    done = sfumato(tmp_path, "shell", "--epsilon", "0.3", given=script)
    assert done.returncode == 0, done.stderr
    for text in (*COMMANDS, "people: private", "one unit can change", "region,n,n_low,n_high\nnorth,", "fit"):
        assert text in done.stdout
    assert "\x1b" not in done.stdout


@pytest.mark.parametrize(
    ("script", "code"),
    [("SELECT * FROM people;", 3), (".nonsense", 2), ("SELECT COUNT(*) FROM people", 0), (".quit\n.bad", 0)],
)
def test_a_script_ends_at_the_first_refusal(tmp_path: Path, script: str, code: int) -> None:
    make_project(tmp_path)
    assert sfumato(tmp_path, "shell", "--epsilon", "0.1", given=script).returncode == code


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("", True),
        (".budget", True),
        ("SELECT 1;", True),
        ("SELECT 1; -- so", True),
        ("SELECT 1", False),
        ("SELECT 'a;", False),
        ("SELECT 1 -- a;", False),
        ("a;\nb", False),
    ],
)
def test_where_input_ends(text: str, ends: bool) -> None:
    assert whole(text) is ends


@pytest.mark.parametrize("act", ["moved", "replaced"])
def test_a_ledger_that_goes_away_does_not_end_the_conversation(tmp_path: Path, act: str) -> None:
    make_project(tmp_path)
    with Terminal(tmp_path, "shell", "-e", "0.1", SFUMATO_HISTORY=str(tmp_path / "history")) as terminal:
        terminal.expect("of the budget spent")
        if act == "replaced":
            (tmp_path / "copy").write_bytes((tmp_path / "people.ledger").read_bytes())
            (tmp_path / "copy").replace(tmp_path / "people.ledger")
        else:
            (tmp_path / "people.ledger").rename(tmp_path / "elsewhere")
        terminal.send("SELECT")
        terminal.expect("SF601")
        terminal.send(" COUNT(*) FROM people;\r")
        terminal.expect("error[SF601]")
        terminal.expect("sfumato>")
        terminal.send(".quit\r")
        assert terminal.wait() == 0
    assert "Traceback" not in terminal.raw and "Press ENTER" not in terminal.raw


def test_two_statements_on_one_line_are_two_questions(tmp_path: Path) -> None:
    make_project(tmp_path)
    with Terminal(tmp_path, "shell", "-e", "0.1", SFUMATO_HISTORY=str(tmp_path / "history")) as terminal:
        terminal.expect("sfumato>")
        terminal.send("SELECT COUNT(*) AS a FROM people; SELECT COUNT(*) AS b FROM people; -- both\r")
        for _ in range(2):
            terminal.expect("spend? [y/N]")
            terminal.send("y\r")
            terminal.expect("± covers 95%")
        terminal.expect("sfumato>")
        terminal.send("\x04")
        assert terminal.wait() == 0


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("SELECT reg", "region"),
        ("SELECT COUNT(*) FROM vis", "visits"),
        ("SELECT visits.co", "cost"),
        ("SELECT people.", "age"),
        ("SEL", "SELECT"),
        (".bu", ".budget"),
    ],
)
def test_completion(tmp_path: Path, typed: str, found: str) -> None:
    from sfumato.catalog import read_project
    from sfumato.ledger import Ledger

    project = read_project(make_project(tmp_path, PROJECT))
    shell = Shell(project=project, database=open_project(project, ledger=Ledger.open(None)))
    offered = [one.text for one in Names(shell).get_completions(Document(typed), CompleteEvent())]
    assert found in offered
    if "visits." in typed:
        assert "region" not in offered
