"""Imports point inward: the layers of the design, read from the syntax tree and not from what happens to run.

Imports inside functions and under TYPE_CHECKING count too: a lazy import is still a dependency.
"""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src"

ENGINES = ("sfumato.backends.duckdb", "sfumato.backends.postgres", "sfumato.backends.spark")
# A component may import itself and components of a lower layer; never a neighbour of its own layer.
LAYERS = {
    "contents": 0,
    "errors": 0,
    "interrupts": 0,
    "printable": 0,
    "core": 1,
    "plots": 1,  # pictures are data until they are drawn, and know nothing of privacy
    "pages": 2,
    "catalog": 2,
    "aggregates": 3,  # what is known about each aggregate; plan, analysis and release ask it
    "plan": 4,
    "analysis": 5,
    "ledger": 5,
    "backends": 6,
    "release": 7,
    "pipeline": 8,
    "advise": 9,  # what to choose; the session asks for it about its questions and its budget
    "continual": 9,  # statistics period after period; the session asks for them as for one
    "workloads": 9,  # many statistics at once; the session asks for them as for one
    "session": 10,
    "anonymity": 11,
    "learn": 11,
    "local": 11,
    "synthesis": 11,
    "audit": 12,  # also audits what the capabilities claim, a training run among them
    "attacks": 13,  # also attacks what the capabilities make
    "lessons": 13,  # also draws what they promise
    "server": 14,
    "__init__": 14,  # the public face: gathers what is below, and only the command line imports it
    "cli": 15,
    "__main__": 16,
}

# What the trusted mathematics may use: no data, no SQL, no input or output. Unknown means refuse.
CORE_MAY_IMPORT = {
    "__future__", "abc", "bisect", "collections", "contextlib", "contextvars", "dataclasses", "decimal",
    "enum", "fractions", "functools", "heapq", "importlib", "itertools", "math", "numbers", "operator",
    "struct", "threading", "types", "typing", "cryptography", "numpy", "scipy", "sfumato",
}  # fmt: skip
ONLY_ENTROPY_MAY_IMPORT = {"cryptography", "os"}
CORE_MAY_NOT_CALL = {"breakpoint", "eval", "exec", "input", "open", "print"}
SEEDABLE = ("random", "numpy.random")
# What only a caller who already has it makes us import: where a release becomes one of their objects.
OPTIONAL = {"sklearn"}
OPTIONAL_IN = {"sfumato/learn/models.py"}
OWNERS_TOOLS = {"anonymity", "attacks"}
# One file of a survey's layer: the owner compares models of trust with the truth. A collector may not look.
OWNERS_FILES = {"sfumato/local/people.py"}
IMPORTED_AS = {"vl_convert_python": "vl_convert"}  # distributions whose module has another name
# Who may open an `Exact`: noise, of everybody's rows; the auditor's laboratory, of rows it invented.
REVEAL = {"sfumato/release/noise.py", "sfumato/audit/laboratory.py"}
PEERS = {"diffprivlib", "dp_accounting", "opendp", "pipeline_dp", "snsql", "tmlt"}


def imports(tree: ast.AST, module: str, is_package: bool) -> Iterator[tuple[str, int, bool]]:
    """Yield (absolute dotted name, line, whether at module level) of everything a file imports."""
    top = {id(node) for node in getattr(tree, "body", ())}
    for node in ast.walk(tree):
        at_top = id(node) in top
        match node:
            case ast.Import(names=names):
                yield from ((alias.name, node.lineno, at_top) for alias in names)
            case ast.ImportFrom(module=source, names=names, level=level):
                if level:
                    parents = module.split(".") if is_package else module.split(".")[:-1]
                    base = parents[: len(parents) - level + 1]
                    source = ".".join([*base, source] if source else base)
                yield from ((f"{source}.{alias.name}", node.lineno, at_top) for alias in names)
            case ast.Call(
                func=ast.Attribute(attr="import_module") | ast.Name(id="import_module" | "__import__")
            ):
                match node.args:
                    case [ast.Constant(value=str(name)), *_]:
                        yield name, node.lineno, False
                    case [ast.JoinedStr(values=[ast.Constant(value=str(start)), *_]), *_] if start[-1] == ".":
                        yield (
                            f"{start}<computed>",
                            node.lineno,
                            False,
                        )  # somewhere below a part that can be read
                    case _:
                        yield "<computed>", node.lineno, False


def component(name: str) -> str | None:
    """Return which part of the package a dotted name belongs to, None if it is foreign."""
    first, *rest = name.split(".")
    if first != "sfumato":
        return None
    return rest[0] if rest and rest[0] in LAYERS else "__init__"


