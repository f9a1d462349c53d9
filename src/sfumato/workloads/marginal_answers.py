"""Free answers from marginals: a COUNT over listed cells of a released table is a sum of its cells.

Theorem: as in `release.determined`: of units that are in one cell with one row, the count of a group is the
sum of the counts of its cells. Tables agree, so the table of just the columns that a question reads gives
the same sum as any larger one. The sum is a linear function of independent noises, and its law is known
(`MarginalNoise.sum_noise`); noise that cells have in common is allowed for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from sfumato.aggregates.answer import AddedNoise, Fitted
from sfumato.analysis.basis import Basis, PlanHashes
from sfumato.analysis.bounded import Bounding
from sfumato.analysis.public_keys import PublicTables
from sfumato.core.gaussian import GaussianNoise
from sfumato.core.steps import spend
from sfumato.plan.tree import Call, Case, Cast, ColumnRef, Expression
from sfumato.release.answers import NoisyTable
from sfumato.release.determined import Derivation, Determined, NotDetermined, SummedCells
from sfumato.release.noise import NoisyGroups
from sfumato.workloads.marginal_release import Marginals
from sfumato.workloads.residuals import Subset

__all__ = ["determined_by_marginals"]

_MOST_TERMS = 4_000_000  # groups of a question, times cells of the table
_PARTS = 1024  # estimates are no integers: they are rounded to so many parts of one

_LEAST = 1e-9  # a deviation that stands for none


def determined_by_marginals(
    name: str, bounding: Bounding, release: Marginals, tables: PublicTables
) -> Determined | None:
    """Return the table of a question that released marginals determine, None if they do not."""
    if release.basis is None:
        return None
    hashes = PlanHashes.of(bounding.query)
    everything = tuple(range(len(release.columns)))

    def derivation(places: Subset, keys: tuple[tuple[Any, ...], ...] = ()) -> Derivation:
        basis = _restricted(release.basis, places)
        return Derivation(name, bounding, _cells(release, places, keys), basis, hashes, tables)

    try:
        whole = derivation(everything)
        conditions = whole.further_conditions()
        whole.check_one_cell()
        places = _columns_read(release, whole, conditions)
        codes = [release.columns[place].codes() for place in places]
        terms = math.prod(map(len, codes)) * len(bounding.query.declared or ())
        if terms > _MOST_TERMS:
            return None
        spend(terms // 100)
        keys = tuple(product(*codes))
        found = derivation(places, keys)
        finest, sources, sums = found.summed_cells(conditions)
        told = set(found.basis.names) - set(found.left_out(finest, conditions))
        return Determined(
            table=_estimates(release, found, places, list(sources), sums),
            left_out=tuple(
                one.name
                for one in release.columns
                if one.name not in told and not (one.ordered and one.missing)
            ),
            several_rows=found.several_rows,
        )
    except NotDetermined:
        return None


def _restricted(basis: Basis | None, places: Subset) -> Basis:
    assert basis is not None
    return replace(
        basis,
        keys=tuple(basis.keys[place] for place in places),
        names=tuple(basis.names[place] for place in places),
    )


def _cells(release: Marginals, places: Subset, keys: tuple[tuple[Any, ...], ...]) -> NoisyTable:
    """Return a table of these columns as a question has it, without its numbers."""
    groups = NoisyGroups(grouping_set=tuple(range(len(places))), keys=keys, measures={}, layers={})
    noise = AddedNoise(measure="n", grouping_set=0, law=release.laws[0])
    return NoisyTable(
        name="marginals",
        keys=tuple((release.columns[place].name, release.kinds[place]) for place in places),
        answers=(),
        groups=(groups,),
        noises=(noise,),
    )


def _columns_read(release: Marginals, whole: Derivation, conditions: Sequence[Expression]) -> Subset:
    """Return the columns that a question reads, if one released table has them together."""
    query = whole.bounding.query
    read = [*conditions, *(key for _, key in query.keys)]
    for measure in query.measures:
        read += whole.source(measure)[1]
    found = {name for one in read for name in _names(whole.over_keys(one))}
    places = tuple(place for place in range(len(release.columns)) if f"cell.k{place}" in found)
    tables = [table for table, _ in release.weights if table and set(places) <= set(table)]
    if not tables:
        raise NotDetermined
    return places or (min(tables[0], key=lambda place: len(release.columns[place].labels)),)


def _names(expression: Expression) -> set[str]:
    match expression:
        case ColumnRef(name=name):
            return {name}
        case Call(arguments=arguments):
            return set().union(*map(_names, arguments))
        case Case(branches=branches, otherwise=otherwise):
            return set().union(_names(otherwise), *(_names(part) for branch in branches for part in branch))
        case Cast(operand=operand):
            return _names(operand)
    return set()


def _estimates(
    release: Marginals,
    found: Derivation,
    places: Subset,
    measures: Sequence[str],
    groups_of_cells: Sequence[SummedCells],
) -> NoisyTable:
    """Return the question's table: sums of estimated counts, each with its own deviation."""
    if any(answer.function.record.linear(answer) is None for answer in found.bounding.answers):
        raise NotDetermined
    counts = release.estimates.table(places)
    unit = float(release.weight)
    groups, noises = [], []
    for place, one in enumerate(groups_of_cells):
        numbers, fitted = {}, {}
        for name in measures:
            values, sums = [], []
            for cells in one.places[name]:
                if not cells:
                    raise NotDetermined
                query = np.zeros(counts.shape)
                query.flat[cells] = 1
                values.append(round(float((query * counts).sum()) / unit * _PARTS))
                sums.append(release.estimates.noise.sum_noise(places, query).scaled(_PARTS / unit))
            numbers[name] = np.array(values, dtype=np.int64)
            deviations = np.array([one.deviation for one in sums])
            fitted[name] = Fitted(deviations=deviations, step=1, parts=_PARTS, noises=tuple(sums))
            law = GaussianNoise(Fraction(max(float(deviations.max()) / _PARTS, _LEAST)) ** 2)
            noises.append(AddedNoise(measure=name, grouping_set=place, law=law))
        groups.append(
            NoisyGroups(
                grouping_set=one.grouping_set, keys=one.keys, measures=numbers, layers={}, fitted=fitted
            )
        )
    return found.table(tuple(groups), tuple(noises))
