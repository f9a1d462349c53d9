"""The laws of the noise that was added: how far off one integer may be, and a sum of several.

What is here is public: parameters of noise, never data. A single noisy integer has the exact
quantiles of its discrete law. Sums of several noises, which ratios need, have the closed form
of their continuous counterparts, moved outward by half a step for each noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.core.gaussian import GaussianMechanism
from sfumato.core.laplace import LaplaceMechanism
from sfumato.core.mechanism import confidence
from sfumato.core.normal import tail_quantile
from sfumato.errors import InvalidArgument

__all__ = ["Law", "miss", "tail", "widest_quantile"]

_Floats = npt.NDArray[np.float64]

_ROOT_TWO = math.sqrt(2)
_FEW = 64  # numbers for which it is not worth importing scipy
_CLOSE = 1e-4  # scales this close, relatively, count as one: the larger


@dataclass(frozen=True, slots=True, kw_only=True)
class Law:
    """Discrete Laplace noise of a scale, or discrete Gaussian noise of a variance `parameter`.

    >>> Law(kind="laplace", parameter=Fraction(2)).half_width(0.95)
    6
    """

    kind: str
    parameter: Fraction

    def __post_init__(self) -> None:
        if self.kind not in ("laplace", "gaussian"):
            raise InvalidArgument(f"no such noise: {self.kind!r}", place="kind")
        if self.parameter <= 0:
            raise InvalidArgument("the parameter of noise must be above zero", place="parameter")

    @property
    def deviation(self) -> float:
        """An upper bound of the standard deviation: that of the continuous law."""
        root = math.sqrt(self.parameter) if self.kind == "gaussian" else _ROOT_TWO * float(self.parameter)
        return root

    @property
    def fourth(self) -> float:
        """How much the noise's square varies: Var(X^2) / Var(X)^2."""
        return 2.0 if self.kind == "gaussian" else 5.0

    def half_width(self, level: Any) -> int:
        """Return the smallest w with P(|noise| <= w) >= level, exactly that of the discrete law."""
        return _half_width(self.kind, self.parameter, confidence(level))


@lru_cache(maxsize=1024)
def _half_width(kind: str, parameter: Fraction, level: Fraction) -> int:
    noise = LaplaceMechanism(parameter) if kind == "laplace" else GaussianMechanism(sigma_squared=parameter)
    return int(noise.error(level))  # type: ignore[arg-type]


def miss(level: Any) -> float:
    """Return the chance that an interval of this level may fail to cover."""
    return float(1 - confidence(level))


def widest_quantile(chance: float, laws: Sequence[Law]) -> float:
    """Return a multiple of the deviation that a sum of these noises exceeds with at most `chance`.

    Gaussian sums have the normal quantile. A sum that contains Laplace noise lies between one
    Laplace noise (the heavier tail) and the normal law (the wider middle): the larger of both.
    """
    normal = float(tail_quantile(np.array([math.log(chance / 2)]))[0])
    if all(law.kind == "gaussian" for law in laws):
        return normal
    return max(normal, -math.log(chance) / _ROOT_TWO)


def tail(laws: Sequence[Law], weights: Sequence[_Floats], distance: _Floats, extra: _Floats) -> _Floats:
    """Return P(|sum of weights[j] * noise j| >= distance), from above, for each group.

    `extra` is further variance, of terms that are not linear in the noise.

    Theorem: |discrete Laplace| is stochastically at most |continuous Laplace| + 1/2, for their
    tails at m and m - 1/2 are in the ratio 1 / cosh(1 / (2 scale)); so the distance less half the
    weights is compared with the continuous law. Two Laplace noises of scales a != b:
    (a^2 exp(-d/a) - b^2 exp(-d/b)) / (a^2 - b^2). More, or both kinds: see `widest_quantile`.
    """
    sizes = [np.abs(weight) for weight in weights]
    slack = np.maximum(0.0, distance - sum(sizes) / 2)
    if all(law.kind == "laplace" for law in laws) and not extra.any():
        scales = [size * float(law.parameter) for law, size in zip(laws, sizes, strict=True)]
        if len(scales) == 1:
            return _one_laplace(slack, scales[0])
        if len(scales) == 2:
            return _two_laplace(slack, *scales)
    variance = extra + sum((size * law.deviation) ** 2 for law, size in zip(laws, sizes, strict=True))
    return _bounded_tail(slack, np.sqrt(variance), all(law.kind == "gaussian" for law in laws))


def _one_laplace(distance: _Floats, scale: _Floats) -> _Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        chance: _Floats = np.where(scale > 0, np.exp(-distance / scale), (distance <= 0) * 1.0)
    return chance


def _two_laplace(distance: _Floats, first: _Floats, second: _Floats) -> _Floats:
    large, small = np.maximum(first, second), np.minimum(first, second)
    near = small > large * (1 - _CLOSE)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = np.where(near, 0.0, small / large) ** 2
        inner = np.where(small > 0, np.exp(-distance / small), 0.0)
        apart = (np.exp(-distance / large) - ratio * inner) / (1 - ratio)
        equal = (1 + distance / (2 * large)) * np.exp(-distance / large)
        chance: _Floats = np.where(large > 0, np.where(near, equal, apart), (distance <= 0) * 1.0)
    return np.minimum(chance, 1.0)


def _bounded_tail(distance: _Floats, deviation: _Floats, gaussian: bool) -> _Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(deviation > 0, distance / deviation, np.where(distance > 0, np.inf, 0.0))
    normal = _erfc(z / _ROOT_TWO)
    return normal if gaussian else np.maximum(normal, np.exp(-_ROOT_TWO * z))


def _erfc(x: _Floats) -> _Floats:
    if x.size > _FEW:
        from scipy.special import erfc

        return np.asarray(erfc(x))
    return np.array([math.erfc(value) for value in x.ravel().tolist()]).reshape(x.shape)
