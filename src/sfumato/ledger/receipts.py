"""Receipts: what was paid for an answer, signed by the ledger, with its place in the chain.

A receipt is a flat object of texts. `signature` is Ed25519 over the canonical JSON of all others (keys
sorted, no spaces, ASCII). `anchor` is the head of the ledger when the charge was written: whoever
keeps receipts keeps anchors.

The secret key lies in a file beside the ledger that only its owner can read. It signs receipts, and it
blinds: what identifies data (a version, a path, a hash) is recorded as HMAC-SHA256 under this secret, so that
a reader of the ledger cannot test guesses about the data. Whoever reads the key can forge receipts and test
guesses; nobody can spend with it.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from sfumato.core.rules import UNITS
from sfumato.errors import LedgerError
from sfumato.ledger.canonical import canonical
from sfumato.ledger.charges import Reserved
from sfumato.ledger.records import Head

__all__ = ["Key", "has_key", "key_beside", "signed", "verify_receipt"]

_FILE = re.compile(r"[0-9a-f]{64}\n", re.ASCII)
_FORMAT = "sfumato receipt 1"


def signed(
    record: Reserved,
    head: Head,
    *,
    ledger: str,
    answer: str,
    key: Key,
    step: int | None = None,
    unprotected: Sequence[str] = (),
) -> dict[str, str]:
    """Return the receipt of a charge, or of one of its steps; `answer` is a hash of what it paid for.

    `unprotected` says what the answer shows exactly, because the policy declares it public.
    """
    receipt = {
        "format": _FORMAT,
        "ledger": ledger,
        "unit": record.unit,
        "reservation": str(head.sequence),
        "anchor": str(head),
        "request": record.request_hash,
        "policy": record.policy_hash,
        "cost": str(Fraction(record.units, UNITS)),
        "keys_delta": str(Fraction(record.keys_units, UNITS)),
        "answer": answer,
        "at": str(record.at),
        "public_key": key.public,
    }
    if record.analyst is not None:
        receipt["analyst"] = record.analyst
    if step is not None:
        receipt["step"] = f"{step} of {record.steps}"
    if record.parts is not None:
        receipt["parts"] = canonical(list(record.parts))
    if unprotected:
        receipt["unprotected"] = canonical(list(unprotected))
    return {**receipt, "signature": key.sign(canonical(receipt).encode())}


def verify_receipt(receipt: Mapping[str, Any], public_key: str) -> Head:
    """Return the anchor that a receipt carries, if the owner of a public key signed it; else refuse.

    The key must come from elsewhere than the receipt: from the owner, or from a ledger that was
    checked against an anchor (`Ledger.public_keys`).

    >>> from sfumato.core import PrivacyBudget, events
    >>> from sfumato.ledger import OWNER, Ledger
    >>> ledger = Ledger.open(None)
    >>> ledger.register("person", PrivacyBudget(epsilon=1))
    >>> asked = {"request_hash": "5f1c", "data_version": "2026-11", "policy_hash": "77ab", "analyst": OWNER}
    >>> with ledger.reserve("person", events.Pure(loss=0.1), 0, **asked) as reservation:
    ...     receipt = reservation.receipt(answer="e3b0c442")
    ...     head = reservation.commit(b"the release")
    >>> verify_receipt(receipt, ledger.public_key) == Head.parse(receipt["anchor"])
    True
    """
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        content = {name: text for name, text in receipt.items() if name != "signature"}
        if not all(isinstance(text, str) for text in content.values()):
            raise ValueError("a receipt is made of texts")
        signature = bytes.fromhex(receipt["signature"])
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public_key))
        key.verify(signature, canonical(content).encode())
        if content["format"] != _FORMAT or content["public_key"] != public_key:
            raise ValueError("a receipt of another format or signer")
        return Head.parse(content["anchor"])
    except (AttributeError, InvalidSignature, KeyError, TypeError, ValueError) as error:
        raise LedgerError(
            "the receipt is not genuine: it was altered, or signed with another key",
            code="SF611",
            hints=("compare the public key with the one that the owner published",),
        ) from error


class Key:
    """A secret of 32 bytes; never shown."""

    __slots__ = ("_blinding", "_private", "public")

    def __init__(self, secret: bytes) -> None:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        self._private = Ed25519PrivateKey.from_private_bytes(secret)
        self._blinding = hashlib.sha256(b"sfumato ledger blinding\n" + secret).digest()
        self.public: str = self._private.public_key().public_bytes_raw().hex()

    def sign(self, message: bytes) -> str:
        """Return the signature of a message, in hexadecimal."""
        return self._private.sign(message).hex()

    def blind(self, text: str) -> str:
        """Return a keyed hash of a text: equal for equal texts, and nothing else to those without the key."""
        return hmac.digest(self._blinding, text.encode(), "sha256").hex()

    def __repr__(self) -> str:
        return f"<key of the signer {self.public}>"


def has_key(ledger: Path) -> bool:
    """Return whether there is a key beside a ledger's file."""
    return os.path.lexists(_beside(ledger))


def key_beside(ledger: Path) -> Key:
    """Return the key of a ledger's file; make one where there is none. Inside the ledger's writing()."""
    path = _beside(ledger)
    try:
        text = path.read_text(encoding="ascii")
    except FileNotFoundError:
        return Key(_made(path))
    except PermissionError:
        raise LedgerError(
            "the key beside the ledger cannot be read by this user",
            code="SF601",
            place=str(path),
            hints=(
                "whoever asks needs it: its owner can let a group read it, chgrp GROUP and chmod 640",
                "whoever reads it can forge receipts and test guesses about the data, but not spend",
            ),
        ) from None
    except UnicodeDecodeError:
        text = ""
    if _FILE.fullmatch(text) is None:
        raise LedgerError(
            "the key beside the ledger is damaged",
            code="SF602",
            place=str(path),
            hints=(
                "restore it from a backup",
                "without it, neither requests that were answered before nor sources of data are recognised",
            ),
        )
    return Key(bytes.fromhex(text.strip()))


def _beside(ledger: Path) -> Path:
    return ledger.with_name(f"{ledger.name}-key")


def _made(path: Path) -> bytes:
    """Write a new secret: readable by its owner only from its first byte, whole or not at all."""
    secret = os.urandom(32)
    draft = path.with_name(f"{path.name}.{os.urandom(8).hex()}.new")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(f"{secret.hex()}\n")
            file.flush()
            os.fsync(file.fileno())
        os.link(draft, path)  # fails where another was faster: two keys would be one too many
    finally:
        draft.unlink(missing_ok=True)
    return secret
