"""A request: the private questions of a statement, its free post-processing, and its options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Literal, TypedDict

from sfumato.catalog.table import CAPS, cap
from sfumato.core.arguments import Number, budget_quantity, delta_quantity, positive
from sfumato.core.noise_law import noise_laws
from sfumato.errors import InvalidArgument
from sfumato.plan.buckets import SoughtBounds
from sfumato.plan.hints import did_you_mean
from sfumato.plan.tree import Query

__all__ = [
    "DEFAULT_OPTIONS",
    "NamedQuery",
    "Options",
    "QuestionOptions",
    "Request",
    "reported_column",
    "with_options",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a question says about its own treatment; None leaves it to the catalog and the caller.

    max_groups: groups one unit may be in. max_rows: the weight, in rows, of a unit in each group.
    max_rows_total: the weight of a unit in all of its groups together.
    max_distinct: values one unit brings to each COUNT(DISTINCT ..) of a group. min_units: groups
    whose noisy number of units is below this are not shown. keys: "declared" insists that all
    groups are known in advance, "selected" that they pass private selection. delta: what selecting
    keys may use of the budget's delta for keys. others: one more row for everything that is in no
    group that is shown. non_negative: counts below zero are shown as zero. intervals: False leaves out
    what nothing but an interval needs; of a lone quantile only, all others have theirs for free. losses:
    True measures what caps and bounds take off the answer, for a twentieth of the cost. consistent: answers
    of all grouping sets add up; then level_shares are the shares of the cost of nested sets, the coarsest
    first, and non_negative makes counts whole numbers from zero on that add up.
    """

    epsilon: Fraction | None = None
    delta: Fraction | None = None
    max_groups: int | None = None
    max_rows: int | None = None
    max_rows_total: int | None = None
    max_distinct: int | None = None
    min_units: int | None = None
    noise: str | None = None
    keys: Literal["declared", "selected"] | None = None
    others: bool = False
    weights: Mapping[str, Fraction] = field(default_factory=dict, hash=False)
    non_negative: bool = False
    intervals: bool = True
    losses: bool = False
    consistent: bool = False
    level_shares: tuple[Fraction, ...] = ()

    def __post_init__(self) -> None:
        if self.epsilon is not None:
            object.__setattr__(self, "epsilon", budget_quantity(self.epsilon, "epsilon"))
        if self.delta is not None:
            object.__setattr__(self, "delta", delta_quantity(self.delta))
        for name in (*CAPS, "max_distinct", "min_units"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, cap(getattr(self, name), name))
        noise_laws(self.noise)  # refuses an unknown name
        if self.keys not in (None, "declared", "selected"):
            hint = "leave it out: declared groups are shown, others are found privately"
            message = f"keys must be declared or selected, got {self.keys!r}"
            raise InvalidArgument(message, place="keys", hints=(hint,))
        for name in ("others", "non_negative", "intervals", "losses", "consistent"):
            if not isinstance(getattr(self, name), bool):
                raise InvalidArgument(f"{name} must be True or False", place=name, hints=(f"{name}=True",))
        if not isinstance(self.weights, Mapping) or not all(isinstance(name, str) for name in self.weights):
            message = "weights say of columns, by name, how much they matter"
            raise InvalidArgument(message, place="weights", hints=("weights={'n': 1, 'mean': 3}",))
        weights = {name: positive(weight, f"weights[{name!r}]") for name, weight in self.weights.items()}
        object.__setattr__(self, "weights", weights)
        given: Any = self.level_shares
        if not isinstance(given, list | tuple):
            message = "level_shares are numbers, one for each level, the coarsest first"
            raise InvalidArgument(message, place="level_shares", hints=("level_shares=(0.02, 0.08, 0.9)",))
        shares = tuple(positive(share, "level_shares") for share in given)
        object.__setattr__(self, "level_shares", shares)
        if self.level_shares and not self.consistent:
            hint = "consistent=True"
            raise InvalidArgument(
                "level_shares are for consistent answers", place="level_shares", hints=(hint,)
            )


class QuestionOptions(TypedDict, total=False):
    """`Options` but for epsilon, as a caller gives them: what is None stays as the statement says."""

    delta: Number | None
    max_groups: int | None
    max_rows: int | None
    max_rows_total: int | None
    max_distinct: int | None
    min_units: int | None
    noise: str | None
    keys: Literal["declared", "selected"] | None
    others: bool | None
    weights: Mapping[str, Number] | None
    non_negative: bool | None
    intervals: bool | None
    losses: bool | None
    consistent: bool | None
    level_shares: Sequence[Number] | None


DEFAULT_OPTIONS = Options()
"""What holds of a question that says nothing about its treatment."""


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
