"""Worked examples for ports: an answer, the draws that were made, and the reports they lead to.

Whoever rewrites the client elsewhere feeds the draws to their own version, in this order and with these
bounds, and must get the same fields: then every chance is the same, too. A survey that is repeated is
answered on two days, with one memory: what was drawn on the first must come again on the second.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from sfumato.core.arguments import count
from sfumato.errors import InvalidArgument
from sfumato.local import client

__all__ = ["examples", "replayed"]


def examples(data: bytes, answers: Sequence[Any], times: int = 4) -> Iterator[dict[str, Any]]:
    """Yield examples for each answer of a survey file: fresh draws, as `[bound, drawn]`, and the reports."""
    survey = client.load(data)
    for answer in answers:
        for _ in range(count(times, "times")):
            draws: list[list[int]] = []

            def below(bound: int, draws: list[list[int]] = draws) -> int:
                draws.append([bound, secrets.randbelow(bound)])
                return draws[-1][1]

            reports = _reports(survey, answer, below)
            yield {"survey": survey["fingerprint"], "answer": answer, "draws": draws, "reports": reports}


def replayed(data: bytes, example: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the reports that the client makes of an example's draws."""
    draws = iter(example["draws"])

    def below(bound: int) -> int:
        expected, drawn = next(draws, (None, 0))
        if expected != bound:
            raise InvalidArgument("another draw was made than in the example", place="draws")
        return int(drawn)

    reports = _reports(client.load(data), example["answer"], below)
    if next(draws, None) is not None:
        raise InvalidArgument("fewer draws were made than in the example", place="draws")
    return reports


def _reports(survey: dict[str, Any], answer: Any, below: Callable[[int], int]) -> list[dict[str, Any]]:
    """Return what is sent on one day, or two, without what is random and no draw of the protocol."""
    memory: dict[str, Any] = {}
    days = range(2 if "cap" in survey["limits"] else 1)
    found = [client.report(survey, answer, memory, day, below) for day in days]
    return [{name: value for name, value in one.items() if name not in ("survey", "id")} for one in found]
