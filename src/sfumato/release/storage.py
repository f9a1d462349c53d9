"""Storage: a release as canonical JSON, from which the same release and the same bytes come back.

What JSON has no form for becomes an object of one tag. A JSON array is a tuple; a list has a tag.
"""

from __future__ import annotations

import dataclasses
import datetime
import json
import math
from collections.abc import Callable, Iterable
from decimal import Decimal
from fractions import Fraction
from itertools import repeat
from operator import methodcaller
from typing import Any

import numpy as np

from sfumato.aggregates.answer import AddedNoise, Answer, Fitted
from sfumato.aggregates.registry import Function, function_labelled
from sfumato.analysis.basis import Basis
from sfumato.catalog.kind import Kind
from sfumato.core.arguments import written
from sfumato.core.gaussian_sums import GaussianSum
from sfumato.core.noise_law import NoiseLaw, noise_law
from sfumato.errors import InvalidArgument, Unsupported
from sfumato.release.answers import NoisyTable, Origin
from sfumato.release.noise import NoisyGroups

__all__ = ["decode", "dump", "encode", "load"]


_PLAIN = frozenset({type(None), bool, int, str})  # most items, such as keys and counts, are JSON-ready
_NESTED = frozenset({list, dict})
_TAGGED = methodcaller("startswith", "$")


def dump(record: dict[str, Any]) -> str:
    """Return the one JSON text of a record: sorted keys, no spaces."""
    return json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def load(text: str) -> dict[str, Any]:
    """Read what `dump` wrote."""
    try:
        record = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        record = None
    if not isinstance(record, dict):
        raise InvalidArgument("this is not a stored release", place="text", hints=("`to_json` writes one",))
    return record


def encode(value: Any) -> Any:
    """Return a value JSON-ready.

    >>> encode((1, [Fraction(1, 3)]))
    [1, {'$list': [{'$fraction': '1/3'}]}]
    """
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else {"$real": repr(value)}
        case tuple():
            return _encoded(value)
        case list():
            return {"$list": _encoded(value)}
        case Decimal():
            return {"$decimal": f"{value:f}"}
        case datetime.datetime():
            return {"$timestamp": value.isoformat()}
        case datetime.date():
            return {"$date": value.isoformat()}
        case Fraction():
            return {"$fraction": f"{value.numerator}/{value.denominator}"}
        case Kind():
            return {"$kind": value.value}
        case Function():
            return {"$function": value.label}
        case NoiseLaw():
            return {"$law": [value.name, str(value.parameter)]}
        case np.ndarray():
            return {"$reals" if value.dtype == np.float64 else "$integers": value.tolist()}
        case dict() if all(map(isinstance, value, repeat(str))) and not any(map(_TAGGED, value)):
            return dict(zip(value, _encoded(value.values()), strict=True))
        case _ if (tag := f"${type(value).__name__}") in _CLASSES:
            given = _fields(value)
            return {tag: dict(zip(given, _encoded(given.values()), strict=True))}
        case _:
            raise Unsupported(f"a {type(value).__name__} cannot be stored")


def _encoded(values: Iterable[Any]) -> list[Any]:
    """Return several values JSON-ready; a release has many of them, so most take no call of their own."""
    found = []
    for value in values:
        kind = type(value)
        if kind in _PLAIN or (kind is float and math.isfinite(value)):
            found.append(value)
        elif kind is tuple and _PLAIN.issuperset(map(type, value)):
            found.append(list(value))
        else:
            found.append(encode(value))
    return found


def decode(value: Any) -> Any:
    """Return the value that `encode` took; whatever is wrong with it is some exception.

    >>> decode(encode((1, [Fraction(1, 3)])))
    (1, [Fraction(1, 3)])
    """
    if isinstance(value, list):
        return tuple([decode(item) if type(item) in _NESTED else item for item in value])
    if not isinstance(value, dict):
        return value
    tag = next(iter(value), "")
    if not tag.startswith("$"):
        return {key: decode(item) if type(item) in _NESTED else item for key, item in value.items()}
    return _CLASSES[tag](**decode(value[tag])) if tag in _CLASSES else _READERS[tag](value[tag])


_CLASSES: dict[str, type[Any]] = {
    f"${kind.__name__}": kind
    for kind in (AddedNoise, Answer, Basis, Fitted, GaussianSum, NoisyGroups, NoisyTable, Origin)
}


def _integers(values: list[Any]) -> np.ndarray[Any, Any]:
    try:
        return np.array(values, dtype=np.int64)
    except OverflowError:
        return np.array(values, dtype=object)


_READERS: dict[str, Callable[[Any], Any]] = {
    "$real": float,
    "$list": lambda items: [decode(item) for item in items],
    "$decimal": Decimal,
    "$timestamp": datetime.datetime.fromisoformat,
    "$date": datetime.date.fromisoformat,
    "$fraction": lambda text: written(text, "text"),
    "$kind": Kind,
    "$function": function_labelled,
    "$law": lambda law: noise_law(law[0], written(law[1], "text")),
    "$integers": _integers,
    "$reals": lambda values: np.array(values, dtype=np.float64),
}


def _fields(value: Any) -> dict[str, Any]:
    """Return the fields that differ from their defaults."""
    found = {}
    for field in dataclasses.fields(value):
        if not field.init:  # it follows from others
            continue
        given = getattr(value, field.name)
        if type(given) is not type(field.default) or given != field.default:
            found[field.name] = given
    return found
