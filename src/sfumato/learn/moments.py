"""Noisy moments of features, and features in units of their spread.

Descent is quick where features have about the same spread around 0, and slow where they do not: gains of
which most are 0 lie at the lower end of their bounds. So the first look of a training asks how many units
there are, and for the sums of all features and of the squares of numbers. The noisy answers are public; each
row's features are then centred and scaled by them.

Theorem: a unit changes the integers of `moment_sums` by a vector of Euclidean norm at most
_UNIT * sqrt(1 + columns + numbers). Proof: the number of units changes by _UNIT. The squares of a row's
features sum to at most 1 for each column, and the squares of its numbers are at most 1 each. Each of the n
rows of a unit is multiplied by _UNIT / n and rounded toward zero; rounding is monotone, so that what was 1
becomes at most the whole part of _UNIT / n, exactly, and no entry more. Sums are of whole numbers, and exact
in every order.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from sfumato.core.arguments import FloatArray
from sfumato.core.gaussian_sums import GaussianSum
from sfumato.learn.features import Columns, Features
from sfumato.learn.gradients import MOST_SPREADS, STEPS, Steps

__all__ = ["Scaling", "moment_norm_squared", "moment_sums", "units_noise"]

_UNIT = 1 << 24
_LEAST_SPREAD = 1e-3  # of variance: what is smaller cannot be told from rounding


def moment_norm_squared(features: Features) -> int:
    """Return the square of how far one unit moves `moment_sums`. Theorem: see the module."""
    return _UNIT * _UNIT * (1 + len(features.columns) + int(_numbers(features).sum()))


def units_noise(deviation: float) -> GaussianSum:
    """Return the noise on the number of units: one integer in fine steps, of a deviation in units."""
    square = Fraction(deviation * _UNIT) ** 2
    return GaussianSum(normal=0.0, terms=((square, 1 / _UNIT, 1),) if square else ())


def moment_sums(features: Features, read: Columns, sizes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the number of units, the sums of features, and the sums of squares of numbers, times _UNIT."""
    shares = _shares(sizes)
    sums, squares = [len(sizes) * _UNIT], []
    for column in features.columns:
        for values in column.encoded(read[column.name]).astype(np.float64).T:
            sums.append(int(np.trunc(values * shares).astype(np.int64).sum()))
            if not column.values:
                squares.append(int(np.trunc(values * values * shares).astype(np.int64).sum()))
    return np.array([*sums, *squares], dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scaling:
    """How features are centred and scaled, from noisy moments. Public."""

    units: float  # how many there are, with noise
    deviation: float  # of that noise
    centres: FloatArray
    scales: FloatArray
    spread: float  # the sum of the variances of scaled features, and 1 for the constant

    @staticmethod
    def of(features: Features, noisy: npt.NDArray[np.int64], deviation: float) -> Scaling:
        """Return what noisy moments say; `deviation` is that of their noise.

        What noise hides is left alone: a variance below two deviations counts as two, one above 1 as 1.
        """
        moments = noisy.astype(np.float64) / _UNIT
        noise, numbers = deviation / _UNIT, _numbers(features)
        units = max(1.0, float(moments[0]), 3 * noise)
        centres = np.clip(moments[1 : features.width + 1] / units, -1.0, 1.0)
        squares = _listed_squares(features, centres)
        squares[numbers] = moments[features.width + 1 :] / units
        variances = np.clip(squares - centres**2, 0.0, 1.0)
        least = min(1.0, max(_LEAST_SPREAD, 2 * noise / units))
        scales = np.where(numbers, np.sqrt(np.maximum(variances, least)), 1.0)
        return Scaling(
            units=float(moments[0]),
            deviation=noise,
            centres=centres,
            scales=scales,
            spread=1.0 + float((variances / scales**2).sum()),
        )

    @property
    def divisor(self) -> float:
        """What sums are divided by to make means: the number of units, where noise does not hide it."""
        return max(1.0, self.units, 3 * self.deviation)

    def scaled(self, features: Features, read: Columns) -> Steps:
        """Return features of rows in steps, centred and scaled: each a function of its own row alone."""
        size = len(next(iter(read.values())))
        found = np.empty((size, features.width), dtype=np.int16)
        place = 0
        for column in features.columns:
            for values in column.encoded(read[column.name]).astype(np.float64).T:
                centred = (values - self.centres[place]) / self.scales[place]
                found[:, place] = np.rint(np.clip(centred, -MOST_SPREADS, MOST_SPREADS) * STEPS)
                place += 1
        return found

    def parted(self) -> tuple[Scaling, float, float]:
        """Return the scaling of all features but the last, and the centre and the scale of the last."""
        own = replace(
            self, centres=self.centres[:-1], scales=self.scales[:-1], spread=max(1.0, self.spread - 1.0)
        )
        return own, float(self.centres[-1]), float(self.scales[-1])

    def unscaled_widths(self, widths: FloatArray) -> FloatArray:
        """Return how far off parameters may be as `unscaled` returns them, from how far they are before."""
        own = widths[:-1] / self.scales
        with np.errstate(invalid="ignore"):  # 0 times infinity
            constant = widths[-1] + np.where(self.centres == 0, 0.0, np.abs(self.centres) * own).sum()
        return np.append(own, constant)

    def unscaled(self, parameters: FloatArray) -> FloatArray:
        """Return the parameters of features as they were; the last row is that of the constant 1."""
        own = parameters[:-1] / self.scales[:, None]
        return np.concatenate([own, parameters[-1:] - (self.centres[None, :] @ own)])


def _shares(sizes: npt.NDArray[np.int64]) -> FloatArray:
    """Return what each row of units with so many rows counts."""
    return np.repeat(_UNIT / sizes, sizes)


def _numbers(features: Features) -> npt.NDArray[np.bool_]:
    """Flag the features that are numbers."""
    return np.array([not column.values for column in features.columns for _ in column.names])


def _listed_squares(features: Features, means: FloatArray) -> FloatArray:
    """Return the mean squares of features that are 0 or 1, which are their means, and 1 for other ones."""
    single = np.array([len(column.values) > 2 for column in features.columns for _ in column.names])
    return np.where(single, means, 1.0)
