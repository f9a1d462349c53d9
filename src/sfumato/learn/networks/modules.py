"""Modules: the networks that can be trained, and why others cannot."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sfumato.catalog.canonical import fingerprint
from sfumato.errors import InvalidArgument, Unsupported
from sfumato.learn.networks.module_state import refuse_state

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

__all__ = [
    "LARGEST",
    "Parameters",
    "architecture",
    "checked",
    "multilayer",
    "parameters",
    "require_torch",
    "set_parameters",
]

Parameters = npt.NDArray[np.float32]

LARGEST = 1e6
"""The largest parameter: what large ones round, where they cancel, is no longer small against the clip."""


def require_torch() -> Any:
    """Return torch, or say how it is installed."""
    try:
        import opacus  # noqa: F401
        import torch
    except ImportError:
        raise Unsupported(
            "networks need PyTorch and Opacus", hints=("install them: pip install 'sfumato[learn]'",)
        ) from None
    return torch


def multilayer(width: int, hidden: Sequence[int], classes: int) -> Module:
    """Return a network of full layers with tanh between them, with random weights."""
    require_torch()
    from torch import nn

    sizes = [width, *hidden, classes]
    layers: list[Module] = []
    for before, after in pairwise(sizes):
        layers += [nn.Linear(before, after), nn.Tanh()]
    return nn.Sequential(*layers[:-1])


def checked(module: Any, width: int, classes: int) -> Module:
    """Return a copy of a module that can be trained; refuse others by name. No data is touched.

    A row's result may depend on that row alone. Layers that are known to mix rows are named by Opacus's
    validator; whether the module itself does is tried on invented rows, by the derivative of the result of
    one with respect to another, and by what it keeps of them (`module_state`). Layers that draw random
    numbers are refused: these are not secret.
    """
    torch = require_torch()
    from opacus.validators import ModuleValidator

    if not isinstance(module, torch.nn.Module):
        raise InvalidArgument(
            "module is a torch.nn.Module", place="module", hints=("leave it out: hidden=(64,) makes one",)
        )
    for name, part in module.named_modules():
        kind = type(part).__name__
        if "Dropout" in kind or kind == "RReLU":
            raise _refused(f"layer `{name}` ({kind}) draws random numbers", "leave it out: noise regularises")
        if isinstance(part, torch.nn.modules.batchnorm._BatchNorm):
            raise _refused(f"layer `{name}` ({kind}) mixes the rows of different people", "use LayerNorm")
        leaf = next(part.children(), None) is None
        if leaf and (errors := ModuleValidator.validate(torch.nn.ModuleList([part]), strict=False)):
            raise _refused(f"layer `{name}` ({kind}) cannot be clipped by person", str(errors[0])[:120])
    if next(module.buffers(), None) is not None:
        raise _refused("the module has buffers, which training would change without noise", "leave them out")
    own: Module = copy.deepcopy(module).train()
    if not any(one.requires_grad for one in own.parameters()):
        raise _refused("no parameter of the module can be trained", "set requires_grad")
    if any(one.dtype != torch.float32 for one in own.parameters()):
        raise _refused("the module's parameters are not of 32 bits", "module.float()")
    if not all(bool((one.abs() <= LARGEST).all()) for one in own.parameters()):
        raise _refused(f"a parameter of the module is above {LARGEST:,.0f}, or no number", "make them small")
    rows = torch.linspace(-1, 1, 3 * width).reshape(3, width).requires_grad_(True)
    found = _tried(own, rows)
    if found is None or tuple(found.shape) != (3, classes):
        raise _refused(
            f"the module does not make {classes} numbers, one for each class, of {width} features of a row",
            f"its first layer may be Linear({width}, ..), its last Linear(.., {classes})",
        )
    [slope] = torch.autograd.grad(found[1].sum(), rows, allow_unused=True)
    if slope is not None and bool((slope[0] != 0).any() | (slope[2] != 0).any()):
        raise _refused(
            "the module mixes the rows of different people", "use LayerNorm, and no mean over rows"
        )
    refuse_state(module, width)
    return own


def _tried(module: Module, rows: Tensor) -> Tensor | None:
    torch = require_torch()
    try:
        found = module(rows)
    except (RuntimeError, TypeError, ValueError, IndexError):
        return None
    return found if isinstance(found, torch.Tensor) else None


def _refused(why: str, hint: str) -> InvalidArgument:
    return InvalidArgument(why, place="module", hints=(hint,))


def architecture(module: Module) -> str:
    """Return a hash of what a module is, but for the values of the parameters that are trained."""
    shapes = [(name, tuple(one.shape), one.requires_grad) for name, one in module.named_parameters()]
    frozen = hashlib.sha256()
    for one in module.parameters():
        if not one.requires_grad:
            frozen.update(one.detach().numpy().tobytes())
    return fingerprint(layers=repr(module), parameters=shapes, frozen=frozen.hexdigest())


def parameters(module: Module) -> Parameters:
    """Return the parameters that are trained, as one vector."""
    trained = [one.detach().numpy().reshape(-1) for one in module.parameters() if one.requires_grad]
    return np.concatenate(trained).astype(np.float32)


def set_parameters(module: Module, vector: Parameters) -> None:
    """Set the parameters that are trained."""
    torch = require_torch()
    at = 0
    with torch.no_grad():
        for one in module.parameters():
            if one.requires_grad:
                one.copy_(torch.from_numpy(vector[at : at + one.numel()].reshape(tuple(one.shape))))
                at += one.numel()
    if at != len(vector):
        raise InvalidArgument("these are the parameters of another module", place="module")
