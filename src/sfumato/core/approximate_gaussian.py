"""Approximate Gaussian privacy: the mu of a batch but for a failure of stated chance.

A batch on random samples has no useful mu: far out in its tail its loss is that of the batch without
sampling. But for a failure that is as rare as those of key selections it has one, and a good one.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from sfumato.core.arguments import Cost, FloatArray, Number
from sfumato.core.composition import Composition
from sfumato.core.conversions import positive_delta
from sfumato.core.events.base import Direction, Event
from sfumato.core.events.gaussian import Gaussian
from sfumato.core.search import bracket, lower_float, smallest

__all__ = ["mu_but_for"]

_LEVELS = 8192
_FLOATS = 1e-10  # what round-off may be of a divergence, relative to the tails it is the difference of
_FINE = 1e-4  # of the mu that is found


def mu_but_for(event: Event, failure: Number) -> Cost:
    """Return a mu such that an event is mu-Gaussian private but for a failure of this chance.

    The budget is charged `Gaussian(sigma=1 / mu)`, and the failure as the delta of a key selection is.

    Theorem: write H for the hockey-stick divergence of the pair of laws that dominates the event. If
    H(e^l) <= failure + (1 - failure) H_mu(e^l) at every level l, the event is a post-processing of a
    mechanism that with this chance tells everything, and else is Gaussian of mu: that mechanism has the
    curve on the right, and whose curve lies below is a post-processing (Zhu, Dong and Wang 2022, after
    Blackwell). Levels from 0 on in both directions are enough, for both sides turn alike. Both fall in l, so
    they are compared between neighbouring levels, the left side at the lower and the right at the upper one;
    beyond the last level H is at most the failure. Rounds: up.

    >>> from sfumato.core.events import PoissonSubsampled, Repeated
    >>> sampled = PoissonSubsampled(event=Gaussian(sigma=2), rate=Fraction(1, 10))
    >>> batch = Repeated(event=sampled, times=400)
    >>> round(float(batch.mu()), 2), round(float(mu_but_for(batch, 1e-7)), 2)
    (10.0, 1.11)
    """
    chance = lower_float(Fraction(positive_delta(failure)))
    curves = list(_curves(event, chance))
    if any(heights[-1] > chance for _, heights in curves):
        return event.mu()

    def covers(mu: float) -> bool:
        gaussian = Gaussian(sigma=1 / Fraction(mu))
        for levels, heights in curves:
            p, q = gaussian.tails(levels[1:], Direction.REMOVE)
            lost = np.exp(levels[1:]) * q
            curve = np.maximum(p - lost - _FLOATS * (p + lost), 0.0)
            if (heights[:-1] > chance + (1 - chance) * curve).any():
                return False
        return True

    return min(Fraction(smallest(covers, *bracket(covers, 1.0), _FINE)), event.mu())


def _curves(event: Event, failure: float) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield levels and the divergence at each, from above, for each direction."""
    batch = Composition([event])
    last = 1.02 * batch.epsilon(failure) + 0.01
    for direction in batch.directions:
        levels = np.linspace(0.0, min(last, 600.0), _LEVELS)
        p, q = batch.tails(levels, direction)
        lost = np.exp(levels) * q
        yield levels, np.minimum(p - lost + _FLOATS * (p + lost), 1.0)
