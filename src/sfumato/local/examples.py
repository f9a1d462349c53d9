"""Worked examples for ports: an answer, the draws that were made, and the reports they lead to.

Whoever rewrites the client elsewhere feeds the draws to their own version, in this order and with these
bounds, and must get the same fields: then every chance is the same, too.

A survey that is repeated is answered many times, with one memory: `times` says which of the `files` is asked,
and has the answer and the day. The first file is the published one. The second has another comment: what was
drawn must come again. The others have other names, so they are other surveys and draw anew. The cap of the
last one is a single report. Then each file of `refused` must be refused with this memory. Its question,
version or promise is another one, and what was drawn was no answer to it.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from sfumato.core.arguments import count
from sfumato.errors import InvalidArgument
from sfumato.local import client
from sfumato.local.questions import NumberIn, OneAnswer, SeveralOf, YesNo
from sfumato.local.survey import Survey

__all__ = ["examples", "replayed"]


def examples(data: bytes, answers: Sequence[Any], times: int = 4) -> Iterator[dict[str, Any]]:
    """Yield examples for each answer of a survey file: fresh draws, as `[bound, drawn]`, and the reports."""
    survey = Survey.parse(data.decode())
    files, refused = ([], []) if survey.cap is None else (_files(survey), _changed(survey))
    for answer in answers:
        repeated = {"files": files, "times": _times(survey, answer), "refused": refused} if files else {}
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
    once = replace(survey, name=f"{survey.name[:180]}, once", cap=1, lifetime=None, text="")
    return [survey.text, f"{survey.text}\n# another comment\n", renamed.text, once.text]


def _times(survey: Survey, answer: Any) -> list[dict[str, Any]]:
    """Return the file, answer and day of each time: two answers, over some periods, to each of the files."""
    other, period = _other(survey, answer), survey.every or 1
    told = [(answer, 0), (other, period - 1), (other, period), (answer, 2 * period), (answer, 3 * period - 1)]
    return [
        {"file": number, "answer": one, "day": day}
        for number in range(len(_files(survey)))
        for one, day in told
    ]


def _other(survey: Survey, answer: Any) -> Any:
    """Return another answer to a question, where there is one."""
    choices: tuple[Any, Any]
    match survey.question:
        case SeveralOf(answers=names):
            choices = [], [*names[:1]] or ["0"]
        case YesNo(answers=names) | OneAnswer(answers=names):
            choices = (names[0], names[-1]) if names else ("0", str(survey.question.size - 1))
        case NumberIn(low=low, high=high):
            choices = str(low), str(high)
        case _:
            choices = "a", "b"
    question = client.load(survey.text.encode())["survey"]
    place, first = (client.read_answer(question, one) for one in (answer, choices[0]))
    return choices[place == first]


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
    files = [client.load(text.encode()) for text in example.get("files", [data.decode()])]
    times = example.get("times", [{"file": 0, "answer": example["answer"], "day": 0}])
    found = [client.report(files[at["file"]], at["answer"], memory, at["day"], below) for at in times]
    for text in example.get("refused", ()):
        try:
            client.report(client.load(text.encode()), example["answer"], memory, 0, below)
        except client.Refused:
            continue
        raise InvalidArgument("a report was made for a survey that has changed", place="refused")
    return [{name: value for name, value in one.items() if name not in ("survey", "id")} for one in found]
