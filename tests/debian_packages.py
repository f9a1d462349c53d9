"""Programs that tests need: found, or installed from Debian's packages by the test command itself."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

__all__ = ["find_or_install", "tell"]

_Found = TypeVar("_Found")


def find_or_install(find: Callable[[], _Found | None], variable: str, *packages: str) -> _Found | None:
    """Return what `find` finds; where apt-get may, it installs packages first, for one process at a time.

    Where the variable says which program to take, nothing is installed.
    """
    apt = shutil.which("apt-get")
    if (found := find()) or os.environ.get(variable) or apt is None or os.getuid() != 0:
        return found
    with open(Path(tempfile.gettempdir()) / f"sfumato-{packages[0]}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not find():
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            settings = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
            subprocess.run([apt, "update", "-q"], env=settings, check=False, **quiet)
            subprocess.run([apt, "install", "-q", "-y", *packages], env=settings, check=False, **quiet)
    return find()


def tell(found: object, absent: str, skipped: str) -> None:
    """Print where a program is; where there is none, which tests are skipped: with CI, none may be."""
    if found is None and os.environ.get("CI"):
        sys.exit(absent)
    print(found or f"{absent}\nWithout it the tests that {skipped} are skipped.")
