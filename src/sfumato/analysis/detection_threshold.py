"""Detection thresholds: how large a noisy count must be before it is more than noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from sfumato.analysis.bounded import Bounding
from sfumato.analysis.pricing import Cost, Noise
from sfumato.core.search import least_whole
from sfumato.plan.request import Request

__all__ = ["detection_threshold", "with_thresholds"]


def with_thresholds(request: Request, boundings: Sequence[Bounding], costs: Sequence[Cost]) -> Request:
    """Return the request as it is, or, if it seeks bounds, with what reads them off buckets of such noise."""
    sought = request.sought
    if sought is None:
        return request
    [named], [bounding], [cost] = request.queries, boundings, costs
    [(cells, _)], [answer], [noise] = named.query.aggregates, bounding.answers, cost.noises
    apart, beside = (detection_threshold(noise, answer.weight, chance) for chance in sought.chances)
    sql = sought.postprocessing(released=named.name, cells=cells, apart=apart, beside=beside)
    return replace(request, postprocessing=sql, notes=sought.notes(apart=apart, beside=beside))


def detection_threshold(noise: Noise, weight: Fraction, chance: float) -> int:
    """Return the least whole count that noise alone reaches with at most this chance.

    The noisy integer is in parts of `weight` and is rounded to the nearest whole count, so that a count of
    t is reached from (t - 1/2) / weight on. Theorem: from the exact law (`NoiseLaw.tail`, which rounds up).
    It decides what is told, not what is paid.
    """

    def quiet(count: int) -> bool:
        gap = max(1, math.ceil((count - Fraction(1, 2)) / weight))
        return noise.law.tail(gap) <= chance

    return least_whole(quiet, 1)
