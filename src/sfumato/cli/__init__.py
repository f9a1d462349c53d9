"""The command line: `sfumato demo`, `sfumato --version`."""

from __future__ import annotations

from sfumato.cli.commands import app, main

__all__ = ["app", "main"]
