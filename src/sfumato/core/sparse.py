"""The sparse vector technique: pay for the few queries that exceed a threshold, not for the others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from threading import Lock
from typing import NoReturn

import numpy as np

from sfumato.core.arguments import MOST_EVENTS, Number, budget_quantity, count, exact, positive
from sfumato.core.entropy import process_id
from sfumato.core.events import Event, Pure
from sfumato.core.laplace import laplace_masses, laplace_tails
from sfumato.core.noise import discrete_laplace
from sfumato.errors import BudgetExceeded, InvalidArgument, Unsupported

__all__ = ["SparseVector"]

_MOST_TERMS = 10**7
_WIDEST = 10**100
_REACH = 45  # in scales: what lies beyond has a probability below 1e-19


class SparseVector:
    """Say of each query whether it exceeds `threshold`, until `crossings` of them did.

    Queries may be chosen after seeing earlier answers; each moves by at most `sensitivity`
    when one person is added or removed. The whole run costs `epsilon`, charged at creation
    however many queries are asked. A mechanism is monotone if one person moves all its
    queries in one direction: counts are; half the noise on the queries is then enough.

    Noise is a whole number of `step`s (default: the sensitivity). With D = ceil(sensitivity
    / step), the threshold's noise R has scale D / e1 and is drawn once; every query's noise N
    has scale 2 D crossings / e2 (D crossings / e2, if monotone); e1 + e2 = epsilon, split as
    1 : (2 crossings)^(2/3) (crossings^(2/3), if monotone), which is nearly optimal.

    Theorem: epsilon-DP (Dwork et al. 2009; this form: Lyu, Su and Li 2017, Algorithm 7). Take
    a neighbour and put R + D for R, at a price of e1. All queries below stay below: each rose by
    at most D. Those above stay above if their N grows by 2D, at a price of e2 / crossings each.
    If monotone and the neighbour's queries are lower, R stays and N grows by D; if higher, R + D
    and N + D.

    Variants that are not private (ibid.) leave out noise on the queries, the factor of the crossings
    in it, or the limit to the crossings, or publish a value with the noise that decided.

    >>> alarm = SparseVector(threshold=1000, epsilon=1, monotone=True)
    >>> alarm.ask(3), alarm.ask(20_000), alarm.remaining
    (False, True, 0)
    """

    __slots__ = (
        "__weakref__", "_lock", "_noise", "_process", "crossings", "epsilon", "monotone",
        "remaining", "sensitivity", "step", "threshold",
    )  # fmt: skip

    def __init__(
        self,
        threshold: Number,
        *,
        epsilon: Number,
        sensitivity: Number = 1,
        crossings: int = 1,
        monotone: bool = False,
        step: Number | None = None,
    ) -> None:
        self.threshold = exact(threshold, "threshold")
        self.epsilon = budget_quantity(epsilon, "epsilon")
        self.sensitivity = positive(sensitivity, "sensitivity")
        self.crossings = count(crossings, "crossings", most=MOST_EVENTS)
        if not isinstance(monotone, bool):
            raise InvalidArgument("monotone must be True or False", place="monotone")
        self.monotone = monotone
        self.step = self.sensitivity if step is None else positive(step, "step")
        if max(self.threshold_scale, self.query_scale) > _WIDEST:
            raise InvalidArgument(
                "the noise would be wider than 1e100 steps",
                place="epsilon" if step is None else "step",
                hints=("choose a larger epsilon or a larger step",),
            )
        self.remaining = self.crossings
        self._lock = Lock()
        self._process = process_id()
        self._noise = discrete_laplace(self.threshold_scale)

    @property
    def event(self) -> Event:
        """What the whole run costs, to be charged before the first query."""
        return Pure(loss=self.epsilon)

    @property
    def threshold_epsilon(self) -> Fraction:
        """The part of epsilon that the threshold's noise uses: a rational near the best split."""
        weight = (self.crossings if self.monotone else 2 * self.crossings) ** (2 / 3)
        return self.epsilon / (1 + Fraction(math.ceil(weight * 1024), 1024))

    @property
    def threshold_scale(self) -> Fraction:
        """The scale of the threshold's noise, in steps."""
        return math.ceil(self.sensitivity / self.step) / self.threshold_epsilon

    @property
    def query_scale(self) -> Fraction:
        """The scale of every query's noise, in steps."""
        shift = math.ceil(self.sensitivity / self.step) * (1 if self.monotone else 2)
        return shift * self.crossings / (self.epsilon - self.threshold_epsilon)

    def ask(self, value: Number) -> bool:
        """Return whether `value` plus noise reaches the noisy threshold.

        Refuses once all crossings are used up, which everyone can see from the answers. The
        value must be finite: put it through a `Grid` first.
        """
        with self._lock:  # two threads must not both use the last crossing
            if self._process != process_id():
                hint = "a copy would answer again with the same threshold noise; begin a new run"
                raise Unsupported("this run was begun in another process", hints=(hint,))
            if not self.remaining:
                raise BudgetExceeded(
                    f"all {self.crossings} crossings of this run are used up",
                    requested=Fraction(1),
                    remaining=Fraction(0),
                    hints=("begin a new run; it costs epsilon again",),
                )
            above = discrete_laplace(self.query_scale) >= self._needed(value) + self._noise
            self.remaining -= above
            return above

    def pmf(self, output: Sequence[bool], values: Sequence[Number]) -> float:
        """Return the probability of a sequence of answers in a fresh run, accurate to 1e-12."""
        if len(output) != len(values):
            raise InvalidArgument("output and values must have the same length", place="output")
        used = np.cumsum([bool(answer) for answer in output])
        if len(used) and (used[:-1] >= self.crossings).any():
            return 0.0  # the run ends with the last crossing
        needed = [self._needed(value) for value in values]
        reach = math.ceil(_REACH * self.threshold_scale) + 1
        far = max((abs(n) for n in needed), default=0)
        if (2 * reach + far) * (len(needed) + 1) > _MOST_TERMS:
            raise Unsupported("the law of this run has too many terms to sum", hints=("use a larger step",))
        noise = np.arange(-reach - far, reach + far + 1)
        chances = laplace_masses(noise, float(self.threshold_scale))
        for answer, least in zip(output, needed, strict=True):
            chances = chances * laplace_tails(noise + least, float(self.query_scale), above=bool(answer))
        return math.fsum(chances)

    def privacy_loss(self, output: Sequence[bool], x: Sequence[Number], y: Sequence[Number]) -> float:
        """Return ln(pmf(output, x) / pmf(output, y))."""
        with_x, with_y = self.pmf(output, x), self.pmf(output, y)
        if with_x == 0 or with_y == 0:
            raise Unsupported("these answers cannot occur, or hardly ever")
        return math.log(with_x / with_y)

    def _needed(self, value: Number) -> int:
        """Return how many steps of noise more than the threshold's a query needs."""
        try:
            return math.ceil((self.threshold - exact(value, "value")) / self.step)
        except InvalidArgument:
            hint = "put private values through a Grid"
            raise InvalidArgument("value must be a finite number", place="value", hints=(hint,)) from None

    def __repr__(self) -> str:
        return f"<SparseVector epsilon={self.epsilon}, {self.remaining} of {self.crossings} crossings left>"

    def __reduce__(self) -> NoReturn:
        raise Unsupported(
            "a run cannot be copied or stored: two copies would share one threshold noise",
            hints=("begin a new run; it costs epsilon again",),
        )
