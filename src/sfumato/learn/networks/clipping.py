"""Clipping: the sum of the gradients of units, each of norm `clip` at most, in whole steps of a fine grid.

Gradients of single rows are never made: ghost clipping (Li et al. 2022, as Opacus has it) finds their norms
in one pass, and a second pass sums the rows with weights. The gradient of a unit is the mean of those of its
rows. Its norm is at most the mean of theirs, by the triangle inequality; the whole unit is scaled by
min(1, clip / that mean). So a unit is clipped as one, however many rows it has. One whose norm is no finite
number counts as zero. All is done in floats of 64 bits: the two passes round differently, and rows round
differently at different places of a block, by far too much in 32 bits where large numbers cancel.

Theorem: let one unit change the sum of clipped gradients by a vector of norm at most clip (1 + margin). Each
entry is rounded to the nearest of `FINE` steps of the clip, which changes the difference of two entries by at
most one step; so the integers of d parameters change by a vector of norm at most FINE (1 + margin) + sqrt(d).
Assumes: the gradient of a weighted loss is the weighted gradient. This holds for every function, but code of
the user's own may change gradients on their way back. `check_norms` refuses what does so to invented rows.
Assumes: the margin covers what floats round of norms and sums, and of gradients of rows that both datasets
have in common. Rows go through the module in blocks of one size, whatever the sample is; the linear algebra
underneath may still round a row differently at another place of the block, which is not proved to be less
than the margin for all people together (`docs/threat-model.md`).
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from sfumato.errors import InvalidArgument
from sfumato.learn.networks.modules import Parameters, require_torch, set_parameters

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Linear, Module

__all__ = ["ClippedSums", "FINE", "MARGIN", "check_norms", "sensitivity"]

FINE = 1 << 24
"""How many steps make the clip."""

MARGIN = Fraction(1, 1024)
"""What is allowed for the rounding of floats, of the clip."""

_BLOCK = 64  # rows that go through the module at once
_SMALL = 200_000  # parameters
_WEIGHTS = (1e-9, 1e-3, 1e9)  # a gradient that is cut off somewhere is told by one of them

_Integers = npt.NDArray[np.int64]


def sensitivity(parameters: int) -> int:
    """Return how far one unit moves the sum, in steps: see the theorem. Rounds: up.

    >>> sensitivity(1_900_000) / FINE < 1.0011
    True
    """
    return math.ceil(FINE * (1 + MARGIN)) + math.isqrt(parameters) + 1


class ClippedSums:
    """Sums clipped gradients of the loss of a classifier, a copy of a module, at any parameters."""

    def __init__(self, module: Module, clip: float) -> None:
        from opacus.grad_sample import GradSampleModuleFastGradientClipping

        self._torch = require_torch()
        self._clip = clip
        self._module = copy.deepcopy(module).double().train()  # without `train`, Opacus does not look
        self._ghost = GradSampleModuleFastGradientClipping(self._module, loss_reduction="sum")
        self._ghost.NORM_SAMPLERS = {self._torch.nn.Linear: _linear_norms}  # others sum each row's gradient
        self._trained = [one for one in self._module.parameters() if one.requires_grad]

    def at(
        self,
        parameters: Parameters,
        features: npt.NDArray[np.float32],
        labels: npt.NDArray[np.int64],
        sizes: npt.NDArray[np.int64],
    ) -> _Integers:
        """Return the sum over units, in steps; rows of a unit are beside each other, `sizes` are theirs.

        A small network takes one thread: waiting for others would take longer than the work.
        """
        set_parameters(self._module, parameters)
        total, threads = np.zeros(len(parameters)), self._torch.get_num_threads()
        if len(parameters) < _SMALL:
            self._torch.set_num_threads(1)
        try:
            for rows, own in _blocks(sizes):
                self._add(total, features[rows], labels[rows], own)
        finally:
            self._torch.set_num_threads(threads)
        return np.rint(total * (FINE / self._clip)).astype(np.int64)

    def _add(
        self,
        total: npt.NDArray[np.float64],
        features: npt.NDArray[np.float32],
        labels: npt.NDArray[np.int64],
        sizes: npt.NDArray[np.int64],
    ) -> None:
        """Add the sum over some units; one whose gradient is no number, though its norm is, adds nothing."""
        gradients = self._block(features, labels, sizes)
        if not all(bool(self._torch.isfinite(one.sum())) for one in gradients):
            if len(sizes) > 1:
                for rows, own in _blocks(sizes, at_once=1):
                    self._add(total, features[rows], labels[rows], own)
            return
        at = 0
        for one in gradients:
            total[at : at + one.numel()] += one.reshape(-1).numpy()
            at += one.numel()

    def _block(
        self, features: npt.NDArray[np.float32], labels: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]
    ) -> list[Tensor]:
        torch, count = self._torch, len(features)
        rows = max(_BLOCK, count)
        inputs = torch.zeros((rows, features.shape[1]), dtype=torch.float64)
        inputs[:count] = torch.from_numpy(features)
        wanted = torch.zeros(rows, dtype=torch.int64)
        wanted[:count] = torch.from_numpy(labels)
        losses = self._losses(inputs, wanted)
        weights = self._weights(self._norms(losses, inputs), sizes)
        lost = ~np.isfinite(weights)
        weights[lost] = 0
        scale = torch.zeros(rows, dtype=torch.float64)
        scale[:count] = torch.from_numpy(weights)
        self._ghost.disable_hooks()
        try:
            if lost.any():  # zero times what is no number is none
                inputs = inputs.detach()
                inputs[:count][torch.from_numpy(lost)] = 0
                losses = self._losses(inputs, wanted)
            return list(torch.autograd.grad((losses * scale).sum(), self._trained))
        finally:
            self._ghost.enable_hooks()

    def _losses(self, inputs: Tensor, wanted: Tensor) -> Tensor:
        scores = self._ghost(inputs.requires_grad_(True))
        losses: Tensor = self._torch.nn.functional.cross_entropy(scores, wanted, reduction="none")
        return losses

    def _weights(
        self, norms: npt.NDArray[np.float64], sizes: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.float64]:
        """Return the weight of each row, NaN where the norms of its unit are no numbers."""
        starts = np.cumsum(sizes) - sizes
        means = np.add.reduceat(norms[: int(sizes.sum())], starts) / sizes
        with np.errstate(divide="ignore"):
            factors = np.minimum(1.0, self._clip / means) / sizes
        factors[~np.isfinite(means)] = np.nan
        return np.repeat(factors, sizes)

    def _norms(self, losses: Tensor, inputs: Tensor) -> npt.NDArray[np.float64]:
        """Return the norm of the gradient of each row, all in one pass."""
        self._torch.autograd.backward(losses.sum(), retain_graph=True, inputs=[inputs])
        norms: npt.NDArray[np.float64] = self._ghost.get_norm_sample().detach().numpy().astype(np.float64)
        for one in self._trained:
            vars(one)["_norm_sample"] = None  # norms of an earlier pass are never taken for later ones
        return norms

    def norms_and_true_norms(self, width: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Return the norms of invented rows in one pass, and by the gradient of each row."""
        torch = self._torch
        inputs = torch.linspace(-1, 1, 3 * width, dtype=torch.float64).reshape(3, width)
        losses = self._losses(inputs, torch.zeros(3, dtype=torch.int64))
        found, true = self._norms(losses, inputs), []
        self._ghost.disable_hooks()
        for loss in losses:
            each = torch.autograd.grad(loss, self._trained, retain_graph=True, allow_unused=True)
            true.append(math.sqrt(sum(float((one.double() ** 2).sum()) for one in each if one is not None)))
        self._ghost.enable_hooks()
        return found, np.array(true)

    def weighs_linearly(self, width: int) -> bool:
        """Return whether a weight of a row's loss is a weight of its gradient, on invented rows.

        The second pass clips by such weights. A hook that cuts gradients off would undo them.
        """
        torch = self._torch
        inputs = torch.linspace(-1, 1, 3 * width, dtype=torch.float64).reshape(3, width)
        losses = self._losses(inputs, torch.zeros(3, dtype=torch.int64))

        def gradient(weights: Tensor) -> Tensor:
            each = torch.autograd.grad((losses * weights).sum(), self._trained, retain_graph=True)
            found: Tensor = torch.cat([one.reshape(-1) for one in each])
            return found

        self._ghost.disable_hooks()
        rows = torch.eye(3, dtype=torch.float64)
        each = [gradient(row) for row in rows]
        pairs = [(gradient(rows.sum(dim=0)), sum(each))]
        for weight in _WEIGHTS:
            pairs += [(gradient(weight * row) / weight, own) for row, own in zip(rows, each, strict=True)]
        self._ghost.enable_hooks()
        return all(torch.allclose(one, other, rtol=1e-6, atol=1e-9) for one, other in pairs)


