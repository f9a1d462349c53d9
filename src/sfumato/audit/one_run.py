"""The audit of one run: canaries are put in by coin toss, and guessed from a single output.

For mechanisms that cannot be run often, such as training. It is loose: what it proves is far below what an
attacker with many runs would, so a small number is no evidence of privacy. Never sell it as epsilon.
"""

from __future__ import annotations

import numpy as np

from sfumato.audit.evidence import read_miss
from sfumato.core.arguments import Number, count, delta_quantity
from sfumato.core.scientific import scientific
from sfumato.core.search import largest
from sfumato.errors import InvalidArgument

__all__ = ["one_run_epsilon", "one_run_miss"]

_LARGEST = 200.0


def one_run_miss(canaries: int, guesses: int, right: int, *, epsilon: float, delta: Number = 0) -> float:
    """Return a bound on the probability of this many right guesses under (epsilon, delta)-privacy.

    Theorem (Steinke, Nasr and Jagielski 2023, Theorem 5.2): of m canaries, each in or out by a fair coin,
    r are guessed and v guesses are right. With q = 1 / (1 + e^-epsilon), beta = P[Bin(r, q) >= v] and
    alpha = max over i of P[v - i <= Bin(r, q) < v] / i, it is at most beta + 2 m delta alpha.
    """
    binom = scientific("stats").binom
    m, r, v = count(canaries, "canaries"), count(guesses, "guesses"), count(right, "right", least=0)
    if not v <= r <= m:
        raise InvalidArgument(
            "there are at most as many guesses as canaries, and as many right ones as guesses",
            place="guesses",
        )
    lost = float(delta_quantity(delta))
    law = binom(r, 1 / (1 + np.exp(-epsilon)))
    beta = float(law.sf(v - 1))
    if not lost or not v:
        return min(1.0, beta)
    shares = np.cumsum(law.pmf(np.arange(v - 1, -1, -1))) / np.arange(1, v + 1)
    return min(1.0, beta + 2 * m * lost * float(shares.max()))


def one_run_epsilon(
    canaries: int, guesses: int, right: int, *, delta: Number = 0, miss: float = 0.05
) -> float:
    """Return the largest epsilon that the guesses rule out, but for an error of probability `miss`.

    >>> round(one_run_epsilon(1000, 1000, 750), 4)
    0.9767
    """
    wrong = read_miss(miss)

    def ruled_out(epsilon: float) -> bool:
        return one_run_miss(canaries, guesses, right, epsilon=epsilon, delta=delta) <= wrong

    return largest(ruled_out, 0.0, _LARGEST) if ruled_out(0.0) else 0.0
