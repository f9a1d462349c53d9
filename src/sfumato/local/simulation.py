"""Simulated respondents, whose true answers are known: to try a survey out before anybody is asked.

Reports are made many at a time by the protocols themselves; `tests/local` holds them against the client,
which makes one at a time, draw by draw.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow

from sfumato.core.arguments import count, probability
from sfumato.core.entropy import random_words
from sfumato.errors import InvalidArgument
from sfumato.local import client
from sfumato.local.arrays import Flags
from sfumato.local.questions import NumberIn, SeveralOf, Text
from sfumato.local.reports import arrow_of
from sfumato.local.survey import Survey

__all__ = ["report_table", "simulated"]

_ID_WORDS = 2


def simulated(survey: Survey, shares: Mapping[str, float], people: int) -> pyarrow.Table:
    """Return the reports of invented people, on day 0, among whom each answer has the given share.

    Of a survey that takes several answers, each is held independently of the others; of any other the
    shares add up to one.
    """
    n, question = count(people, "people"), survey.question
    chances = {answer: float(probability(share, "shares")) for answer, share in shares.items()}
    several, head = isinstance(question, SeveralOf), client.load(survey.text.encode())["survey"]
    try:
        truths = [client.read_answer(head, [answer] if several else answer) for answer in chances]
    except client.Refused as refusal:
        raise InvalidArgument(
            f"a share is given for something that is no answer: {refusal}",
            place="shares",
            hints=("see the survey file",),
        ) from None
    if several:
        held, flags = np.array(truths)[:, 0], np.array([_chosen(share, n) for share in chances.values()])
        return report_table(survey, [held[flags[:, person]] for person in range(n)])
    if abs(sum(chances.values()) - 1) > 1e-9:
        raise InvalidArgument(
            "the shares do not add up to one", place="shares", hints=("give every answer that is held",)
        )
    if isinstance(question, Text):
        given = np.frombuffer(b"".join(truths), dtype=np.uint8).reshape(-1, question.length)
    else:
        given = np.array(truths, dtype=np.float64 if isinstance(question, NumberIn) else np.int64)
    # As nearly as whole people can be split by shares.
    steps = np.rint(np.cumsum(list(chances.values())) * n).astype(np.int64)
    return report_table(survey, given[np.repeat(np.arange(len(given)), np.diff(steps, prepend=0))])


def report_table(survey: Survey, answers: Any) -> pyarrow.Table:
    """Return one report for each of many answers, as the survey's collector reads them."""
    fields = survey.protocol.randomise(answers)
    n = len(next(iter(fields.values())))
    numbers = random_words(_ID_WORDS * n).view(np.uint8).reshape(n, 8 * _ID_WORDS)
    columns: dict[str, Any] = {
        "survey": pyarrow.array([survey.fingerprint] * n, pyarrow.string()),
        "id": arrow_of(numbers),
    }
    if survey.cap is not None:
        columns["day"] = np.zeros(n, dtype=np.int64)
    return pyarrow.table(columns | {name: arrow_of(values) for name, values in fields.items()})


def _chosen(share: float, people: int) -> Flags:
    """Choose a share of the people, at random: invented ones, so that floats will do."""
    order = np.argsort(random_words(people))
    return np.asarray(order < round(share * people))
