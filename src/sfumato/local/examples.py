"""Worked examples for ports: an answer, the draws that were made, and the reports they lead to.

Whoever rewrites the client elsewhere feeds the draws to their own version, in this order and with these
bounds, and must get the same fields: then every chance is the same, too.

A survey that is repeated is answered three times, with one memory. Its `files` are those of each time: the
published one; one with another comment, under which what was drawn must come again; one of another name,
which is another survey and draws anew. Then each file of `refused` must be refused with this memory: its
question, version or promise is another one, and what was drawn was no answer to it.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from sfumato.core.arguments import count
from sfumato.errors import InvalidArgument
from sfumato.local import client
from sfumato.local.survey import Survey

__all__ = ["examples", "replayed"]


def examples(data: bytes, answers: Sequence[Any], times: int = 4) -> Iterator[dict[str, Any]]:
    """Yield examples for each answer of a survey file: fresh draws, as `[bound, drawn]`, and the reports."""
    survey = Survey.parse(data.decode())
    repeated = {} if survey.cap is None else {"files": _files(survey), "refused": _changed(survey)}
    for answer in answers:
        for _ in range(count(times, "times")):
            draws: list[list[int]] = []

            def below(bound: int, draws: list[list[int]] = draws) -> int:
                draws.append([bound, secrets.randbelow(bound)])
                return draws[-1][1]

            example = {"survey": survey.fingerprint, "answer": answer, "draws": draws, **repeated}
            yield {**example, "reports": _reports(data, example, below)}


def replayed(data: bytes, example: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the reports that the client makes of an example's draws."""
    draws = iter(example["draws"])

    def below(bound: int) -> int:
        expected, drawn = next(draws, (None, 0))
        if expected != bound:
            raise InvalidArgument("another draw was made than in the example", place="draws")
        return int(drawn)

    reports = _reports(data, example, below)
    if next(draws, None) is not None:
        raise InvalidArgument("fewer draws were made than in the example", place="draws")
    return reports


def _files(survey: Survey) -> list[str]:
    renamed = replace(survey, name=f"{survey.name[:180]}, renamed", text="")
    return [survey.text, f"{survey.text}\n# another comment\n", renamed.text]


def _changed(survey: Survey) -> list[str]:
    """Return files of this name with other terms; no place of an answer and no protocol is another one."""
    reworded = replace(survey.question, words=f"{survey.question.words} Or not?")
    changes: list[dict[str, Any]] = [
        {"question": reworded}, {"version": survey.version + 1}, {"lifetime": 2 * (survey.lifetime or 0)},
    ]  # fmt: skip
    return [replace(survey, **change, text="").text for change in changes]


def _reports(data: bytes, example: dict[str, Any], below: Callable[[int], int]) -> list[dict[str, Any]]:
    """Return what is sent each time, without what is random and no draw of the protocol."""
    memory: dict[str, Any] = {}
    files = [text.encode() for text in example.get("files", ())] or [data]
    answer = example["answer"]
    found = [client.report(client.load(file), answer, memory, day, below) for day, file in enumerate(files)]
    for text in example.get("refused", ()):
        try:
            client.report(client.load(text.encode()), answer, memory, len(files), below)
        except client.Refused:
            continue
        raise InvalidArgument("a report was made for a survey that has changed", place="refused")
    return [{name: value for name, value in one.items() if name not in ("survey", "id")} for one in found]
