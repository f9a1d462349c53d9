"""From what was typed to a question with its price: free, and reads no data."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import Any

from sfumato.cli.statements import blank, split
from sfumato.errors import InvalidArgument
from sfumato.session import Database, Question

__all__ = ["Asking", "question_text"]

_LONGEST = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """A question as it was typed, with the options that came with it."""

    question: str
    project: str
    epsilon: float | None = None
    error: float | None = None
    size: float | None = None
    analyst: str | None = None
    max_groups: int | None = None
    max_rows: int | None = None
    losses: bool = False
    selected: bool = False

    def asked(self, database: Database) -> Question:
        """Return the question, at the epsilon that was given or follows from the error."""
        if self.epsilon is not None and self.error is not None:
            raise InvalidArgument("give epsilon or an error, not both", place="--error")
        caps = {"max_groups": self.max_groups, "max_rows": self.max_rows}
        options: dict[str, Any] = {name: value for name, value in caps.items() if value is not None}
        if self.losses:
            options["losses"] = True
        if self.selected:
            options["keys"] = "selected"
        question = database.sql(question_text(self.question), epsilon=self.epsilon, **options)
        if self.error is not None:
            return question.within(self.error, size=self.size)
        if question.epsilon is None:
            raise InvalidArgument(
                "a question needs a price",
                place="--epsilon",
                hints=("--epsilon 0.5 says what it may give away, --error 40 how far off it may be",),
            )
        return question


def question_text(given: str) -> str:
    """Return SQL: what was given, the contents of the file it names, or of standard input for `-`."""
    if given == "-":
        text = sys.stdin.read(_LONGEST + 1)
    elif os.path.isfile(given) or given.lower().endswith(".sql"):
        try:
            with open(given, encoding="utf-8") as file:
                text = file.read(_LONGEST + 1)
        except (OSError, UnicodeDecodeError):
            raise InvalidArgument(
                "the file with the question cannot be read", place=given, hints=("give SQL, a file or -",)
            ) from None
    else:
        text = given
    whole, rest = split(text)
    text = whole[0] if len(whole) == 1 and blank(rest) else text.strip()  # several: the parser refuses them
    if blank(text):
        raise InvalidArgument("the question is empty", place="question", hints=("give SQL, a file or -",))
    return text
