"""Randomized response (Warner 1965): every person randomises their own answer before anyone sees it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.core import events
from sfumato.core.arguments import FloatArray, Number, budget_quantity, count, probability
from sfumato.core.coins import bernoulli
from sfumato.core.exponential import exp_below, log_above
from sfumato.core.finite import FiniteMechanism
from sfumato.core.mechanism import confidence
from sfumato.core.proportion import clopper_pearson
from sfumato.core.uniform import uniform_below
from sfumato.errors import InvalidArgument, Unsupported

__all__ = ["Proportions", "RandomizedResponseMechanism"]

_LARGEST_EPSILON = 700  # beyond this a lie is rarer than one in 10^304: nobody is protected


@dataclass(frozen=True, slots=True, kw_only=True)
class Proportions:
    """What reports say about the population: one entry per answer."""

    values: FloatArray
    """Unbiased estimates; they sum to one, and noise may push one below 0 or above 1."""
    standard_errors: FloatArray
    reports: int


@dataclass(frozen=True, slots=True, init=False)
class RandomizedResponseMechanism:
    """Report the true answer with probability `truth`, every other answer equally often.

    Answers are 0 .. choices - 1; with two choices also False and True.

    Theorem: the largest ratio of a report's probabilities is that of `truth` and the
    probability of one lie (Warner 1965; Kairouz, Oh and Viswanath 2016 for many choices).

    >>> RandomizedResponseMechanism.coin_toss().max_ratio  # epsilon is exactly ln 3
    Fraction(3, 1)
    >>> reports = RandomizedResponseMechanism.coin_toss().release([True, False, True])
    >>> reports.dtype, reports.shape
    (dtype('bool'), (3,))
    """

    truth: Fraction
    choices: int

    def __init__(self, truth: Number, *, choices: int = 2) -> None:
        object.__setattr__(self, "truth", probability(truth, "truth"))
        object.__setattr__(self, "choices", count(choices, "choices", least=2))
        if self.choices > 2**62:
            hint = "hash the answers to fewer choices"
            raise InvalidArgument("choices must be at most 2^62", place="choices", hints=(hint,))
        if self.truth in (0, 1):
            hint = "an answer that is always or never reported protects nobody"
            raise InvalidArgument("truth must be above 0 and below 1", place="truth", hints=(hint,))

    @classmethod
    def coin_toss(cls) -> RandomizedResponseMechanism:
        """Heads: tell the truth. Tails: toss again, and report heads as yes. Exactly ln 3."""
        return cls(Fraction(3, 4))

    @classmethod
    def biased_coin(cls, p: Number) -> RandomizedResponseMechanism:
        """Answer truly with probability p, and the opposite otherwise; p = 2/3 is ln 2."""
        return cls(p)

    @classmethod
    def from_epsilon(cls, epsilon: Number, *, choices: int = 2) -> RandomizedResponseMechanism:
        """Tell the truth as often as epsilon allows: e^epsilon / (e^epsilon + choices - 1).

        Rounds: down, to a rational: `epsilon` of the result is at most what was asked for,
        and short of it by less than 2^-64.
        """
        loss = budget_quantity(epsilon, "epsilon")
        others = count(choices, "choices", least=2) - 1
        if loss > _LARGEST_EPSILON:
            raise InvalidArgument(
                f"epsilon must be at most {_LARGEST_EPSILON} here",
                place="epsilon",
                hints=("with an epsilon that large nearly every report is the truth",),
            )
        bound = exp_below(loss)
        shift = max(0, 96 - (int(bound).bit_length()))
        ratio = Fraction(int(bound * 2**shift), 2**shift)  # a short rational, so that coins are cheap
        return cls(ratio / (ratio + others), choices=choices)

    @property
    def lie(self) -> Fraction:
        """The probability of each single false answer."""
        return (1 - self.truth) / (self.choices - 1)

    @property
    def max_ratio(self) -> Fraction:
        """The exact e^epsilon."""
        return max(self.truth, self.lie) / min(self.truth, self.lie)

    @property
    def epsilon(self) -> float:
        """The pure epsilon of one report. Rounds: up, to the next float."""
        return log_above(self.max_ratio)

    @property
    def event(self) -> events.Event:
        """What one report costs its sender."""
        return events.RandomizedResponse(truth=self.truth, choices=self.choices)

    def matrix(self) -> FiniteMechanism:
        """Return the same mechanism as a stochastic matrix."""
        answers = range(self.choices)
        return FiniteMechanism([[self.pmf(report, answer) for report in answers] for answer in answers])

    def pmf(self, output: int, value: int) -> Fraction:
        """Return the exact probability of a report given the true answer."""
        return self.truth if self._answer(output, "output") == self._answer(value, "value") else self.lie

    def privacy_loss(self, output: int, x: int, y: int) -> float:
        """Return ln(pmf(output, x) / pmf(output, y))."""
        with_x, with_y = self.pmf(output, x), self.pmf(output, y)
        return log_above(with_x / with_y) if with_x >= with_y else -log_above(with_y / with_x)

    def release(self, value: Any) -> Any:
        """Randomise one answer, or each answer of an array.

        The person who answers runs this; an answer outside the choices is that person's
        mistake, and the refusal does not repeat it. Booleans come back as booleans.
        """
        if isinstance(value, (bool, int, np.bool_, np.integer)):
            told = self._draw(np.array([self._answer(value, "value")]))
            return bool(told[0]) if isinstance(value, (bool, np.bool_)) else int(told[0])
        answers = np.asarray(value)
        told = self._draw(self._answers(answers, "value").ravel()).reshape(answers.shape)
        return told.astype(np.bool_) if answers.dtype == np.bool_ else told

    def _draw(self, answers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        honest = bernoulli(self.truth, size=len(answers))
        steps = 1 + uniform_below(self.choices - 1, size=len(answers))  # how far away the lie is
        return np.where(honest, answers, (answers + steps) % self.choices)

    def estimate(self, reports: npt.ArrayLike) -> Proportions:
        """Estimate the proportion of every answer among those who reported.

        Theorem: with p = truth and q = lie, (share - q) / (p - q) is unbiased, whatever the
        answers were (Warner 1965). The standard error plugs the estimate into `variance`.

        >>> estimate = RandomizedResponseMechanism.coin_toss().estimate([1, 1, 0, 1])  # Y = 3/4
        >>> estimate.values.tolist()  # p = 2Y - 1/2
        [0.0, 1.0]
        """
        counts, n = self._counts(reports)
        # Exact integers and one rounding: f = (c/n - q) / (p - q), times n and all denominators.
        yes, all_, others = self.truth.numerator, self.truth.denominator, self.choices - 1
        divisor = n * (yes * others - (all_ - yes))
        values = np.array([(c * all_ * others - n * (all_ - yes)) / divisor for c in counts])
        rare, common = self.variance(0, n), self.variance(1, n)
        errors = np.sqrt(rare + (common - rare) * np.clip(values, 0.0, 1.0))
        return Proportions(values=values, standard_errors=errors, reports=n)

    def variance(self, frequency: Number, n: int) -> float:
        """Return the variance of the estimate for an answer that a `frequency` of n people gave.

        Theorem: (f p(1-p) + (1-f) q(1-q)) / (n (p-q)^2), for each report is an independent coin.
        """
        f, p, q = probability(frequency, "frequency"), self.truth, self.lie
        self._check_informative()
        return float((f * p * (1 - p) + (1 - f) * q * (1 - q)) / (count(n, "n") * (p - q) ** 2))

    def interval(self, reports: npt.ArrayLike, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Return lower and upper limits for the proportion of every answer, each at `level`.

        Theorem: reports of a random sample are independent coins of one bias, which Clopper
        and Pearson (1934) cover at any size; for a fixed group of people the number of
        reports varies less than that (Hoeffding 1956), so their own proportions are covered too.
        """
        miss = float(1 - confidence(level)) / 2
        counts, n = self._counts(reports)
        low, high = clopper_pearson(counts, n, miss)
        p, q = float(self.truth), float(self.lie)
        limits = np.clip((np.array([low, high]) - q) / float(self.truth - self.lie), 0.0, 1.0)
        return (limits[0], limits[1]) if p > q else (limits[1], limits[0])

    def _counts(self, reports: npt.ArrayLike) -> tuple[list[int], int]:
        self._check_informative()
        told = self._answers(np.asarray(reports), "reports").ravel()
        if not len(told):
            raise InvalidArgument("at least one report is needed", place="reports")
        return np.bincount(told, minlength=self.choices).tolist(), len(told)

    def _check_informative(self) -> None:
        if self.truth == self.lie:
            raise Unsupported(
                "the reports are pure noise: every answer is equally likely whatever the truth",
                place="truth",
                hints=(f"raise truth above 1/{self.choices}",),
            )

    def _answer(self, value: Any, name: str) -> int:
        boolean = isinstance(value, (bool, np.bool_))
        whole = self.choices == 2 if boolean else isinstance(value, (int, np.integer))
        if not whole or not 0 <= int(value) < self.choices:
            raise self._outside(name)
        return int(value)

    def _answers(self, array: npt.NDArray[Any], name: str) -> npt.NDArray[np.int64]:
        if array.dtype == np.bool_ and self.choices == 2:
            return array.astype(np.int64)
        if array.size and (array.dtype.kind not in "iu" or ((array < 0) | (array >= self.choices)).any()):
            raise self._outside(name)
        return array.astype(np.int64)

    def _outside(self, name: str) -> InvalidArgument:
        return InvalidArgument(
            f"{name} must be whole numbers from 0 to {self.choices - 1}",
            place=name,
            hints=("code the answers as 0, 1, 2, ...; True and False where there are two",),
        )
