"""Private rows that models are fitted to: which columns are read, whose rows they are, and their price."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sfumato.analysis.join_fanout import refuse_copies
from sfumato.backends import Exact, UnitRows
from sfumato.core.accountant import PrivacyBudget
from sfumato.core.rules import PureRule
from sfumato.errors import Unsupported
from sfumato.learn.features import ModelColumn, session_table
from sfumato.pipeline import Priced, Tell, parts_of_request, silent
from sfumato.plan.conditions import with_join_conditions
from sfumato.plan.request import Request
from sfumato.plan.summaries import count
from sfumato.plan.tree import Projection
from sfumato.plan.unit_safety import check_units
from sfumato.plan.values import col

if TYPE_CHECKING:
    from sfumato.learn.additive_model import AdditiveModel
    from sfumato.learn.models import LinearModel
    from sfumato.session.database import Database

__all__ = [
    "MOST_TRAININGS",
    "PricedCandidate",
    "PricedRows",
    "TrainingRows",
    "database_of",
    "gaussian_budget",
    "training_rows",
]

MOST_TRAININGS = 100
"""How many trainings a choice or a sweep may price: pricing is free, and each takes milliseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRows:
    """The private rows that a training reads: a request that was checked, and the columns it reads."""

    database: Database
    request: Request
    unit: str

    @property
    def relation(self) -> Projection:
        """What the engine reads: a column of numbers for each feature, and one for the label."""
        source = self.request.queries[0].query.source
        assert isinstance(source, Projection)
        return source

    @property
    def parts(self) -> frozenset[str] | None:
        """The parts of the unit's partition that the rows are about."""
        return parts_of_request(self.request, self.database.catalog)


class PricedRows(Priced):
    """What is priced about private rows: they say who is asked about, and in which parts."""

    rows: TrainingRows

    @cached_property
    def request(self) -> Request:
        """The rows that are read."""
        return self.rows.request

    @cached_property
    def unit(self) -> str:
        """Whose rows they are."""
        return self.rows.unit

    @cached_property
    def parts(self) -> frozenset[str] | None:
        """The parts of the unit's partition that the rows are about."""
        return self.rows.parts


class PricedCandidate(PricedRows):
    """A training whose cost is known, and which can be run on a part of the rows that were read."""

    label: ModelColumn

    @property
    @abstractmethod
    def columns(self) -> tuple[ModelColumn, ...]:
        """What is read of each row, without the label."""

    @property
    @abstractmethod
    def described(self) -> str:
        """What tells it from another candidate of a choice."""

    @abstractmethod
    def trained(self, exact: Exact[UnitRows], tell: Tell = silent) -> LinearModel | AdditiveModel:
        """Return the model of rows that were read already. They have to be paid for."""

    @abstractmethod
    def notes(self) -> tuple[str, ...]:
        """Return what a reader of the model should know."""


def database_of(table: Any) -> Database:
    """Return the database that a table is of; refuse arrays and data frames."""
    nothing = Request(text="", queries=(), postprocessing=None)
    asked = session_table(table).finish(nothing)
    found: Database = asked.database
    return found


def training_rows(
    frame: Any, columns: tuple[ModelColumn, ...], *, labels: tuple[ModelColumn, ...] = ()
) -> TrainingRows:
    """Return the rows of a table of a session with these columns, each person's own. Free; reads no data.

    Rows whose label is missing, or is none of its listed values, are left out.
    """
    frame = session_table(frame)
    for label in labels:
        there = col(label.name)
        frame = frame.where(there.is_in(*label.values) if label.values else ~there.is_null())
    read = tuple(dict.fromkeys((*columns, *labels)))
    asked = frame.select(**{f"c{place}": one.read() for place, one in enumerate(read)}).agg(n=count())
    database = asked.database
    database.backend.check_rows("training on")
    request = with_join_conditions(_renamed(asked.request, [one.name for one in read]))
    [named] = request.queries
    unit = check_units(named.query, database.catalog)
    refuse_copies([named.query], database.catalog, database.backend.public_copies)
    return TrainingRows(database=database, request=replace(request, postprocessing=None), unit=unit.name)


def _renamed(request: Request, names: Sequence[str]) -> Request:
    """Return a request whose columns have these names: nothing above reads them, and any name will do."""
    [named] = request.queries
    source = named.query.source
    assert isinstance(source, Projection)
    columns = tuple((name, one) for name, (_, one) in zip(names, source.columns, strict=True))
    query = replace(named.query, source=replace(source, columns=columns))
    return replace(request, queries=(replace(named, query=query),))


def gaussian_budget(budget: PrivacyBudget, what: str) -> None:
    """Refuse a budget that has no room for Gaussian noise."""
    if budget.delta_loss == 0 or isinstance(budget.rule, PureRule):
        raise Unsupported(
            f"{what} has Gaussian noise, which has no pure epsilon, and this budget counts nothing else",
            place="budget",
            hints=("use a budget with a delta for losses: Budget(epsilon=1, delta=1e-6)",),
        )
