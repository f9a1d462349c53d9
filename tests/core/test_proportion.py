"""Counted proportions: intervals that cover at every size, against the definition."""

from __future__ import annotations

from math import comb

import pytest

from sfumato.core import Proportion
from sfumato.core.proportion import clopper_pearson
from sfumato.errors import InvalidArgument


def tail(n: int, p: float, least: int) -> float:
    return sum(comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(least, n + 1))


@pytest.mark.parametrize(("hits", "trials"), [(0, 5), (1, 7), (3, 10), (10, 10), (49, 60)])
@pytest.mark.parametrize("miss", [0.025, 1e-4])
def test_limits_are_where_the_count_becomes_unlikely(hits: int, trials: int, miss: float) -> None:
    """The definition: at the lower limit so many hits or more have probability `miss`; likewise above."""
    (low,), (high,) = clopper_pearson(hits, trials, miss)
    if hits:
        assert tail(trials, float(low), hits) == pytest.approx(miss, rel=1e-9)
    else:
        assert low == 0
    if hits < trials:
        assert 1 - tail(trials, float(high), hits + 1) == pytest.approx(miss, rel=1e-6)
    else:
        assert high == 1


@pytest.mark.parametrize("p", [0.02, 0.3, 0.5])
def test_they_cover_at_every_probability(p: float) -> None:
    """Exactly computed: the probability of a count whose interval misses p is at most 5%."""
    n = 40
    missed = 0.0
    for k in range(n + 1):
        low, high = Proportion(hits=k, trials=n).interval(0.95)
        if not low <= p <= high:
            missed += comb(n, k) * p**k * (1 - p) ** (n - k)
    assert missed <= 0.05


def test_far_levels_do_not_lose_their_digits() -> None:
    """At 1 - 1e-12 the upper limit is that of the definition; computed from 1 - miss it would not be."""
    (_,), (high,) = clopper_pearson(0, 100, 1e-18)
    assert (1 - float(high)) ** 100 == pytest.approx(1e-18, rel=1e-9)


@pytest.mark.parametrize(("hits", "trials"), [(-1, 3), (4, 3), (0, 0), (1.5, 3), (True, 3)])
def test_senseless_counts_are_refused(hits: object, trials: object) -> None:
    with pytest.raises(InvalidArgument):
        Proportion(hits=hits, trials=trials)  # type: ignore[arg-type]
