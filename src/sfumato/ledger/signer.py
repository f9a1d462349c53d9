"""The signer: the secret key of a ledger, in a file beside it that only its owner can read.

It signs receipts (Ed25519), and it blinds: what identifies data (a version, a path, a hash) is
recorded as HMAC-SHA256 under this secret, so that a reader of the ledger cannot test guesses about
the data. Whoever reads the key can forge receipts and test guesses; nobody can spend with it.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
from pathlib import Path

from sfumato.errors import LedgerError

__all__ = ["Key", "has_key", "key_beside"]

_FILE = re.compile(r"[0-9a-f]{64}\n", re.ASCII)


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
