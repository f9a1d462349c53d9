"""Descent on noisy gradients: what is done with them is post-processing, and free.

Nesterov's accelerated gradient descent with a fixed rate, on features that are centred and scaled; the model
is the mean of the second half of the points it visits, which averages their noise. Steps, clip, rate and
momentum are chosen without looking at private data: what the defaults were measured on is in
docs/training.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.core.arguments import FloatArray, count, positive
from sfumato.errors import InvalidArgument
from sfumato.learn.gradients import FARTHEST, SENSITIVITY
from sfumato.learn.moments import Scaling

__all__ = ["Descent", "DescentState", "moderate"]


def moderate(value: Any, name: str) -> float:
    """Return a setting of a training that is from 1e-6 to 1e6: floats hold all that is made of it.

    >>> moderate(10, "rate")
    10.0
    """
    exact = positive(value, name)
    if not Fraction(1, 10**6) <= exact <= 10**6:
        raise InvalidArgument(f"{name} is from 1e-6 to 1e6", place=name)
    return float(exact)


@dataclass(frozen=True, slots=True, kw_only=True)
class Descent:
    """How parameters move: `steps` of a `rate`, along gradients that are clipped to the norm `clip`.

    The rate is divided by the sum of the variances of features, which bounds the curvature of the loss.
    `shrinkage` is the weight of half the squared norm of the coefficients beside the mean loss of units;
    None: as much as the noise asks for, which is public (`_shrinkage`).
    """

    steps: int = 100
    clip: float = 1.0
    rate: float = 10.0
    momentum: float = 0.9
    shrinkage: float | None = 0.0

    def __str__(self) -> str:
        shrinkage = "by noise" if self.shrinkage is None else f"{self.shrinkage:g}"
        return (
            f"steps {self.steps}, clip {self.clip:g}, rate {self.rate:g}, momentum {self.momentum:g},"
            f" shrinkage {shrinkage}"
        )

    def __post_init__(self) -> None:
        count(self.steps, "steps", most=10_000)
        for name in ("clip", "rate"):
            object.__setattr__(self, name, moderate(getattr(self, name), name))
        for name in ("momentum", "shrinkage"):
            if not 0 <= (getattr(self, name) or 0) < 1:
                raise InvalidArgument(f"{name} is at least 0 and below 1", place=name)

    def start(self, features: int, classes: int) -> DescentState:
        """Return the state before the first step: all parameters are 0."""
        zeros = np.zeros((features, classes))
        return DescentState(step=0, point=zeros, velocity=zeros, total=zeros, averaged=0)

    def update(
        self, state: DescentState, noisy: npt.NDArray[Any], scaling: Scaling, deviation: float
    ) -> DescentState:
        """Return the state after a step along a noisy sum of clipped gradients of scaled features.

        The `deviation` is that of the noise.
        """
        unit = self.clip / SENSITIVITY / scaling.divisor
        gradient = noisy.astype(np.float64) * unit
        gradient[:-1] += self._shrinkage(deviation * unit, scaling) * state.ahead(self.momentum)[:-1]
        velocity = np.clip(
            self.momentum * state.velocity - self.rate / scaling.spread * gradient, -FARTHEST, FARTHEST
        )
        point, late = np.clip(state.point + velocity, -FARTHEST, FARTHEST), 2 * state.step >= self.steps
        return DescentState(
            step=state.step + 1,
            point=point,
            velocity=velocity,
            total=state.total + point if late else state.total,
            averaged=state.averaged + late,
        )

    def _shrinkage(self, noise: float, scaling: Scaling) -> float:
        """Return the shrinkage: three times the noise of the mean of the second half of the gradients.

        Along features that vary little, noise would move coefficients far; there they stay small.
        """
        if self.shrinkage is not None:
            return self.shrinkage
        return min(3 * noise * math.sqrt(2 / self.steps), scaling.spread / self.rate)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DescentState:
    """Where a descent is: public, for it has seen nothing but noisy gradients."""

    step: int
    point: FloatArray
    velocity: FloatArray
    total: FloatArray
    averaged: int

    def ahead(self, momentum: float) -> FloatArray:
        """Return where gradients are taken: a step ahead by the velocity alone."""
        return self.point + momentum * self.velocity

    @property
    def mean(self) -> FloatArray:
        """The mean of the points of the second half."""
        return self.total / max(1, self.averaged)
