"""Canonical JSON: one text for one value, so that a hash of the text is a hash of the value.

Keys sorted, no spaces, ASCII only, whole numbers as decimal strings (they outgrow what most
readers of JSON keep exactly). Fractions come as "n/d", so the two are never confused.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from json.encoder import encode_basestring_ascii
from typing import Any

from sfumato.errors import InvalidArgument

__all__ = ["canonical", "restored"]

_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,4000}", re.ASCII)

_LEAVES: dict[type, Callable[[Any], str]] = {
    str: encode_basestring_ascii,
    int: '"{}"'.format,
    bool: {True: "true", False: "false"}.__getitem__,
    type(None): {None: "null"}.__getitem__,
}
"""How most values of records are written."""


def canonical(value: Any) -> str:
    """Return the one text of a value made of dicts, lists, text, numbers, booleans and None.

    >>> canonical({"b": 10**20, "a": [None, "x"]})
    '{"a":[null,"x"],"b":"100000000000000000000"}'
    """
    match value:
        case None | bool() | str():
            return _LEAVES[str if isinstance(value, str) else type(value)](value)
        case int():
            return f'"{int(value)}"'
        case float() if math.isfinite(value):
            return float.__repr__(value)
        case dict():
            try:
                names = sorted(value)
                keys = [*map(encode_basestring_ascii, names)]
            except TypeError:
                raise InvalidArgument("a dict with keys that are not text cannot be recorded") from None
            own = map(value.__getitem__, names)
            items = [_LEAVES[type(item)](item) if type(item) in _LEAVES else canonical(item) for item in own]
            return f"{{{','.join(map(':'.join, zip(keys, items, strict=True)))}}}"
        case list() | tuple():
            items = [
                _LEAVES[type(item)](item) if type(item) in _LEAVES else canonical(item) for item in value
            ]
            return f"[{','.join(items)}]"
        case _:
            raise InvalidArgument(f"a {type(value).__name__} cannot be recorded")


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
