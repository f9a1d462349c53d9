"""Resources: what questions may take of the machine, all of them at a time and one by itself."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sfumato.core.arguments import count, positive, upper_float
from sfumato.core.steps import MOST_STEPS
from sfumato.errors import InvalidArgument

__all__ = ["MOST_SECONDS", "Resources", "large_opening", "late_opening", "memory_bytes"]

MOST_SECONDS = 2_000_000
"""How long a statement may take at most: PostgreSQL counts milliseconds in 31 bits."""

_MEMORY = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)\s*(bytes|[kKMGT]i?B)")
_POWERS = {"k": 1, "K": 1, "M": 2, "G": 3, "T": 4}


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """`memory` is for all questions about the data that run at a time, `question_memory` for one of them.

    By default the memory is four fifths of the machine's, and a question declares all of it: then questions
    of one process are answered one after the other. `seconds` is how long one statement may take, an hour by
    default, and how long a question waits for its memory. `steps` is how much work pricing one question may
    take (`core.steps`).
    """

    memory: str | None = None
    question_memory: str | None = None
    seconds: float = 3600.0
    steps: int = MOST_STEPS

    def __post_init__(self) -> None:
        for name in ("memory", "question_memory"):
            if getattr(self, name) is not None:
                memory_bytes(getattr(self, name), name)
        seconds = positive(self.seconds, "seconds")
        if seconds > MOST_SECONDS:
            raise InvalidArgument(
                f"seconds must be at most {MOST_SECONDS:,}, which is 23 days",
                place="seconds",
                hints=("3600 is an hour; a question that takes longer is ended, and stays charged",),
            )
        count(self.steps, "steps")
        object.__setattr__(self, "seconds", upper_float(seconds))


def memory_bytes(text: object, place: str = "memory") -> int:
    """Return an amount of memory in bytes.

    >>> memory_bytes("1.5GiB"), memory_bytes("8GB")
    (1610612736, 8000000000)
    """
    found = _MEMORY.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise InvalidArgument(
            f"{place} must be a number with a unit", place=place, hints=('such as "500MB", "8GB" or "8GiB"',)
        )
    amount, unit = float(found[1]), found[2]
    if unit == "bytes":
        return int(amount)
    return max(1, int(amount * (1024 if "i" in unit else 1000) ** _POWERS[unit[0]]))


def late_opening() -> InvalidArgument:
    """Return the refusal of tables that were not opened in time.

    >>> late_opening().place
    'seconds'
    """
    hints = ("give more time: 3600 is an hour; nothing was charged",)
    return InvalidArgument("opening the tables took longer than `seconds`", place="seconds", hints=hints)


def large_opening() -> InvalidArgument:
    """Return the refusal of tables that the memory has no room for.

    >>> large_opening().place
    'memory'
    """
    hints = ("give more memory, or a Parquet file, which stays where it is; nothing was charged",)
    return InvalidArgument("opening the tables took more than `memory`", place="memory", hints=hints)
