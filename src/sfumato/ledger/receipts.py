"""Receipts: what was paid for an answer, signed by the ledger, with its place in the chain.

A receipt is a flat object of texts. `signature` is Ed25519 over the canonical JSON of all others (keys
sorted, no spaces, ASCII). `anchor` is the head of the ledger when the charge was written: whoever
keeps receipts keeps anchors.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from sfumato.core.rules import UNITS
from sfumato.errors import LedgerError
from sfumato.ledger.canonical import canonical
from sfumato.ledger.charges import Reserved
from sfumato.ledger.records import Head
from sfumato.ledger.signer import Key

__all__ = ["signed", "verify_receipt"]

_FORMAT = "sfumato receipt 1"


def signed(
    record: Reserved, head: Head, *, ledger: str, answer: str, key: Key, step: int | None = None
) -> dict[str, str]:
    """Return the receipt of a charge, or of one of its steps; `answer` is a hash of what it paid for."""
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
    return {**receipt, "signature": key.sign(canonical(receipt).encode())}


def verify_receipt(receipt: Mapping[str, Any], public_key: str) -> Head:
    """Return the anchor that a receipt carries, if the owner of a public key signed it; else refuse.

    The key must come from elsewhere than the receipt: from the owner, or from a ledger that was
    checked against an anchor (`Ledger.public_keys`).
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