def violations(text: str, path: str) -> list[str]:
    """Return what is wrong with the imports of one file; `path` is relative to src/."""
    relative = Path(path)
    is_package = relative.name == "__init__.py"
    parts = relative.parent.parts if is_package else (*relative.parent.parts, relative.stem)
    module = ".".join(parts)
    if len(parts) > 1 and parts[1] not in LAYERS:
        return [f"{path}: no layer is known for {parts[1]!r}; give it one here and in the design"]
    home = parts[1] if len(parts) > 1 else "__init__"
    tree = ast.parse(text)
    found = []
    for name, line, at_top in imports(tree, module, is_package):
        where = f"{path}:{line}: {name}"
        target = component(name)
        if name == "<computed>":
            if home not in ("__init__", "contents"):  # what a package offers lies below that package
                found.append(f"{where} import whose target cannot be read")
        elif target is not None:
            if target != home and LAYERS[target] >= LAYERS[home]:
                found.append(
                    f"{where} points outward: {home} is layer {LAYERS[home]}, {target} {LAYERS[target]}"
                )
            elif (
                name.startswith("sfumato.backends.owned")
                and home not in OWNERS_TOOLS
                and path not in OWNERS_FILES
            ):
                found.append(f"{where} reads tables as they are: for the owner's tools, never for a release")
            elif name.startswith(ENGINES) and home != "backends":
                found.append(f"{where} is one engine: open data through sfumato.backends")
        elif any(name == seeded or name.startswith(f"{seeded}.") for seeded in SEEDABLE):
            found.append(f"{where} is a seedable generator")
        elif name.split(".")[0] in PEERS:
            found.append(f"{where} is a peer: an oracle for tests, never imported by the package")
        if home == "core":
            found.extend(core_violations(name, where, at_top, relative.stem))
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id="np" | "numpy"), attr="random"):
                found.append(f"{path}:{node.lineno}: numpy.random is a seedable generator")
            case ast.Attribute(attr="rvs"):
                found.append(f"{path}:{node.lineno}: .rvs() draws from a seedable generator")
            case ast.Call(func=ast.Name(id=called)) if home == "core" and called in CORE_MAY_NOT_CALL:
                found.append(f"{path}:{node.lineno}: core may not call {called}()")
    return found


def core_violations(name: str, where: str, at_top: bool, stem: str) -> Iterator[str]:
    """Yield what is wrong with an import in the trusted core."""
    first = name.split(".")[0]
    if first in ONLY_ENTROPY_MAY_IMPORT:
        if stem != "entropy":
            yield f"{where} belongs to core/entropy.py alone"
    elif first not in CORE_MAY_IMPORT:
        yield f"{where} is not on the list of what core may import"
    if first == "scipy" and (at_top or stem != "scientific"):
        yield f"{where} belongs to core/scientific.py, inside its function"


def files() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def test_imports_point_inward() -> None:
    names = {str(path.relative_to(SOURCE)): path for path in files()}
    found = {name: violations(path.read_text(), name) for name, path in names.items()}
    assert len(found) > 500 and not {name: wrong for name, wrong in found.items() if wrong}


