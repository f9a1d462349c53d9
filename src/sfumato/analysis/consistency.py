"""Consistency: a question over several grouping sets whose answers add up, up and down.

    GROUP BY ROLLUP (state, county, block)    a tree: each group is the sum of its children in the next set
    GROUP BY CUBE (sex, age)                  a cube: every combination of the listed values is a group

Every set is measured with noise of its own, as without `consistent`. Least squares makes one estimate of all
of them (`core.tree_estimates`, `core.cube_estimates`), and rounding makes it exact (`release.consistency`).
Both see noisy numbers, public groups and declared totals only: that is post-processing, and costs nothing.

How much of the cost each set gets is said (`level_shares`), or chosen so that coarser groups err no more than
without `consistent`, nor than sums of finest groups that are measured alone (`analysis.level_shares`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from sfumato.aggregates.answer import Answer, Fitted
from sfumato.analysis.bounded import BoundedQuery, Bounding, Consistency, MeasureKind
from sfumato.analysis.domains import columns_of
from sfumato.analysis.invariants import column_of, counted_whole, declared_totals
from sfumato.analysis.level_shares import chosen_shares
from sfumato.analysis.pricing import Cost
from sfumato.analysis.public_keys import PublicTables
from sfumato.analysis.ranges import Known, known_of
from sfumato.catalog.catalog import Catalog
from sfumato.catalog.kind import Kind, Value
from sfumato.core.arguments import FloatArray
from sfumato.core.cube_estimates import cube_variances
from sfumato.core.steps import spend
from sfumato.core.tree_estimates import LevelTree, estimate_tree
from sfumato.core.tree_rounding import rounding_variances
from sfumato.plan.columns import references
from sfumato.plan.hints import refuse
from sfumato.plan.options import Options
from sfumato.plan.tree import Filter, Query, relations

__all__ = [
    "CUBE_PARTS",
    "consistent_bounding",
    "groups_of",
    "known_level",
    "known_totals",
    "level_deviations",
    "level_fits",
    "rounded_from",
    "tree_of",
    "unit_of",
]

CUBE_PARTS = 1024
"""Parts of an integer to which the estimates of a cube are rounded, unless they are whole numbers."""

_MOST_NUMBERS = 2**26  # of all grouping sets and cells together: half a gigabyte for each array

_Keys = Sequence[tuple[Value, ...]]


def consistent_bounding(
    bounding: Bounding, asked: Query, catalog: Catalog, tables: PublicTables | None, options: Options
) -> Bounding:
    """Return the same question, to be made consistent; refuse one whose answers cannot add up.

    Counts of a cube get a fraction: whole numbers that add up in every direction would be further off.
    """
    _check(bounding, options)
    _check_covered(bounding, asked, columns_of(asked.source, catalog))
    query = bounding.query
    chain = _chain(query.grouping_sets)
    sizes = tuple(len({key[place] for key in query.declared or ()}) for place in range(len(query.keys)))
    if chain is None:
        _check_cube(bounding, sizes)
    fractions = chain is None and not options.non_negative
    whole = {name for name, one in asked.aggregates if counted_whole(one)}
    counted = tuple(answer.measures[0] for answer in bounding.answers if answer.name in whole)
    totals, unprotected = declared_totals(asked, query, catalog, tables) if counted else ({}, ())
    if totals and chain is None:
        hint = "ask for a ROLLUP, or declare no invariant by these keys"
        _refuse(bounding, "a cube cannot keep the totals that the policy declares public", hint)
    shares, pure_shares = _shares(bounding, chain, sizes, options.level_shares)
    return replace(
        bounding,
        consistency=Consistency(
            shares=shares,
            pure_shares=pure_shares,
            chain=chain,
            sizes=sizes,
            totals=totals,
            unprotected=unprotected,
            counted=counted,
        ),
        answers=tuple(
            replace(answer, integer=False, kind=Kind.REAL)
            if fractions or len(answer.measures) > 1
            else answer
            for answer in bounding.answers
        ),
    )


def groups_of(query: BoundedQuery, place: int) -> list[tuple[Value, ...]]:
    """Return the groups of a grouping set, in the order in which they are declared."""
    chosen = query.grouping_sets[place]
    spend(len(query.declared or ()) * (2 + len(chosen)) // 80)
    return list(dict.fromkeys(tuple(key[at] for at in chosen) for key in query.declared or ()))


def tree_of(query: BoundedQuery, chain: Sequence[int], keys: Sequence[_Keys]) -> LevelTree:
    """Return the tree of nested grouping sets, whose groups are `keys[place]`."""
    parents = []
    for above, below in pairwise(chain):
        upper, lower = query.grouping_sets[above], query.grouping_sets[below]
        places = [lower.index(at) for at in upper]
        spend(len(keys[below]) * (2 + len(places)) // 80)
        numbers = {key: number for number, key in enumerate(keys[above])}
        found = (numbers[tuple(key[place] for place in places)] for key in keys[below])
        parents.append(np.fromiter(found, dtype=np.int64, count=len(keys[below])))
    return LevelTree(roots=len(keys[chain[0]]), parents=tuple(parents))


def unit_of(bounding: Bounding, measure: str) -> int:
    """Return how many integers of a measure are one of what it counts."""
    for answer in bounding.answers:
        if answer.measures == (measure,) and answer.integer:
            return _weight(answer).denominator
    return 1


def level_deviations(bounding: Bounding, cost: Cost) -> dict[tuple[str, int], float]:
    """Return the largest standard deviation of an estimate, by measure and grouping set. Reads no data."""
    consistency, query = bounding.consistency, bounding.query
    assert consistency is not None
    keys = [groups_of(query, place) for place in range(len(query.grouping_sets))]
    found: dict[tuple[str, int], float] = {}
    for measure in query.measures:
        laws = [cost.noise(measure.name, place).law for place in range(len(keys))]
        cells, totals = max(1, len(measure.edges) - 1), known_totals(consistency, measure.name, keys)
        estimated = _estimated(query, consistency.chain, consistency.sizes, keys, cells, totals)
        for place, variances in enumerate(estimated([float(law.variance) for law in laws])):
            found[measure.name, place] = math.sqrt(float(variances.max()))
    return found


def level_fits(bounding: Bounding, cost: Cost) -> dict[tuple[str, int], Fitted]:
    """Return what the release will say of the widest estimate, by measure and grouping set. Reads no data."""
    consistency, query = bounding.consistency, bounding.query
    assert consistency is not None
    keys = [groups_of(query, place) for place in range(len(query.grouping_sets))]
    chain, deviations = consistency.chain, level_deviations(bounding, cost)
    found: dict[tuple[str, int], Fitted] = {}
    for measure in query.measures:
        unit, cells = unit_of(bounding, measure.name), max(1, len(measure.edges) - 1)
        whole = any(answer.integer for answer in bounding.answers if measure.name in answer.measures)
        parts = 1 if chain is not None or whole else CUBE_PARTS
        totals = known_totals(consistency, measure.name, keys)
        if chain is not None:
            tree = tree_of(query, chain, keys)
            apart = [float(one.max()) for one in rounding_variances(tree, rounded_from(totals, cells))]
        for place, chosen in enumerate(query.grouping_sets):
            if chain is not None:
                level = chain.index(place)
                rounding, step = apart[level], 0 if level <= known_level(totals, cells) else unit
            else:
                summed = [size for key, size in enumerate(consistency.sizes) if key not in chosen]
                rounding, step = math.prod(summed) / 12, unit
            square = (deviations[measure.name, place] * parts) ** 2 + rounding * unit**2
            found[measure.name, place] = Fitted(
                deviations=np.array([math.sqrt(square)]), step=step, parts=parts
            )
    return found


def rounded_from(totals: Mapping[int, Any], cells: int) -> int:
    """Return the level from which a tree is rounded down, given the levels whose totals are known.

    Without totals the levels of a histogram are rounded each by itself: from the last one, which is -1.
    """
    return max(totals, default=-1) if cells > 1 else 0


def known_level(totals: Mapping[int, Any], cells: int) -> int:
    """Return the last level whose numbers are known totals, -1 if there is none."""
    return max(totals, default=-1) if cells == 1 else -1


def _estimated(
    query: BoundedQuery,
    chain: tuple[int, ...] | None,
    sizes: tuple[int, ...],
    keys: Sequence[_Keys],
    cells: int = 1,
    totals: Mapping[int, npt.NDArray[np.int64]] | None = None,
) -> Callable[[Sequence[float]], list[FloatArray]]:
    """Return what computes the variances of estimates, by set and group, from those of measurements."""
    sets = query.grouping_sets
    if chain is None:

        def in_cube(variances: Sequence[float]) -> list[FloatArray]:
            found = cube_variances(sizes, dict(zip(sets, variances, strict=True)))
            return [np.array([one]) for one in found.values()]

        return in_cube
    tree = tree_of(query, chain, keys)
    nothing = [np.zeros((size, cells)) for size in tree.sizes]

    def in_tree(variances: Sequence[float]) -> list[FloatArray]:
        levels = estimate_tree(tree, nothing, [variances[place] for place in chain], totals).variances
        return [levels[chain.index(place)] for place in range(len(sets))]

    return in_tree


def _parts(query: BoundedQuery, place: int, keys: _Keys) -> FloatArray:
    """Return how many of the finest groups each group of a set has."""
    chosen = query.grouping_sets[place]
    spend(len(query.declared or ()) * (2 + len(chosen)) // 80)
    counted = Counter(tuple(key[at] for at in chosen) for key in query.declared or ())
    return np.array([counted[tuple(key)] for key in keys], dtype=np.float64)


def known_totals(
    consistency: Consistency, measure: str, keys: Sequence[_Keys]
) -> dict[int, npt.NDArray[np.int64]]:
    """Return, by level, the totals that the groups of a measure must have, in the order of their keys."""
    if consistency.chain is None or measure not in consistency.counted:
        return {}
    return {
        consistency.chain.index(place): np.array([known[tuple(key)] for key in keys[place]], dtype=np.int64)
        for place, known in consistency.totals.items()
    }


def _weight(answer: Answer) -> Fraction:
    linear = answer.function.record.linear(answer)
    return answer.weight if linear is None else linear[answer.measures[0]]


def _chain(sets: Sequence[tuple[int, ...]]) -> tuple[int, ...] | None:
    """Return the places of nested sets, the coarsest first; None if they are not nested."""
    places = sorted(range(len(sets)), key=lambda place: len(sets[place]))
    nested = all(set(sets[a]) < set(sets[b]) for a, b in pairwise(places))
    return tuple(places) if nested else None


def _shares(
    bounding: Bounding, chain: tuple[int, ...] | None, sizes: tuple[int, ...], given: tuple[Fraction, ...]
) -> tuple[tuple[Fraction, ...], tuple[Fraction, ...]]:
    """Return the shares of grouping sets, in their order, of a sum of squares and of an epsilon."""
    query = bounding.query
    number = len(query.grouping_sets)
    if given:
        if chain is None:
            _refuse(bounding, "shares are of levels, and a cube has none", "leave level_shares out")
        if len(given) != number:
            _refuse(
                bounding,
                f"there are {number} levels and {len(given)} shares",
                "give one for each level, the coarsest first: level_shares=(0.02, 0.08, 0.9)",
            )
        shares = tuple(given[chain.index(place)] / sum(given) for place in range(number))
        return shares, shares
    finest = max(range(number), key=lambda place: len(query.grouping_sets[place]))
    keys = [groups_of(query, place) for place in range(number)]
    estimated = _estimated(query, chain, sizes, keys)
    parts = [_parts(query, place, keys[place]) for place in range(number)]
    return chosen_shares(estimated, parts, finest, 1), chosen_shares(estimated, parts, finest, 2)


def _check(bounding: Bounding, options: Options) -> None:
    query = bounding.query
    if len(query.grouping_sets) < 2:
        hint = "GROUP BY ROLLUP (state, county), or CUBE (sex, age)"
        _refuse(bounding, "there is nothing to be consistent with: this has one grouping set", hint)
    if query.declared is None:
        _refuse(
            bounding,
            "groups that are not known in public cannot be made to add up: small ones are missing",
            "declare the values of the keys: one_of('north', 'south', ..), or join a public table of them",
        )
    if bounding.min_units is not None or options.others:
        hint = "leave out min_units and others: all declared groups are shown"
        _refuse(bounding, "groups that are left out, or put together, do not add up", hint)
    kinds = {measure.name: measure.kind for measure in query.measures}
    for answer in bounding.answers:
        record = answer.function.record
        whole = all(kinds[name] in (MeasureKind.MOMENT, MeasureKind.CELLS) for name in answer.measures)
        if not whole or (record.linear(answer) is None and not record.lists):
            _refuse(
                bounding,
                f"{answer.function.label} of a group is not the sum of those of its parts",
                "COUNT(*), COUNT(x), SUM(x) and HISTOGRAM(x) can be consistent; divide sums for an average",
            )
        if options.non_negative and not record.counts:
            hint = "ask for sums in a question of their own"
            _refuse(bounding, "whole numbers from zero on are for counts, not for sums", hint)
    cells = sum(max(1, len(measure.edges) - 1) for measure in query.measures)
    numbers = cells * sum(len(groups_of(query, place)) for place in range(len(query.grouping_sets)))
    if numbers > _MOST_NUMBERS:
        _refuse(
            bounding,
            f"this asks for {numbers:,} numbers, and {_MOST_NUMBERS:,} are the most",
            "ask for fewer levels, or for a histogram of fewer cells",
        )


def _check_covered(bounding: Bounding, asked: Query, columns: Mapping[str, Known]) -> None:
    """Refuse levels with a listed value below which there is no group, unless a condition is about them."""
    filters = [one.condition for one in relations(asked.source) if isinstance(one, Filter)]
    narrowed = {name.partition(".")[2] for condition in filters for name in references(condition)}
    for place, (_, key) in enumerate(bounding.query.keys):
        known = known_of(key, columns)
        listed = set(known.values or ()) - {one[place] for one in bounding.query.declared or ()}
        if known.declared and listed and column_of(key) not in narrowed:
            _refuse(
                bounding,
                f"the listed groups do not cover `{column_of(key)}`: {len(listed)} of its values have none",
                "every value of a level needs at least one group below it",
                "list all combinations, or take the value out of one_of",
            )


def _check_cube(bounding: Bounding, sizes: tuple[int, ...]) -> None:
    query = bounding.query
    if math.prod(sizes) != len(query.declared or ()):
        _refuse(
            bounding,
            "these sets are not nested, and not every combination of the keys' values is a group",
            "ROLLUP works with any list of groups; a CUBE needs all combinations",
        )
    if tuple(range(len(query.keys))) not in {tuple(sorted(chosen)) for chosen in query.grouping_sets}:
        hint = "add the finest one: GROUPING SETS ((a, b), (a), (b))"
        _refuse(bounding, "these sets are not nested, and no set has all keys", hint)


def _refuse(bounding: Bounding, message: str, *hints: str) -> NoReturn:
    refuse(bounding.text, message, *hints, at=bounding.keys_span, code="SF404")
