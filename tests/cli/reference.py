"""The reference part of docs/cli.md, made from what `--help` says.

python -m tests.cli.reference       writes it into the page
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from typer.main import get_command
from typer.testing import CliRunner

from sfumato.cli import app
from sfumato.cli.exits import EXITS

PAGE = Path(__file__).parent.parent.parent / "docs" / "cli.md"
MARK = "<!-- the rest is made from --help by tests/cli/reference.py -->\n"


def commands() -> list[tuple[str, ...]]:
    """Return every command, as words."""
    found: list[tuple[str, ...]] = []
    group: Any = get_command(app)
    for name, command in group.commands.items():
        found.append((name,))
        found += [(name, inner) for inner in getattr(command, "commands", {})]
    return found


def help_of(words: tuple[str, ...]) -> str:
    """Return what a command says about itself."""
    os.environ["COLUMNS"] = "100"
    shown = CliRunner().invoke(app, [*words, "--help"], prog_name="sfumato")
    assert shown.exit_code == 0, shown.output
    return "\n".join(line.rstrip() for line in shown.output.strip().splitlines())


def reference() -> str:
    """Return the reference: exit codes, and the help of every command."""
    codes = "\n".join(f"| {code} | {meaning} |" for code, meaning in EXITS.items())
    parts = [f"## Exit codes\n\n| code | meaning |\n|---|---|\n{codes}\n", "## Reference\n"]
    for words in commands():
        parts.append(f"### `sfumato {' '.join(words)}`\n\n```text\n{help_of(words)}\n```\n")
    return "\n".join(parts)


def written() -> str:
    """Return the reference as the page has it."""
    return PAGE.read_text().split(MARK)[1].lstrip("\n")


if __name__ == "__main__":
    head = PAGE.read_text().split(MARK)[0]
    PAGE.write_text(f"{head}{MARK}\n{reference()}")
