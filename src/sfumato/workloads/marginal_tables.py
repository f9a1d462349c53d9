"""Marginal tables from noisy residuals: all of them agree, and the variance of any sum of cells is known.

A table over columns W is the sum of its residuals, each spread over the columns that it does not have, by the
shares u of their cells, which are equal ones unless prefixes or ranges are asked for (`bases`):

    table_W[x] = sum over A in W of  residual_A[x_A] prod_{j in W - A} u_j[x_j]

A residual sums to zero over each of its columns, so that the sum of one table over a column is the table
without it, for all tables. Values are float64: each is a sum of at most 2^|W| terms, each computed by at most
2 |W| operations from exact integers, so that rounding is below 1e-12 of the largest count or noise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.core.arguments import FloatArray
from sfumato.core.mechanism import confidence
from sfumato.core.normal import tail_quantile
from sfumato.errors import InvalidArgument
from sfumato.workloads.residuals import ResidualPlan, Subset

__all__ = ["MarginalTables", "half_width", "measured_residuals"]

_Integers = npt.NDArray[Any]


def half_width(deviation: float, level: float = 0.95) -> float:
    """Return how far off a sum of many noises is at most, with probability `level`: it is about normal."""
    chance = float(1 - confidence(level))
    return deviation * float(tail_quantile(np.array([math.log(chance / 2)]))[0])


def measured_residuals(plan: ResidualPlan, codes: _Integers, counts: _Integers) -> Iterator[_Integers]:
    """Yield the exact integers of each residual, of rows whose cells are the rows of `codes`.

    `counts` says how many equal rows each of them stands for; one with a code below zero is in no table.
    """
    known = (codes >= 0).all(axis=1)
    codes, counts = codes[known], counts[known].astype(object if counts.dtype == object else np.int64)
    total = sum(counts.tolist())
    for residual in plan.residuals:
        bases = [plan.bases[i] for i in residual]
        shape = tuple(base.size for base in bases)
        cell = np.zeros(len(codes), dtype=np.int64)
        for i, size in zip(residual, shape, strict=True):
            cell = cell * size + codes[:, i]
        values: _Integers = np.zeros(shape, dtype=counts.dtype)
        np.add.at(values.reshape(-1), cell, counts)
        if total * math.prod(base.largest for base in bases) >= 2**62:  # Python's integers do not wrap around
            values = values.astype(object)
        for axis, base in enumerate(bases):
            values = base.measure(values, axis)
        yield values


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MarginalTables:
    """Noisy integers of residuals, and the tables that they make."""

    plan: ResidualPlan
    measured: tuple[_Integers, ...]
    variances: FloatArray  # of the noise on each integer of each residual, in rows
    weight: float = 1.0  # rows per unit of the integers

    def residual(self, which: Subset) -> FloatArray:
        """Return the estimate of a residual, which sums to zero over each of its columns."""
        values: _Integers = self.measured[self.plan.residuals.index(which)].astype(np.float64) * self.weight
        for axis, i in enumerate(which):
            values = self.plan.bases[i].recover(values, axis)
        return values

    def table(self, columns: Subset) -> FloatArray:
        """Return the estimated counts of a table, an axis per column."""
        sizes = [self.plan.bases[i].size for i in columns]
        values = np.zeros(sizes)
        for residual in self._parts(columns):
            others = self._others(columns, residual)
            part = np.expand_dims(self.residual(residual), others)
            for axis in others:
                part = part * self._along(columns, axis, self.plan.bases[columns[axis]].shares)
            values += part
        return values

    @staticmethod
    def _along(columns: Subset, axis: int, values: FloatArray) -> FloatArray:
        """Return values along one axis of a table."""
        return values.reshape([-1 if place == axis else 1 for place in range(len(columns))])

    def _parts(self, columns: Subset) -> Iterator[Subset]:
        """Yield the residuals that a table is made of."""
        for residual in self.plan.measured_for(columns):
            if residual not in self.plan.residuals:
                raise InvalidArgument(
                    "this table is not part of the workload",
                    place="columns",
                    hints=("ask for tables over columns that one table of the workload has together",),
                )
            yield residual

    @staticmethod
    def _others(columns: Subset, residual: Subset) -> tuple[int, ...]:
        return tuple(axis for axis, i in enumerate(columns) if i not in residual)

    def mean_variance(self, columns: Subset) -> float:
        """Return the mean variance of what is asked about a table: its cells, or their prefixes, .."""
        parts = [self._variance(one) * self.plan.part(columns, one) for one in self._parts(columns)]
        return math.fsum(parts) / self.plan.answers(columns)

    def cell_variances(self, columns: Subset) -> FloatArray:
        """Return the variance of each cell of a table."""
        bases = self.plan.bases
        total = np.zeros([bases[i].size for i in columns])
        for residual in self._parts(columns):
            each = np.full((1,) * len(columns), self._variance(residual))
            for axis, i in enumerate(columns):
                own = bases[i].cell_variances if i in residual else bases[i].shares ** 2
                each = each * self._along(columns, axis, own)
            total += each
        return total

    def sum_variance(self, columns: Subset, query: FloatArray) -> float:
        """Return the variance of a linear query over the cells of a table: of `(query * table).sum()`."""
        found = []
        for residual in self._parts(columns):
            weights = query
            for axis in reversed(self._others(columns, residual)):
                weights = np.tensordot(weights, self.plan.bases[columns[axis]].shares, axes=(axis, 0))
            for axis, i in enumerate(residual):
                weights = self.plan.bases[i].weigh(weights, axis)
            found.append(self._variance(residual) * float(np.square(weights).sum()))
        return math.fsum(found)

    def _variance(self, residual: Subset) -> float:
        return float(self.variances[self.plan.residuals.index(residual)])
