"""Consistency: noisy integers of several grouping sets become integers that add up exactly.

Post-processing: of noisy integers, the variances of their noise, public groups, and totals that the owner
declared to be public. See `analysis.consistency` for what is asked, and `core.tree_estimates` for the proofs.

In a tree every number is rounded to a whole one, and is less than one away from its estimate. Where totals
are known, the groups that have them hold them exactly, and groups above are sums of rounded numbers. In a
cube the finest groups are rounded to 1/1024, and all others are sums of them.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.aggregates.answer import Fitted
from sfumato.analysis.bounded import Bounding, Consistency
from sfumato.analysis.consistency import (
    CUBE_PARTS,
    known_level,
    known_totals,
    rounded_from,
    tree_of,
    unit_of,
)
from sfumato.analysis.pricing import Cost
from sfumato.core.arguments import FloatArray
from sfumato.core.cube_estimates import cube_variances, estimate_cube
from sfumato.core.tree_estimates import LevelTree, estimate_tree
from sfumato.core.tree_rounding import round_tree, rounding_variances, whole_numbers
from sfumato.release.noise import NoisyGroups

__all__ = ["consistent_groups"]

_Integers = npt.NDArray[Any]


def consistent_groups(
    noisy: tuple[NoisyGroups, ...], bounding: Bounding, cost: Cost, *, non_negative: bool
) -> tuple[NoisyGroups, ...]:
    """Return the groups of all grouping sets with integers that add up, and how far off each may be."""
    consistency = bounding.consistency
    assert consistency is not None
    fit = _Fit(noisy, bounding, consistency, cost, non_negative=non_negative)
    found = list(noisy)
    for measure in bounding.query.measures:
        for place, (integers, fitted) in fit.measure(measure.name).items():
            groups = found[place]
            if measure.edges:
                groups = replace(groups, layers={**groups.layers, measure.name: (integers,)})
            else:
                groups = replace(groups, measures={**groups.measures, measure.name: integers[:, 0]})
                signed = None if fitted.signed is None else fitted.signed[:, 0]
                fitted = replace(fitted, signed=signed)
            found[place] = replace(groups, fitted={**(groups.fitted or {}), measure.name: fitted})
    return tuple(found)


class _Fit:
    """One way to make all measures of a question consistent."""

    def __init__(
        self,
        noisy: tuple[NoisyGroups, ...],
        bounding: Bounding,
        consistency: Consistency,
        cost: Cost,
        *,
        non_negative: bool,
    ) -> None:
        self.noisy = noisy
        self.bounding = bounding
        self.consistency = consistency
        self.cost = cost
        self.non_negative = non_negative
        self.sets = bounding.query.grouping_sets
        self.keys = [groups.keys for groups in noisy]

    def measure(self, name: str) -> dict[int, tuple[_Integers, Fitted]]:
        """Return the integers of a measure, by grouping set: a row for each group."""
        unit = unit_of(self.bounding, name)
        tables = [self._table(groups, name) / unit for groups in self.noisy]
        variances = [
            float(self.cost.noise(name, place).law.variance) / unit**2 for place in range(len(self.sets))
        ]
        chain = self.consistency.chain
        if chain is None:
            return self._cube(tables, variances, unit)
        return self._tree(chain, tables, variances, unit, name)

    def _table(self, groups: NoisyGroups, name: str) -> FloatArray:
        values = groups.measures[name][:, None] if name in groups.measures else groups.layers[name][0]
        return np.asarray(values, dtype=np.float64)

    def _tree(
        self, chain: tuple[int, ...], tables: list[FloatArray], variances: list[float], unit: int, name: str
    ) -> dict[int, tuple[_Integers, Fitted]]:
        tree = tree_of(self.bounding.query, chain, self.keys)
        totals = known_totals(self.consistency, name, self.keys)
        estimate = estimate_tree(
            tree, [tables[place] for place in chain], [variances[place] for place in chain], totals
        )
        signed = round_tree(tree, estimate.values, totals)
        shown = round_tree(tree, estimate.values, totals, non_negative=True) if self.non_negative else signed
        cells = shown[0].shape[1]
        known = known_level(totals, cells)
        apart = rounding_variances(tree, rounded_from(totals, cells))
        return {
            place: self._fitted(
                shown[level],
                signed[level],
                estimate.variances[level] + apart[level],
                unit,
                step=0 if level <= known else unit,
            )
            for level, place in enumerate(chain)
        }

    def _cube(
        self, tables: list[FloatArray], variances: list[float], unit: int
    ) -> dict[int, tuple[_Integers, Fitted]]:
        sizes = self.consistency.sizes
        spread = dict(zip(self.sets, variances, strict=True))
        measured = {
            chosen: table.reshape(*(sizes[key] for key in chosen), table.shape[1])
            for chosen, table in zip(self.sets, tables, strict=True)
        }
        estimate, expected = estimate_cube(sizes, measured, spread), cube_variances(sizes, spread)
        finest = estimate[tuple(range(len(sizes)))]
        parts = 1 if self.non_negative else CUBE_PARTS
        signed = whole_numbers(np.rint(finest * parts))
        shown = self._whole_cube(finest) if self.non_negative else signed
        found = {}
        for place, chosen in enumerate(self.sets):
            outside = tuple(key for key in range(len(sizes)) if key not in chosen)
            cells = math.prod(sizes[key] for key in outside)
            own, plain = (
                np.asarray(table.sum(axis=outside)).reshape(-1, table.shape[-1]) for table in (shown, signed)
            )
            variance = np.full(len(own), expected[chosen] * parts**2 + cells / 12)
            integers, fitted = self._fitted(own, plain, variance, unit, step=unit)
            found[place] = integers, replace(fitted, parts=parts)
        return found

    def _whole_cube(self, finest: FloatArray) -> _Integers:
        """Return whole numbers from zero on: from the total down, one key after the other."""
        sizes, cells = self.consistency.sizes, finest.shape[-1]
        tables = [
            finest.sum(axis=tuple(range(level, len(sizes)))).reshape(-1, cells)
            for level in range(len(sizes) + 1)
        ]
        parents = tuple(
            np.repeat(np.arange(len(above)), len(below) // len(above)) for above, below in pairwise(tables)
        )
        return round_tree(LevelTree(roots=1, parents=parents), tables, non_negative=True)[-1].reshape(
            finest.shape
        )

    def _fitted(
        self, shown: _Integers, signed: _Integers, variance: FloatArray, unit: int, *, step: int
    ) -> tuple[_Integers, Fitted]:
        fitted = Fitted(
            deviations=np.sqrt(variance) * unit,
            step=step,
            signed=signed * unit if self.non_negative else None,
        )
        return shown * unit, fitted
