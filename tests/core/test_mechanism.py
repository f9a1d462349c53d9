"""A release stays a release under any function."""

from __future__ import annotations

from fractions import Fraction

import pytest

from sfumato.core import (
    FiniteMechanism,
    LaplaceMechanism,
    Mechanism,
    PostProcessed,
    RandomizedResponseMechanism,
)
from sfumato.errors import InvalidArgument


def test_the_function_sees_the_release_only():
    seen = []
    mechanism = PostProcessed(
        LaplaceMechanism.from_epsilon(Fraction(1, 10**6)), lambda o: seen.append(o) or o * 2
    )
    released = mechanism.release(41)
    assert seen == [released // 2] and isinstance(mechanism, Mechanism)
    assert len({PostProcessed(mechanism, lambda o: o).release(41) for _ in range(20)}) > 1  # e^-200 otherwise
    assert mechanism.event == mechanism.mechanism.event


def test_merging_outputs_never_costs_more():
    """Computed from the matrices: every map of five outputs onto three, for a mechanism of three inputs."""
    from itertools import product

    rows = [[Fraction(x, 20) for x in row] for row in ([8, 5, 4, 2, 1], [5, 8, 2, 4, 1], [2, 5, 8, 1, 4])]
    mechanism = FiniteMechanism(rows)
    for images in product(range(3), repeat=5):
        merged = mechanism.then([[Fraction(int(i == image)) for i in range(3)] for image in images])
        assert merged.epsilon <= mechanism.epsilon
        for level in (0, Fraction(1, 3), 1):
            assert merged.delta(level) <= mechanism.delta(level)


@pytest.mark.parametrize(("mechanism", "function"), [(3, abs), (RandomizedResponseMechanism.coin_toss(), 3)])
def test_senseless_parts_are_refused(mechanism, function):
    with pytest.raises(InvalidArgument):
        PostProcessed(mechanism, function)
