"""Sensitivities: boxes cover every change, checked over all small pairs of contributions."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product

import pytest

from sfumato.core.adjacency import Adjacency, Sensitivity
from sfumato.errors import InvalidArgument

from .senseless import NOT_NUMBERS, NOT_POSITIVE, name


def contributions(sensitivity, entries, values):
    """Every vector that adding one person may add: at most `coordinates` entries, each within `each`."""
    for chosen in combinations(range(entries), sensitivity.coordinates):
        for moves in product(values, repeat=sensitivity.coordinates):
            vector = [0] * entries
            for entry, move in zip(chosen, moves, strict=True):
                vector[entry] = move
            yield vector


def covers(sensitivity, vector):
    return (
        sum(1 for move in vector if move) <= sensitivity.coordinates
        and max(map(abs, vector)) <= sensitivity.each
        and sum(map(abs, vector)) <= sensitivity.l1
        and sum(move * move for move in vector) <= sensitivity.l2_squared
    )


@pytest.mark.parametrize("one_sided", [False, True])
@pytest.mark.parametrize("coordinates", [1, 2])
def test_replacing_is_covered_and_the_norms_are_attained(coordinates, one_sided):
    base = Sensitivity(each=2, coordinates=coordinates, one_sided=one_sided)
    replaced = base.under(Adjacency.REPLACE_ONE)
    values = (0, 1, 2) if one_sided else (-2, -1, 0, 1, 2)
    vectors = list(contributions(base, 4, values))
    changes = [[b - a for a, b in zip(x, y, strict=True)] for x in vectors for y in vectors]
    assert all(covers(base, vector) for vector in vectors)
    assert all(covers(replaced, change) for change in changes)
    assert max(sum(map(abs, change)) for change in changes) == replaced.l1
    assert max(sum(move * move for move in change) for change in changes) == replaced.l2_squared
    assert max(max(map(abs, change)) for change in changes) == replaced.each
    assert max(sum(1 for move in change if move) for change in changes) == replaced.coordinates


@pytest.mark.parametrize("one_sided", [False, True])
def test_a_group_is_covered_and_the_norms_are_attained(one_sided):
    base = Sensitivity(each=1, coordinates=1, one_sided=one_sided)
    values = (0, 1) if one_sided else (-1, 0, 1)
    vectors = list(contributions(base, 3, values))
    sums = [[sum(moves) for moves in zip(*three, strict=True)] for three in product(vectors, repeat=3)]
    group = base.group(3)
    assert all(covers(group, total) for total in sums)
    assert max(sum(map(abs, total)) for total in sums) == group.l1 == 3
    assert max(sum(move * move for move in total) for total in sums) == group.l2_squared == 9


def test_add_remove_is_the_default_and_changes_nothing():
    base = Sensitivity(each=3, coordinates=5)
    assert base.under(Adjacency.ADD_REMOVE) == base


def test_tighter_norms_are_kept_and_looser_ones_refused():
    tight = Sensitivity(each=3, coordinates=4, l1_bound=10, l2_squared_bound=20)
    assert (tight.l1, tight.l2_squared) == (10, 20)
    replaced = tight.under(Adjacency.REPLACE_ONE)
    assert (replaced.l1, replaced.l2_squared) == (20, 80)
    with pytest.raises(InvalidArgument):
        Sensitivity(each=3, coordinates=4, l1_bound=13)
    with pytest.raises(InvalidArgument):
        Sensitivity(each=3, coordinates=4, l2_squared_bound=37)


def test_counts_and_sums():
    counts = Sensitivity.of_counts(rows=2, groups=3)
    assert (counts.each, counts.coordinates, counts.l1, counts.l2_squared) == (2, 3, 6, 12)
    assert counts.under(Adjacency.REPLACE_ONE).l2_squared == 24
    sums = Sensitivity.of_sums(-10, 4, groups=2)
    assert (sums.each, sums.one_sided) == (10, False)
    assert sums.under(Adjacency.REPLACE_ONE).l2_squared == 800
    assert Sensitivity.of_sums(0, Fraction(1, 3)).one_sided
    assert Sensitivity.of_sums(-5, -1).one_sided


@pytest.mark.parametrize("value", NOT_POSITIVE, ids=name)
def test_senseless_sensitivities_are_refused(value):
    builds = [
        lambda: Sensitivity(each=value),
        lambda: Sensitivity(each=1, coordinates=value),
        lambda: Sensitivity.of_counts(rows=value),
        lambda: Sensitivity.of_counts(groups=value),
        lambda: Sensitivity(each=1).group(value),
    ]
    if value is not None:
        builds += [
            lambda: Sensitivity(each=1, l1_bound=value),
            lambda: Sensitivity(each=1, l2_squared_bound=value),
        ]
    for build in builds:
        with pytest.raises(InvalidArgument):
            build()


@pytest.mark.parametrize("value", NOT_NUMBERS, ids=name)
def test_senseless_bounds_are_refused(value):
    with pytest.raises(InvalidArgument):
        Sensitivity.of_sums(value, 1)
    with pytest.raises(InvalidArgument):
        Sensitivity.of_sums(0, value)


def test_other_nonsense_is_refused():
    with pytest.raises(InvalidArgument):
        Sensitivity.of_sums(2, 1)
    with pytest.raises(InvalidArgument):
        Sensitivity.of_sums(0, 0)
    with pytest.raises(InvalidArgument):
        Sensitivity(each=1, one_sided=1)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument):
        Sensitivity(each=1).under("replace_one")  # type: ignore[arg-type]
