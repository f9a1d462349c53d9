"""Contents pages: a package's `__init__` lists what it offers, and imports a part when it is first used."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

__all__ = ["contents"]


def contents(
    package: str, offered: list[str], homes: Mapping[str, Sequence[str]], rest: str = ""
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return a package's `__getattr__` and `__dir__`; `homes` says which names each of its modules defines.

    The module `rest` defines what is offered and has no home; what "" defines is a module itself.
    """
    modules = {name: module for module, names in homes.items() for name in names}

    def part(name: str) -> Any:
        if name not in offered:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = modules.get(name, rest)
        found = importlib.import_module(f"{package}.{home or name}")
        return getattr(found, name) if home else found

    return part, lambda: offered
