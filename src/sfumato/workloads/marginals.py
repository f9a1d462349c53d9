"""Marginals: contingency tables over sets of columns, as one workload on the one path.

The engine is asked one question: how many rows are in each combination of cells that occurs. A unit is in at
most `max_groups` of them, with at most `max_rows` rows in each, as in any question. The answer never leaves:
it is turned into the integers of residuals (`residuals`), and those get noise.

Theorem: let T be the most that a unit adds to all counts together, in whole numbers (which are rows, or
parts of rows where a cap over all combinations divides them). A unit that is added or removed changes the
counts by a vector d of whole numbers with |d|_1 <= T, and the integers of residual A, which are
M_A d for a matrix M_A of whole numbers, by sum_x d_x M_A e_x: a vector of Euclidean norm at most
T max_x |M_A e_x| = T sqrt(p_A). So discrete Gaussian noise of parameter s_A on each integer costs at most a
`DiscreteGaussianVector` of l2_squared = T^2 p_A, and all residuals together the composition of those. Which
combinations occur, and all else the engine found, is not released; tables are post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.analysis.basis import Basis, PlanHashes
from sfumato.analysis.bounded import Bounding
from sfumato.backends import Backend
from sfumato.backends.exact import ExactGroups
from sfumato.catalog import Catalog
from sfumato.core.accountant import PrivacyBudget
from sfumato.core.arguments import FloatArray
from sfumato.core.events import Event
from sfumato.core.gaussian import GaussianNoise
from sfumato.core.noise_allocation import least_noise
from sfumato.core.noise_law import NoiseLaw
from sfumato.core.rules import PureRule, Rule
from sfumato.core.vector_noise import VectorNoise, event_of_vectors
from sfumato.errors import InvalidArgument, Unsupported
from sfumato.pipeline import (
    Look,
    PricedAnswer,
    Tell,
    bounded_queries,
    parts_of_request,
    refuse_huge,
    silent,
    unprotected_totals,
)
from sfumato.plan.builder import table as rows_of
from sfumato.plan.options import Options
from sfumato.plan.request import Request
from sfumato.plan.summaries import count
from sfumato.plan.values import Val
from sfumato.release.noise import add_noise_to_queries
from sfumato.workloads.marginal_columns import MarginalColumn
from sfumato.workloads.marginal_noise import MarginalNoise
from sfumato.workloads.marginal_release import Marginals
from sfumato.workloads.marginal_tables import measured_residuals
from sfumato.workloads.residuals import ResidualPlan, Subset, residual_plan

__all__ = ["MOST_CELLS", "MarginalWorkload", "PricedMarginals", "plan_marginals"]

MOST_CELLS = 50_000_000
"""Cells of all tables together; the largest residuals have about as many integers."""


_EVENNESS = (0.5, 0.0)  # best for many tables of several columns, and for one of one


@dataclass(frozen=True, slots=True, kw_only=True)
class MarginalWorkload:
    """Tables over sets of columns of one private table, each with the weight of its sum of variances."""

    table: str
    columns: tuple[MarginalColumn, ...]
    weights: tuple[tuple[Subset, float], ...]
    condition: Val | None = None

    def __post_init__(self) -> None:
        if self.cells > MOST_CELLS:
            raise InvalidArgument(
                f"these tables have {self.cells:,} cells, and at most {MOST_CELLS:,} are released at once",
                place="ways",
                hints=("use fewer columns or bins, or ways=2", "or name the tables that are wanted"),
            )

    @property
    def cells(self) -> int:
        """How many cells all tables have together: a public number."""
        sizes = [len(column.labels) for column in self.columns]
        return sum(math.prod(sizes[i] for i in table) for table, _ in self.weights)

    @property
    def plan(self) -> ResidualPlan:
        """The residuals that are measured."""
        return residual_plan([column.base for column in self.columns], dict(self.weights))

    def tuned(self) -> MarginalWorkload:
        """Return the workload with the shares that are best for its tables, of some that are tried."""
        if all(column.asked == "cells" for column in self.columns):
            return self
        tried = [
            replace(self, columns=tuple(column.with_evenness(one) for column in self.columns))
            for one in _EVENNESS
        ]
        return min(tried, key=lambda one: one.plan.least_objective)

    def names(self, table: Subset) -> tuple[str, ...]:
        """Return the names of the columns of a table."""
        return tuple(self.columns[i].name for i in table)

    def request(self, catalog: Catalog, options: Options) -> Request:
        """Return the one question that the engine answers: how many rows each combination of cells has."""
        frame = rows_of(self.table, catalog, lambda request: request)
        frame = frame.where(*(column.rows() for column in self.columns))
        if self.condition is not None:
            frame = frame.where(self.condition)
        keys = {f"c{place}": column.key() for place, column in enumerate(self.columns)}
        request = frame.group_by(**keys).agg(n=count())
        return replace(request, options=replace(options, keys="selected"), postprocessing=None)


@dataclass(frozen=True, kw_only=True)
class PricedMarginals(PricedAnswer[Marginals]):
    """A workload of marginals whose cost is known: the noise of each residual."""

    answer_type = Marginals

    workload: MarginalWorkload
    request: Request
    unit: str
    bounding: Bounding
    laws: tuple[NoiseLaw, ...]  # by the residuals of the plan
    epsilon: Fraction
    delta: Fraction
    basis: Basis
    parts: frozenset[str] | None = None

    @cached_property
    def plan(self) -> ResidualPlan:
        """The residuals that are measured."""
        return self.workload.plan

    @property
    def unprotected(self) -> tuple[str, ...]:
        """What tables show exactly, because the policy declares it public."""
        return unprotected_totals((self.bounding,))

    @cached_property
    def event(self) -> Event:
        """All residuals, as one batch. Theorem: see the module."""
        return event_of_vectors(self._vectors(), self.laws)

    def _vectors(self) -> tuple[VectorNoise, ...]:
        return _vectors(self.plan, _most_counted(self.bounding))

    @property
    def weight(self) -> Fraction:
        """How many rows a unit of the counts' integers is."""
        return self.bounding.answers[0].weight

    @cached_property
    def noise(self) -> MarginalNoise:
        """The noise that tables will have."""
        return MarginalNoise(plan=self.plan, laws=self.laws, weight=float(self.weight))

    @cached_property
    def variances(self) -> FloatArray:
        """A bound of the variance of the noise on each integer of each residual, in rows; from 4 on exact."""
        return np.array([float(law.variance * self.weight**2) for law in self.laws])

    def half_widths(self, level: float = 0.95) -> dict[tuple[str, ...], float]:
        """Return what a typical answer of each table will stay within: the ± of the release."""
        noise = self.noise
        return {self.workload.names(one): noise.half_width(one, level) for one in self.plan.tables}

    def deviations(self) -> dict[Subset, float]:
        """Return the root of the mean variance of the answers of each table."""
        plan, variances = self.plan, self.variances
        return {table: math.sqrt(plan.table_variance(table, variances)) for table in plan.tables}

    def deviation_alone(self, table: Subset) -> float:
        """Return about what deviation a table would have if it were the only one, for the same cost."""
        cost = sum(
            map(float.__truediv__, map(float, self.plan.sensitivities_squared), self.variances.tolist())
        )
        alone = residual_plan(self.plan.bases, {table: 1.0})
        return math.sqrt(alone.table_variance(table, alone.variances(cost=cost)))

    def errors(self) -> dict[tuple[str, ...], float]:
        """Return the same by the names of the columns of each table."""
        return {self.workload.names(table): one for table, one in self.deviations().items()}

    def price(self, rule: Rule, *, wider: float = 1.0) -> Fraction:
        """Return what residuals cost in the currency of a rule, with noise of `wider` times the variance."""
        laws = [GaussianNoise(law.parameter * Fraction(wider)) for law in self.laws]
        events = [vector.event(law) for vector, law in zip(self._vectors(), laws, strict=True)]
        return sum((Fraction(rule.price(event)) for event in events), Fraction(0))

    def asked(self) -> dict[str, Any]:
        """Return what is asked and what it costs."""
        workload = self.workload
        return {**super().asked(), "columns": workload.columns, "tables": workload.weights}

    def computed(self, look: Look) -> Marginals:
        """Return the noisy residuals, and with them all tables. It has to be paid for."""
        residuals = partial(self._residuals, tell=look.tell)
        measured = add_noise_to_queries(look.backend.run(self.bounding.query), residuals, self.laws)
        return Marginals(
            columns=self.workload.columns,
            weights=self.workload.weights,
            measured=measured,
            laws=self.laws,
            weight=self.weight,
            cost=self.cost_record(),
            notes=self._notes(),
            kinds=tuple(key.kind for _, key in self.bounding.query.keys),
            basis=self.basis,
        )

    def _residuals(self, groups: ExactGroups, tell: Tell = silent) -> Iterator[npt.NDArray[Any]]:
        [counts] = groups.measures.values()
        number = len(self.laws)  # a public one
        exact = measured_residuals(self.plan, _codes(self.workload.columns, groups), counts)
        for place, residual in enumerate(exact, 1):
            tell(f"adding noise to residual {place:,} of {number:,}")
            yield residual

    def _notes(self) -> tuple[str, ...]:
        listed = [column.name for column in self.workload.columns if not column.ordered]
        notes = ["counts may be negative: that is the noise; raising them to zero would bias sums"]
        gone = "rows with no value in a column"
        if listed:
            gone += f", or with one that is not listed for {', '.join(f'`{name}`' for name in listed)},"
        notes.append(f"{gone} are in no table")
        if (most := _most_counted(self.bounding) * self.weight) > 1:
            notes.append(f"a unit counts with at most {float(most):g} rows; what is beyond is left out")
        return tuple(notes)


