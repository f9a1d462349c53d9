"""Reports: an aggregate and its interval as one value, the way GoogleSQL's `report_format` writes them.

    JSON   {"result": {"noise_confidence_interval": {..}, "value": 12}}
    PROTO  {"value": {"int_value": 12, "noise_confidence_interval": {..}}}

An answer holds no protocol buffers: PROTO has the message's fields, and is shown as JSON, too. As in
GoogleSQL the interval of a count or of a sum is that of its noise, around zero; of all others, that of the
answer. The level is 95%.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from sfumato.aggregates.answer import Answer
from sfumato.plan.request import reported_column
from sfumato.release.answers import NoisyTable

__all__ = ["Reported", "report_types", "reports"]

_LEVEL = 0.95
_INTERVAL = "noise_confidence_interval"

Reported = Sequence[tuple[str, str]]
"""Aggregates, each with the format of its report."""


def reports(
    table: NoisyTable, reported: Reported, types: Mapping[str, str]
) -> list[tuple[str, str, list[Any]]]:
    """Return the columns of a noisy table that hold reports: name, type and values.

    `types` are those of the aggregates, by name.
    """
    columns = []
    for (name, kind), (aggregate, report) in zip(
        report_types(table.answers, reported, types), reported, strict=True
    ):
        answer = _answer(table.answers, aggregate)
        found = table.aggregate(answer, _LEVEL)
        rows = zip(found.values, found.low, found.high, strict=True)
        columns.append((name, kind, [_report(answer, report, *row) for row in rows]))
    return columns


def report_types(
    answers: Sequence[Answer], reported: Reported, types: Mapping[str, str]
) -> list[tuple[str, str]]:
    """Return the names and types of such columns."""
    return [
        (reported_column(name, report), _type(_answer(answers, name), types[name], report))
        for name, report in reported
    ]


def _answer(answers: Sequence[Answer], name: str) -> Answer:
    return next(one for one in answers if one.name == name)


def _type(answer: Answer, kind: str, report: str) -> str:
    single = kind.removesuffix("[]")
    end = single if single in ("DATE", "TIMESTAMP") else "DOUBLE"
    interval = f"STRUCT(lower_bound {end}, upper_bound {end}, confidence_level DOUBLE)"
    part = f'STRUCT("{_field(answer, report)}" {single}, {_INTERVAL} {interval})'
    if report == "json":
        return f"STRUCT(result {part}{'[]' if answer.many else ''})"
    return f'STRUCT("values" STRUCT("values" {part}[]))' if answer.many else f'STRUCT("value" {part})'


def _field(answer: Answer, report: str) -> str:
    if report == "json":
        return "value"
    return "int_value" if answer.integer and not answer.function.record.ranks else "float_value"


def _report(answer: Answer, report: str, value: Any, low: Any, high: Any) -> dict[str, Any]:
    field = _field(answer, report)
    around_zero = answer.function.record.linear(answer) is not None

    def part(value: Any, low: Any, high: Any) -> dict[str, Any]:
        unknown = (
            around_zero and value is None
        )  # of what is not known otherwise, an interval says where it lies
        ends = [
            None if unknown or end is None else end - value if around_zero else end for end in (low, high)
        ]
        lower, upper = (None if isinstance(end, float) and not math.isfinite(end) else end for end in ends)
        interval = {"lower_bound": lower, "upper_bound": upper, "confidence_level": _LEVEL}
        return {field: value, _INTERVAL: interval}

    if not answer.many:
        return {"result" if report == "json" else "value": part(value, low, high)}
    parts = [part(*one) for one in zip(value or (), low or (), high or (), strict=True)]
    return {"result": parts} if report == "json" else {"values": {"values": parts}}
