"""Canonical records: one text for one value, from which fingerprints are made.

The ledger binds an idempotency key to fingerprints of the request and of the catalog. They must not change
with a Python version, an import order or a new `repr`, and must change with whatever is asked or declared.
So a value becomes JSON by the rules below, with a version in front: a change of the rules is a new version.
Fields that take no part in comparisons (places in the text) are left out. So is a field that was added after
fingerprints of its class were stored, `field(default=.., metadata={"later": True})`, while it holds its
default: what an earlier version asked keeps its fingerprint, and its key.
"""

from __future__ import annotations

import datetime
import hashlib
import json
from collections.abc import Iterable, Mapping, Set
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

_WHOLE = 2**53  # below it, every reader of JSON keeps whole numbers
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


@cache
def _later(kind: type) -> Mapping[str, str]:
    """Return the fields of a class that were added later, each with the text of its default."""
    return {field.name: canonical(field.default) for field in fields(kind) if field.metadata.get("later")}


def _plain(value: Any) -> Any:
    match value:
        case None | bool() | str():
            return value
        case Enum():
            return {"enum": f"{type(value).__name__}.{value.name}"}
        case Kind():
            return {"kind": value.value}
        case int():
            return value if abs(value) < _WHOLE else {"int": f"{value:x}"}
        case float():
            return {"float": value.hex()}
        case Fraction():
            return {"ratio": [f"{value.numerator:x}", f"{value.denominator:x}"]}
        case Decimal():
            return {"decimal": str(value)}
        case datetime.date():
            return {type(value).__name__: value.isoformat()}
        case tuple() | list():
            return _all_plain(value)
        case Set():
            return {"set": sorted(canonical(one) for one in value)}
        case Mapping():
            if not all(map(isinstance, value, repeat(str))):
                raise Unsupported("a record whose keys are not texts")
            return dict(zip(value, _all_plain(value.values()), strict=True))
    if is_dataclass(value) and not isinstance(value, type):
        names = _compared(type(value))
        if later := _later(type(value)):
            said = {one for one, default in later.items() if canonical(getattr(value, one)) != default}
            names = tuple(one for one in names if one not in later or one in said)
        own = _all_plain(map(getattr, repeat(value), names))
        return {"record": type(value).__name__, "of": dict(zip(names, own, strict=True))}
    raise Unsupported(f"a canonical record of a {type(value).__name__}")


def _all_plain(values: Iterable[Any]) -> list[Any]:
    """Return several values as JSON has them; most take no call of their own."""
    found = []
    for value in values:
        kind = type(value)
        as_it_is = kind in _AS_IT_IS or (kind is int and -_WHOLE < value < _WHOLE)
        found.append(value if as_it_is else _plain(value))
    return found
