"""Canonical records: one text for one value, from which fingerprints are made.

The ledger binds an idempotency key to fingerprints of the request and of the catalog. They must not change
with a Python version, an import order or a new `repr`, and must change with whatever is asked or declared.
So a value becomes JSON by the rules below, with a version in front: a change of the rules is a new version.
Fields that take no part in comparisons (places in the text) are left out.
"""

from __future__ import annotations

import datetime
import hashlib
import json
from collections.abc import Mapping, Set
from dataclasses import fields, is_dataclass
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import cache
from itertools import repeat
from typing import Any

from sfumato.catalog.kind import Kind
from sfumato.errors import Unsupported

__all__ = ["VERSION", "canonical", "fingerprint"]

VERSION = 1
"""The version of the rules; a fingerprint of another version equals none of this one."""

_AS_IT_IS = frozenset({type(None), bool, str})


def fingerprint(**parts: Any) -> str:
    """Return the hash of named values, as 64 hexadecimal digits.

    >>> fingerprint(epsilon=Fraction(1, 2)) == fingerprint(epsilon=Fraction(2, 4))
    True
    """
    return hashlib.sha256(canonical({"version": VERSION, **parts}).encode()).hexdigest()


def canonical(value: Any) -> str:
    """Return a value as one line of JSON; equal values have equal lines, different ones different lines.

    >>> canonical({"b": (1, 2.5), "a": None})
    '{"a":null,"b":[1,{"float":"0x1.4000000000000p+1"}]}'
    """
    return json.dumps(_plain(value), sort_keys=True, separators=(",", ":"), ensure_ascii=True)


@cache
def _compared(kind: type) -> tuple[str, ...]:
    """Return the fields of a class that take part in comparisons."""
    return tuple(field.name for field in fields(kind) if field.compare)


def _plain(value: Any) -> Any:
    match value:
        case None | bool() | str():
            return value
        case Enum():
            return {"enum": f"{type(value).__name__}.{value.name}"}
        case Kind():
            return {"kind": value.value}
        case int():
            return value if abs(value) < 2**53 else {"int": f"{value:x}"}
        case float():
            return {"float": value.hex()}
        case Fraction():
            return {"ratio": [f"{value.numerator:x}", f"{value.denominator:x}"]}
        case Decimal():
            return {"decimal": str(value)}
        case datetime.date():
            return {type(value).__name__: value.isoformat()}
        case tuple() | list():
            return [one if type(one) in _AS_IT_IS else _plain(one) for one in value]
        case Set():
            return {"set": sorted(canonical(one) for one in value)}
        case Mapping():
            if not all(map(isinstance, value, repeat(str))):
                raise Unsupported("a record whose keys are not texts")
            return {key: one if type(one) in _AS_IT_IS else _plain(one) for key, one in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        names = _compared(type(value))
        own = {name: one if type(one := getattr(value, name)) in _AS_IT_IS else _plain(one) for name in names}
        return {"record": type(value).__name__, "of": own}
    raise Unsupported(f"a canonical record of a {type(value).__name__}")
