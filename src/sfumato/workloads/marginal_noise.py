"""The noise of marginal tables: the variance of any sum of cells, and what it stays within.

A sum of cells is a weighted sum of the noises on integers of residuals. These are independent, and weights
follow from the tables' bases alone (`core.gaussian_sums` has the proofs). Nothing here depends on data.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sfumato.core.arguments import FloatArray
from sfumato.core.gaussian_sums import GaussianSum, many_half_widths
from sfumato.core.noise_law import NoiseLaw
from sfumato.core.steps import spend
from sfumato.errors import InvalidArgument
from sfumato.workloads.bases import Base
from sfumato.workloads.residuals import ResidualPlan, Subset

__all__ = ["MarginalNoise"]

_STEPS_PER_PART = 4
_MOST_WORK = 1 << 24  # cells that differ, times cells of their table: above, widths are bounded at once


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MarginalNoise:
    """The laws of the noise on each residual of a plan."""

    plan: ResidualPlan
    laws: tuple[NoiseLaw, ...]
    weight: float = 1.0  # rows per unit of the integers
    variances: FloatArray = field(init=False, repr=False)
    """Of the noise on each integer of each residual, in rows."""
    _places: dict[Subset, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        variances = np.array([law.exact_variance * self.weight**2 for law in self.laws])
        object.__setattr__(self, "variances", variances)
        object.__setattr__(self, "_places", {one: at for at, one in enumerate(self.plan.residuals)})

    def parts(self, columns: Subset) -> Iterator[Subset]:
        """Yield the residuals that a table is made of."""
        for residual in self.plan.measured_for(columns):
            if residual not in self._places:
                raise InvalidArgument(
                    "this table is not part of the workload",
                    place="columns",
                    hints=("ask for tables over columns that one table of the workload has together",),
                )
            yield residual

    # -- variances ----------------------------------------------------------------------

    def mean_variance(self, columns: Subset) -> float:
        """Return the mean variance of what is asked about a table: its cells, or their prefixes, .."""
        parts = [self._variance(one) * self.plan.part(columns, one) for one in self.parts(columns)]
        return math.fsum(parts) / self.plan.answers(columns)

    def cell_variances(self, columns: Subset) -> FloatArray:
        """Return the variance of each cell of a table."""
        shape = [self.plan.bases[i].size for i in columns]
        return sum(
            (self._variance(one) * self._squares(columns, one) for one in self.parts(columns)),
            np.zeros(shape),
        )

    def sum_variance(self, columns: Subset, query: FloatArray) -> float:
        """Return the variance of a linear query over the cells of a table: of `(query * table).sum()`."""
        return math.fsum(
            self._variance(one) * float(np.square(weights).sum())
            for one, weights in self._weights(columns, query)
        )

    # -- what noise stays within --------------------------------------------------------

    def sum_noise(self, columns: Subset, query: FloatArray) -> GaussianSum:
        """Return the noise of a linear query over the cells of a table."""
        return GaussianSum.of(
            [(self._law(one), self.weight * weights) for one, weights in self._weights(columns, query)]
        )

    def cell_half_widths(self, columns: Subset, level: Any) -> FloatArray:
        """Return what the noise of each cell stays within with probability `level`.

        Cells that a symmetric base has in common are alike. Of tables with very many others, the half-widths
        are bounds, which are near where noise is large.
        """
        bases = [self.plan.bases[i] for i in columns]
        shape = [base.size for base in bases]
        differing = [1 if base.matrix is None else base.size for base in bases]
        if math.prod(differing) * math.prod(shape) > _MOST_WORK:
            parts = [
                (
                    self._law(one),
                    self.weight**2 * self._squares(columns, one),
                    self.weight * self._largest(columns, one),
                )
                for one in self.parts(columns)
            ]
            return many_half_widths(parts, level)
        found = np.zeros(differing)
        for place in np.ndindex(*differing):
            found[place] = self._cell_noise(columns, place).half_width(level)
        return np.array(np.broadcast_to(found, shape))

    def half_width(self, columns: Subset, level: Any = 0.95) -> float:
        """Return what the noise of a typical answer of a table stays within: that of all cells, or about.

        Where answers differ, it is that of a deviation which is the root of their mean variance.
        """
        middle = tuple(self.plan.bases[i].size // 2 for i in columns)
        noise = self._cell_noise(columns, middle)
        alike = all(self.plan.bases[i].matrix is None for i in columns)
        typical = 1.0 if alike else math.sqrt(self.mean_variance(columns)) / (noise.deviation or 1.0)
        return typical * noise.half_width(level)

    # -- weights ------------------------------------------------------------------------

    def _cell_noise(self, columns: Subset, place: Sequence[int]) -> GaussianSum:
        """Return the noise of one cell: weights are products, of which a symmetric base has two."""
        parts, times = [], []
        for residual in self.parts(columns):
            spend(_STEPS_PER_PART)
            weights, number = np.full(1, self.weight), np.ones(1)
            for (base, own), at in zip(self._own(columns, residual), place, strict=True):
                if own:
                    found, many = base.cell_weights(at)
                    weights = np.outer(weights, found).reshape(-1)
                    number = np.outer(number, many).reshape(-1)
                else:
                    weights = weights * base.shares[at]
            parts.append((self._law(residual), weights))
            times.append(number)
        return GaussianSum.of(parts, times)

    def _weights(self, columns: Subset, query: FloatArray) -> Iterator[tuple[Subset, FloatArray]]:
        """Yield, for each residual of a table, how much of each of its integers is in a query."""
        for residual in self.parts(columns):
            weights = query
            for axis in reversed(range(len(columns))):
                if columns[axis] not in residual:
                    weights = np.tensordot(weights, self.plan.bases[columns[axis]].shares, axes=(axis, 0))
            for axis, i in enumerate(residual):
                weights = self.plan.bases[i].weigh(weights, axis)
            yield residual, weights

    def _squares(self, columns: Subset, residual: Subset) -> FloatArray:
        """Return, for each cell of a table, the sum of squares of its weights in a residual."""
        return self._product(
            columns,
            [base.cell_variances if own else base.shares**2 for base, own in self._own(columns, residual)],
        )

    def _largest(self, columns: Subset, residual: Subset) -> FloatArray:
        """Return, for each cell of a table, the largest of its weights in a residual."""
        return self._product(
            columns,
            [base.cell_largest if own else np.abs(base.shares) for base, own in self._own(columns, residual)],
        )

    def _own(self, columns: Subset, residual: Subset) -> Iterator[tuple[Base, bool]]:
        return ((self.plan.bases[i], i in residual) for i in columns)

    @staticmethod
    def _product(columns: Subset, factors: Sequence[FloatArray]) -> FloatArray:
        found = np.ones((1,) * len(columns))
        for axis, values in enumerate(factors):
            found = found * values.reshape([-1 if place == axis else 1 for place in range(len(columns))])
        return found

    def _law(self, residual: Subset) -> NoiseLaw:
        return self.laws[self._places[residual]]

    def _variance(self, residual: Subset) -> float:
        return float(self.variances[self._places[residual]])
