"""Broken noise: too little, of the wrong law, or of floats that tell."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.audit.neighbours import numbers
from sfumato.audit.subject import ONE, Animal, Subject
from sfumato.core.noise import discrete_laplace
from sfumato.core.uniform import uniform_below

__all__ = ["ANIMALS"]

_COUNTED = numbers(0, 1)


def _count(data: Any, trials: int, *, scale: float = 1) -> Any:
    return len(data) + discrete_laplace(scale, size=trials)


def _float_noise(data: Any, trials: int) -> Any:
    """Textbook inverse sampling in doubles: the law is right but for bits that nobody looks at."""
    uniform = (uniform_below(2**53, size=trials) + 0.5) / 2**53 - 0.5
    return len(data) - np.sign(uniform) * np.log1p(-2 * np.abs(uniform))


def _drawn_until(trials: int, fits: Any) -> npt.NDArray[np.int64]:
    noise = discrete_laplace(1, size=trials)
    while not (good := fits(noise)).all():
        noise[~good] = discrete_laplace(1, size=int((~good).sum()))
    return noise


def _suppressed_after(data: Any, trials: int) -> Any:
    noisy = _count(data, trials)
    return np.where(noisy < 10, np.nan, noisy.astype(np.float64))


def _subject(name: str, run: Any, trials: int = 40_000) -> Subject:
    return Subject(name=name, claim=ONE, run=run, neighbours=_COUNTED, trials=trials)


_TWIN = _subject("a count with discrete Laplace noise", _count)

ANIMALS = (
    Animal(
        subject=_subject("half the noise", partial(_count, scale=0.5)),
        twin=_TWIN,
        mistake="a count gets noise of scale 1 / (2 epsilon)",
        source="a factor of two lost between sensitivity and scale; the commonest mistake of all",
    ),
    Animal(
        subject=_subject("float noise", _float_noise),
        twin=_TWIN,
        mistake="Laplace noise is computed in doubles, whose low bits tell what it was added to",
        source="Mironov 2012, On significance of the least significant bits for differential privacy",
    ),
    Animal(
        subject=_subject(
            "truncated noise",
            lambda data, trials: len(data) + _drawn_until(trials, lambda noise: np.abs(noise) <= 4),
            100_000,
        ),
        twin=_TWIN,
        mistake="noise beyond four scales is drawn again, so some answers rule a neighbour out",
        source="outliers cut for the look of it; such noise has a delta, here 0.8%, which nobody states",
    ),
    Animal(
        subject=_subject(
            "never below zero",
            lambda data, trials: len(data) + _drawn_until(trials, lambda noise: len(data) + noise >= 0),
            200_000,
        ),
        twin=_subject(
            "zero for negative counts, afterwards", lambda data, trials: np.maximum(0, _count(data, trials))
        ),
        mistake="noise is drawn again until the count is not negative: the law's total depends on the data",
        source="rejection in place of post-processing; the true epsilon is 1.21",
    ),
    Animal(
        subject=_subject(
            "small cells suppressed",
            lambda data, trials: [None] * trials if len(data) < 10 else _count(data, trials),
        ),
        twin=_subject("small noisy cells suppressed", _suppressed_after),
        mistake="a count below ten is withheld: whether it is shows the exact count",
        source="disclosure control by cell suppression, with noise added to what is left",
    ),
)
