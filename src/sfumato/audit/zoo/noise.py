"""Broken noise: too little, of the wrong law, or of floats that tell."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.audit.neighbours import numbers
from sfumato.audit.subject import Claim, Subject
from sfumato.audit.zoo.animal import Animal
from sfumato.core.noise import discrete_laplace
from sfumato.core.uniform import uniform_below

__all__ = ["ANIMALS"]

_ONE = Claim(epsilon=1)
_COUNTED = numbers(0, 1)


def _count(data: Any, trials: int) -> Any:
    return len(data) + discrete_laplace(1, size=trials)


def _half_noise(data: Any, trials: int) -> Any:
    return len(data) + discrete_laplace(0.5, size=trials)


def _float_noise(data: Any, trials: int) -> Any:
    """Textbook inverse sampling in doubles: the law is right but for bits that nobody looks at."""
    uniform = (uniform_below(2**53, size=trials) + 0.5) / 2**53 - 0.5
    return len(data) - np.sign(uniform) * np.log1p(-2 * np.abs(uniform))


def _truncated(data: Any, trials: int) -> Any:
    return len(data) + _drawn_until(trials, lambda noise: np.abs(noise) <= 4)


def _non_negative(data: Any, trials: int) -> Any:
    people = len(data)
    return people + _drawn_until(trials, lambda noise: people + noise >= 0)


def _non_negative_after(data: Any, trials: int) -> Any:
    return np.maximum(0, _count(data, trials))


def _drawn_until(trials: int, fits: Any) -> npt.NDArray[np.int64]:
    noise = discrete_laplace(1, size=trials)
    while not (good := fits(noise)).all():
        noise[~good] = discrete_laplace(1, size=int((~good).sum()))
    return noise


def _suppressed(data: Any, trials: int) -> Any:
    return [None] * trials if len(data) < 10 else _count(data, trials)


def _suppressed_after(data: Any, trials: int) -> Any:
    noisy = _count(data, trials)
    return np.where(noisy < 10, np.nan, noisy.astype(np.float64))


_TWIN = Subject(name="a count with discrete Laplace noise", claim=_ONE, run=_count, neighbours=_COUNTED)

ANIMALS = (
    Animal(
        subject=Subject(name="half the noise", claim=_ONE, run=_half_noise, neighbours=_COUNTED),
        twin=_TWIN,
        mistake="a count gets noise of scale 1 / (2 epsilon)",
        source="a factor of two lost between sensitivity and scale; the commonest mistake of all",
    ),
    Animal(
        subject=Subject(name="float noise", claim=_ONE, run=_float_noise, neighbours=_COUNTED),
        twin=_TWIN,
        mistake="Laplace noise is computed in doubles, whose low bits tell what it was added to",
        source="Mironov 2012, On significance of the least significant bits for differential privacy",
    ),
    Animal(
        subject=Subject(
            name="truncated noise", claim=_ONE, run=_truncated, neighbours=_COUNTED, trials=100_000
        ),
        twin=_TWIN,
        mistake="noise beyond four scales is drawn again, so some answers rule a neighbour out",
        source="outliers cut for the look of it; such noise has a delta, here 0.8%, which nobody states",
    ),
    Animal(
        subject=Subject(
            name="never below zero", claim=_ONE, run=_non_negative, neighbours=_COUNTED, trials=200_000
        ),
        twin=Subject(
            name="zero for negative counts, afterwards",
            claim=_ONE,
            run=_non_negative_after,
            neighbours=_COUNTED,
        ),
        mistake="noise is drawn again until the count is not negative: the law's total depends on the data",
        source="rejection in place of post-processing; the true epsilon is 1.21",
    ),
    Animal(
        subject=Subject(name="small cells suppressed", claim=_ONE, run=_suppressed, neighbours=_COUNTED),
        twin=Subject(
            name="small noisy cells suppressed", claim=_ONE, run=_suppressed_after, neighbours=_COUNTED
        ),
        mistake="a count below ten is withheld: whether it is shows the exact count",
        source="disclosure control by cell suppression, with noise added to what is left",
    ),
)
