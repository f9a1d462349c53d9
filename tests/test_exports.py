"""Every module says what it offers: a sorted `__all__` that is exactly its public names."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src"


def module_name(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


# Importing __main__ would run the program.
MODULES = {module_name(path): path for path in sorted(SOURCE.rglob("*.py")) if path.name != "__main__.py"}


def public_names(text: str, *, is_package: bool) -> set[str]:
    """Return the public names a module binds; a package's contents page also offers what it imports."""
    names: set[str] = set()
    for node in ast.parse(text).body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.Assign(targets=targets):
                for target in targets:
                    names |= {leaf.id for leaf in ast.walk(target) if isinstance(leaf, ast.Name)}
            case ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
            case ast.ImportFrom(module=source, names=aliases) if is_package and source != "__future__":
                if source == "sfumato" or (source or "").startswith("sfumato."):
                    names |= {alias.asname or alias.name for alias in aliases}
    return {name for name in names if not name.startswith("_")}


@pytest.mark.parametrize("name", MODULES)
def test_all_is_sorted_and_complete(name: str) -> None:
    module = importlib.import_module(name)
    exported = getattr(module, "__all__", None)
    assert exported is not None, f"{name} has no __all__"
    assert list(exported) == sorted(set(exported)), f"__all__ of {name} is not sorted or repeats a name"
    path = MODULES[name]
    bound = public_names(path.read_text(), is_package=path.name == "__init__.py")
    missing = bound - set(exported)
    assert not missing, f"{name} binds public names that __all__ leaves out; add them or prefix them with _"
    for offered in exported:
        assert hasattr(module, offered), f"__all__ of {name} offers {offered}, which does not exist"
    if path.name != "__init__.py":
        assert set(exported) <= bound, f"__all__ of {name} offers names that it does not define"


def test_public_names_are_read_off_the_source() -> None:
    text = "import os\nfrom sfumato.errors import Unsupported\nA = B, _c = 1, 2\nD: int = 3\ndef e(): f = 1\n"
    assert public_names(text, is_package=False) == {"A", "B", "D", "e"}
    assert public_names(text, is_package=True) == {"A", "B", "D", "Unsupported", "e"}


def test_parts_of_the_package_are_loaded_when_first_used() -> None:
    code = """
import sys, sfumato
assert "sfumato.core" not in sys.modules
assert dir(sfumato) == sfumato.__all__
for name in sfumato.__all__:
    getattr(sfumato, name)
assert "sfumato.core" in sys.modules
try:
    sfumato.no_such_thing
except AttributeError as error:
    assert "no_such_thing" in str(error)
else:
    raise AssertionError("an unknown name must be refused")
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=SOURCE)


def repeated_classes(texts: dict[str, str]) -> dict[str, list[str]]:
    """Return the public classes that more than one file defines, with the files."""
    found: dict[str, list[str]] = {}
    for path, text in texts.items():
        for node in ast.parse(text).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found.setdefault(node.name, []).append(path)
    return {name: paths for name, paths in found.items() if len(paths) > 1}


@pytest.mark.long
def test_a_public_class_name_stands_in_one_module() -> None:
    texts = {str(path.relative_to(SOURCE)): path.read_text() for path in sorted(SOURCE.rglob("*.py"))}
    assert repeated_classes(texts) == {}
    planted = repeated_classes({**texts, "sfumato/planted.py": "class Release: ..."})
    assert planted == {"Release": ["sfumato/release/release.py", "sfumato/planted.py"]}


def test_a_first_answer_imports_only_what_it_needs(tmp_path: Path) -> None:
    """Most of the time to a first answer is imports; these would double it."""
    path = str(tmp_path / "t.parquet")
    code = f"""
import sys
import duckdb
import sfumato as sf
duckdb.sql("SELECT range % 9 AS person, range % 3 AS place FROM range(99)").write_parquet({path!r})
budget = sf.Budget(epsilon=1, delta=1e-7)
db = sf.connect({path!r}, unit="person", max_rows=20, max_groups=3, budget=budget)
str(db.sql("SELECT place, COUNT(*) AS n FROM t GROUP BY place", epsilon=0.5).release())
unneeded = {{"pandas", "polars", "rich", "scipy", "typer", "sfumato.core.selection"}}
print(*sorted(unneeded & set(sys.modules)))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, cwd=SOURCE, capture_output=True, text=True
    )
    assert done.stdout.split() == []
