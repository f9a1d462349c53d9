"""Stored outputs: what the ledger holds of a stream. They are parsed when they are looked at, not before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sfumato.errors import LedgerError
from sfumato.ledger import Ledger
from sfumato.release.storage import load

__all__ = ["StoredOutputs", "stored_output"]


def stored_output(ledger: Ledger, sequence: int, number: int) -> bytes | None:
    """Return what was published of a period, None where it was skipped."""
    try:
        return ledger.release(sequence, step=number)
    except LedgerError as refusal:
        if refusal.code != "SF608":
            raise
        return None


class StoredOutputs(Mapping[int, Mapping[str, Any]]):
    """The outputs of a stream's first periods, by period; one that was skipped is not in it."""

    def __init__(self, ledger: Ledger, sequence: int, taken: int) -> None:
        self._stored = ledger.outputs(sequence, taken)
        self._read: dict[int, Mapping[str, Any]] = {}
        self._keys: Any = None  # most periods have the same ones: they are held once

    def __getitem__(self, number: int) -> Mapping[str, Any]:
        if number not in self._read:
            output = load(self._stored[number].decode())
            if output["keys"] == self._keys:
                output["keys"] = self._keys
            self._keys = output["keys"]
            self._read[number] = output
        return self._read[number]

    def __contains__(self, number: object) -> bool:
        return number in self._stored

    def __iter__(self) -> Iterator[int]:
        return iter(self._stored)

    def __len__(self) -> int:
        return len(self._stored)
