"""Questions from Python calls: `db.table("people").where(..).group_by(..).agg(..)` is a question.

    db.table("visits").where(sf.col("cost") > 50).group_by("region").agg(n=sf.count(), age=sf.avg("age"))

is the question that `db.sql` makes of

    SELECT region, COUNT(*) AS n, AVG(age) AS age FROM visits WHERE cost > 50 GROUP BY region

and is asked like it: `.ask(epsilon=0.5)` shows the price, `.release(epsilon=0.5)` spends. Tables are values:
each call returns another, and nothing is read. What the calls mean is said by `plan.builder`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from sfumato.core.arguments import Number
from sfumato.errors import InvalidArgument
from sfumato.plan.builder import Frame, Grouped
from sfumato.plan.request import Request
from sfumato.plan.summaries import Summary
from sfumato.plan.values import Val

if TYPE_CHECKING:
    from sfumato.release import Release

__all__ = ["AskFunction", "Asked", "Groups", "PricedQuestion", "Rows"]


class PricedQuestion(Protocol):
    """A question with its price tag: `sfumato.Question`."""

    def explain(self, *, size: float | None = None) -> str:
        """Explain the plan, the noise, the cost and the error. Free."""
        ...

    def release(
        self,
        *,
        error: Number | Mapping[str, float] | None = None,
        size: float | None = None,
        key: str | None = None,
    ) -> Release:
        """Spend."""
        ...


class AskFunction(Protocol):
    """How a database asks: `Database.ask`."""

    def __call__(self, request: Request, *, epsilon: Number | None = None, **options: Any) -> PricedQuestion:
        """Return the question of a request."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question without a price: give it an epsilon, or the error you can live with."""

    request: Request
    _ask: AskFunction

    def ask(self, *, epsilon: Number | None = None, **options: Any) -> PricedQuestion:
        """Return the question with its price. Free; takes what `Database.sql` takes."""
        return self._ask(self.request, epsilon=epsilon, **options)

    def release(
        self,
        *,
        epsilon: Number | None = None,
        error: Number | Mapping[str, float] | None = None,
        size: float | None = None,
        key: str | None = None,
        **options: Any,
    ) -> Release:
        """Spend at once: what `ask(epsilon=..).release(..)` does."""
        return self.ask(epsilon=epsilon, **options).release(error=error, size=size, key=key)

    def __repr__(self) -> str:
        return "<question: .ask(epsilon=0.5) shows its price, .release(epsilon=0.5) spends>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups:
    """Rows in groups."""

    grouped: Grouped
    _ask: AskFunction

    def agg(self, **aggregates: Summary) -> Asked:
        """Return the question for aggregates of each group, under names: `agg(n=sf.count())`."""
        return Asked(request=self.grouped.agg(**aggregates), _ask=self._ask)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Rows of a table that can be asked about."""

    frame: Frame
    _ask: AskFunction

    def where(self, *conditions: Val) -> Rows:
        """Return the rows for which all conditions hold."""
        return self._with(self.frame.where(*conditions))

    def select(self, *names: str, alias: str = "subquery", **columns: Any) -> Rows:
        """Return columns by name, and new ones from expressions; the unit comes along unseen."""
        return self._with(self.frame.select(*names, alias=alias, **columns))

    def join(
        self,
        other: Rows,
        on: Val | None = None,
        *,
        unit: bool = False,
        how: str = "inner",
    ) -> Rows:
        """Return rows beside matching rows: of a public table, or of the same unit with `unit=True`."""
        return self._with(self.frame.join(_frame(other), on, unit=unit, how=how))

    def exists(self, other: Rows, on: Val | None = None, *, unit: bool = False) -> Rows:
        """Return the rows for which another table has a matching row."""
        return self._with(self.frame.exists(_frame(other), on, unit=unit))

    def not_exists(self, other: Rows, on: Val | None = None, *, unit: bool = False) -> Rows:
        """Return the rows for which another table has no matching row."""
        return self._with(self.frame.not_exists(_frame(other), on, unit=unit))

    def union_all(self, *others: Rows, alias: str = "subquery") -> Rows:
        """Return these rows and those of other tables of the same unit; columns go by their places."""
        return self._with(self.frame.union_all(*map(_frame, others), alias=alias))

    def per_unit(self, *keys: str, alias: str = "subquery", **aggregates: Summary) -> Rows:
        """Return one row per unit and keys, with exact aggregates of the unit's own rows."""
        return self._with(self.frame.per_unit(*keys, alias=alias, **aggregates))

    def group_by(self, *keys: str | Val, **named: Val) -> Groups:
        """Return groups by columns, and by expressions under names."""
        return Groups(grouped=self.frame.group_by(*keys, **named), _ask=self._ask)

    def rollup(self, *keys: str | Val, **named: Val) -> Groups:
        """Return groups by all keys, by all but the last, and so on, and by none."""
        return Groups(grouped=self.frame.rollup(*keys, **named), _ask=self._ask)

    def cube(self, *keys: str | Val, **named: Val) -> Groups:
        """Return groups by every choice of keys."""
        return Groups(grouped=self.frame.cube(*keys, **named), _ask=self._ask)

    def grouping_sets(self, *sets: Sequence[str], **named: Val) -> Groups:
        """Return groups by each of several lists of keys: `grouping_sets(["region", "sex"], [])`."""
        return Groups(grouped=self.frame.grouping_sets(*sets, **named), _ask=self._ask)

    def agg(self, **aggregates: Summary) -> Asked:
        """Return the question for aggregates of all rows, under names: `agg(n=sf.count())`."""
        return Asked(request=self.frame.agg(**aggregates), _ask=self._ask)

    def _with(self, frame: Frame) -> Rows:
        return Rows(frame=frame, _ask=self._ask)


def _frame(other: object) -> Frame:
    if not isinstance(other, Rows):
        raise InvalidArgument("another table is wanted here", place="other", hints=("db.table('places')",))
    return other.frame
