"""What mechanisms that add integer noise share: sensitivities in steps, exact sums, intervals.

A value is first a whole number of steps: an integer as it is, a real number through its
`Grid`. Noise is a whole number of steps too. No float meets a private value after the grid.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.core.adjacency import Sensitivity
from sfumato.core.arguments import Number, exact, positive, upper_float
from sfumato.core.events import Event, Repeated
from sfumato.core.grid import Grid
from sfumato.core.noise_law import NoiseLaw
from sfumato.core.search import root_above
from sfumato.errors import InvalidArgument

__all__ = ["AdditiveNoise", "StepSensitivity", "read_grid", "read_sensitivity"]

_WORD = (-(2**63), 2**63 - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSensitivity:
    """A sensitivity after rounding to the grid: whole steps, and norms that allow for the rounding.

    Theorem: values at most d apart are at most ceil(d / step) steps apart after rounding
    (`Grid.steps_of`), so an entry's change grows by less than one step: the l1 norm by less
    than `coordinates`, the l2 norm by less than its square root (triangle inequality).
    Integers are not rounded, so their norms stay. Rounds: up.
    """

    each: int
    coordinates: int
    l1: Fraction
    l2_squared: Fraction
    step: Fraction

    @classmethod
    def of(cls, given: Any, grid: Any) -> StepSensitivity:
        """Return a sensitivity, which is about values before rounding, in steps of the grid."""
        known, grid = read_sensitivity(given), read_grid(grid)
        sensitivity = known if isinstance(known, Sensitivity) else Sensitivity(each=known)
        k = sensitivity.coordinates
        if grid is None:
            each = math.ceil(sensitivity.each)
            l1, l2_squared = sensitivity.l1, sensitivity.l2_squared
        else:
            each = max(1, grid.steps_of(sensitivity.each))
            l1 = sensitivity.l1 / grid.step + k
            square = sensitivity.l2_squared / grid.step**2
            l2_squared = square + 2 * Fraction(root_above(square * k)) + k
        box_l1, box_l2_squared = Fraction(each * k), Fraction(each**2 * k)
        tight_l1 = sensitivity.l1 < sensitivity.each * k
        tight_l2 = sensitivity.l2_squared < sensitivity.each**2 * k
        return cls(
            each=each,
            coordinates=k,
            l1=min(l1, box_l1) if tight_l1 else box_l1,
            l2_squared=min(l2_squared, box_l2_squared) if tight_l2 else box_l2_squared,
            step=Fraction(1) if grid is None else grid.step,
        )


def read_sensitivity(value: Any) -> Fraction | Sensitivity:
    """Read a sensitivity: a number is about one answer, a `Sensitivity` about a vector of answers."""
    return value if isinstance(value, Sensitivity) else positive(value, "sensitivity")


def read_grid(value: Any) -> Grid | None:
    """Read a grid, or None for values that are integers already."""
    if value is not None and not isinstance(value, Grid):
        raise InvalidArgument(f"grid must be a Grid or None, got {type(value).__name__}", place="grid")
    return value


class AdditiveNoise(ABC):
    """Exact integer noise on integers, or on real values put through a grid."""

    __slots__ = ()

    sensitivity: Fraction | Sensitivity
    grid: Grid | None

    @property
    @abstractmethod
    def law(self) -> NoiseLaw:
        """The noise, in steps."""

    @abstractmethod
    def _joint_event(self, steps: StepSensitivity) -> Event:
        """Return what noise on a vector costs whose norm is known to be below that of its box."""

    @property
    def event(self) -> Event:
        """What one release of all answers costs."""
        steps, law = StepSensitivity.of(self.sensitivity, self.grid), self.law
        each, number = steps.each, steps.coordinates
        if law.norm(steps.l1, steps.l2_squared) < law.norm(each * number, each**2 * number):
            return self._joint_event(steps)
        return law.event(each) if number == 1 else Repeated(event=law.event(each), times=number)

    def _declare(self, sensitivity: Any, grid: Any) -> None:
        """Read what a mechanism declares; noise that no event can price is refused now."""
        object.__setattr__(self, "sensitivity", read_sensitivity(sensitivity))
        object.__setattr__(self, "grid", read_grid(grid))
        _ = self.event

    def release(self, value: Any) -> Any:
        """Return the value plus noise: a number for a number, an array for an array.

        Without a grid values must be integers, and so are the results: Python integers, or
        64-bit arrays that widen to Python integers where a result does not fit. With a grid
        values are real and results are floats, multiples of its step.
        """
        if isinstance(value, (np.ndarray, list, tuple)):
            array = np.asarray(value)
            if array.size > 1 and not isinstance(self.sensitivity, Sensitivity):
                raise InvalidArgument(
                    "an array needs to know how many of its entries one person can change",
                    place="sensitivity",
                    hints=("pass sensitivity=Sensitivity(each=..., coordinates=...)",),
                )
            steps = _integers(array) if self.grid is None else self.grid.to_integers(array)
            total = _sum(steps, self.law.draw(steps.size).reshape(steps.shape))
        else:
            total = self._steps(value) + self.law.draw(None)
        return total if self.grid is None else self.grid.to_real(total)

    def error(self, level: float = 0.95) -> int | float:
        """Return the half-width that the noise on one answer stays within, with probability `level` at least.

        The smallest one of the discrete law, in the units of the value. Rounds: up.
        """
        width = self.law.half_width(level)
        return width if self.grid is None else upper_float(width * self.grid.step)

    def interval(self, released: Any, level: float = 0.95) -> tuple[Any, Any]:
        """Return (low, high) around what was released; each covers its exact value with probability `level`.

        Covered is the value after rounding and clamping to the grid; what clamping took off
        is not. Each entry of an array is covered on its own, not all of them at once.
        """
        width = self.law.half_width(level)
        if isinstance(released, (np.ndarray, list, tuple)):
            array = np.asarray(released)
            steps = _integers(array) if self.grid is None else _nearest_steps(array, self.grid.step)
            wide = np.full(steps.shape, width, dtype=np.int64 if width <= _WORD[1] else object)
            ends: tuple[Any, Any] = _sum(steps, -wide), _sum(steps, wide)
        else:
            middle = self._output(released)
            ends = middle - width, middle + width
        return ends if self.grid is None else (self.grid.to_real(ends[0]), self.grid.to_real(ends[1]))

    def pmf(self, output: Number, value: Number) -> float:
        """Return the probability of releasing `output` for one answer, accurate to a relative 1e-12."""
        steps = self._output(output)
        if self.grid is not None and self.grid.to_real(steps) != output and steps * self.grid.step != output:
            return 0.0  # not on the grid
        return self.law.mass(steps - self._steps(value))

    def privacy_loss(self, output: Number, x: Number, y: Number) -> Fraction:
        """Return ln(pmf(output, x) / pmf(output, y)), exactly."""
        steps = self._output(output)
        return self.law.loss(steps - self._steps(x), steps - self._steps(y))

    def _steps(self, value: Any) -> int:
        return _integer(value, "value") if self.grid is None else self.grid.to_integer(value)

    def _output(self, output: Any) -> int:
        if self.grid is None:
            return _integer(output, "output")
        return round(exact(output, "output") / self.grid.step)


def _integer(value: Any, name: str) -> int:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise _not_whole(name)
    return int(value)


def _integers(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if array.dtype.kind == "i":
        return array.astype(np.int64)
    if array.dtype.kind == "u":
        return array.astype(object)
    if array.dtype != object:
        raise _not_whole("value")
    return np.array([_integer(value, "value") for value in array.ravel()], dtype=object).reshape(array.shape)


def _not_whole(name: str) -> InvalidArgument:
    return InvalidArgument(
        f"{name} must be made of whole numbers when there is no grid",
        place=name,
        hints=("pass grid=Grid(step=..., lower=..., upper=...) for real values",),
    )


def _sum(values: npt.NDArray[Any], noise: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Add without wrapping around; the type of the result depends on nothing but the result."""
    if values.dtype == noise.dtype == np.int64:
        total: npt.NDArray[Any] = values + noise
        if not (((values ^ total) & (noise ^ total)) < 0).any():  # no sum has a sign of its own
            return total
    wide = np.asarray(values.astype(object) + noise.astype(object), dtype=object)
    fits = all(_WORD[0] <= entry <= _WORD[1] for entry in wide.ravel())
    return wide.astype(np.int64) if fits else wide


def _nearest_steps(released: npt.NDArray[Any], step: Fraction) -> npt.NDArray[Any]:
    """Return the multiples of step that released floats stand for."""
    if released.dtype == np.float64 and 2.0**-900 < step < 2.0**900:
        quotients = released / float(step)
        if (np.abs(quotients) < 2.0**49).all():  # their error is far below a half
            return np.rint(quotients).astype(np.int64)
    each = [round(exact(value, "released") / step) for value in released.ravel().tolist()]
    return np.array(each, dtype=object).reshape(released.shape)
