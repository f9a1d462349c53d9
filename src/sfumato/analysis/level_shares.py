"""Level shares: how the cost of a consistent question is divided over its grouping sets, unless that is said.

Two plain ways are to be beaten. Measuring all L sets independently, with equal shares, leaves each group with
the variance L, in units of what the whole cost could do for one set. Measuring the finest groups alone leaves
a group of m of them with the variance m. So a coarser group may have min(L, m). Let the finest set have the
share s. Measuring another set brings its groups to their limit with the share 1 / min(L, m) - s / m, if
nothing else is known of them. Least squares knows more. So the largest s is taken at which, in these
proportions, no coarser group exceeds its limit after least squares. Where there is none, which happens where
few groups share an epsilon, that s is taken at which the worst of them exceeds it least.

Theorem: the finest groups never have a smaller variance than measuring them alone gives them, for that is the
best division for equal groups; they have at most 1 / s of it, and less than measuring sets independently
leaves them wherever s is at least 1 / L. Whoever wants more for them says so: at `level_shares` with nearly
all for the finest set, every other one errs less than the sum of finest groups still (Gauss-Markov).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from sfumato.core.arguments import FloatArray

__all__ = ["chosen_shares"]

_STEPS = 32
_MARGIN = 0.995  # the cost of noise on integers is not quite the inverse of its variance


def chosen_shares(
    estimated: Callable[[Sequence[float]], Sequence[FloatArray]],
    parts: Sequence[FloatArray],
    finest: int,
    power: int,
) -> tuple[Fraction, ...]:
    """Return the shares of grouping sets, in their order.

    `estimated` returns the variance of each group of each set after least squares, from those of
    measurements; `parts` are how many finest groups each group has. Of a share s the variance of a
    measurement is 1 / s^power.
    """
    number = len(parts)
    limits = [_MARGIN * np.minimum(float(number) ** power, one) for one in parts]
    means = [float(np.mean(one)) for one in parts]

    def excesses(shares: Sequence[Fraction]) -> list[float]:
        """Return how far the worst group of each set is above its limit; of the finest set nothing."""
        variances = estimated([float(share) ** -power for share in shares])
        ratios = [float(np.max(one / limit)) for one, limit in zip(variances, limits, strict=True)]
        return [0.0 if place == finest else ratio for place, ratio in enumerate(ratios)]

    found: list[tuple[float, tuple[Fraction, ...]]] = []
    for step in range(_STEPS - 1, _STEPS // number - 1, -1):
        shares = _shares(Fraction(max(step, 1), _STEPS), means, finest, power)
        found.append((max(excesses(shares)), shares))
        if found[-1][0] <= 1:
            break
    worst, shares = min(found, key=lambda pair: max(pair[0], 1.0))
    for _ in range(_STEPS // 4 if worst <= 1 else 0):  # what single sets still gain goes to the finest one
        pairs = zip(shares, excesses(shares), strict=True)
        shrunk = [Fraction(float(share) * ratio**0.5) for share, ratio in pairs]
        rest = 1 - sum(shrunk, Fraction(0))  # the finest set is in no excess, and so 0 here
        more = tuple(rest if place == finest else one for place, one in enumerate(shrunk))
        if max(excesses(more)) > 1:
            break
        shares = more
    return shares


def _shares(own: Fraction, parts: Sequence[float], finest: int, power: int) -> tuple[Fraction, ...]:
    """Return the share of the finest set, and what the others get of the rest."""
    most = float(len(parts)) ** power
    wishes = [max(1e-3, 1 / min(most, one) - float(own) ** power / one) ** (1 / power) for one in parts]
    total = sum(wish for place, wish in enumerate(wishes) if place != finest)
    return tuple(
        own if place == finest else Fraction(wish / total) * (1 - own) for place, wish in enumerate(wishes)
    )
