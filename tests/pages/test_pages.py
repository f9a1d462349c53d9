"""Pages: every text is escaped, nothing is loaded, cells have heads, pictures have their numbers."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from html.parser import HTMLParser
from importlib import resources

import pytest

from sfumato.errors import InvalidArgument
from sfumato.pages import (
    BulletList,
    CodeBlock,
    Deferred,
    Facts,
    Figure,
    Flag,
    Notes,
    Notice,
    Page,
    PageTable,
    Paragraph,
    Pictures,
    Section,
    SignatureLines,
    fragment,
)
from sfumato.plots import Axis, Bars, Line, Picture, Points, svg

EVIL = "<script>alert(1)</script>\"'&"
CURVE = Picture(
    title=EVIL,
    caption=EVIL,
    x=Axis(title="epsilon", log=True),
    y=Axis(title=EVIL, percent=True, low=0, high=1),
    marks=(
        Line(label="bound", points=tuple((x / 100, x / 1000) for x in range(1, 1000)), dashed=True),
        Points(label=EVIL, points=((1, 0.72, 0.7, 0.74),)),
    ),
)
BARS = Picture(
    title="Found",
    caption="",
    x=Axis(title="known"),
    y=Axis(title="people"),
    marks=(
        Bars(label="unique", bars=(("zip", 1234.0), ("all", 9.0))),
        Bars(label="found", bars=(("zip", 5.0),)),
    ),
)
EVERYTHING = Page(
    title=EVIL,
    made=EVIL,
    opening=(Notice(EVIL),),
    sections=(
        Section(
            EVIL, Paragraph(EVIL), BulletList((EVIL,)), CodeBlock(EVIL), Facts(((EVIL, EVIL),)), anchor=EVIL
        ),
        Section("b", PageTable(heads=(EVIL,) * 4, rows=((EVIL, Flag(EVIL), "", "1"),), caption=EVIL)),
        Section("c", PageTable(heads=(EVIL,), rows=(), empty=EVIL), SignatureLines((EVIL,))),
        Section("d", Figure(CURVE), Figure(BARS)),
    ),
    closing=EVIL,
)


class Tags(HTMLParser):
    """The elements of a page, and whether each that is opened is closed in its turn."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_every_text_is_escaped_and_nothing_is_loaded() -> None:
    whole = EVERYTHING.html()
    tags = Tags(whole).seen
    assert "script" not in {tag for tag, _ in tags}
    assert not re.search(r"(src|href)=[\"']?(https?:|//)|@import|url\((?!#)|<script|<link", whole)
    assert "default-src 'none'" in whole
    assert not any(name.startswith("on") for _, attributes in tags for name in attributes)
    assert whole.count("&lt;script&gt;") >= 20


def test_a_page_with_many_sections_lists_them() -> None:
    whole = EVERYTHING.html()
    links = [attributes["href"] for tag, attributes in Tags(whole).seen if tag == "a"]
    anchors = {attributes.get("id") for _, attributes in Tags(whole).seen}
    assert len(links) == 4 and all(link is not None and link[1:] in anchors for link in links)
    assert "<nav" not in Page(title="t", sections=EVERYTHING.sections[1:]).html()
    with pytest.raises(InvalidArgument, match="same anchor"):
        Page(title="t", sections=(Section("One, two"), Section("one two")))


def test_cells_say_what_they_belong_to() -> None:
    rows = (("ann", "2026-11-17", "1,200"), ("bob", "", "-0.5%"), ("eve", "x", "3.1 (2.0 to 4.2)"))
    shown = PageTable(heads=("who", "when", "spent"), rows=rows, caption="Spent").html()
    assert shown.count('scope="col"') == 3 and shown.count('scope="row"') == 3
    assert shown.count('class="number"') == 4 and "<caption>Spent</caption>" in shown
    assert "role=" not in shown  # a narrow table stays a table on a phone
    wide = PageTable(heads=("a", "b", "c", "d"), rows=(("1", "2", "3", Flag("FALSE")),)).html()
    assert 'role="cell" class="number" data-label="b">2<' in wide and '<strong class="bad">FALSE' in wide
    unnamed = PageTable(heads=("a", " "), rows=(("1", "2"),))
    assert ">(no name)</th>" in unnamed.html() and unnamed.text() == "a\n1  2"
    for heads, cells in ((("a",), ("1", "2")), ((), ())):
        with pytest.raises(InvalidArgument):
            PageTable(heads=heads, rows=(cells,))


