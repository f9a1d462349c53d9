"""Blocks: what a section of a page is made of. Each is frozen data."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

from sfumato.errors import InvalidArgument

__all__ = [
    "Block",
    "BulletList",
    "CodeBlock",
    "Facts",
    "Flag",
    "Notes",
    "Notice",
    "PageTable",
    "Paragraph",
    "SignatureLines",
    "markdown_text",
]

_NUMBER = re.compile(r"[-−+]?\d[\d.,]*(e[-+]?\d+)?%?(\s*[(±].*)?")
_WORD = 24  # letters; a longer word is broken where it must be
_WIDE = 4  # a table with so many columns does not fit a phone: there, each row becomes a card


def markdown_text(text: str) -> str:
    """Return a text as one line of Markdown, which holds no tag and does not end the cell of a table.

    >>> markdown_text("a | b <b>")
    'a \\\\| b &lt;b>'
    """
    return " ".join(text.splitlines()).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")


class Block(ABC):
    """Part of a page. It shows itself as HTML, as plain text and as Markdown."""

    __slots__ = ()

    @abstractmethod
    def html(self) -> str:
        """Return the block as HTML; every text in it is escaped."""

    def text(self) -> str:
        """Return the block as plain text; nothing of a picture, which shows what stands in tables."""
        return ""

    def markdown(self) -> str:
        """Return the block as Markdown."""
        return markdown_text(self.text())


@dataclass(frozen=True, slots=True)
class Paragraph(Block):
    """A paragraph of text.

    >>> Paragraph("1 < 2").html()
    '<p>1 &lt; 2</p>'
    """

    words: str

    def html(self) -> str:
        return f"<p>{escape(self.words)}</p>"

    def text(self) -> str:
        return self.words


@dataclass(frozen=True, slots=True)
class Notice(Paragraph):
    """What a reader must not miss: a result, good or bad, or a warning. The words say it; colour repeats it.

    >>> Notice("PASSED.", tone="good").html()
    '<p class="notice good">PASSED.</p>'
    """

    tone: Literal["plain", "good", "bad"] = "plain"

    def html(self) -> str:
        return f'<p class="notice {self.tone}">{escape(self.words)}</p>'

    def markdown(self) -> str:
        return f"**{markdown_text(self.words)}**"


@dataclass(frozen=True, slots=True)
class CodeBlock(Paragraph):
    """Text whose lines are kept, in letters of one width: a question, a command, a hash.

    >>> CodeBlock("SELECT 1").html()
    '<pre>SELECT 1</pre>'
    """

    def html(self) -> str:
        return f"<pre>{escape(self.words)}</pre>"

    def markdown(self) -> str:
        return "\n".join(f"    {line}" for line in self.words.splitlines())


@dataclass(frozen=True, slots=True)
class BulletList(Block):
    """A list of sentences.

    >>> BulletList(("one", "two")).html()
    '<ul><li>one</li><li>two</li></ul>'
    """

    texts: tuple[str, ...]

    def html(self) -> str:
        lines = "".join(f"<li>{escape(text)}</li>" for text in self.texts)
        return f"<ul>{lines}</ul>" if lines else ""

    def text(self) -> str:
        return "\n".join(f"  {text}" for text in self.texts)

    def markdown(self) -> str:
        return "\n".join(f"- {markdown_text(text)}" for text in self.texts)


@dataclass(frozen=True, slots=True)
class Notes(BulletList):
    """What a reader has to know of the block above: a line each, in small letters.

    >>> Notes(("± covers 95%",)).text()
    '-- ± covers 95%'
    """

    def html(self) -> str:
        return "".join(f"<div><small>{escape(text)}</small></div>" for text in self.texts)

    def text(self) -> str:
        return "\n".join(f"-- {text}" for text in self.texts)


@dataclass(frozen=True, slots=True)
class Facts(Block):
    """Names and what they stand for, a line each.

    >>> Facts((("unit", "person"),)).html()
    '<dl><div><dt>unit</dt><dd>person</dd></div></dl>'
    """

    pairs: tuple[tuple[str, str], ...]

    def html(self) -> str:
        lines = "".join(
            f"<div><dt>{escape(name)}</dt><dd>{escape(text)}</dd></div>" for name, text in self.pairs
        )
        return f"<dl>{lines}</dl>" if lines else ""

    def text(self) -> str:
        return self._listed().text()

    def markdown(self) -> str:
        return self._listed().markdown()

    def _listed(self) -> BulletList:
        return BulletList(tuple(f"{name}: {text}" for name, text in self.pairs))


@dataclass(frozen=True, slots=True)
class Flag:
    """A cell of a table that stands out: a claim that is false, a limit that is passed."""

    text: str
    tone: Literal["good", "bad"] = "bad"


@dataclass(frozen=True, slots=True, kw_only=True)
class PageTable(Block):
    """A table of texts; the first cell of a row names the row.

    `sides` has a letter for each column, l or r, and says where its cells are aligned. Without it, HTML
    aligns numbers by themselves, and text aligns everything left. `ruled`: text has a line below the heads.

    >>> table = PageTable(heads=("who", "spent"), rows=(("ann", "0.5"),), caption="Who spent what")
    >>> "<th scope=\\"col\\" class=\\"number\\">spent</th>" in table.html()
    True
    >>> print(table.text())
    who  spent
    ann  0.5
    """

    heads: tuple[str, ...]
    rows: Sequence[Sequence[str | Flag]]
    caption: str = ""
    empty: str = "none"
    sides: str = ""
    ruled: bool = False

    def __post_init__(self) -> None:
        if not self.heads:
            raise InvalidArgument("a table needs a column", place="heads")
        if any(len(row) != len(self.heads) for row in self.rows):
            raise InvalidArgument("every row of a table has a cell for each head", place="rows")
        if self.sides and (len(self.sides) != len(self.heads) or set(self.sides) - {"l", "r"}):
            raise InvalidArgument("the sides of a table are a letter for each column, l or r", place="sides")

    def html(self) -> str:
        # The roles are those that the elements have anyway. They are written where a phone shows rows as
        # cards: a browser forgets that a table is one when its display changes.
        wide = len(self.heads) >= _WIDE
        numeric = [self._numeric(place) for place in range(len(self.heads))]
        head = "".join(
            f'<th scope="col"{_role("columnheader", wide)}{_class(text, number)}>{escape(text)}</th>'
            for text, number in zip(map(_named, self.heads), numeric, strict=True)
        )
        body = "".join(self._row(row, numeric, wide) for row in self.rows)
        if not self.rows:
            span = f' colspan="{len(self.heads)}"'
            body = f"<tr{_role('row', wide)}><td{_role('cell', wide)}{span}>{escape(self.empty)}</td></tr>"
        caption = f"<caption>{escape(self.caption)}</caption>" if self.caption else ""
        cards = ' class="cards"' if wide else ""
        return (
            f"<table{_role('table', wide)}{cards}>{caption}"
            f"<thead{_role('rowgroup', wide)}><tr{_role('row', wide)}>{head}</tr></thead>"
            f"<tbody{_role('rowgroup', wide)}>{body}</tbody></table>"
        )

    def text(self) -> str:
        lines = [list(self.heads), *(list(map(_text, row)) for row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        if self.ruled:
            lines.insert(1, ["-" * width for width in widths])
        sides = [str.rjust if side == "r" else str.ljust for side in self.sides or "l" * len(widths)]
        return "\n".join(
            "  ".join(
                side(cell, width) for side, cell, width in zip(sides, line, widths, strict=True)
            ).rstrip()
            for line in lines
        )

    def markdown(self) -> str:
        rule = ["---:" if side == "r" else "---" for side in self.sides or "l" * len(self.heads)]
        lines = [self.heads, rule, *(map(_text, row) for row in self.rows)]
        caption = f"{markdown_text(self.caption)}\n\n" if self.caption else ""
        return caption + "\n".join(f"| {' | '.join(map(markdown_text, line))} |" for line in lines)

    def _row(self, row: Sequence[str | Flag], numeric: list[bool], wide: bool) -> str:
        cells = []
        for place, (cell, number) in enumerate(zip(row, numeric, strict=True)):
            text, kind = escape(_text(cell)), _class(_text(cell), number)
            if isinstance(cell, Flag):
                text = f'<strong class="{cell.tone}">{text}</strong>'
            label = f' data-label="{escape(self.heads[place])}"' if wide else ""
            if place == 0:
                cells.append(f'<th scope="row"{_role("rowheader", wide)}{kind}{label}>{text}</th>')
            else:
                cells.append(f"<td{_role('cell', wide)}{kind}{label}>{text}</td>")
        return f"<tr{_role('row', wide)}>{''.join(cells)}</tr>"

    def _numeric(self, place: int) -> bool:
        if self.sides:
            return self.sides[place] == "r"
        shown = [text for row in self.rows if (text := _text(row[place])) not in ("", "unbounded")]
        return bool(shown) and all(_NUMBER.fullmatch(text) for text in shown)


@dataclass(frozen=True, slots=True)
class SignatureLines(Block):
    """Lines to sign a printed page on, one for each name.

    >>> SignatureLines(("Examined by", "On")).html().count("<span>")
    2
    """

    names: tuple[str, ...] = ("Examined by", "On", "Signature")

    def html(self) -> str:
        return f'<p class="signatures">{"".join(f"<span>{escape(name)}</span>" for name in self.names)}</p>'


def _named(head: str) -> str:
    """Return the head of a column; a screen reader needs one where the name of a column is blank."""
    return head if head.strip() else "(no name)"


def _text(cell: str | Flag) -> str:
    return cell.text if isinstance(cell, Flag) else cell


def _role(name: str, shown: bool) -> str:
    return f' role="{name}"' if shown else ""


def _class(text: str, number: bool) -> str:
    """Return the class of a cell; only a word that is too long for a column may be broken."""
    long = any(len(word) > _WORD for word in text.split())
    if number:
        return ' class="number long"' if long else ' class="number"'
    if long:
        return ' class="long"'
    return ' class="prose"' if len(text) > _WORD else ""
