"""Pictures are data; drawn, they need no browser and no network, and pages hold all they show."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from sfumato.errors import InvalidArgument, Unsupported
from sfumato.pages import figure, page, paragraph, table
from sfumato.plots import Axis, Bars, Line, Picture, Points, chart, save, svg

CURVE = Picture(
    title="Success <against> epsilon",
    caption="what & why",
    x=Axis(title="epsilon", log=True),
    y=Axis(title="success", percent=True, low=0, high=1),
    marks=(
        Line(label="bound", points=((0.1, 0.5), (1, 0.73)), dashed=True),
        Points(label="measured", points=((1, 0.72, 0.7, 0.74),)),
    ),
)
BARS = Picture(
    title="Unique",
    caption="",
    x=Axis(title="known"),
    y=Axis(title="share"),
    marks=(
        Bars(label="unique", bars=(("zip", 0.1), ("all", 0.9))),
        Bars(label="found", bars=(("zip", 0.05),)),
    ),
)


@pytest.mark.parametrize("picture", [CURVE, BARS], ids=["curve", "bars"])
def test_a_picture_is_drawn_with_its_words(picture: Picture) -> None:
    drawn = svg(picture)
    assert drawn.startswith("<svg")
    for mark in picture.marks:
        assert mark.label in drawn
    assert picture.x.title in drawn


def test_marks_lie_where_their_numbers_say() -> None:
    values = [value for values in chart(CURVE).to_dict()["datasets"].values() for value in values]
    assert {"x": 1, "y": 0.73, "label": "bound"} in values
    assert {"x": 1, "y": 0.72, "low": 0.7, "high": 0.74, "label": "measured"} in values


def test_files_by_their_ending(tmp_path: Path) -> None:
    save(CURVE, tmp_path / "a.svg")
    save(CURVE, tmp_path / "a.png")
    save(CURVE, tmp_path / "a.html")
    assert (tmp_path / "a.svg").read_text().startswith("<svg")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    whole = (tmp_path / "a.html").read_text()
    assert not re.search(r"(src|href)=[\"']https?:", whole)
    with pytest.raises(InvalidArgument, match=r"\.svg, \.png or \.html"):
        save(CURVE, tmp_path / "a.gif")


def test_bars_and_lines_do_not_mix() -> None:
    for marks in ((), (*CURVE.marks, *BARS.marks)):
        with pytest.raises(InvalidArgument):
            Picture(title="", caption="", x=CURVE.x, y=CURVE.y, marks=marks)


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(Unsupported, match=r"sfumato\[plots\]"):
        svg(CURVE)
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(Unsupported, match=r"sfumato\[plots\]"):
        svg(CURVE)


def test_a_page_needs_nothing_else_and_escapes_words() -> None:
    whole = page("a < b", [paragraph("1 & 2"), figure(CURVE), table([("x", "<y>")], ("h", ""))])
    assert whole.startswith("<!doctype html>")
    assert "a &lt; b" in whole and "1 &amp; 2" in whole and "&lt;y&gt;" in whole and "what &amp; why" in whole
    assert "<svg" in whole
    assert not re.search(r"(src|href)=[\"']?https?:|@import|url\((?!#)", whole)
