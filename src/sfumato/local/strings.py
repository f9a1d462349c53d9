"""Strings as rows of bytes, and as digits in a small base."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from sfumato.errors import InvalidArgument
from sfumato.local.arrays import Octets

__all__ = ["digits_of_octets", "octets_of", "octets_of_digits", "text_of"]

_LIMB = 32


def octets_of(texts: Iterable[str | bytes], length: int) -> Octets:
    """Write texts as rows of `length` bytes: UTF-8, filled up with zeros; longer ones are cut, and merge.

    >>> octets_of(["abc", "d"], 2).tolist()
    [[97, 98], [100, 0]]
    """
    rows = []
    for text in texts:
        if not isinstance(text, (str, bytes)):
            raise InvalidArgument("strings must be text or bytes", place="texts")
        octets = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
        rows.append(octets[:length].ljust(length, b"\0"))
    return np.frombuffer(b"".join(rows), dtype=np.uint8).reshape(len(rows), length).copy()


def text_of(octets: bytes) -> str:
    """Read bytes as text, without the zeros at the end; what is not UTF-8 is shown as escapes."""
    return octets.rstrip(b"\0").decode("utf-8", "backslashreplace")


def digits_of_octets(octets: Octets, base: int, digits: int) -> Octets:
    """Write rows of bytes, read as numbers, in a base of at most 256: one row per digit, the highest first.

    Long division, 32 bits and as many digits at a time as fit beside them in 63.
    """
    people, length = octets.shape
    padded = np.zeros((people, -length % 4 + length), dtype=np.uint8)
    padded[:, -length % 4 :] = octets
    limbs = padded.view(">u4").astype(np.int64).T.copy()
    out = np.zeros((digits, people), dtype=np.uint8)
    at_once = 1
    while base ** (at_once + 1) < 2 ** (63 - _LIMB):
        at_once += 1
    divisor = base**at_once
    row = digits
    while row > 0:
        rest = np.zeros(people, dtype=np.int64)
        for limb in limbs:
            carried = (rest << _LIMB) + limb
            limb[:], rest = np.divmod(carried, divisor)
        for _ in range(min(at_once, row)):
            row -= 1
            rest, out[row] = np.divmod(rest, base)
    return out


def octets_of_digits(digits: Sequence[int], base: int, length: int) -> bytes:
    """Return the string of `length` bytes that digits spell.

    >>> octets_of_digits([1, 0, 1], 16, 2)
    b'\\x01\\x01'
    """
    number = 0
    for digit in digits:
        number = number * base + digit
    return number.to_bytes(length, "big")
