"""A page: a title, sections and one stylesheet, in one file; its text; and what a notebook shows of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from html import escape
from importlib import resources

from sfumato.errors import InvalidArgument
from sfumato.pages.blocks import Block, markdown_text

__all__ = ["Deferred", "Page", "Pictures", "Section", "fragment"]


@dataclass(frozen=True, slots=True)
class Deferred(Block):
    """Blocks that take some work: they are made where they are shown, and only there.

    >>> from sfumato.pages import Paragraph
    >>> Deferred(lambda: [Paragraph("5 people")]).html()
    '<p>5 people</p>'
    """

    blocks: Callable[[], Iterable[Block]]

    def html(self) -> str:
        return "\n".join(block.html() for block in self.blocks())

    def text(self) -> str:
        return _joined("\n", (block.text() for block in self.blocks()))

    def markdown(self) -> str:
        return _joined("\n\n", (block.markdown() for block in self.blocks()))


@dataclass(frozen=True, slots=True)
class Pictures(Deferred):
    """Figures that take some work: text and Markdown have no pictures, and do not make them."""

    def text(self) -> str:
        return ""

    def markdown(self) -> str:
        return ""


_LISTED = 4  # a page with so many sections begins with a list of them

# A browser that reads this loads nothing and runs nothing, whatever the page holds.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


@dataclass(frozen=True, slots=True, init=False)
class Section(Block):
    """A heading and what stands below it. `anchor` is where links lead: the title, unless given.

    Text and Markdown have no section of pictures alone.

    >>> from sfumato.pages import Paragraph
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
        heading = f'<h2 id="{escape(self.anchor)}">{escape(self.title)}</h2>'
        return "\n".join(["<section>", heading, *(block.html() for block in self.blocks), "</section>"])

    def text(self) -> str:
        below = _joined("\n", (block.text() for block in self.blocks))
        return f"{self.title}\n{below}" if below else ""

    def markdown(self) -> str:
        below = _joined("\n\n", (block.markdown() for block in self.blocks))
        return f"## {markdown_text(self.title)}\n\n{below}" if below else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A report. `made` says when and with what; `opening` stands before the first section; `closing` last.

    `brief` stands for the page where there is no room for it, on a terminal and in a notebook: by default,
    the opening.
    """

    title: str
    made: str = ""
    brief: tuple[Block, ...] = ()
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

    def text(self) -> str:
        """Return the page as plain text. Pictures show what stands in tables, and are left out."""
        parts = (block.text() for block in (*self.opening, *self.sections))
        return _joined("\n\n", (self.title, self.made, *parts, self.closing)) + "\n"

    def markdown(self, *, framed: bool = True) -> str:
        """Return the page as Markdown, without pictures; or its opening and its sections alone."""
        parts = [block.markdown() for block in (*self.opening, *self.sections)]
        if framed:
            parts = [
                f"# {markdown_text(self.title)}",
                markdown_text(self.made),
                *parts,
                markdown_text(self.closing),
            ]
        return _joined("\n\n", parts) + "\n"

    def brief_text(self) -> str:
        """Return what stands for the page on a terminal: sections of it with an empty line between them."""
        brief = self.brief or self.opening
        apart = any(isinstance(block, Section) for block in brief)
        return _joined("\n\n" if apart else "\n", (block.text() for block in brief))

    def brief_html(self) -> str:
        """Return what stands for the page in a notebook."""
        return fragment(*(self.brief or self.opening))

    def _contents(self) -> list[str]:
        if len(self.sections) < _LISTED:
            return []
        listed = "".join(
            f'<li><a href="#{escape(each.anchor)}">{escape(each.title)}</a></li>' for each in self.sections
        )
        return [f'<nav aria-label="Contents"><ol>{listed}</ol></nav>']


def fragment(*blocks: Block) -> str:
    """Return blocks as HTML for a notebook: in its own colours, whatever they are, and without a page around.

    >>> from sfumato.pages import Paragraph
    >>> fragment(Paragraph("5 people")).endswith("<p>5 people</p>\\n</div>")
    True
    """
    shown = "\n".join(block.html() for block in blocks)
    return f'<div class="sfumato">\n<style>\n{_styles("blocks.css")}</style>\n{shown}\n</div>'


def _joined(between: str, parts: Iterable[str]) -> str:
    """Join the parts that are not empty."""
    return between.join(part for part in parts if part)


@cache
def _styles(name: str) -> str:
    return resources.files("sfumato.pages").joinpath(name).read_text(encoding="utf-8")
