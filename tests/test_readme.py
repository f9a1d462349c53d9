"""What the README and the documentation show is run here, so that it stays true.

A block marked `python` that starts with `>>>` is a doctest: its output is compared, `...`
stands for anything. Any other `python` block is executed. Blocks of one page share names.
"""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")


def page_id(page: Path) -> str:
    return str(page.relative_to(ROOT))


def run_page(text: str, name: str) -> int:
    """Run the Python blocks of a page in one namespace; return how many there were."""
    names: dict[str, object] = {"__name__": name}
    blocks = 0
    for match in FENCE.finditer(text):
        language, code = match.groups()
        if language != "python":
            continue
        blocks += 1
        line = text.count("\n", 0, match.start(2))
        if code.lstrip().startswith(">>>"):
            flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
            test = doctest.DocTestParser().get_doctest(code, names, name, name, line)
            report: list[str] = []
            doctest.DocTestRunner(optionflags=flags).run(test, out=report.append, clear_globs=False)
            names.update(test.globs)
            assert not report, "".join(report)
        else:
            exec(compile("\n" * line + code, name, "exec"), names)
    return blocks


SLOW = {"survey-tutorial.md"}  # ten thousand phones
RUN = [pytest.param(page, marks=[pytest.mark.soak] if page.name in SLOW else []) for page in PAGES]


@pytest.mark.parametrize("page", RUN, ids=page_id)
def test_snippets_run(page: Path) -> None:
    run_page(page.read_text(), page_id(page))


def test_the_readme_has_snippets() -> None:
    assert run_page((ROOT / "README.md").read_text(), "README.md") >= 1


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_links_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page_id(page)} links to {target}"


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_commands_exist(page: Path) -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert targets >= {"demo", "test", "check", "bench"}
    for language, code in FENCE.findall(page.read_text()):
        if language in {"console", "sh"}:
            for target in re.findall(r"^\$? *make ([a-z]+)", code, re.MULTILINE):
                assert target in targets, f"{page_id(page)} says make {target}"


def test_the_map_of_the_core_is_complete() -> None:
    table = (ROOT / "docs/how-it-works.md").read_text().split("## The map of `core`")[1].split("\n\n")[1]
    shown = [name for row in table.splitlines()[2:] for name in re.findall(r"`(\w+)`", row.split("|")[1])]
    core = ROOT / "src/sfumato/core"
    modules = {path.stem for path in core.glob("*.py")} | {path.parent.name for path in core.glob("*/*.py")}
    assert sorted(shown) == sorted(modules - {"__init__"})


@pytest.mark.parametrize(
    "text",
    [
        "```python\n1 / 0\n```\n",
        "```python\n>>> 1 + 1\n3\n```\n",
        "```python\nx = 1\n```\n```python\n>>> x\n2\n```\n",
    ],
)
def test_a_wrong_snippet_is_caught(text: str) -> None:
    with pytest.raises((AssertionError, ZeroDivisionError)):
        run_page(text, "planted")


def test_the_map_of_the_tests_is_complete() -> None:
    """Every folder of tests, and every file of tests beside them, has a line that says what it proves."""
    tests = ROOT / "tests"
    text = (tests / "README.md").read_text()
    folders = {f"`{path.name}/`" for path in tests.iterdir() if path.is_dir() and path.name != "__pycache__"}
    files = {f"`{path.name}`" for path in tests.glob("test_*.py")}
    assert not {name for name in folders | files if f"| {name}" not in text}
    assert not [name for name in re.findall(r"^\| `([\w./]+)`", text, re.M) if not (tests / name).exists()]
