"""Marginal tables from noisy residuals: all of them agree.

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
from sfumato.workloads.marginal_noise import MarginalNoise
from sfumato.workloads.residuals import ResidualPlan, Subset

__all__ = ["MarginalTables", "measured_residuals"]

_Integers = npt.NDArray[Any]


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

    noise: MarginalNoise
    measured: tuple[_Integers, ...]

    @property
    def plan(self) -> ResidualPlan:
        """The residuals that were measured."""
        return self.noise.plan

    def residual(self, which: Subset) -> FloatArray:
        """Return the estimate of a residual, which sums to zero over each of its columns."""
        values: _Integers = (
            self.measured[self.plan.residuals.index(which)].astype(np.float64) * self.noise.weight
        )
        for axis, i in enumerate(which):
            values = self.plan.bases[i].recover(values, axis)
        return values

    def table(self, columns: Subset) -> FloatArray:
        """Return the estimated counts of a table, an axis per column."""
        sizes = [self.plan.bases[i].size for i in columns]
        values = np.zeros(sizes)
        for residual in self.noise.parts(columns):
            others = tuple(axis for axis, i in enumerate(columns) if i not in residual)
            part = np.expand_dims(self.residual(residual), others)
            for axis in others:
                part = part * self._along(columns, axis, self.plan.bases[columns[axis]].shares)
            values += part
        return values

    @staticmethod
    def _along(columns: Subset, axis: int, values: FloatArray) -> FloatArray:
        """Return values along one axis of a table."""
        return values.reshape([-1 if place == axis else 1 for place in range(len(columns))])
