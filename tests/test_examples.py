"""The notebooks of examples/ run from top to bottom, and everything that they show can be shown."""

from __future__ import annotations

import ast
import json
import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
SHOWN = ("_repr_mimebundle_", "_repr_html_", "__repr__")


def run_notebook(path: Path) -> int:
    """Run the code of a notebook as a notebook does: in order, in one namespace, showing last expressions."""
    names: dict[str, Any] = {"__name__": "__main__"}
    cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    for number, cell in enumerate(cells):
        body = ast.parse("".join(cell["source"])).body
        last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
        place = f"{path.name}, cell {number}"
        exec(compile(ast.Module(body, []), place, "exec"), names)
        if isinstance(last, ast.Expr):
            shown = eval(compile(ast.Expression(last.value), place, "eval"), names)
            for way in SHOWN:
                if hasattr(shown, way):
                    getattr(shown, way)()
    return len(cells)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path) -> None:
    assert run_notebook(path) >= 3


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_outputs_and_is_listed(path: Path) -> None:
    """Outputs would be stale, and could hold what nobody meant to publish."""
    for cell in json.loads(path.read_text())["cells"]:
        assert not cell.get("outputs") and cell.get("execution_count") is None
    for page in (ROOT / "examples/README.md", ROOT / "docs/examples.md"):
        assert f"{path.name})" in page.read_text()


def test_a_broken_notebook_is_caught(tmp_path: Path) -> None:
    for code in ("1 / 0", "x = 1\nx.missing"):
        path = tmp_path / "planted.ipynb"
        path.write_text(json.dumps({"cells": [{"cell_type": "code", "source": [code]}]}))
        with pytest.raises((ZeroDivisionError, AttributeError)):
            run_notebook(path)


def test_the_census_adds_up(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = runpy.run_path(str(ROOT / "examples" / "census.py"))
    names["main"](2_000, 200)
    shown = capsys.readouterr().out
    assert "each the same: 2000 2000 2000 2000" in shown and "NOT PROTECTED" in shown
