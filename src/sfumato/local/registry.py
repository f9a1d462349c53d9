"""The registry: every protocol that a survey file may name, and how it is built from what the file says."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import MISSING, fields
from fractions import Fraction
from typing import Any

from sfumato.errors import InvalidArgument
from sfumato.local.client import BOUNDS, RATIO
from sfumato.local.protocol import Protocol

__all__ = ["read_protocol"]

_HOMES = {
    "duchi": "means.Duchi",
    "geometry": "geometry.ProjectiveGeometry",
    "hadamard": "hadamard.HadamardResponse",
    "hashing": "hashing.LocalHashing",
    "hybrid": "piecewise.Hybrid",
    "piecewise": "piecewise.Piecewise",
    "prefixes": "prefix_tree.PrefixTree",
    "response": "response.KaryResponse",
    "set": "sets.SetSelection",
    "several": "sets.SeveralAnswers",
    "subset": "ballots.SubsetSelection",
    "two-stage-response": "stages.TwoStageResponse",
    "two-stage-unary": "stages.TwoStageUnary",
    "unary": "ballots.UnaryEncoding",
    "unary_set": "sets.UnarySets",
}
_INNER = "inner"


def read_protocol(name: Any, parameters: Mapping[str, Any]) -> Protocol:
    """Return the protocol with these parameters: integers, and ratios written as '3/4'."""
    if not isinstance(name, str) or name not in _HOMES:
        raise InvalidArgument(
            "a survey names an unknown protocol",
            place="protocol",
            hints=(f"it is one of {', '.join(_HOMES)}",),
        )
    module, title = _HOMES[name].split(".")
    kind: type[Protocol] = getattr(importlib.import_module(f"sfumato.local.{module}"), title)
    rest = dict(parameters)
    values: dict[str, Any] = {}
    for field in fields(kind):  # type: ignore[arg-type]
        if field.name == _INNER:
            inner = {key: rest.pop(key) for key in list(rest) if key.startswith(f"{_INNER}_")}
            shorter = {key.removeprefix(f"{_INNER}_"): value for key, value in inner.items()}
            values[_INNER] = read_protocol(rest.pop(_INNER, None), shorter)
        elif field.name in rest:
            values[field.name] = _read(field.name, rest.pop(field.name), str(field.type))
        elif field.default is MISSING:
            raise InvalidArgument(f"protocol {name} needs {field.name}", place=f"protocol.{field.name}")
    protocol = kind(**values)
    follows = protocol.parameters()  # what follows from the others may be said, for the client's sake
    for key, value in rest.items():
        if follows.get(key) != value:
            raise InvalidArgument(f"protocol {name} has no such parameter", place=f"protocol.{key}")
    return protocol


def _read(name: str, value: Any, kind: str) -> int | Fraction:
    least, most = BOUNDS.get(name, (1, 2**62))
    if kind == "int" and type(value) is int and least <= value <= most:
        return value
    if kind == "Fraction" and type(value) in (int, str) and RATIO.fullmatch(str(value)):
        return Fraction(value)
    raise InvalidArgument(
        f"{name} is not {'a whole number that can be meant' if kind == 'int' else 'a ratio'}",
        place=f"protocol.{name}",
        hints=("write 4" if kind == "int" else "write '3/4'",),
    )