@pytest.mark.long
def test_every_third_party_import_is_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = [
        name
        for key, names in project.get("optional-dependencies", {}).items()
        if key != "dev"
        for name in names
    ]
    declared = {
        requirement.split(">")[0].split("=")[0].split("[")[0].strip().lower().replace("-", "_")
        for requirement in [*project["dependencies"], *extras]
    }
    declared |= {IMPORTED_AS[name] for name in declared & IMPORTED_AS.keys()}
    assert not OPTIONAL & declared
    for path in files():
        tree = ast.parse(path.read_text())
        optional = OPTIONAL if str(path.relative_to(SOURCE)) in OPTIONAL_IN else set()
        for name, line, at_top in imports(tree, "sfumato", True):
            first = name.split(".")[0]
            known = first in sys.stdlib_module_names or first in {"sfumato", "<computed>"}
            known = known or (first in optional and not at_top)
            assert known or first in declared, f"{path}:{line}: {first} is not a declared dependency"


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("sfumato/core/noise.py", "from sfumato.session import connect"),
        ("sfumato/core/noise.py", "def f():\n    from sfumato import cli"),
        ("sfumato/core/noise.py", "from .. import ledger"),
        ("sfumato/core/noise.py", "from ..plan.tree import Node"),
        ("sfumato/core/noise.py", "import sfumato"),
        ("sfumato/core/noise.py", "import importlib\nimportlib.import_module('sfumato.cli')"),
        ("sfumato/core/noise.py", "import importlib\nimportlib.import_module(f'sfumato.{x}')"),
        ("sfumato/core/noise.py", "import importlib\nimportlib.import_module(f'{x}')"),
        ("sfumato/core/noise.py", "__import__('a' + 'b')"),
        ("sfumato/core/noise.py", "import sqlite3"),
        ("sfumato/core/noise.py", "def f():\n    import duckdb"),
        ("sfumato/core/noise.py", "def f():\n    from scipy import special"),
        ("sfumato/core/scientific.py", "from scipy import special"),
        ("sfumato/core/noise.py", "import os"),
        ("sfumato/core/noise.py", "open('x')"),
        ("sfumato/core/entropy.py", "import secrets"),
        ("sfumato/core/events/base.py", "from ...catalog import unit"),
        ("sfumato/errors.py", "from sfumato.core import noise"),
        ("sfumato/ledger/chain.py", "from sfumato.analysis import cost"),
        ("sfumato/local/olh.py", "from sfumato.learn import train"),
        ("sfumato/session/database.py", "from sfumato.backends.owned import read_owned"),
        ("sfumato/local/collector.py", "from sfumato.backends.owned import read_owned"),
        ("sfumato/session/opening.py", "from sfumato.backends.duckdb import DuckDBBackend"),
        ("sfumato/session/opening.py", "from sfumato.backends.postgres import PostgresTables"),
        ("sfumato/audit/laboratory.py", "from sfumato.backends.duckdb.source import open_source"),
        ("sfumato/server/app.py", "import random"),
        ("sfumato/server/app.py", "from numpy import random"),
        ("sfumato/server/app.py", "import numpy as np\nnp.random.default_rng()"),
        ("sfumato/server/app.py", "import opendp.prelude"),
        ("sfumato/server/app.py", "from sfumato import connect"),
        ("sfumato/helpers/things.py", "x = 1"),
    ],
)
def test_a_planted_wrong_import_is_caught(path: str, line: str) -> None:
    assert violations(line, path)


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("sfumato/core/noise.py", "from sfumato.core.coins import bernoulli"),
        ("sfumato/core/__init__.py", "import importlib\nimportlib.import_module(f'sfumato.core.{x}')"),
        ("sfumato/core/noise.py", "from . import bernoulli\nfrom sfumato import errors"),
        ("sfumato/core/scientific.py", "import numpy as np\ndef f():\n    from scipy import special"),
        ("sfumato/core/entropy.py", "import os\nfrom cryptography.hazmat.primitives import ciphers"),
        ("sfumato/ledger/chain.py", "import sqlite3\nfrom sfumato.core import events"),
        (
            "sfumato/cli/__init__.py",
            "from sfumato import __version__, core\nfrom sfumato.cli.demo import run",
        ),
        ("sfumato/__init__.py", "from sfumato import core, errors"),
        ("sfumato/local/people.py", "from sfumato.backends.owned import read_owned"),
    ],
)
def test_a_right_import_is_let_through(path: str, line: str) -> None:
    assert not violations(line, path)


def reveals(text: str) -> list[int]:
    """Return the lines on which an exact value could be revealed: by the method, its name, or its slot."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(text))
        if (isinstance(node, ast.Attribute) and (node.attr == "reveal" or node.attr.endswith("__secret")))
        or (isinstance(node, ast.Constant) and node.value in ("reveal", "_Exact__secret", "__secret"))
    ]


def test_only_named_modules_reveal_exact_values() -> None:
    found = {str(path.relative_to(SOURCE)): reveals(path.read_text()) for path in files()}
    revealing = {path for path, lines in found.items() if lines}
    assert revealing - {"sfumato/backends/exact.py"} == REVEAL
    assert all(len(found[path]) == 1 for path in REVEAL)


@pytest.mark.parametrize(
    "text",
    [
        "x.reveal()",
        "f = x.reveal",
        "getattr(x, 'reveal')()",
        "x._Exact__secret",
        "getattr(x, '_Exact__secret')",
    ],
)
def test_a_planted_revelation_is_found(text: str) -> None:
    assert reveals(text)


@pytest.mark.parametrize("module", ["sfumato", "sfumato.core", "sfumato.learn.networks.estimator"])
def test_importing_the_package_is_light(module: str) -> None:
    """Networks are imported with all that asks questions; torch comes when one is priced."""
    heavy = {"opacus", "pandas", "polars", "pydantic", "sklearn", "torch"}
    if not module.startswith("sfumato.learn"):
        heavy |= {"cryptography", "duckdb", "pyarrow", "rich", "scipy", "sqlglot", "typer"}
    code = f"import sys, {module}; print(*sorted({{name.split('.')[0] for name in sys.modules}}))"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=SOURCE
    )
    assert not heavy & set(result.stdout.split())
