"""The plan: what was asked, as one small frozen tree. SQL and Python calls build the same one.

    Query                       one private question: groups and aggregates over people's rows
    ├── source: Relation        rows; each belongs to exactly one unit (or is public)
    │     Scan, Listed, Filter, Projection, Join, Union, PerUnit, SemiJoin, PublicChoice
    ├── keys: Expression        what rows are grouped by
    └── aggregates: Aggregate   what is counted, summed, ranked
          Expression            row-wise: Column, Literal, Call, Case, Cast

The unit is not a column of the tree: every relation over a private table carries it unseen,
so that no expression can read or rewrite it. A node knows its kind of value and nothing of
any engine; positions point into the text that was asked, for errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, get_args

from sfumato.aggregates.registry import Function
from sfumato.aggregates.sample_and_aggregate import BlockDesign
from sfumato.catalog.kind import Kind, Value

__all__ = [
    "Aggregate",
    "Call",
    "Case",
    "Cast",
    "ColumnRef",
    "Expression",
    "Filter",
    "GROUPING_SET",
    "GroupChoice",
    "Join",
    "Listed",
    "Literal",
    "Node",
    "PerUnit",
    "Projection",
    "PublicChoice",
    "Query",
    "Relation",
    "Scan",
    "SemiJoin",
    "Span",
    "Union",
    "parts",
    "relations",
]


GROUPING_SET = "grouping_set"
"""The column of a noisy table that says in which grouping set a row is, where there are several."""


@dataclass(frozen=True, slots=True)
class Span:
    """Where in the question something stands: character offsets, the end excluded."""

    start: int
    end: int


# -- row-wise expressions -------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnRef:
    """A column of the relation below."""

    name: str
    kind: Kind
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Literal:
    """A constant that the question itself contains."""

    value: Value
    kind: Kind | None  # None: NULL
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A function or operator of the allow-list, by its name there."""

    function: str
    arguments: tuple[Expression, ...]
    kind: Kind
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """The first branch whose condition holds."""

    branches: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression
    kind: Kind
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cast:
    """A conversion; what cannot be converted becomes NULL, and so does what is not between `limits`."""

    operand: Expression
    kind: Kind
    limits: tuple[int, int] | None = None  # of a type of whole numbers that is narrower than its kind
    span: Span | None = field(default=None, compare=False)


Expression = ColumnRef | Literal | Call | Case | Cast


# -- relations ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """A table of the catalog, under the alias it goes by here; columns are named alias.column."""

    table: str
    alias: str
    columns: tuple[ColumnRef, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """Rows that are written down, and are public: by the owner as lists of keys, or by the question."""

    columns: tuple[ColumnRef, ...]
    rows: tuple[tuple[Value, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """The rows for which a condition is true."""

    source: Relation
    condition: Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection:
    """One output column per expression; the unit is carried along unseen."""

    source: Relation
    columns: tuple[tuple[str, Expression], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """Rows of the left side beside matching rows of the right side.

    `on_unit`: both sides are private, and rows match only within one unit. Otherwise the right
    side is public. `outer`: rows of the left side without a match stay, with NULLs. `keeps_right`: so do
    rows of the right side; `unit_safety` refuses that.
    """

    left: Relation
    right: Relation
    condition: Expression | None
    on_unit: bool
    outer: bool
    keeps_right: bool = False
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Union:
    """All rows of several relations of one unit, with the same columns."""

    sources: tuple[Relation, ...]
    spans: tuple[Span | None, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class PerUnit:
    """One row per unit and inner keys, with exact aggregates of that unit's own rows.

    `public`: the rows are public, and there is one row per keys; without keys, one row in all.
    """

    source: Relation
    keys: tuple[tuple[str, Expression], ...]
    aggregates: tuple[tuple[str, Aggregate], ...]
    public: bool = False
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SemiJoin:
    """The rows for which another relation has a matching row; `negated`: for which it has none.

    `on_unit`: the other relation is private, and only rows of the same unit match. Otherwise it is
    public. Either way whether a row stays is a function of that row, of its own unit's rows and of
    public ones: a unit more or less changes nothing for any other, also where rows stay for want
    of a match. No row of either side lacks a unit, so none is left over that matches nobody.
    `unless`: rows for which this condition is true stay anyway.
    """

    source: Relation
    other: Relation
    condition: Expression | None
    on_unit: bool
    negated: bool = False
    unless: Expression | None = None
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicChoice:
    """Some rows of a public relation: each different row once, or the first ones in an order, or both.

    `order` is of (column, descending, NULLs first). Rows that are equal in it come in the order of all
    columns, so that which rows are chosen is a function of the public table alone.
    """

    source: Relation
    distinct: bool = False
    order: tuple[tuple[ColumnRef, bool, bool], ...] = ()
    limit: int | None = None
    offset: int = 0
    span: Span | None = field(default=None, compare=False)


Relation = Scan | Listed | Filter | Projection | Join | Union | PerUnit | SemiJoin | PublicChoice


# -- aggregates and the question ------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate:
    """One aggregate of the question (or, inside `PerUnit`, of one unit's rows)."""

    function: Function
    arguments: tuple[Expression, ...] = ()
    where: Expression | None = None
    quantiles: tuple[float, ...] = ()
    several: bool = False  # QUANTILE(x, [..]): the answer is a list
    bounds_per_group: tuple[float, float] | None = None  # clamp one unit's sum in a group
    bounds_per_row: tuple[float, float] | None = None
    blocks: BlockDesign | None = None  # SAMPLE_AND_AGGREGATE: of which statistic, and how
    share: Fraction | None = None  # of the question's epsilon, where it is said
    span: Span | None = field(default=None, compare=False)

    @property
    def kind(self) -> Kind | None:
        """The kind of the value, None for a list."""
        first = self.arguments[0].kind if self.arguments else None
        return None if self.several else self.function.record.kind(first)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupChoice:
    """Which groups are shown: of those that agree in the keys at the places `per`, one is chosen.

    It is the one whose only aggregate is the `largest`, or the smallest.
    """

    per: tuple[int, ...] = ()
    largest: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """One private question; its noisy answer is a table with the columns of `keys` and `aggregates`.

    Grouping sets are tuples of key positions; plain GROUP BY has one that holds them all. `keys_share` is
    the share of its epsilon that selects groups, where it is said. With a `choice` the answer shows chosen
    groups, and no numbers.
    """

    source: Relation
    keys: tuple[tuple[str, Expression], ...]
    grouping_sets: tuple[tuple[int, ...], ...]
    aggregates: tuple[tuple[str, Aggregate], ...]
    text: str
    keys_share: Fraction | None = None
    choice: GroupChoice | None = None


Node = Relation | Expression | Aggregate
_NODES = frozenset(get_args(Node))


def parts(node: Node) -> list[Node]:
    """Return what lies directly below a node; a table and listed rows have nothing below them."""
    found: list[Node] = []
    if not isinstance(node, (Scan, Listed)):
        _collect([getattr(node, name) for name in node.__slots__], found)
    return found


def relations(relation: Relation) -> Iterator[Relation]:
    """Yield a relation and all below it, also those that only decide which rows stay."""
    below = [relation]
    while below:
        yield (one := below.pop())
        below += [part for part in reversed(parts(one)) if isinstance(part, Relation)]


def _collect(values: Iterable[Any], found: list[Node]) -> None:
    for value in values:
        if type(value) in _NODES:
            found.append(value)
        elif type(value) is tuple:
            _collect(value, found)
