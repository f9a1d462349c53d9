"""Storage: a release as canonical JSON, from which the same release and the same bytes come back."""

from __future__ import annotations

import dataclasses
import datetime
import json
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.aggregates.answer import AddedNoise, Answer
from sfumato.aggregates.registry import Function, function_labelled
from sfumato.catalog.kind import Kind
from sfumato.core.noise_law import noise_law
from sfumato.errors import InvalidArgument, Unsupported
from sfumato.release.answers import NoisyTable
from sfumato.release.noise import NoisyGroups

__all__ = ["decode", "dump", "encode", "load", "read_table", "table_record"]


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
    """Return a value JSON-ready; what JSON has no form for becomes a tagged object."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else {"$real": repr(value)}
        case Decimal():
            return {"$decimal": f"{value:f}"}
        case datetime.datetime():
            return {"$timestamp": value.isoformat()}
        case datetime.date():
            return {"$date": value.isoformat()}
        case Fraction():
            return {"$fraction": f"{value.numerator}/{value.denominator}"}
        case np.ndarray():
            return encode(value.tolist())
        case list() | tuple():
            return [encode(item) for item in value]
        case dict() if all(isinstance(key, str) and not key.startswith("$") for key in value):
            return {key: encode(item) for key, item in value.items()}
        case _:
            raise Unsupported(f"a {type(value).__name__} cannot be stored")


def decode(value: Any) -> Any:
    """Return the value that `encode` took; tuples come back as lists."""
    match value:
        case list():
            return [decode(item) for item in value]
        case {"$real": str(text)}:
            return float(text)
        case {"$decimal": str(text)}:
            return Decimal(text)
        case {"$timestamp": str(text)}:
            return datetime.datetime.fromisoformat(text)
        case {"$date": str(text)}:
            return datetime.date.fromisoformat(text)
        case {"$fraction": str(text)}:
            return Fraction(text)
        case dict():
            return {key: decode(item) for key, item in value.items()}
        case _:
            return value


def table_record(table: NoisyTable) -> dict[str, Any]:
    """Return a noisy table, with all that its intervals need, JSON-ready."""
    return {
        "name": table.name,
        "keys": [[name, None if kind is None else kind.value] for name, kind in table.keys],
        "answers": [_answer_record(answer) for answer in table.answers],
        "groups": [
            {
                "grouping_set": list(groups.grouping_set),
                "keys": encode(groups.keys),
                "measures": encode(groups.measures),
                "layers": {name: encode(layers) for name, layers in groups.layers.items()},
            }
            for groups in table.groups
        ],
        "noises": [
            {
                "measure": noise.measure,
                "grouping_set": noise.grouping_set,
                "kind": noise.law.name,
                "parameter": str(noise.law.parameter),
                "levels": noise.levels,
                "branching": noise.branching,
                **_finding_record(noise),
            }
            for noise in table.noises
        ],
        "non_negative": table.non_negative,
        "others": table.others,
        "threshold": table.threshold,
        "spread": None if table.spread is None else list(table.spread),
    }


def read_table(record: dict[str, Any]) -> NoisyTable:
    """Return the noisy table that `table_record` took."""
    return NoisyTable(
        name=record["name"],
        keys=tuple((name, None if kind is None else Kind(kind)) for name, kind in record["keys"]),
        answers=tuple(_read_answer(answer) for answer in record["answers"]),
        groups=tuple(
            NoisyGroups(
                grouping_set=tuple(groups["grouping_set"]),
                keys=tuple(tuple(keys) for keys in decode(groups["keys"])),
                measures={name: _integers(values) for name, values in groups["measures"].items()},
                layers={
                    name: tuple(_integers(layer) for layer in layers)
                    for name, layers in groups["layers"].items()
                },
            )
            for groups in record["groups"]
        ),
        noises=tuple(
            AddedNoise(
                measure=noise["measure"],
                grouping_set=noise["grouping_set"],
                law=noise_law(noise["kind"], Fraction(noise["parameter"])),
                levels=noise["levels"],
                branching=noise["branching"],
                quantile=Fraction(noise["quantile"]) if "quantile" in noise else None,
                row_rate=Fraction(noise["row_rate"]) if "row_rate" in noise else None,
                anchor=noise_law(noise["kind"], Fraction(noise["anchor"])) if "anchor" in noise else None,
            )
            for noise in record["noises"]
        ),
        non_negative=record["non_negative"],
        others=record.get("others", False),
        threshold=record["threshold"],
        spread=tuple(record["spread"]) if record.get("spread") else None,
    )


def _finding_record(noise: AddedNoise) -> dict[str, str]:
    if noise.quantile is None or noise.row_rate is None:
        return {}
    anchor = {} if noise.anchor is None else {"anchor": str(noise.anchor.parameter)}
    return {"quantile": str(noise.quantile), "row_rate": str(noise.row_rate), **anchor}


def _integers(values: list[Any]) -> np.ndarray[Any, Any]:
    try:
        array = np.array(values, dtype=np.int64)
    except OverflowError:
        array = np.array(values, dtype=object)
    return array


def _answer_record(answer: Answer) -> dict[str, Any]:
    """Return the fields that differ from their defaults."""
    record = {}
    for field in dataclasses.fields(answer):
        value = getattr(answer, field.name)
        if value != field.default or type(value) is not type(field.default):
            record[field.name] = encode(_plain(value))
    return record


def _plain(value: Any) -> Any:
    if isinstance(value, Function):
        return value.label
    return value.value if isinstance(value, Kind) else value


def _read_answer(record: dict[str, Any]) -> Answer:
    fields: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in decode(record).items()
    }
    fields["function"] = function_labelled(fields["function"])
    if "kind" in fields:
        fields["kind"] = Kind(fields["kind"])
    return Answer(**fields)
