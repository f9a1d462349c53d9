"""Adam on noisy gradients, and where a training is: public, for it is made of noisy integers alone.

Adam (Kingma and Ba 2015) divides the mean of gradients by the root of the mean of their squares, so that
their scale does not matter: the expected size of a sample, by which sums would be divided, cancels, and
nobody needs to say how many people there are. (The true size of a sample is private, and never used.) The
network is the mean of the points of the second half of the steps, which averages their noise.
"""

from __future__ import annotations

import io
import zipfile
from dataclasses import dataclass, fields

import numpy as np

from sfumato.errors import InvalidArgument
from sfumato.learn.networks.modules import LARGEST, Parameters

__all__ = ["NetworkState"]

_FORGETS, _FORGETS_SQUARES = 0.9, 0.999


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NetworkState:
    """Parameters after some steps, the means that Adam keeps, and the mean of the points of late steps."""

    step: int
    point: Parameters
    slope: Parameters
    square: Parameters
    mean: Parameters
    averaged: int

    @staticmethod
    def at(point: Parameters) -> NetworkState:
        """Return the state before the first step."""
        zeros = np.zeros_like(point)
        return NetworkState(step=0, point=point, slope=zeros, square=zeros, mean=point, averaged=0)

    def moved(self, gradient: Parameters, rate: float, *, late: bool) -> NetworkState:
        """Return the state after a step along a noisy sum of gradients, on any scale."""
        step = self.step + 1
        slope = _FORGETS * self.slope + (1 - _FORGETS) * gradient
        square = _FORGETS_SQUARES * self.square + (1 - _FORGETS_SQUARES) * gradient**2
        across = np.sqrt(square / (1 - _FORGETS_SQUARES**step)) + np.float32(1e-8)
        point = self.point - np.float32(rate / (1 - _FORGETS**step)) * slope / across
        point = np.clip(np.nan_to_num(point), -LARGEST, LARGEST).astype(np.float32)
        averaged = self.averaged + late
        mean = self.mean + (point - self.mean) / np.float32(averaged) if late else point
        return NetworkState(
            step=step,
            point=point,
            slope=slope.astype(np.float32),
            square=square.astype(np.float32),
            mean=mean,
            averaged=averaged,
        )

    def to_bytes(self) -> bytes:
        """Return the state as bytes: arrays of numbers, nothing that could be run."""
        held = io.BytesIO()
        arrays = {one.name: np.asarray(getattr(self, one.name)) for one in fields(self)}
        np.savez(held, allow_pickle=False, **arrays)
        return held.getvalue()

    @staticmethod
    def from_bytes(stored: bytes) -> NetworkState:
        """Return the state that was stored."""
        try:
            with np.load(io.BytesIO(stored), allow_pickle=False) as held:
                arrays = {one.name: held[one.name] for one in fields(NetworkState)}
        except (KeyError, OSError, ValueError, zipfile.BadZipFile):
            raise InvalidArgument("this stored state of a training is damaged", place="checkpoint") from None
        step, averaged = int(arrays.pop("step")), int(arrays.pop("averaged"))
        return NetworkState(step=step, averaged=averaged, **arrays)
