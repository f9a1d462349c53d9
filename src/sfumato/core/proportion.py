"""A proportion that was counted, and what the count says about the probability behind it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sfumato.core.arguments import FloatArray, count
from sfumato.core.mechanism import confidence
from sfumato.core.scientific import scientific
from sfumato.errors import InvalidArgument

__all__ = ["Proportion", "clopper_pearson"]


def clopper_pearson(hits: npt.ArrayLike, trials: int, miss: float) -> tuple[FloatArray, FloatArray]:
    """Return limits of the probability of a hit; each is wrong with probability at most `miss`.

    Theorem: for independent trials the limits are quantiles of beta laws, and hold at every
    size and every probability (Clopper and Pearson 1934).
    """
    special = scientific("special")
    betainccinv, betaincinv = special.betainccinv, special.betaincinv
    c = np.atleast_1d(np.asarray(hits, dtype=np.float64))
    low, high = np.zeros(c.shape), np.ones(c.shape)
    some, rest = c > 0, c < trials
    low[some] = betaincinv(c[some], trials - c[some] + 1, miss)
    high[rest] = betainccinv(c[rest] + 1, trials - c[rest], miss)
    return low, high


@dataclass(frozen=True, slots=True, kw_only=True)
class Proportion:
    """A number of hits in a number of independent trials.

    >>> guessed = Proportion(hits=731, trials=1000)
    >>> guessed.share
    0.731
    >>> [round(limit, 3) for limit in guessed.interval(0.95)]
    [0.702, 0.758]
    """

    hits: int
    trials: int

    def __post_init__(self) -> None:
        trials = count(self.trials, "trials")
        if count(self.hits, "hits", least=0) > trials:
            raise InvalidArgument("there are more hits than trials", place="hits")

    @property
    def share(self) -> float:
        """The share of trials that hit."""
        return self.hits / self.trials

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return limits that hold the probability behind the count with probability at least `level`."""
        low, high = clopper_pearson(self.hits, self.trials, float(1 - confidence(level)) / 2)
        return float(low[0]), float(high[0])
