"""Worked examples for ports: an answer, the draws that were made, and the report they lead to.

Whoever rewrites the client elsewhere feeds the draws to their own version, in this order and with these
bounds, and must get the same fields: then every chance is the same, too.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from typing import Any

from sfumato.core.arguments import count
from sfumato.errors import InvalidArgument
from sfumato.local import client

__all__ = ["examples", "replayed"]


def examples(data: bytes, answers: Sequence[Any], times: int = 4) -> Iterator[dict[str, Any]]:
    """Yield examples for each answer of a survey file: fresh draws, as `[bound, drawn]`, and the fields."""
    survey = client.load(data)
    survey.get("limits", {}).pop("cap", None)  # what is memorised is made once, in the same way
    for answer in answers:
        for _ in range(count(times, "times")):
            draws: list[list[int]] = []

            def below(bound: int, draws: list[list[int]] = draws) -> int:
                draws.append([bound, secrets.randbelow(bound)])
                return draws[-1][1]

            found = client.report(survey, answer, below=below)
            fields = {name: value for name, value in found.items() if name not in ("survey", "id")}
            yield {"survey": survey["fingerprint"], "answer": answer, "draws": draws, "fields": fields}


def replayed(data: bytes, example: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that the client makes of an example's draws."""
    survey = client.load(data)
    survey.get("limits", {}).pop("cap", None)
    draws = iter(example["draws"])

    def below(bound: int) -> int:
        expected, drawn = next(draws, (None, 0))
        if expected != bound:
            raise InvalidArgument("another draw was made than in the example", place="draws")
        return int(drawn)

    found = client.report(survey, example["answer"], below=below)
    return {name: value for name, value in found.items() if name not in ("survey", "id")}