def _linear_norms(layer: Linear, activations: list[Tensor], backprops: Tensor) -> dict[Tensor, Tensor]:
    """Return the norms of the gradients of a full layer, of each row.

    Where a row goes through the layer once it is a product of norms. Otherwise the gradient is summed: the
    norm of a sum can be found from products of its parts, but is lost where these cancel.
    """
    from opacus.grad_sample.linear import compute_linear_grad_sample

    if backprops.dim() > 2:
        found = compute_linear_grad_sample(layer, activations, backprops)
        return {one: each.double().flatten(1).norm(dim=1) for one, each in found.items()}
    size = backprops.double().norm(dim=1)
    norms = {layer.weight: size * activations[0].double().norm(dim=1)}
    return norms if layer.bias is None else {**norms, layer.bias: size}


def check_norms(module: Module, width: int) -> None:
    """Refuse a module whose gradients cannot be clipped as claimed: it is tried on invented rows."""
    try:
        sums = ClippedSums(module, 1.0)
        found, true = sums.norms_and_true_norms(width)
        linear = sums.weighs_linearly(width)
    except (AttributeError, NotImplementedError, RuntimeError, TypeError, ValueError) as error:
        raise InvalidArgument(
            f"the norms of gradients of this module cannot be found ({type(error).__name__})",
            place="module",
            hints=("build it of Linear, Conv, Embedding, LayerNorm and GroupNorm, each used once",),
        ) from None
    if found.shape != true.shape or not np.allclose(found, true, rtol=1e-4, atol=1e-6):
        raise InvalidArgument(
            "the norms of gradients of this module are found wrong",
            place="module",
            hints=("use each layer once, and let no two share parameters",),
        )
    if not linear:
        raise InvalidArgument(
            "the module changes gradients on their way back: they could not be clipped by a weight",
            place="module",
            hints=("leave out hooks and functions that cut off, round or normalise gradients",),
        )


def _blocks(
    sizes: npt.NDArray[np.int64], at_once: int = _BLOCK
) -> Iterator[tuple[slice, npt.NDArray[np.int64]]]:
    """Yield some whole units, of so many rows, or one of more: where their rows are, and their sizes."""
    ends = np.cumsum(sizes)
    first = 0
    while first < len(sizes):
        start = int(ends[first] - sizes[first])
        last = max(first + 1, int(np.searchsorted(ends, start + at_once, side="right")))
        yield slice(start, int(ends[last - 1])), sizes[first:last]
        first = last
