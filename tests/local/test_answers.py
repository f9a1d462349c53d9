"""Sets of answers: read alike in every form, cut uniformly, padded with distinct dummies."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from sfumato.errors import InvalidArgument
from sfumato.local.answers import AnswerSets, uniform_each

from .matrices import check_draws

F = Fraction


def people(sets):
    return [set(part.tolist()) for part in np.split(sets.values, sets.offsets[1:-1])]


def test_every_form_says_the_same():
    lists = [[2, 0], [], [1], [3, 3, 1, 3]]
    matrix = np.zeros((4, 5), dtype=bool)
    for row, each in enumerate(lists):
        matrix[row, each] = True
    pair = (np.array([2, 0, 1, 3, 3, 1, 3]), np.array([0, 2, 2, 3, 7]))
    for given in (lists, [np.array(each, dtype=np.uint8) for each in lists], matrix, pair):
        sets = AnswerSets.read(given, size=5)
        assert people(sets) == [set(each) for each in lists]
        assert sets.lengths.tolist() == [2, 0, 1, 2] and sets.values.dtype == np.int64
        assert sets.owners.tolist() == [0, 0, 2, 3, 3] and sets.ranks.tolist() == [0, 1, 0, 0, 1]
    assert len(AnswerSets.read([], size=5).lengths) == 0
    assert len(AnswerSets.read(([], [0]), size=5).lengths) == 0


@pytest.mark.parametrize(
    "bad",
    [
        [[5]], [[-1]], [[0.5]], [["a"]], [[[0]]], [None], [3],
        (np.array([0]),), (np.array([0]), np.array([], dtype=int)), (np.array([0]), np.array([0])),
        (np.array([0]), np.array([1, 1])), (np.array([0, 1, 2]), np.array([0, 2, 1, 3])),
        np.zeros(3, dtype=int), np.zeros((2, 5)), np.zeros((2, 4), dtype=bool),
    ],
    ids=repr,
)  # fmt: skip
def test_what_cannot_be_read_is_refused(bad):
    with pytest.raises(InvalidArgument) as caught:
        AnswerSets.read(bad, size=5)
    assert caught.value.place == "answers" and caught.value.hints


def test_sets_are_cut_uniformly_and_only_where_needed():
    """False alarm 1e-9; power: parts whose chances are off by 5% of themselves."""
    n = 60_000
    sets = AnswerSets.read([[0, 2, 3, 5, 6], [1, 4]] * n, size=7).at_most(2)
    found = sets.values.reshape(-1, 2, 2)
    assert set(map(tuple, np.sort(found[:, 1]))) == {(1, 4)}
    codes = (1 << found[:, 0]).sum(axis=1)
    parts = [1 << a | 1 << b for a, b in itertools.combinations([0, 2, 3, 5, 6], 2)]
    check_draws(codes, {part: F(1, 10) for part in parts})


def test_padding_is_distinct_and_does_not_overlap():
    places = AnswerSets.read([[4, 1], [], [0, 2, 3]], size=5).padded(3, size=5)
    assert places.tolist() == [[1, 4, 7], [5, 6, 7], [0, 2, 3]]


def test_draws_below_each_bound_are_uniform():
    """False alarm 1e-9; power: chances off by 5% of themselves."""
    bounds = np.tile([1, 2, 3, 5, 8, 9], 50_000)
    drawn = uniform_each(bounds).reshape(-1, 6)
    for column, bound in enumerate([1, 2, 3, 5, 8, 9]):
        check_draws(drawn[:, column], {each: F(1, bound) for each in range(bound)}, tests=6)
    large = uniform_each(np.full(1000, 2**52 + 1))
    assert large.max() > 2**50 and large.min() >= 0 and large.max() <= 2**52
