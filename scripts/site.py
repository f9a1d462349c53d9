"""What the site needs beyond its pages: names for the reference, notebooks as pages, a check of the result.

mkdocs calls these functions while it builds (`hooks` in mkdocs.yml).
"""

from __future__ import annotations

import ast
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from griffe import Extension, Object
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

ROOT = Path(__file__).parent.parent
MODULE = re.compile(r"^::: (sfumato[\w.]*)$", re.MULTILINE)
EXAMPLE = re.compile(r"^>>> .*(?:\n(?!\s*$).*)*", re.MULTILINE)
LINK = re.compile(r"\[([^\]]*)\]\(((?:\.\./)+[^)]+)\)")


class Examples(Extension):  # type: ignore[misc]
    """Shows the examples of docstrings as code; mkdocstrings calls it (mkdocs.yml)."""

    def on_instance(self, *, obj: Object, **_: Any) -> None:
        if obj.docstring:
            obj.docstring.value = EXAMPLE.sub(r"```pycon\n\g<0>\n```", obj.docstring.value)


def on_config(config: Any) -> None:
    """Put pages that the menu of mkdocs.yml does not name at its end."""
    docs = Path(config["docs_dir"])
    listed = set(re.findall(r"[\w./-]+\.md", str(config["nav"])))
    more = sorted(str(path.relative_to(docs)) for path in docs.rglob("*.md"))
    if rest := [name for name in more if name not in listed]:
        config["nav"].append({"More": rest})


def on_files(files: Any, config: Any) -> Any:
    """Add the notebooks of examples/ as pages."""
    for notebook in sorted((ROOT / "examples").glob("*.ipynb")):
        files.append(
            File.generated(config, f"examples/{notebook.stem}.md", content=page_of(notebook.read_text()))
        )
    return files


def page_of(notebook: str) -> str:
    """Return a notebook as a page: its code as blocks."""
    parts = []
    for cell in json.loads(notebook)["cells"]:
        text = "".join(cell["source"])
        parts.append(f"```python\n{text}\n```" if cell["cell_type"] == "code" else text)
    return "\n\n".join(parts) + "\n"


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Write out the names of a module, and name what lies outside of the site instead of linking to it."""
    here = (Path(config["docs_dir"]) / page.file.src_uri).parent
    return LINK.sub(lambda found: _outside(found, here), MODULE.sub(_names, markdown))


def public_names(module: str) -> list[str]:
    """Return what a module offers, but for modules, as its source says."""
    path = ROOT / "src" / Path(*module.split("."))
    source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    for node in ast.parse(source.read_text()).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            offered: list[str] = ast.literal_eval(node.value)
            within = [path / name for name in offered]
            modules = {part.name for part in within if part.is_dir() or part.with_suffix(".py").is_file()}
            return [name for name in offered if name not in modules and name != "__version__"]
    raise PluginError(f"{module} does not say what it offers")


def _names(found: re.Match[str]) -> str:
    module = found[1]
    return "\n\n".join(f"::: {module}.{name}" for name in public_names(module))


def _outside(found: re.Match[str], here: Path) -> str:
    words, target = found.groups()
    path = (here / target.split("#")[0]).resolve()
    if path.is_relative_to(ROOT / "docs"):
        return found[0]
    inside = path.relative_to(ROOT)
    if inside.suffix == ".ipynb":
        return f"[{words}]({inside.with_suffix('.md')})"
    return f"{words} (`{inside}`)"


def on_post_build(config: Any) -> None:
    """Refuse a site that asks another host for anything, or that lacks a public name."""
    site = Path(config["site_dir"])
    faults, anchors = [], set()
    for path in sorted(site.rglob("*.html")):
        found = Loaded()
        found.feed(path.read_text(encoding="utf-8"))
        anchors |= found.anchors
        faults += [f"{path.relative_to(site)} loads {address}" for address in found.foreign]
        if path.parent.name == "reference" and "<blockquote>" in path.read_text(encoding="utf-8"):
            faults.append(f"{path.relative_to(site)} shows an example as text")
    for path in sorted(site.rglob("*.css")):
        addresses = re.findall(r"(?:url\(|@import )[\"']?((?:https?:)?//[^\"')]+)", path.read_text())
        faults += [f"{path.relative_to(site)} loads {address}" for address in addresses]
    for page in sorted((ROOT / "docs/reference").glob("*.md")):
        for module in MODULE.findall(page.read_text()):
            missing = {f"{module}.{name}" for name in public_names(module)} - anchors
            faults += [f"{name} is not in the reference" for name in sorted(missing)]
    if faults:
        raise PluginError("\n".join(faults))


class Loaded(HTMLParser):
    """What a page loads from other hosts when it is shown, and the places in it that can be linked to."""

    def __init__(self) -> None:
        super().__init__()
        self.foreign: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = {name: value or "" for name, value in attrs}
        self.anchors.add(known.get("id", ""))
        names = ["src", "srcset", "poster", "data"] + (["href"] if tag in ("link", "image", "use") else [])
        for name in names:
            if re.match(r"(https?:)?//", known.get(name, "")):
                self.foreign.append(known[name])