def _codes(columns: Sequence[MarginalColumn], groups: ExactGroups) -> npt.NDArray[np.int64]:
    """Return the place of the cell of each column in which each group is, -1 where it is in none."""
    number, size = len(groups.keys), len(columns)
    maps = [column.codes() for column in columns]
    found = (places.get(key, -1) for keys in groups.keys for places, key in zip(maps, keys, strict=True))
    return np.fromiter(chain(found), dtype=np.int64, count=number * size).reshape(number, size)


def _most_counted(bounding: Bounding) -> int:
    """Return the most that a unit adds to all counts together: T of the module's theorem.

    With a cap over all groups, a count of sensitivity R max_rows moves by at most R max_total in all groups
    together (`analysis.measures`).
    """
    query = bounding.query
    [measure] = query.measures
    most = (query.max_groups or 1) * measure.sensitivity
    if query.max_total is None or query.max_rows is None:
        return most
    return min(most, math.ceil(Fraction(measure.sensitivity * query.max_total, query.max_rows)))


def _vectors(plan: ResidualPlan, most: int) -> tuple[VectorNoise, ...]:
    """Return what gets noise: the integers of each residual. Theorem: see the module."""
    weights = zip(plan.objective.tolist(), plan.sensitivities_squared, strict=True)
    return tuple(
        VectorNoise(l2_squared=most**2 * squared, importance=Fraction(weight)) for weight, squared in weights
    )


