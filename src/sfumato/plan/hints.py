"""Hints: what to do instead, for every refusal. Whoever refuses knows best; what is here is for the rest."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import NoReturn

from sfumato.errors import QueryRefused
from sfumato.plan.tree import Span

__all__ = ["CLAUSES", "did_you_mean", "hints_for", "refuse"]

_BY_CODE = {
    "SF401": "one question: SELECT .. FROM .. WHERE .. GROUP BY ..",
    "SF402": "names are those of the tables and of the question: `.tables` in `sfumato shell` lists them",
    "SF403": "what can be called is listed in docs/queries.md, under what can be asked",
    "SF404": "ask for aggregates of rows, and do the rest to the noisy result: that is free",
    "SF405": "declare it with the column or the table, or say it in the question",
    "SF406": "each row must belong to one unit, and be matched with rows of that unit alone",
    "SF407": "one statement: SELECT .. or WITH .. SELECT ..",
}

CLAUSES = {
    "cluster": "ORDER BY sorts the noisy result",
    "columns": "name columns with AS in the SELECT list",
    "count": "an aggregate takes one column",
    "distribute": "ORDER BY sorts the noisy result",
    "escape": "LIKE takes a pattern without ESCAPE; CONTAINS(x, '50%') finds a percent sign",
    "expressions": "an aggregate takes one column",
    "hint": "engines need no hints here",
    "into": "an answer is returned, not stored: release.to_pandas(), release.to_json()",
    "db": "a column is named alone, or as table.column",
    "kind": "SELECT lists columns, and CAST takes DOUBLE, BIGINT, VARCHAR, BOOLEAN, DATE or TIMESTAMP",
    "laterals": "join the table, or write the expression itself",
    "locks": "a question changes nothing, and locks nothing",
    "on": "DISTINCT ON keeps one row of many: aggregate with MIN, MAX or MEDIAN instead",
    "pivots": "GROUP BY the columns, and pivot the noisy result in Python: it is free",
    "sample": "ask about all rows: noise does what a sample would do, and a sample must not depend on chance",
    "sort": "ORDER BY sorts the noisy result",
    "when": "a question reads one state of the data: open another file",
}
"""What to write instead of a clause, by the parser's name for it."""


def hints_for(code: str, hints: tuple[str, ...]) -> tuple[str, ...]:
    """Return the hints of a refusal, which has one at least.

    >>> hints_for("SF407", ())
    ('one statement: SELECT .. or WITH .. SELECT ..',)
    """
    return hints or tuple(hint for known, hint in _BY_CODE.items() if known == code)


def refuse(text: str, message: str, *hints: str, at: Span | None = None, code: str = "SF405") -> NoReturn:
    """Raise the refusal of a question, with a caret under `at` and what to do instead."""
    start, end = (None, None) if at is None else (at.start, at.end)
    raise QueryRefused(message, code=code, text=text, start=start, end=end, hints=hints_for(code, hints))


def did_you_mean(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """Return the hint that up to three known names look like this one, none if no name does.

    >>> did_you_mean("absolute", ["abs", "round"])
    ('did you mean `abs`?',)
    """
    near = difflib.get_close_matches(name.lower(), sorted(known), n=3, cutoff=0.5)
    return (f"did you mean {' or '.join(f'`{one}`' for one in near)}?",) if near else ()
