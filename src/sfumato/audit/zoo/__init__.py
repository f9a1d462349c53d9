"""The zoo: mechanisms that are broken in ways that happened. An auditor that misses one is blind there.

Each animal has a sound twin, which must pass: an auditor that cries wolf is of no use either.
"""

from __future__ import annotations

from sfumato.audit.subject import Animal
from sfumato.audit.zoo.accounts import ANIMALS as _ACCOUNTS
from sfumato.audit.zoo.noise import ANIMALS as _NOISE
from sfumato.audit.zoo.rows import ANIMALS as _ROWS
from sfumato.audit.zoo.sparse import ANIMALS as _SPARSE
from sfumato.audit.zoo.sums import ANIMALS as _SUMS

__all__ = ["ANIMALS", "Animal"]

ANIMALS: tuple[Animal, ...] = (*_NOISE, *_SUMS, *_SPARSE, *_ROWS, *_ACCOUNTS)
