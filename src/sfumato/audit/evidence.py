"""Evidence: how often one event happened under each of two neighbours, and the epsilon that this proves."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.core.arguments import FloatArray, exact
from sfumato.core.proportion import Proportion, clopper_pearson
from sfumato.errors import InvalidArgument

__all__ = ["Evidence", "epsilon_of_counts", "read_miss"]


def epsilon_of_counts(
    likely: npt.ArrayLike, unlikely: npt.ArrayLike, trials: tuple[int, int], *, delta: float, miss: float
) -> FloatArray:
    """Return ln((p_low - delta) / q_high) for hits of an event under two neighbours, zero at least.

    Theorem: if the mechanism is (epsilon, delta)-private, P(S) <= e^epsilon Q(S) + delta for every event S
    and every pair of neighbours, in both orders. For an event fixed before the trials, hits are binomial;
    p_low is above P(S) with probability at most miss / 2, q_high below Q(S) with probability at most
    miss / 2 (Clopper and Pearson 1934). Unless one of these happens, epsilon is at least what is returned.
    Assumes: trials are independent, and independent of how the event was chosen.

    >>> [round(float(bound), 2) for bound in epsilon_of_counts(5000, [5000, 1000, 0], (10**4, 10**4),
    ...     delta=0.0, miss=1e-6)]
    [0.0, 1.42, 5.79]
    """
    low, _ = clopper_pearson(likely, trials[0], miss / 2)
    _, high = clopper_pearson(unlikely, trials[1], miss / 2)
    excess = np.maximum(low - delta, 0.0)
    with np.errstate(divide="ignore"):
        return np.maximum(np.log(excess / high), 0.0)


def read_miss(miss: Any) -> float:
    """Read a probability of error: above zero, below one."""
    value = float(exact(miss, "miss"))
    if not 0 < value < 1:
        raise InvalidArgument(
            "miss must lie between 0 and 1", place="miss", hints=("1e-9 is one error in a thousand million",)
        )
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A lower bound on epsilon at `delta`, which is above the truth with probability at most `miss`.

    `likely` are the hits under the neighbour under which the event is the more likely one, `unlikely` those
    under the other; `pair` says which neighbours, `event` what was looked for, `samples` how many outputs
    were spent on choosing them.

    >>> from sfumato.audit import lower_bound
    >>> found = lower_bound(lambda data, n: [len(data)] * n, [], ["Ada"], trials=2_000)
    >>> found.epsilon > 4, found.miss
    (True, 1e-09)
    """

    epsilon: float
    delta: float
    miss: float
    pair: str
    event: str
    likely: Proportion
    unlikely: Proportion
    samples: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, JSON-ready."""
        return asdict(self)

    def __str__(self) -> str:
        if not self.epsilon:
            return "no event tells the neighbours apart: epsilon is at least 0"
        at = f" at delta {self.delta:g}" if self.delta else ""
        return (
            f"epsilon is at least {self.epsilon:.3f}{at}: between {self.pair}, the event {self.event}"
            f" happened {self.likely.hits} times in {self.likely.trials}"
            f" and {self.unlikely.hits} times in {self.unlikely.trials};"
            f" wrong with probability at most {self.miss:.0e}"
        )
