"""Scripts in fresh processes. What forks has to: beside other threads a child may inherit a lock for good."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def start(script: str, *arguments: object) -> subprocess.Popen[str]:
    """Start a fresh Python on a script that can import the package and the tests."""
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT)))},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def said(script: str, *arguments: object) -> list[str]:
    """Run a script in a fresh process to its end; return the lines that it printed."""
    with start(script, *arguments) as worker:
        lines = worker.communicate(timeout=120)[0].splitlines()
    assert worker.returncode == 0, lines
    return lines
