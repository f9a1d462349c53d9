"""Canonical JSON: one text for one value, so that a hash of the text is a hash of the value.

Keys sorted, no spaces, ASCII only, whole numbers as decimal strings (they outgrow what most
readers of JSON keep exactly). Fractions come as "n/d", so the two are never confused.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

from sfumato.errors import InvalidArgument

__all__ = ["canonical", "restored"]

_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False).encode
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,4000}", re.ASCII)


def canonical(value: Any) -> str:
    """Return the one text of a value made of dicts, lists, text, numbers, booleans and None.

    >>> canonical({"b": 10**20, "a": [None, "x"]})
    '{"a":[null,"x"],"b":"100000000000000000000"}'
    """
    return _encode(_plain(value))


def restored(value: Any) -> Any:
    """Return a value read from canonical JSON with its whole numbers as integers again.

    >>> restored({"times": "5", "scale": "20/1", "kind": "Laplace"})
    {'times': 5, 'scale': '20/1', 'kind': 'Laplace'}
    """
    match value:
        case dict():
            return {key: restored(item) for key, item in value.items()}
        case list():
            return [restored(item) for item in value]
        case str() if _WHOLE.fullmatch(value):
            return int(value)
        case _:
            return value


def _plain(value: Any) -> Any:
    match value:
        case None | bool() | str():
            return value
        case int():
            return str(value)
        case float() if math.isfinite(value):
            return value
        case dict() if all(isinstance(key, str) for key in value):
            return {key: _plain(item) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
        case _:
            raise InvalidArgument(f"a {type(value).__name__} cannot be recorded")
