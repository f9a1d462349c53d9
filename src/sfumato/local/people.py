"""People to compare models of trust on: the owner's own column, read as it is, or invented ones.

This is the one file of the local model that reads a table as it is (`backends.owned`). A survey never does: a
collector sees reports alone. What is computed from here is for the table's owner, never a release.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sfumato.core.arguments import Number, count
from sfumato.core.entropy import random_words
from sfumato.core.uniform import uniform_below
from sfumato.errors import InvalidArgument
from sfumato.local.arrays import Array
from sfumato.local.rounding import bounds_of

__all__ = ["People", "invent_ages", "invent_answers", "read_answers", "read_numbers"]


_OLDEST = 99
_MOST_ANSWERS = 1000
_KINDS = ("int", "uint", "float", "double", "half", "decimal")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class People:
    """One value for each person: a number between bounds, or the place of an answer in a list."""

    values: Array
    what: str
    """What the values are, for a reader."""
    dropped: int = 0
    """How many were left out because they have no value, or none of the answers."""
    clamped: int = 0
    """How many numbers lay outside their bounds and were moved to the nearer one."""
    invented: bool = False

    def __len__(self) -> int:
        return len(self.values)

    def shuffled(self, most: int | None = None) -> People:
        """Return the people, or a number of them, in random order: every beginning is a random sample."""
        order = np.argsort(random_words(len(self)))
        return replace(self, values=self.values[order[: len(self) if most is None else most]])


def read_numbers(origin: Any, column: str, low: Number, high: Number) -> People:
    """Read an owner's column of numbers; NULL and NaN are left out, what is out of bounds is clamped."""
    first, last = (float(bound) for bound in bounds_of(low, high))
    found = _read(origin, column)
    if not str(found.type).startswith(_KINDS):
        raise InvalidArgument(
            f"column `{column}` is not of numbers",
            place="column",
            hints=("for a column of answers, name them: answers=('yes', 'no'), or --answers yes,no",),
        )
    import pyarrow as pa

    given = found.drop_null().cast(pa.float64(), safe=False).to_numpy()
    numbers = given[~np.isnan(given)]
    clamped = np.clip(numbers, first, last)
    return _some(
        People(
            values=clamped,
            what=f"{column}, a number from {first:g} to {last:g}",
            dropped=len(found) - len(numbers),
            clamped=int(np.count_nonzero(clamped != numbers)),
        ),
        column,
    )


def read_answers(origin: Any, column: str, answers: Sequence[str]) -> People:
    """Read an owner's column of answers, as places in a list; all that is not in it is left out."""
    import pyarrow as pa
    import pyarrow.compute as pc

    known = _check_list(answers)
    found = _read(origin, column)
    texts = found.cast(pa.string())
    places = pc.index_in(texts, value_set=pa.array(known)).drop_null().to_numpy().astype(np.int64)
    return _some(
        People(values=places, what=f"{column}, {_listed(known)}", dropped=len(found) - len(places)), column
    )


def invent_ages(people: int) -> People:
    """Invent ages of 0 to 99, more of them in the middle."""
    n = count(people, "people")
    ages = uniform_below(60, size=n) + uniform_below(_OLDEST - 58, size=n)
    return People(values=ages.astype(np.float64), what="age, a number from 0 to 110", invented=True)


def invent_answers(people: int, answers: Sequence[str]) -> People:
    """Invent answers: the first is the likeliest, and so on, in the ratio k to k - 1 to .. to 1."""
    known = _check_list(answers)
    k, n = len(known), count(people, "people")
    tickets = uniform_below(k * (k + 1) // 2, size=n)
    ends = np.cumsum(np.arange(k, 0, -1))
    return People(
        values=np.searchsorted(ends, tickets, side="right").astype(np.int64),
        what=f"answer, {_listed(known)}",
        invented=True,
    )


def _check_list(answers: Sequence[str]) -> tuple[str, ...]:
    """Return a list of at least two different answers."""
    known = tuple(answers)
    if not all(isinstance(answer, str) and answer for answer in known):
        raise InvalidArgument("answers are texts", place="answers", hints=("answers=('yes', 'no')",))
    if len(set(known)) != len(known) or not 2 <= len(known) <= _MOST_ANSWERS:
        raise InvalidArgument(
            f"there must be between 2 and {_MOST_ANSWERS:,} different answers",
            place="answers",
            hints=("yes,no is enough",),
        )
    return known


def _read(origin: Any, column: str) -> Any:
    from sfumato.backends.owned import read_owned

    return read_owned(origin, [column]).column(column).combine_chunks()


def _some(people: People, column: str) -> People:
    if len(people):
        return people
    raise InvalidArgument(
        f"column `{column}` has no value to compare with",
        place="column",
        hints=("NULL and NaN are left out, and answers that are not in the list",),
    )


def _listed(answers: Sequence[str]) -> str:
    return f"one of {', '.join(answers)}" if len(answers) <= 6 else f"one of {len(answers):,} answers"
