"""Canonical JSON: one text for one value, so that a hash of the text is a hash of the value.

Keys sorted, no spaces, ASCII only, whole numbers as decimal strings (they outgrow what most
readers of JSON keep exactly). Fractions come as "n/d", so the two are never confused.
"""

from __future__ import annotations

import math
import re
from json.encoder import encode_basestring_ascii
from typing import Any

from sfumato.errors import InvalidArgument

__all__ = ["canonical", "restored"]

_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,4000}", re.ASCII)


def canonical(value: Any) -> str:
    """Return the one text of a value made of dicts, lists, text, numbers, booleans and None.

    >>> canonical({"b": 10**20, "a": [None, "x"]})
    '{"a":[null,"x"],"b":"100000000000000000000"}'
    """
    match value:
        case str():
            return encode_basestring_ascii(value)
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
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
            items = [encode_basestring_ascii(item) if type(item) is str else canonical(item) for item in own]
            return f"{{{','.join(map(':'.join, zip(keys, items, strict=True)))}}}"
        case list() | tuple():
            return f"[{','.join(map(canonical, value))}]"
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
