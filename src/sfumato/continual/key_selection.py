"""Key selection in a stream: from which running total on a group that nobody declared may be shown.

Of every key, each measure has noise from period 1 on, and so has a number by which keys are selected: of
people, of rows, or of weights (`analysis.selection`). A key is *there* from the first period on in which a
row of somebody counts. It is shown once it is there and the noisy running total of its number is above the
threshold of that period; from then on all its noisy values are published, also those of earlier periods.

Theorem. Let two streams differ in one person. What is published costs the event of the noise, and a delta:
the chance that a key which this person alone holds is above a threshold.

Proof. Let w be the noisy values of all keys over all periods, whether anybody holds them or not. Let x be the
stream without the person and x' the one with her. What is published is f(w), where f shows what is there in
x, and f'(w) where f' shows what is there in x'. Let E be the set of all w in which some key, in some period
in which it is there in x' and not in x, is above its threshold. Outside E both publish the same, for there is
nothing else in which f and f' differ. Let g(w) be f(w) outside E, and "E" inside. It is one function in both
streams, so that g costs what the noise on w costs. Each stream publishes g(w) unless w is in E, which has at
most the chance delta in either: numbers of the person's own keys are larger in x' than in x, where they are
noise alone. So for any set T of outputs, P(f(w) in T) <= delta + P(g(w) in T, not "E"), and the other way
round, which adds delta once to what the event costs. Over several streams and questions, chosen adaptively,
let g say "E" once any of them is in its E: nothing that is published before depends on the noise of keys in
E, and deltas add up.

The noise of a key that nobody holds is not drawn, for it is not looked at; where the key appears later, noise
is drawn for all periods so far. Noise that began with the key would tell when the first person came.

Theorem (a tail). Let z be discrete Gaussian noise with sigma >= 1, and G normal of deviation sigma. Then z is
stochastically below G + 1: P(z >= m) <= P(G + 1 >= m) for all whole m.

Proof. Let f(x) = exp(-x^2 / (2 sigma^2)), F its integral over all reals, and T its sum over all integers. By
Poisson's formula T = F (1 + r), 0 <= r < 2^-20. For m >= 1, the sum of f from m on is at most its integral
from m - 1 on, and T >= F. For m <= 0 let M = 1 - m: to show is P(z >= M) >= P(G >= M). If M > sigma, f is
convex from M on, so that the sum of f from M on is at least its integral I plus f(M) / 2, and I <= sigma f(M)
(Mills), so f(M) / 2 >= r I, for sigma r is below 1/2 for every sigma >= 1. If M <= sigma, then P(|z| < M) <=
(f(0) + 2 (integral from 0 to M - 1)) / F, at most 2 (integral from 0 to M) / F = P(|G| < M), because f is at
least f(sigma) > 1/2 between M - 1 and M.

So a sum of b_k z_k with any weights is stochastically below a normal number of deviation sigma |b|, plus the
sum of |b_k|. A running total of noise is such a sum, where b is the first column of A C^-1, of z and of what
was rounded, at most (1 + slack) / 2 of a step in each period; where later periods have finer steps, of less.

Thresholds. A person is in at most `keys` keys over the whole stream, and adds at most `each` to the number of
a key in each of the periods that `Participation` allows, of which at most e_t are among the first t. The
threshold of period t is each * e_t + q_t * (the deviation of the total's noise) + (what is rounded), so that
one of these keys is above it in period t with a chance of at most keys * P(N(0,1) > q_t). This chance is
delta / n in each of n periods, or delta / (t (t + 1)) in a stream without an end: they add up to delta.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np

from sfumato.continual.correlated_noise import slack
from sfumato.continual.factorisation import Factorisation
from sfumato.continual.participation import Participation
from sfumato.continual.rates import Buffers
from sfumato.core.gaussian import GaussianNoise
from sfumato.core.normal import tail_quantile
from sfumato.core.search import lower_float
from sfumato.errors import Unsupported

__all__ = ["key_thresholds"]

_FLOATS = 1 + 1e-9  # more than what floats round in a deviation or a quantile


@lru_cache(maxsize=16)  # every answer of a stream names its thresholds
def key_thresholds(
    law: GaussianNoise,
    factorisation: Factorisation | Buffers,
    participation: Participation,
    *,
    each: int,
    keys: int,
    delta: Fraction,
    horizon: int | None,
    until: int,
) -> tuple[int, ...]:
    """Return above which running total a key is shown in each period up to one. Rounds: up.

    `law` is that of z, and `each` what one person adds to a key in one period, both in steps of the first
    period; and so are thresholds. Without a `horizon` the stream has no end.

    >>> from sfumato.continual.factorisation import square_root
    >>> levels = key_thresholds(
    ...     GaussianNoise(Fraction(10**12)), square_root(365), Participation(), each=10**6, keys=1,
    ...     delta=Fraction(1, 10**6), horizon=365, until=365,
    ... )
    >>> [round(one / 10**6, 1) for one in (levels[0], levels[364])]
    [6.8, 11.0]
    """
    if law.parameter < 1:
        raise Unsupported("keys that appear over time, with noise of less than one step")
    whole = min(lower_float(delta / keys), 0.5)
    numbers = np.arange(1, until + 1, dtype=float)
    parts = numbers * (numbers + 1) if horizon is None else np.full(until, float(horizon))
    quantiles = tail_quantile(math.log(whole) - np.log(parts)) * _FLOATS + (_FLOATS - 1)
    decoder = np.cumsum(factorisation.inverse(until))  # the first column of A C^-1
    noise = quantiles * law.deviation * np.sqrt(np.cumsum(decoder**2))
    rounded = (1 + (1 + slack(factorisation)) / 2) * np.cumsum(np.abs(decoder))
    often = np.searchsorted(participation.earliest(until), np.arange(until), side="right")
    above = [math.ceil(one * _FLOATS) for one in (noise + rounded).tolist()]
    return tuple(each * count + level for count, level in zip(often.tolist(), above, strict=True))
