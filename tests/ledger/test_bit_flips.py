"""A disk that turns a bit, in any file of a ledger: all that follows is a typed refusal with a hint.

SQLite names a damaged table in its message, which then need not be text at all.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from sfumato.errors import LedgerError
from sfumato.ledger import Ledger
from tests.ledger.accounts import answer, opened
from tests.soaked import rest_soaked

FLIPS = 25


def all_of_it(path: Path) -> None:
    """Read all that a ledger holds, and spend."""
    looks: list[Callable[[Ledger], object]] = [
        Ledger.verify,
        Ledger.units,
        Ledger.public_keys,
        Ledger.last_entry,
        lambda ledger: [ledger.release(entry.sequence) for entry in ledger.history()],
        lambda ledger: ledger.spent("person"),
        lambda ledger: answer(ledger, idempotency_key="old"),
        lambda ledger: answer(ledger, idempotency_key="new"),
        Ledger.close,
    ]
    refused = []
    try:
        ledger = Ledger.open(path, wait=0.1)
    except LedgerError as refusal:
        refused.append(refusal)
    else:
        for look in looks:
            try:
                look(ledger)
            except LedgerError as refusal:
                refused.append(refusal)
    for refusal in refused:
        assert refusal.hints, refusal


def places(content: bytes, region: str, draw: random.Random) -> list[int]:
    """Return numbers of bits: of the tables' texts those that make them no text, of a header all."""
    match region:
        case "header":
            return draw.sample(range(8 * 100), FLIPS)
        case "tables":
            begin = content.index(b"CREATE ")
            letters = [at for at in range(begin - 200, content.rindex(b"CREATE ")) if content[at]]
            return [8 * at + 7 for at in draw.sample(letters, FLIPS)]
    return [draw.randrange(8 * len(content)) for _ in range(FLIPS)]


@pytest.mark.parametrize("seed", rest_soaked(range(20), 20, of_soak=3))
@pytest.mark.parametrize(
    ("file", "region"), [("a", "header"), ("a", "tables"), ("a", "all"), ("a-wal", "all"), ("a-key", "all")]
)
def test_a_turned_bit_is_a_typed_refusal(tmp_path: Path, file: str, region: str, seed: int) -> None:
    with opened(tmp_path / "a", epsilon=10) as ledger:
        for number in range(8):
            answer(ledger, b"noisy" * 50, idempotency_key="old" if not number else None)
        kept = tmp_path / "kept"
        kept.mkdir()
        for name in ("a", "a-wal", "a-key"):  # while it is open, most of it is in the log
            if name != "a-wal" or file == "a-wal":
                shutil.copy(tmp_path / name, kept / name)
    if file != "a-wal":
        shutil.copy(tmp_path / "a", kept / "a")
    content = (kept / file).read_bytes()
    assert len(content) > 60
    for place in places(content, region, random.Random(seed)):
        for path in tmp_path.glob("a*"):
            path.unlink(missing_ok=True)  # a refused ledger lets go of its files when it is collected
        for path in kept.iterdir():
            shutil.copy(path, tmp_path / path.name)
        turned = bytearray(content)
        turned[place // 8] ^= 1 << place % 8
        (tmp_path / file).write_bytes(turned)
        try:
            all_of_it(tmp_path / "a")
        except Exception as error:
            raise AssertionError(f"bit {place}") from error
