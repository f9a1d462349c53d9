"""What the README and the documentation show is run here, so that it stays true. Links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.snippets import FENCE, run_page

ROOT = Path(__file__).parent.parent
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    ROOT / "examples/README.md",
    ROOT / "tests/README.md",
]
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]*)(?:#([^)\s]*))?\)")


def page_id(page: Path) -> str:
    return str(page.relative_to(ROOT))


SLOW = {"advise.md", "audit.md", "shuffling.md", "survey-tutorial.md"}
RUN = [pytest.param(page, marks=[pytest.mark.soak] if page.name in SLOW else []) for page in PAGES]


@pytest.mark.parametrize("page", RUN, ids=page_id)
def test_snippets_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # where pictures may be saved
    run_page(page.read_text(), page_id(page))


def test_the_readme_has_snippets() -> None:
    assert len(FENCE.findall((ROOT / "README.md").read_text())) >= 5


def anchors(text: str) -> set[str]:
    """Return the names under which the headings of a page can be linked to."""
    headings = re.findall(r"^#+ +(.*)$", FENCE.sub("", text), re.MULTILINE)
    words = (re.sub(r"[^\w\s-]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", each)) for each in headings)
    return {re.sub(r"[\s]", "-", each.strip().lower()) for each in words}


def dead_links(page: Path, text: str) -> list[str]:
    """Return the links of a page that lead nowhere: to no file, or to no heading of one."""
    found = []
    for target, anchor in LINK.findall(re.sub(r"`[^`\n]*`", "", FENCE.sub("", text))):
        if "://" in target:
            continue
        path = page.parent / target if target else page
        if not path.exists() or (anchor and anchor not in anchors(path.read_text() if target else text)):
            found.append(f"{target}#{anchor}" if anchor else target)
    return found


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_links_lead_somewhere(page: Path) -> None:
    assert dead_links(page, page.read_text()) == []


def test_a_dead_link_is_caught() -> None:
    text = (
        "# Here\n[a](missing.md) [b](#here) [c](#there) [d](docs/ledger.md#no-such-heading) [e](README.md)\n"
    )
    assert dead_links(ROOT / "README.md", text) == ["missing.md", "#there", "docs/ledger.md#no-such-heading"]


def test_the_menu_of_the_site_names_pages_that_exist() -> None:
    """Pages that it does not name are put at its end (scripts/site.py)."""
    listed = re.findall(r"^ +- ([\w./-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    pages = {str(page.relative_to(ROOT / "docs")) for page in PAGES if page.is_relative_to(ROOT / "docs")}
    notebooks = {f"examples/{path.stem}.md" for path in (ROOT / "examples").glob("*.ipynb")}
    assert set(listed) <= pages | notebooks and len(listed) == len(set(listed)) > 40


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
