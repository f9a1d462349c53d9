"""State of modules: what a module keeps of one row, and how it is kept from the next row.

A module's code may be the user's own, and may keep anything: a hidden state, a running mean, a counter. What
it says of a row would then depend on rows of other people. Two things are done about that:

- Trial: a module that changes when it is applied to invented rows is refused, before anything is charged.
  So is one whose classes change, or the variables that its methods use. So is one whose result for a row
  changes after other rows, or with other rows beside it.
- Reset: rows of a fairness report get a fresh copy of the module each (`FittedNetwork.probabilities_of`), so
  that state which the trial missed is forgotten. A module that shares state with its copy is refused
  (`shared_state`). Layers of PyTorch alone keep none, and are not copied.

Assumes: code of the user's own keeps nothing outside of the module, as in an attribute of a class, a global
variable or a file. The trial finds that only where invented rows are kept, or change results.
"""

from __future__ import annotations

import copy
from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.errors import InvalidArgument
from sfumato.learn.networks.shared_state import outside, shares_state

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

__all__ = ["is_stateless", "refuse_state"]

_SHARED = "the module keeps something that its copies share, such as variables around a function"


def is_stateless(module: Module) -> bool:
    """Return whether a module is built of layers of PyTorch alone: these keep nothing of rows."""
    return all(
        type(part).__module__.startswith("torch.nn.modules.")
        and "forward" not in vars(part)
        and not (part._forward_hooks or part._forward_pre_hooks)
        and not any(callable(one) for one in vars(part).values())
        for part in module.modules()
    )


def refuse_state(module: Module, width: int) -> None:
    """Refuse a module that carries something of one invented row to another. It is tried on copies.

    Each trial is of both modes, for training and for prediction: first three rows, then others with the same
    row in the middle, then the first three again.
    """
    import torch

    rows = torch.linspace(-1, 1, 3 * width).reshape(3, width)
    others = torch.stack([rows[2] / 3, rows[1], rows[0] / 7])
    for training in (True, False):
        try:
            why = _SHARED if shares_state(module) else ""
            why = why or _found(copy.deepcopy(module).train(training), rows, others)
        except (AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
            why = f"the module cannot be copied, or fails on invented rows ({type(error).__name__})"
        if why:
            hint = "let the result of a row depend on that row and the parameters alone, without BatchNorm"
            if why == _SHARED:
                hint = "let functions use attributes of the module, and no lists or counters around them"
            raise InvalidArgument(why, place="module", hints=(hint,))


def _found(module: Module, rows: Tensor, others: Tensor) -> str:
    """Return what is wrong with a module that is tried, if anything is."""
    import torch

    before, around = copy.deepcopy(module), outside(module)
    found = []
    with torch.no_grad():
        for given in (rows, others, rows):
            found.append(module(given.clone()))
            if not (_same(before, module, {}) and _same(around, outside(module), {})):
                return "the module keeps something of the rows it has met"
    first, beside, again = found
    if not _same(first, again, {}):
        return "the module says something else of the same rows when it meets them again"
    if not torch.allclose(first[1], beside[1], rtol=1e-4, atol=1e-6, equal_nan=True):
        return "the module mixes the rows of different people"
    return ""


def _same(one: Any, other: Any, met: dict[tuple[int, int], Any]) -> bool:
    """Return whether two values hold the same all through; values that cannot be compared do not."""
    import torch

    if one is other or (id(one), id(other)) in met:
        return True
    if type(one) is not type(other):
        return False
    met[id(one), id(other)] = one, other  # kept, so that no other value gets its number
    match one:
        case torch.Tensor():
            return _same(one.detach().numpy(), other.detach().numpy(), met)
        case np.ndarray():
            told = [(each.shape, each.dtype, each.tobytes()) for each in (one, other)]
            return one.dtype != object and told[0] == told[1]
        case dict():
            return _same(list(one.items()), list(other.items()), met)
        case list() | tuple() | deque():
            return len(one) == len(other) and all(_same(*pair, met) for pair in zip(one, other, strict=True))
        case set() | frozenset() | str() | bytes() | int() | float() | complex():
            return bool(one == other)
        case _:
            return hasattr(one, "__dict__") and _same(vars(one), vars(other), met)
