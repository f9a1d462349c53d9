"""Whether a measured rate and its bound can be told apart, beyond a chance of 1e-10."""

from __future__ import annotations

from sfumato.attacks.attack_result import MeasuredRate
from sfumato.core.proportion import clopper_pearson

MISS = 1e-10


def above(point: MeasuredRate) -> bool:
    """Tell whether a rate is above its bound."""
    assert point.bound is not None
    return float(clopper_pearson(point.rate.hits, point.rate.trials, MISS)[0][0]) > point.bound


def below(point: MeasuredRate) -> bool:
    """Tell whether a rate is below its bound."""
    assert point.bound is not None
    return float(clopper_pearson(point.rate.hits, point.rate.trials, MISS)[1][0]) < point.bound
