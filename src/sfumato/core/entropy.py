"""Random bits from the operating system; the only source of randomness in this package.

There is no seed and no state. A scalar takes its bits straight from `os.urandom`; an
array draw takes a fresh 256-bit key from `os.urandom` and expands it with ChaCha20.
Because nothing is kept between two calls, a forked child or another thread can never
repeat bits that its parent or sibling has used.

Assumes: the operating system's generator is sound and ChaCha20 is a pseudo-random function.
"""

from __future__ import annotations

import os

import numpy as np
import numpy.typing as npt

__all__ = ["process_id", "random_bits", "random_words"]

_KEY_BYTES = 1 << 28  # a key expands to at most 2^22 blocks of 64 bytes, far below the cipher's limit


def process_id() -> int:
    """Return what tells this process from those forked off it: state drawn in one must not serve another."""
    return os.getpid()


def random_bits(bits: int) -> int:
    """Return a uniform integer of `bits` random bits."""
    return int.from_bytes(os.urandom((bits + 7) // 8), "little") >> (-bits % 8)


def random_words(size: int) -> npt.NDArray[np.uint64]:
    """Return `size` independent uniform 64-bit words, in a writable array."""
    words = np.empty(size, dtype=np.uint64)
    octets = words.view(np.uint8).data
    for start in range(0, len(octets), _KEY_BYTES):
        _expand(octets[start : start + _KEY_BYTES])
    return words


def _expand(target: memoryview) -> None:
    """Fill `target` with the ChaCha20 key stream of a fresh key."""
    # Imported here: the cipher library costs more to import than all the rest of the core.
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

    cipher = Cipher(algorithms.ChaCha20(os.urandom(32), bytes(16)), mode=None)
    cipher.encryptor().update_into(bytes(len(target)), target)