def test_text_and_markdown_follow_from_the_page() -> None:
    table = PageTable(heads=("who", "n"), rows=(("a|b", Flag("7")), ("c\nd", "10")), sides="lr", ruled=True)
    page = Page(
        title="One | two",
        made="today",
        brief=(table, Notes(("small",))),
        opening=(Notice("Passed."), Facts((("unit", "person"),))),
        sections=(
            Section("Found", Paragraph("Much."), table, Figure(CURVE)),
            Section("Drawn", Pictures(lambda: pytest.fail("text has no pictures"))),
            Section("Later", Deferred(lambda: [BulletList(("x", "y")), CodeBlock("SELECT 1\n# 2")])),
        ),
        closing="The end.",
    )
    assert page.text() == (
        "One | two\n\ntoday\n\nPassed.\n\n  unit: person\n\nFound\nMuch.\n"
        "who   n\n---  --\na|b   7\nc\nd  10\n\nLater\n  x\n  y\nSELECT 1\n# 2\n\nThe end.\n"
    )
    body = (
        "**Passed.**\n\n- unit: person\n\n## Found\n\nMuch.\n\n"
        "| who | n |\n| --- | ---: |\n| a\\|b | 7 |\n| c d | 10 |\n\n"
        "## Later\n\n- x\n- y\n\n    SELECT 1\n    # 2"
    )
    assert page.markdown(framed=False) == f"{body}\n"
    assert page.markdown() == f"# One \\| two\n\ntoday\n\n{body}\n\nThe end.\n"
    assert page.brief_text().endswith("\n-- small") and page.brief_text().startswith("who")
    assert "<table" in page.brief_html() and "Passed" not in page.brief_html()
    assert Page(title="t", opening=(Paragraph("a"), Paragraph("b"))).brief_text() == "a\nb"
    parts = Page(title="t", brief=(Section("n", Paragraph("1")), Section("m", Paragraph("2")), Notes(("z",))))
    assert parts.brief_text() == "n\n1\n\nm\n2\n\n-- z"


def test_the_sides_of_columns_are_letters() -> None:
    for sides in ("l", "lx", "llr"):
        with pytest.raises(InvalidArgument, match="sides"):
            PageTable(heads=("a", "b"), rows=(), sides=sides)
    shown = PageTable(heads=("a", "b"), rows=(("x", "none yet"),), sides="lr")
    assert shown.html().count('class="number"') == 2


def test_a_picture_has_its_numbers_beside_it() -> None:
    shown = Figure(BARS).html()
    assert 'role="img" aria-label="Found. people by known: unique; found.' in shown
    assert ">1,234</td>" in shown and ">5</td>" in shown
    curve = Figure(CURVE).html()
    assert ">70.0% to 74.0%</td>" in curve and curve.count("<tr") == 1 + 12 + 1
    assert ">0.01</td>" in curve and ">9.99</td>" in curve  # the first and the last


def test_without_the_extra_the_numbers_stand_in_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "altair", None)
    shown = Figure(BARS).html()
    assert "<svg" not in shown and "sfumato[plots]" in shown and ">1,234</td>" in shown
    assert "<details" not in shown


def test_a_fragment_brings_styles_that_touch_nothing_else() -> None:
    shown = fragment(PageTable(heads=("a", "n"), rows=(("x", "1"),)))
    Tags(shown)
    styles = re.sub(r"/\*.*?\*/", "", shown.split("<style>")[1].split("</style>")[0], flags=re.DOTALL)
    selectors = re.findall(r"([^{}]+)\{", re.sub(r"@media[^{]+\{", "", styles))
    assert selectors
    for selector in (each.strip() for group in selectors for each in group.split(",")):
        assert selector.startswith((".sfumato ", "body.sfumato ")), selector


def test_every_colour_of_a_picture_has_its_twin_in_the_stylesheet() -> None:
    styles = resources.files("sfumato.pages").joinpath("blocks.css").read_text()
    marks = tuple(
        mark
        for at in range(6)
        for mark in (
            Points(label=f"p{at}", points=((1.0, at, at - 1, at + 1),)),
            Line(label=f"p{at}", points=((1, at), (2, at))),
        )
    )
    bars = Bars(label="n", bars=(("a", 5.0),), intervals=((4.0, 6.0),))
    for picture in (BARS, replace(BARS, marks=marks), replace(BARS, marks=(bars,))):
        for kind, colour in re.findall(r'(fill|stroke)="([^"]+)"', svg(picture)):
            assert colour in ("none", "transparent") or f'[{kind}="{colour}"]' in styles, (kind, colour)
