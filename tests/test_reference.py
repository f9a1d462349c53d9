"""Everything public is documented: names of Python with an example that runs, options and commands with help.

The examples run as doctests; pages are checked by `test_readme.py`, the site by `make docs`.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from typer import Option
from typer.main import get_command

import sfumato
from sfumato.cli import app

ROOT = Path(__file__).parent.parent
MODULES = sorted(
    name
    for page in (ROOT / "docs/reference").glob("*.md")
    for name in re.findall(r"^::: (sfumato[\w.]*)$", page.read_text(), re.MULTILINE)
)


def fault(thing: Any, name: str) -> str | None:
    """Return what the documentation of a function or a class lacks."""
    text = inspect.getdoc(thing) or ""
    if ">>>" not in text:
        return f"{name} has no example"
    if "+SKIP" in text:
        return f"the example of {name} does not run"
    return None


def constant_is_explained(module: str, name: str) -> bool:
    """Whether a text follows the assignment of a constant, where it is assigned."""
    for path in (ROOT / "src").rglob("*.py"):
        body = ast.parse(path.read_text()).body if f"\n{name}" in path.read_text() else []
        for node, after in pairwise(body):
            target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
            if getattr(target, "id", None) == name and isinstance(after, ast.Expr):
                return isinstance(after.value, ast.Constant)
    return False


def test_the_reference_has_every_package_that_users_import() -> None:
    packages = {f"sfumato.{name}" for name in ("anonymity", "attacks", "audit", "core", "ledger", "local")}
    assert packages | {"sfumato", "sfumato.core.events", "sfumato.errors", "sfumato.lessons"} <= set(MODULES)


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_has_an_example(module: str) -> None:
    page = importlib.import_module(module)
    found = []
    for name in page.__all__:
        thing = getattr(page, name)
        if inspect.ismodule(thing) or name == "__version__":
            continue
        if inspect.isclass(thing) or inspect.isfunction(thing):
            found.append(fault(thing, f"{module}.{name}"))
        elif fault(type(thing), name):
            found.append(None if constant_is_explained(module, name) else f"{module}.{name} is not explained")
    assert [each for each in found if each] == []


def test_a_name_without_an_example_is_caught() -> None:
    def silent() -> None:
        """Do something."""

    def lazy() -> None:
        """Do something.

        >>> lazy()  # doctest: +SKIP
        """

    assert fault(silent, "silent") == "silent has no example"
    assert fault(lazy, "lazy") == "the example of lazy does not run"


@pytest.mark.parametrize("function", [sfumato.connect, sfumato.open], ids=lambda each: each.__name__)
def test_every_option_of_python_is_explained(function: Any) -> None:
    missing = undocumented(function)
    assert not missing


def undocumented(function: Any) -> set[str]:
    """Return the parameters that the docstring of a function does not name."""
    text = inspect.getdoc(function) or ""
    return {name for name in inspect.signature(function).parameters if not re.search(rf"\b{name}\b", text)}


def test_an_option_of_python_that_is_not_explained_is_caught() -> None:
    def function(epsilon: float, delta: float) -> None:
        """Take an epsilon."""

    assert undocumented(function) == {"delta"}


def unexplained(command: Any, words: tuple[str, ...] = ()) -> list[str]:
    """Return the commands, options and arguments of the command line that say nothing about themselves."""
    found = [] if command.help else [" ".join(words)]
    for parameter in command.params:
        if not getattr(parameter, "help", None) and not getattr(parameter, "hidden", False):
            found.append(" ".join([*words, parameter.name]))
    for name, inner in getattr(command, "commands", {}).items():
        found += unexplained(inner, (*words, name))
    return found


def test_every_command_option_and_argument_has_help() -> None:
    assert unexplained(get_command(app)) == []


def test_an_option_without_help_is_caught() -> None:
    import typer

    planted = typer.Typer()

    @planted.callback(help="All.")
    def everything() -> None: ...

    @planted.command(help="Ask.")
    def ask(loud: bool = Option(False)) -> None: ...

    @planted.command()
    def mute() -> None: ...

    assert unexplained(get_command(planted)) == ["ask loud", "mute"]
