"""Consistency: a question over several grouping sets whose answers add up, up and down.

    GROUP BY ROLLUP (state, county, block)    a tree: each group is the sum of its children in the next set
    GROUP BY CUBE (sex, age)                  a cube: every combination of the listed values is a group

Every set is measured with noise of its own, as without `consistent`. Least squares makes one estimate of all
of them (`core.tree_estimates`, `core.cube_estimates`), and rounding makes it exact (`release.consistency`).
Both see noisy numbers, public groups and declared totals only: that is post-processing, and costs nothing.

How much of the cost each set gets is said (`level_shares`), or else nine tenths for the finest one and the
rest in equal parts for the others.

Theorem (leaves): for n equal leaves, no division of a budget and no linear unbiased estimate has a smaller
variance of a leaf than measuring the leaves alone. With a share s of a Gaussian budget it is at most 1/s of
that: nine tenths cost the finest groups at most 5.5% of their error, and every sum of them gains.
Theorem (Gauss-Markov): at the same shares, no group of any set errs more than without `consistent`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import NoReturn

import numpy as np

from sfumato.aggregates.answer import Answer
from sfumato.analysis.bounded import BoundedQuery, Bounding, Consistency, MeasureKind
from sfumato.analysis.pricing import Cost
from sfumato.analysis.ranges import Known, known_of
from sfumato.catalog.kind import Kind, Value
from sfumato.core.cube_estimates import cube_variances
from sfumato.core.tree_estimates import LevelTree, estimate_tree
from sfumato.plan.hints import refuse
from sfumato.plan.request import Options
from sfumato.plan.tree import ColumnRef, Expression

__all__ = ["consistent_bounding", "groups_of", "level_deviations", "tree_of", "unit_of"]

_FINEST = Fraction(9, 10)
_MOST_NUMBERS = 2**26  # of all grouping sets and cells together: half a gigabyte for each array

_Keys = Sequence[tuple[Value, ...]]


def consistent_bounding(bounding: Bounding, columns: Mapping[str, Known], options: Options) -> Bounding:
    """Return the same question, to be made consistent; refuse one whose answers cannot add up.

    Counts of a cube get a fraction: whole numbers that add up in every direction would be further off.
    """
    _check(bounding, columns, options)
    query = bounding.query
    chain = _chain(query.grouping_sets)
    sizes = tuple(len({key[place] for key in query.declared or ()}) for place in range(len(query.keys)))
    if chain is None:
        _check_cube(bounding, sizes)
    fractions = chain is None and not options.non_negative
    return replace(
        bounding,
        consistency=Consistency(shares=_shares(bounding, chain, options), chain=chain, sizes=sizes),
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
    return list(dict.fromkeys(tuple(key[at] for at in chosen) for key in query.declared or ()))


def tree_of(query: BoundedQuery, chain: Sequence[int], keys: Sequence[_Keys]) -> LevelTree:
    """Return the tree of nested grouping sets, whose groups are `keys[place]`."""
    parents = []
    for above, below in pairwise(chain):
        upper, lower = query.grouping_sets[above], query.grouping_sets[below]
        places = [lower.index(at) for at in upper]
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
    found: dict[tuple[str, int], float] = {}
    keys = [groups_of(query, place) for place in range(len(query.grouping_sets))]
    tree = None if consistency.chain is None else tree_of(query, consistency.chain, keys)
    for measure in query.measures:
        laws = [cost.noise(measure.name, place).law for place in range(len(query.grouping_sets))]
        spread = [float(law.variance) for law in laws]
        if tree is None or consistency.chain is None:
            variances = cube_variances(consistency.sizes, dict(zip(query.grouping_sets, spread, strict=True)))
            found |= {
                (measure.name, place): math.sqrt(variances[chosen])
                for place, chosen in enumerate(query.grouping_sets)
            }
            continue
        levels = estimate_tree(
            tree, [np.zeros((size, 1)) for size in tree.sizes], [spread[place] for place in consistency.chain]
        )
        found |= {
            (measure.name, place): math.sqrt(float(variances.max()))
            for place, variances in zip(consistency.chain, levels.variances, strict=True)
        }
    return found


def _weight(answer: Answer) -> Fraction:
    linear = answer.function.record.linear(answer)
    return answer.weight if linear is None else linear[answer.measures[0]]


def _chain(sets: Sequence[tuple[int, ...]]) -> tuple[int, ...] | None:
    """Return the places of nested sets, the coarsest first; None if they are not nested."""
    places = sorted(range(len(sets)), key=lambda place: len(sets[place]))
    nested = all(set(sets[a]) < set(sets[b]) for a, b in pairwise(places))
    return tuple(places) if nested else None


def _shares(bounding: Bounding, chain: tuple[int, ...] | None, options: Options) -> tuple[Fraction, ...]:
    """Return the share of each grouping set, in their order."""
    sets = bounding.query.grouping_sets
    given = options.level_shares
    if given:
        if chain is None:
            _refuse(bounding, "shares are of levels, and a cube has none", "leave level_shares out")
        if len(given) != len(chain):
            _refuse(
                bounding,
                f"there are {len(chain)} levels and {len(given)} shares",
                "give one for each level, the coarsest first: level_shares=(0.02, 0.08, 0.9)",
            )
        whole = sum(given)
        return tuple(given[chain.index(place)] / whole for place in range(len(sets)))
    finest = max(range(len(sets)), key=lambda place: len(sets[place]))
    rest = (1 - _FINEST) / (len(sets) - 1)
    return tuple(_FINEST if place == finest else rest for place in range(len(sets)))


def _check(bounding: Bounding, columns: Mapping[str, Known], options: Options) -> None:
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
    for place, (_, key) in enumerate(query.keys):
        known = known_of(key, columns)
        listed = set(known.values or ()) - {one[place] for one in query.declared}
        if known.declared and listed:
            _refuse(
                bounding,
                f"the listed groups do not cover {_named(key)}: {len(listed)} of its values have none",
                "every value of a level needs at least one group below it",
                "list all combinations, or take the value out of one_of",
            )


def _named(key: Expression) -> str:
    return f"`{key.name.partition('.')[2]}`" if isinstance(key, ColumnRef) else "a key"


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