def _basis(
    workload: MarginalWorkload, bounding: Bounding, catalog: Catalog, options: Options, backend: Backend
) -> Basis:
    """Return what tables are measured from: their keys are the columns, their conditions the caller's.

    That rows have to be in cells of all columns is no condition of them: they are the rows of the cells.
    """
    query, hashes = bounding.query, PlanHashes.of(bounding.query)
    conditions: set[str] = set()
    if workload.condition is not None:
        request = replace(workload, condition=None).request(catalog, options)
        _, [plain] = bounded_queries(request, catalog, backend)
        own = PlanHashes.of(plain.query)
        conditions = set(map(hashes.hash, hashes.conditions)) - set(map(own.hash, own.conditions))
    [measure] = query.measures
    return Basis(
        rows=hashes.rows,
        conditions=tuple(sorted(conditions)),
        keys=tuple(hashes.hash(key) for _, key in query.keys),
        names=tuple(column.name for column in workload.columns),
        caps=(query.max_groups, query.max_rows, query.max_total),
        measures={"n": (hashes.measure(measure), ())},
    )


def plan_marginals(
    workload: MarginalWorkload,
    *,
    catalog: Catalog,
    budget: PrivacyBudget,
    epsilon: Fraction,
    options: Options,
    backend: Backend,
) -> PricedMarginals:
    """Price a workload: free, and a function of the request, the catalog and the budget alone."""
    if budget.delta_loss == 0 or isinstance(budget.rule, PureRule):
        raise Unsupported(
            "marginals have Gaussian noise, which has no pure epsilon, and this budget counts nothing else",
            place="budget",
            hints=("use a budget with a delta for losses: Budget(epsilon=1, delta=1e-6)",),
        )
    refuse_huge(epsilon)
    request = workload.request(catalog, options)
    unit, [bounding] = bounded_queries(request, catalog, backend)
    bounding = replace(bounding, query=replace(bounding.query, members=False))
    vectors = _vectors(workload.plan, _most_counted(bounding))
    laws = least_noise(GaussianNoise, vectors, budget, budget.allowance(epsilon))
    backend.check(bounding.query)
    return PricedMarginals(
        workload=workload,
        request=request,
        unit=unit,
        bounding=bounding,
        laws=laws,
        epsilon=epsilon,
        delta=budget.delta_loss,
        basis=_basis(workload, bounding, catalog, options, backend),
        parts=parts_of_request(request, catalog),
    )
