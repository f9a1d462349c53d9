"""What a table gives away through its quasi-identifiers: for its owner, and never a release."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from sfumato.anonymity.classes import Classes, Units, group
from sfumato.anonymity.columns import OWNER, Coding, read
from sfumato.core.arguments import exact
from sfumato.errors import InvalidArgument

__all__ = ["AnonymityMeasures", "Diversity", "RISK", "measure", "measured"]

RISK = 0.2
"""The chance of being singled out above which a row counts as at risk, unless said otherwise: one in five."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diversity:
    """What the classes give away about one sensitive column; each is the worst of all classes.

    `distinct_l` and `entropy_l` are diversities, `t` is closeness (of values in order if `ordered`),
    `alpha` the share of the commonest value, `beta` the likeness, `delta` the disclosure of those that
    occur. `homogeneous` is the share of rows in classes with one value: theirs is known without doubt.

    >>> import pyarrow as pa
    >>> people = pa.table({"age": [31, 31, 54, 54], "ill": ["flu", "cold", "flu", "flu"]})
    >>> found = measure(people, ["age"], sensitive="ill").diversity[0]
    >>> found.distinct_l, found.homogeneous
    (1, 0.5)
    """

    column: str
    ordered: bool
    distinct_l: int
    entropy_l: float
    t: float
    alpha: float
    beta: float
    delta: float
    homogeneous: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AnonymityMeasures:
    """How well rows hide among others with the same quasi-identifiers.

    Who looks for one person whom they know to be in the table (the prosecutor) finds the row with
    a chance of one in the size of its class: at most `highest_risk`. Who looks for everybody (the
    marketer) finds `average_risk` of the rows. `at_risk` is the share of rows whose chance is
    above `risk`. (The names are those of El Emam and Dankar 2008.)

    >>> import pyarrow as pa
    >>> people = pa.table({"age": [31, 31, 31, 54], "sex": ["f", "f", "f", "m"]})
    >>> found = measure(people, ["age", "sex"])
    >>> found.k, found.uniqueness, found.highest_risk
    (1, 0.25, 1.0)
    """

    quasi: tuple[str, ...]
    rows: int
    classes: int
    k: int
    largest: int
    unique: int
    risk: float
    at_risk: float
    diversity: tuple[Diversity, ...]
    sizes: tuple[tuple[int, int], ...]

    @property
    def uniqueness(self) -> float:
        """The share of rows that are alone in their class."""
        return self.unique / self.rows

    @property
    def highest_risk(self) -> float:
        """The chance that the row of somebody in the smallest class is found."""
        return 1 / self.k

    @property
    def average_risk(self) -> float:
        """The share of rows that are found if one is picked in every class."""
        return self.classes / self.rows

    def to_dict(self) -> dict[str, Any]:
        """Return everything, JSON-ready."""
        derived = {name: getattr(self, name) for name in ("uniqueness", "highest_risk", "average_risk")}
        return asdict(self) | derived | {"note": OWNER}

    def __str__(self) -> str:
        chance = f"up to {self.highest_risk:.2%}, on average {self.average_risk:.2%}"
        lines = [
            f"{self.rows:,} rows, told apart by {', '.join(self.quasi)}",
            f"  k = {self.k:,}: the smallest of {self.classes:,} classes; the largest has {self.largest:,}",
            f"  {self.uniqueness:.2%} of rows are unique",
            f"  the row of somebody known to be in the table is found with a chance of {chance}",
            f"  {self.at_risk:.2%} of rows are found with a chance above {self.risk:.0%}",
        ]
        for each in self.diversity:
            order = "values in order" if each.ordered else "values equally far apart"
            sure = f"known without doubt for {each.homogeneous:.1%} of rows"
            lines += [
                f"{each.column}, of somebody whose class is known",
                f"  l = {each.distinct_l} distinct values at least; entropy l = {each.entropy_l:.2f}",
                f"  t = {each.t:.3f} from the table at most, {order}",
                f"  the likeliest value is right with a chance of up to {each.alpha:.1%}; {sure}",
            ]
        return "\n".join([*lines, OWNER])


def measure(
    table: Any, quasi: Sequence[str], *, sensitive: str | Sequence[str] = (), risk: float = RISK
) -> AnonymityMeasures:
    """Measure a table: a path, an Arrow table, a pandas or polars frame.

    >>> import pyarrow as pa
    >>> people = pa.table({"age": [31, 31, 31, 54], "sex": ["f", "f", "f", "m"], "ill": [1, 2, 2, 2]})
    >>> found = measure(people, ["age", "sex"], sensitive="ill")
    >>> found.k, found.unique, found.average_risk, found.diversity[0].distinct_l
    (1, 1, 0.5, 1)
    """
    if not 0 < exact(risk, "risk") <= 1:
        raise InvalidArgument("a risk lies between 0 and 1", place="risk", hints=("0.2 is one in five",))
    coding = read(table, quasi, sensitive)
    number, many, _ = group([each.codes for each in coding.quasi], [each.size for each in coding.quasi])
    return measured(Classes.of(number, many, Units.rows(coding.rows), coding.sensitive), coding, risk)


def measured(classes: Classes, coding: Coding, risk: float = RISK) -> AnonymityMeasures:
    """Measure classes that are counted already."""
    sizes = classes.sizes
    kinds, many = np.unique(sizes, return_counts=True)
    return AnonymityMeasures(
        quasi=tuple(each.name for each in coding.quasi),
        rows=classes.rows,
        classes=len(classes),
        k=int(sizes.min()),
        largest=int(sizes.max()),
        unique=int((sizes == 1).sum()),
        risk=float(risk),
        at_risk=float(sizes[1 / sizes > risk].sum() / classes.rows),
        diversity=tuple(
            Diversity(
                column=tally.name,
                ordered=tally.ordered,
                distinct_l=int((values := tally.distinct()).min()),
                entropy_l=math.exp(tally.entropy().min()),
                t=float(tally.closeness().max()),
                alpha=float(tally.top_share().max()),
                beta=float(tally.likeness().max()),
                delta=float(tally.disclosure().max()),
                homogeneous=float(sizes[values == 1].sum() / classes.rows),
            )
            for tally in classes.tallies
        ),
        sizes=tuple(zip(kinds.tolist(), many.tolist(), strict=True)),
    )
