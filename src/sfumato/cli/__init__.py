"""The command line. Each command is in a file of its own, loaded when it runs: `--help` is quick.

Reading order: `commands` (what there is), `options`, `exits`, `screen`, `project`, `outputs`
(what they share), then a file for each command.
"""

from __future__ import annotations

from sfumato.cli.commands import app, main

__all__ = ["app", "main"]
