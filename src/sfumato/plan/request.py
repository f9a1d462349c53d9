"""A request: the private questions of a statement, its free post-processing, and its options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sfumato.errors import InvalidArgument
from sfumato.plan.buckets import SoughtBounds
from sfumato.plan.hints import did_you_mean
from sfumato.plan.options import Options
from sfumato.plan.tree import Query

__all__ = ["NamedQuery", "Request", "reported_column", "with_options"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedQuery:
    """A private question, and the name of the noisy table that answers it.

    The rest is what GoogleSQL's clause says of it. `options`: its own, where a statement has several
    clauses. `fills_in`: limits that are neither given nor declared are found privately, or are those of
    GoogleSQL. `reported`: aggregates with the format of their report. `unknown`: those whose limits could not
    be told from noise; their values are NULL. `note`: what is told before it is charged, and with the answer.
    """

    name: str
    query: Query
    options: Options | None = None
    fills_in: bool = False
    reported: tuple[tuple[str, str], ...] = ()
    unknown: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A statement, taken apart.

    `postprocessing` is DuckDB SQL over the noisy tables, each under the name of its query and with the
    columns of its keys and aggregates, and over the public tables listed in `public`; it gives
    the answer the columns, order and arithmetic that were asked for. None: the noisy table of
    the only query is the answer. `notes` are told with the answer; they know no more than the plan.
    Without a private question it is about public tables alone, and free.
    `sought`: bounds are to be read off noisy buckets; post-processing follows once the noise is known.
    """

    text: str
    queries: tuple[NamedQuery, ...]
    postprocessing: str | None
    options: Options = field(default_factory=Options)
    public: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    sought: SoughtBounds | None = None

    @property
    def query_notes(self) -> tuple[str, ...]:
        """What is told of single questions, before they are charged and with the answer."""
        return tuple(dict.fromkeys(named.note for named in self.queries if named.note))


def reported_column(aggregate: str, report: str) -> str:
    """Return the column of a noisy table that holds an aggregate with its interval, as one value."""
    return f"{aggregate}_{report}"


def with_options(request: Request, options: Mapping[str, Any]) -> Request:
    """Return a request with other options, by their names; those that are None or not given stay."""
    known = tuple(Options.__dataclass_fields__)
    if unknown := [name for name in options if name not in known]:
        hints = did_you_mean(unknown[0], known) or (f"it has {', '.join(known)}",)
        raise InvalidArgument(f"a question has no option `{unknown[0]}`", place=unknown[0], hints=hints)
    given = {name: value for name, value in options.items() if value is not None}
    queries = tuple(
        one if one.options is None else replace(one, options=replace(one.options, **given))
        for one in request.queries
    )
    return replace(request, queries=queries, options=replace(request.options, **given))
