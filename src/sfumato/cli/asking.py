"""From what was typed to a question with its price: free, and reads no data."""

from __future__ import annotations

import os
import sys
from typing import Any

from sfumato.cli.options import Asking
from sfumato.cli.statements import blank, split
from sfumato.errors import InvalidArgument
from sfumato.session import Database, Question

__all__ = ["asked", "question_text"]

_LONGEST = 1_000_000


def asked(asking: Asking, database: Database) -> Question:
    """Return the question, at the epsilon that was given or follows from the error."""
    if asking.epsilon is not None and asking.error is not None:
        raise InvalidArgument("give epsilon or an error, not both", place="--error")
    caps = {"max_groups": asking.max_groups, "max_rows": asking.max_rows}
    options: dict[str, Any] = {name: value for name, value in caps.items() if value is not None}
    if asking.losses:
        options["losses"] = True
    if asking.selected:
        options["keys"] = "selected"
    question = database.sql(question_text(asking.question), epsilon=asking.epsilon, **options)
    if asking.error is not None:
        return question.within(asking.error, size=asking.size)
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
