"""A page: a title, sections and one stylesheet, in one file; and a fragment of one, for a notebook."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from html import escape
from importlib import resources

from sfumato.errors import InvalidArgument
from sfumato.pages.blocks import (
    BulletList,
    CodeBlock,
    Facts,
    Notice,
    PageTable,
    Paragraph,
    SignatureLines,
)
from sfumato.pages.figure import Figure

__all__ = ["Block", "Page", "Section", "fragment"]

Block = BulletList | CodeBlock | Facts | Figure | Notice | PageTable | Paragraph | SignatureLines
"""What a section is made of."""

_LISTED = 4  # a page with so many sections begins with a list of them

# A browser that reads this loads nothing and runs nothing, whatever the page holds.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


@dataclass(frozen=True, slots=True, init=False)
class Section:
    """A heading and what stands below it. `anchor` is where links lead: the title, unless given.

    >>> print(Section("What was done", Paragraph("Much.")).html())
    <section>
    <h2 id="what-was-done">What was done</h2>
    <p>Much.</p>
    </section>
    """

    title: str
    blocks: tuple[Block, ...]
    anchor: str

    def __init__(self, title: str, *blocks: Block, anchor: str = "") -> None:
        object.__setattr__(self, "title", title)
        object.__setattr__(self, "blocks", blocks)
        object.__setattr__(self, "anchor", anchor or re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-"))

    def html(self) -> str:
        """Return the section as HTML."""
        heading = f'<h2 id="{escape(self.anchor)}">{escape(self.title)}</h2>'
        return "\n".join(["<section>", heading, *(block.html() for block in self.blocks), "</section>"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A report. `made` says when and with what; `opening` stands before the first section; `closing` last."""

    title: str
    made: str = ""
    opening: tuple[Block, ...] = ()
    sections: tuple[Section, ...] = field(default=())
    closing: str = ""

    def __post_init__(self) -> None:
        anchors = [section.anchor for section in self.sections]
        if len(set(anchors)) != len(anchors):
            raise InvalidArgument("two sections of a page have the same anchor", place="sections")

    def html(self) -> str:
        """Return the page: one file that loads no other."""
        made = f'\n<p class="made">{escape(self.made)}</p>' if self.made else ""
        parts = [
            f"<header>\n<h1>{escape(self.title)}</h1>{made}\n</header>",
            "<main>",
            *(block.html() for block in self.opening),
            *self._contents(),
            *(section.html() for section in self.sections),
            "</main>",
        ]
        if self.closing:
            parts.append(f"<footer><p>{escape(self.closing)}</p></footer>")
        body = "\n".join(parts)
        return (
            f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            '<meta name="color-scheme" content="light dark">\n'
            f"<title>{escape(self.title)}</title>\n"
            f"<style>\n{_styles('page.css')}{_styles('blocks.css')}</style></head>\n"
            f'<body class="sfumato">\n{body}\n</body></html>\n'
        )

    def _contents(self) -> list[str]:
        if len(self.sections) < _LISTED:
            return []
        listed = "".join(
            f'<li><a href="#{escape(each.anchor)}">{escape(each.title)}</a></li>' for each in self.sections
        )
        return [f'<nav aria-label="Contents"><ol>{listed}</ol></nav>']


def fragment(*blocks: Block) -> str:
    """Return blocks as HTML for a notebook: in its own colours, whatever they are, and without a page around.

    >>> fragment(Paragraph("5 people")).endswith("<p>5 people</p>\\n</div>")
    True
    """
    shown = "\n".join(block.html() for block in blocks)
    return f'<div class="sfumato">\n<style>\n{_styles("blocks.css")}</style>\n{shown}\n</div>'


@cache
def _styles(name: str) -> str:
    return resources.files("sfumato.pages").joinpath(name).read_text(encoding="utf-8")
