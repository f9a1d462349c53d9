"""The questions put to both sides: standard library only, for two environments import it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

__all__ = [
    "ACCOUNTING",
    "DRAWS",
    "SCALES",
    "SIGMA",
    "Case",
    "Part",
    "best",
    "gaussian_delta",
    "gaussian_epsilon",
]

DRAWS = 1_000_000
SIGMA = 10
SCALES = (1, 10, 10**3, 10**6, 10**9)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One mechanism run `count` times; noise relative to sensitivity 1."""

    kind: str
    noise: int | float
    count: int
    rate: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A batch whose epsilon at `delta` is asked for."""

    name: str
    parts: tuple[Part, ...]
    delta: float
    required: bool = True  # whether the rival's time must be matched


def _gaussians(name: str, sigma: float, count: int, delta: float, required: bool = True) -> Case:
    parts = (Part(kind="gaussian", noise=sigma, count=count),)
    return Case(name=name, parts=parts, delta=delta, required=required)


ACCOUNTING = (
    _gaussians("a. 1,000 Gaussians, sigma 50", 50, 1000, 1e-6),
    Case(
        name="b. 10,000 subsampled Gaussians, q 0.01, sigma 1.1",
        parts=(Part(kind="subsampled", noise=1.1, count=10_000, rate=0.01),),
        delta=1e-6,
    ),
    Case(
        name="c. 500 Laplace, scale 20",
        parts=(Part(kind="laplace", noise=20, count=500),),
        delta=1e-6,
    ),
    Case(
        name="d. 200 discrete Laplace, scale 20, and 300 discrete Gaussians, sigma 50",
        parts=(
            Part(kind="discrete laplace", noise=20, count=200),
            Part(kind="discrete gaussian", noise=50, count=300),
        ),
        delta=1e-6,
    ),
    _gaussians("e. 1,000,000 Gaussians, sigma 2000", 2000, 1_000_000, 1e-6, required=False),
    Case(
        name="f. 1,000,000 Laplace, scale 2000",
        parts=(Part(kind="laplace", noise=2000, count=1_000_000),),
        delta=1e-6,
        required=False,
    ),
    _gaussians("g. 1,000 Gaussians, sigma 50, delta 1e-15", 50, 1000, 1e-15, required=False),
    Case(
        name="h. 500 Laplace, scale 20, delta 1e-15",
        parts=(Part(kind="laplace", noise=20, count=500),),
        delta=1e-15,
        required=False,
    ),
)


def best(action: Callable[[], object], *, times: int) -> float:
    """Return the shortest of several timings, in seconds: the one least disturbed by the machine."""
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Return the delta of N(0,1) against N(mu,1) (Balle and Wang 2018), stable in the far tail."""

    def upper(x: float) -> float:
        return 0.5 * math.erfc(x / math.sqrt(2))

    return upper(epsilon / mu - mu / 2) - math.exp(epsilon) * upper(epsilon / mu + mu / 2)


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Return the true epsilon of a Gaussian batch by bisection."""
    low, high = 0.0, 1.0
    while gaussian_delta(mu, high) > delta:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if gaussian_delta(mu, middle) > delta else (low, middle)
    return low
