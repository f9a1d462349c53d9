"""Disks that fail for real: the system refuses to confirm, or has no room; nothing is answered then."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import ROOT

COMPILER = shutil.which("cc") or shutil.which("gcc")

FAILED_SYNC = """
import sys
from pathlib import Path
from sfumato.errors import LedgerError
from tests.ledger.accounts import answer, opened, reserve
path, flag = sys.argv[1], Path(sys.argv[2])
ledger = opened(path)
answer(ledger)
late = reserve(ledger)
flag.touch()
said = []
for act in (lambda: reserve(ledger), lambda: late.commit(b"noisy"), lambda: answer(ledger)):
    try:
        act()
        said.append("answered")
    except LedgerError as error:
        said.append(error.code)
try:
    opened(path + ".new")
    said.append("begun")
except LedgerError as error:
    said.append(error.code)
flag.unlink()
try:
    answer(ledger)
    said.append("answered")
except LedgerError as error:
    said.append(error.code)
with opened(path) as again:
    again.verify()
    said.append(str(again.spent("person") * 100))
    answer(again)
print(*said)
"""

FULL = """
import sys
from sfumato.errors import LedgerError
from tests.ledger.accounts import answer, opened
ledger, answered, codes = opened(sys.argv[1]), 0, set()
for _ in range(2000):
    try:
        answer(ledger, bytes(2000))
        answered += 1
    except LedgerError as error:
        codes.add(error.code)
        break
print(answered, *codes)
"""


def run(command: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join((str(ROOT / "src"), str(ROOT)))
    return subprocess.run(
        command, env={**os.environ, "PYTHONPATH": paths, **environment}, capture_output=True, text=True
    )


@pytest.mark.skipif(COMPILER is None or not sys.platform.startswith("linux"), reason="needs a C compiler")
def test_a_failed_fsync_ends_the_spending(tmp_path):
    """The very call fails with EIO, as a dying disk makes it. What is then written is never relied on.

    The reservation that was under way is refused, so is the commit of an earlier one, and a new ledger
    is not begun; the connection stays closed when the disk recovers. At most what was tried is charged.
    """
    shim = tmp_path / "shim.so"
    source = Path(__file__).parent / "failing_sync.c"
    subprocess.run([str(COMPILER), "-shared", "-fPIC", "-o", str(shim), str(source)], check=True)
    flag = tmp_path / "flag"
    ran = run(
        [sys.executable, "-c", FAILED_SYNC, str(tmp_path / "a"), str(flag)],
        LD_PRELOAD=str(shim),
        FAIL_SYNC_WHEN=str(flag),
    )
    assert ran.returncode == 0, ran.stderr
    *codes, spent = ran.stdout.split()
    assert codes == ["SF601"] * 5, ran.stdout
    assert int(spent) in (2, 3)  # answered once, reserved once, and perhaps the one that was not confirmed


@pytest.mark.skipif(
    shutil.which("unshare") is None or os.geteuid() != 0, reason="needs the right to mount a small disk"
)
def test_a_full_disk_ends_the_spending(tmp_path):
    """A file system of 400 kB, in a name space of its own: no more room, no more answers."""
    disk = tmp_path / "disk"
    disk.mkdir()
    inside = 'mount -t tmpfs -o size=400k none "$1" && "$2" -c "$3" "$1/a"'
    ran = run(["unshare", "-m", "sh", "-c", inside, "sh", str(disk), sys.executable, FULL])
    if ran.returncode != 0 and not ran.stdout:
        pytest.skip("mounting is not permitted here")
    answered, code = ran.stdout.split()
    assert 0 < int(answered) < 2000 and code == "SF601", ran.stdout
