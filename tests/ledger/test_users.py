"""Two users of one machine and one ledger: what they share, and what is said where they do not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.ledger.accounts import answer, opened
from tests.processes import start

ANOTHER = """
import codecs, os, sys
from sfumato.errors import LedgerError
from tests.ledger.accounts import answer, opened
os.umask(0o022)
answer(opened(None), idempotency_key="k")  # what is loaded only when it is used: the folders may be closed
codecs.lookup("ascii")
os.setgroups([]); os.setgid(int(sys.argv[2])); os.setuid(65534)
try:
    with opened(sys.argv[1]) as ledger:
        answer(ledger, idempotency_key="theirs")
        print("answered", ledger.spent("person") * 100)
except LedgerError as error:
    print(error.code, error.place, *error.hints)
"""

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs the right to become another user")
GROUP = 54_321


@pytest.fixture
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a ledger in a folder that a group may write to; another user is in that group."""
    folder = tmp_path_factory.mktemp("shared")
    for parent in folder.parents:
        if os.stat(parent).st_uid == os.geteuid() and parent.stat().st_mode & 0o005 != 0o005:
            parent.chmod(0o755)  # all the way to what everybody may enter
    os.chown(folder, 0, GROUP)
    folder.chmod(0o2770)
    before = os.umask(0o022)
    try:
        with opened(folder / "a") as ledger:
            os.chmod(folder / "a", 0o660)
            answer(ledger, idempotency_key="ours")
    finally:
        os.umask(before)
    return folder / "a"


def said(path: Path) -> str:
    return start(ANOTHER, path, GROUP).communicate()[0]


def test_a_key_that_another_user_cannot_read_is_named(path: Path) -> None:
    told = said(path)
    assert told.startswith(f"SF601 {path}-key") and "chmod 640" in told
    with opened(path) as ledger:
        assert ledger.spent("person") * 100 == 1


def test_a_group_that_may_read_the_key_shares_the_ledger(path: Path) -> None:
    """What lies beside the ledger is writable for those for whom the ledger is."""
    key = path.with_name("a-key")
    os.chown(key, 0, GROUP)
    key.chmod(0o640)
    assert said(path) == "answered 2\n"
    with opened(path) as ledger:
        answer(ledger, idempotency_key="again")
        ledger.verify()


def shared(path: Path) -> Path:
    """Let the other user's group read the key, too."""
    key = path.with_name("a-key")
    os.chown(key, 0, GROUP)
    key.chmod(0o640)
    return path


def test_a_ledger_that_could_once_not_be_written_is_whole_afterwards(path: Path) -> None:
    """SQLite would open it to read, and leave an index beside it that nobody can write."""
    shared(path).chmod(0o640)
    told = said(path)
    assert told.startswith(f"SF601 {path} ") and f"chmod ug+w {path}" in told
    assert not list(path.parent.glob("a-[ws]*"))
    path.chmod(0o660)
    assert said(path) == "answered 2\n"


@pytest.mark.parametrize("more", ["-shm", "-wal"])
def test_what_lies_beside_a_ledger_and_cannot_be_written_is_named(path: Path, more: str) -> None:
    beside = shared(path).with_name(f"a{more}")
    beside.touch()
    os.chown(beside, 0, GROUP)
    beside.chmod(0o440)
    told = said(path)
    assert told.startswith(f"SF601 {beside} ") and f"chmod ug+w {beside}" in told
    beside.chmod(0o660)
    assert said(path) == "answered 2\n"


def test_a_folder_that_cannot_be_written_is_named(path: Path) -> None:
    shared(path).parent.chmod(0o750)
    told = said(path)
    assert told.startswith(f"SF601 {path.parent} ") and f"chmod ug+w {path.parent}" in told
    path.parent.chmod(0o2770)
    assert said(path) == "answered 2\n"
