"""Where statements end: at semicolons outside quotes and comments, on whatever lines they stand."""

from __future__ import annotations

from pathlib import Path

import pytest

from sfumato.cli.statements import blank, script, split
from tests.cli.programs import make_project, sfumato

A, B = "SELECT COUNT(*) AS a FROM people", "SELECT COUNT(*) AS b FROM people"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"{A}; -- the first\n", [A]),
        (f"{A}; {B};\n", [A, B]),
        (f"{A};{B}\n", [A, B]),
        ("SELECT 'a;\nb';\n", ["SELECT 'a;\nb'"]),
        ("SELECT 'it''s; so';\n", ["SELECT 'it''s; so'"]),
        ('SELECT "a;b" FROM t;\n', ['SELECT "a;b" FROM t']),
        ("/* ; */ SELECT 1 -- ;\n;\n", ["/* ; */ SELECT 1 -- ;"]),
        ("SELECT $$;$$;\n", ["SELECT $$;$$"]),
        (f"-- a script\n\n.help\n{A}\n;\n.budget\n-- end", [".help", A, ".budget"]),
        (";;\n;\n", []),
        ("SELECT 'open;\n", ["SELECT 'open;"]),
        ("", []),
    ],
)
def test_a_script_is_cut_into_statements(text: str, found: list[str]) -> None:
    assert list(script(text.splitlines(keepends=True))) == found


def test_what_is_left_after_the_last_semicolon() -> None:
    assert split("SELECT 1; SELECT")[1] == " SELECT"
    assert blank(" -- nothing\n /* at all */ ") and blank(" ;; ") and not blank("-- c\nSELECT 1")


@pytest.mark.parametrize(
    "given",
    [f"{A}; -- comment\n{B};\n", f"{A}; {B};\n", f"{A};\n{B}"],
    ids=["a comment", "one line", "no last semicolon"],
)
def test_a_piped_script_asks_each(tmp_path: Path, given: str) -> None:
    make_project(tmp_path)
    done = sfumato(tmp_path, "shell", "-e", "0.1", given=f".format csv\n{given}")
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stdout.splitlines() if "_low" in line] == [
        "a,a_low,a_high",
        "b,b_low,b_high",
    ]


def test_a_quoted_semicolon_is_a_part_of_the_text(tmp_path: Path) -> None:
    make_project(tmp_path)
    sql = "SELECT COUNT(*) AS n FROM people WHERE name = 'a;\nb';\n"
    assert sfumato(tmp_path, "shell", "-e", "0.1", given=sql).returncode == 0
    for words in (f"{A}; -- c", f"{A} -- c", sql):
        asked = sfumato(tmp_path, "query", words, "-e", "0.1", "--dry-run")
        assert asked.returncode == 0, asked.stderr
    assert sfumato(tmp_path, "query", f"{A}; {B}", "-e", "0.1", "--dry-run").returncode == 3
    assert sfumato(tmp_path, "query", " -- nothing", "-e", "0.1").returncode == 2
