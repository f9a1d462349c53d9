"""Shared state: what a copy of a module has in common with the module. A copy does not forget it.

Python's copies share functions, and what functions keep: variables of the function around them, and default
arguments. They also share classes and global variables.

- `shares_state`: whether a module and its copy hold one object that can be changed. Such a module is refused.
- `outside`: attributes of the module's classes, and the variables that their methods use. Some may be
  constants, so they are not refused, but a trial compares them before and after.
"""

from __future__ import annotations

import copy
import dis
import numbers
import weakref
from collections import deque
from collections.abc import Iterable, Iterator
from enum import Enum
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch.nn import Module

__all__ = ["outside", "shares_state"]


def shares_state(module: Module) -> bool:
    """Return whether a module and its copy hold one object that can be changed."""
    own = {id(one) for one in _changeable(module, {})}
    return any(id(one) in own for one in _changeable(copy.deepcopy(module), {}))


def _changeable(value: Any, met: dict[int, Any]) -> Iterator[Any]:
    """Yield the objects that can be changed, of all that a value holds."""
    import torch

    if id(value) in met:
        return
    met[id(value)] = value
    parts: Iterable[Any] = ()
    match value:
        case None | str() | bytes() | bool() | numbers.Number() | Enum() | range() | type():
            return
        case torch.dtype() | torch.device() | ModuleType() | BuiltinFunctionType() | weakref.ref():
            return
        case FunctionType():
            if _of_torch(value):
                return
            if _assigns_around(value):
                yield value
            parts = [*_variables(value), *vars(value).values()]
        case MethodType():
            parts = (value.__self__, value.__func__)
        case tuple() | frozenset():
            parts = value
        case dict():
            yield value
            parts = [*value.keys(), *value.values()]
        case list() | set() | deque():
            yield value
            parts = value
        case _:
            yield value
            parts = getattr(value, "__dict__", {}).values()
    for part in list(parts):
        yield from _changeable(part, met)


def outside(module: Module) -> list[Any]:
    """Return a copy of what the classes of a module keep: attributes, and variables that methods use."""
    found: list[Any] = []
    for kind in dict.fromkeys(kind for part in module.modules() for kind in type(part).__mro__):
        if _of_torch(kind) or kind.__module__ == "builtins":
            continue
        for value in vars(kind).values():
            function = getattr(value, "__func__", value)
            if isinstance(function, FunctionType):
                names = function.__code__.co_names
                used = [function.__globals__[name] for name in names if name in function.__globals__]
                found += [*_variables(function), *used]
            else:
                found.append(value)
    return [copy.deepcopy(one) if _is_data(one) else type(one) for one in found]


def _variables(function: FunctionType) -> list[Any]:
    """Return the variables of the function around it that a function uses, and its default arguments."""
    found: list[Any] = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    for cell in function.__closure__ or ():
        try:
            found.append(cell.cell_contents)
        except ValueError:  # nothing was assigned yet
            found.append(None)
    return found


def _assigns_around(function: FunctionType) -> bool:
    """Return whether a function assigns to a variable of the function around it."""
    around = set(function.__code__.co_freevars)
    steps = dis.get_instructions(function)
    return any(one.opname in ("STORE_DEREF", "DELETE_DEREF") and one.argval in around for one in steps)


def _is_data(value: Any) -> bool:
    """Return whether a value is plain data, or holds a tensor: what could be kept of a row."""
    import numpy as np
    import torch

    if isinstance(value, torch.Tensor):
        return value.is_leaf
    return value is None or isinstance(
        value, (numbers.Number, str, bytes, np.ndarray, list, tuple, dict, set, frozenset, deque)
    )


def _of_torch(value: Any) -> bool:
    name = str(getattr(value, "__module__", ""))
    return name == "torch" or name.startswith("torch.")
