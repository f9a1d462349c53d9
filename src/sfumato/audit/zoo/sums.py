"""Broken sums: sensitivities that the arithmetic, the data or an expression does not keep."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from sfumato.audit.neighbours import numbers
from sfumato.audit.subject import ONE, Animal, Subject
from sfumato.core.grid import Grid
from sfumato.core.laplace import LaplaceMechanism
from sfumato.core.noise import discrete_laplace

__all__ = ["ANIMALS", "sum_subject"]

_STEPS = 64  # of the noise's grid, per unit


def _clamped(data: Any, upper: float) -> Any:
    """Return values between 0 and a bound; NaN counts as 0."""
    values = np.asarray(data, dtype=np.float64)
    return np.clip(np.where(np.isnan(values), 0.0, values), 0.0, upper)


def _noisy(total: float, sensitivity: float, trials: int) -> Any:
    scale = max(1, math.ceil(_STEPS * sensitivity))
    return round(_STEPS * total) + discrete_laplace(scale, size=trials)


def _float_sum(data: Any, trials: int) -> Any:
    """Add up in 32-bit floats, in the order of the list, as a GPU or a REAL column does."""
    values = np.append(np.float32(0), _clamped(data, 1.0).astype(np.float32))
    return _noisy(float(np.cumsum(values, dtype=np.float32)[-1]), 1.0, trials)


def _overflowing(data: Any, trials: int) -> Any:
    total = np.sum(np.rint(_clamped(data, 100.0)).astype(np.int16), dtype=np.int16)
    return _noisy(float(total), 100.0, trials)


def _range_of_data(data: Any, trials: int) -> Any:
    values = np.array([value for value in data if math.isfinite(value)])
    sensitivity = float(np.ptp(values)) if len(values) else 1.0
    return _noisy(float(values.sum()), sensitivity, trials)


def _raising(data: Any, trials: int) -> Any:
    if any(not 0 <= value <= 10 for value in data):
        raise ValueError("a value lies outside the declared bounds")
    return _noisy(float(_clamped(data, 10.0).sum()), 10.0, trials)


def _average(data: Any, trials: int, *, scale: int) -> Any:
    """Return a noisy sum and a noisy count, from which everyone computes the average."""
    total = _noisy(float(_clamped(data, 10.0).sum()), scale * 10.0, trials)
    return np.stack([total, len(data) + discrete_laplace(scale, size=trials)], axis=1)


def _median(data: Any, trials: int) -> Any:
    """Scale noise to how far the median would move here, not to how far it may move anywhere."""
    clean = np.sort(_clamped(data, 100.0))
    padded = np.concatenate([[0.0], clean, [100.0]])
    at = (len(clean) - 1) // 2 + 1 if len(clean) else 0
    local = max(padded[at + 1] - padded[at], padded[at] - padded[max(0, at - 1)])
    noise = discrete_laplace(max(local * _STEPS, 2.0**-20), size=trials)
    return round(_STEPS * float(padded[at])) + noise


def _median_fixed(data: Any, trials: int) -> Any:
    clean = np.sort(_clamped(data, 100.0))
    middle = float(clean[(len(clean) - 1) // 2]) if len(clean) else 0.0
    return _noisy(middle, 100.0, trials)


def _subject(name: str, run: Any, upper: float, trials: int = 20_000) -> Subject:
    return Subject(name=name, claim=ONE, run=run, neighbours=numbers(0, upper), trials=trials)


def sum_subject(upper: int) -> Subject:
    """Return a sum of the core as a subject: clamped and rounded to a grid, value by value."""
    grid = Grid(step=Fraction(1, _STEPS), lower=0, upper=upper)
    noise = LaplaceMechanism.from_epsilon(1, sensitivity=grid.sensitivity)

    def run(data: Any, trials: int) -> Any:
        total = int(grid.to_integers(np.array(data, dtype=np.float64)).sum())
        return noise.release(np.full(trials, total))

    return _subject(f"a sum on a grid up to {upper}", run, upper, 40_000)


_TO_TEN = sum_subject(10)


ANIMALS = (
    Animal(
        subject=_subject("float sums", _float_sum, 1),
        twin=sum_subject(1),
        mistake="a running sum in floats rounds the other way after one person, again and again",
        source="Casacuberta, Shoemate, Vadhan and Wagaman 2022, Widespread underestimation of sensitivity",
    ),
    Animal(
        subject=_subject("integers that run over", _overflowing, 100),
        twin=sum_subject(100),
        mistake="a sum of clamped integers wraps around: one person moves it by 65,536",
        source="Casacuberta, Shoemate, Vadhan and Wagaman 2022, on modular sums",
    ),
    Animal(
        subject=_subject("bounds from the data", _range_of_data, 10),
        twin=_TO_TEN,
        mistake="without declared bounds, the range of the data stands in for the sensitivity",
        source="libraries that read missing bounds off the data, with or without a warning",
    ),
    Animal(
        subject=_subject(
            "an unclamped expression",
            lambda data, trials: _noisy(float((1000 * _clamped(data, 10.0)).sum()), 10.0, trials),
            10,
        ),
        twin=_TO_TEN,
        mistake="the column is clamped, and what is computed from it is not: SUM(1000 * x)",
        source="a peer's SQL engine clamped columns and not CASE WHEN name = 'bob' THEN 1e9 * x END",
    ),
    Animal(
        subject=_subject("an error for one person", _raising, 10),
        twin=_TO_TEN,
        mistake="a value outside its bounds raises: the error tells that such a person is there",
        source="casts, divisions and checks that fail only if a certain row exists",
    ),
    Animal(
        subject=_subject("an average charged half", partial(_average, scale=1), 10, 40_000),
        twin=_subject("an average charged whole", partial(_average, scale=2), 10, 40_000),
        mistake="AVG is a sum and a count with epsilon each, and is charged epsilon",
        source="a peer charged AVG half of what its two parts cost",
    ),
    Animal(
        subject=_subject("a median with local noise", _median, 100),
        twin=_subject("a median with global noise", _median_fixed, 100),
        mistake="noise is scaled to the sensitivity at the data at hand, which itself tells",
        source="local sensitivity, shown to fail by Nissim, Raskhodnikova and Smith 2007",
    ),
)
