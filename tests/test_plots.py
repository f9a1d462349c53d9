"""Pictures are data; drawn, they need no browser and no network."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from sfumato.errors import InvalidArgument, Unsupported
from sfumato.pages.figure import Figure
from sfumato.plots import Axis, Band, Bars, Line, Picture, Points, Tiles, chart, save, svg

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


TILES = Picture(
    title="Errors",
    caption="",
    x=Axis(title="one"),
    y=Axis(title="other"),
    marks=(Tiles(label="error", tiles=(("age", "sex", 12.5), ("sex", "age", 12.5), ("age", "age", 3000.0))),),
)


def test_a_heat_map_writes_its_values_on_its_tiles() -> None:
    drawn = svg(TILES)
    assert drawn.count("<path") >= 3 and ">12.5<" in drawn and ">3,000<" in drawn
    assert {"x": "age", "y": "age", "value": 3000.0, "text": "3,000"} in values(TILES)
    page = Figure(TILES).html()
    assert "3,000</td>" in page and '<th scope="col"' in page


@pytest.mark.parametrize("picture", [CURVE, BARS], ids=["curve", "bars"])
def test_a_picture_is_drawn_with_its_words(picture: Picture) -> None:
    drawn = svg(picture)
    assert drawn.startswith("<svg")
    for mark in picture.marks:
        assert mark.label in drawn
    assert picture.x.title in drawn


def test_a_curve_in_pieces_has_one_look() -> None:
    pieces = [Points(label="n", points=((at, 1.0, 0.0, 2.0),)) for at in range(9)]
    band = Band(label="n", points=((10, 1.0, 0.0, 2.0), (11, 3.0, 2.0, 4.0)))
    other = Points(label="m", points=((1.0, 1.0, 0.0, 2.0),))
    picture = Picture(title="", caption="", x=Axis(title="day", time=True), y=Axis(title="n"), marks=(
        *pieces, band, other))  # fmt: skip
    layers = chart(picture).to_dict()["layer"]
    assert {"x": 11, "y": 3.0, "low": 2.0, "high": 4.0, "label": "n"} in values(picture)
    assert any(layer["mark"]["type"] == "area" for layer in layers)
    shapes = next(layer["encoding"]["shape"] for layer in layers if "shape" in layer["encoding"])
    assert shapes["scale"] == {"domain": ["n", "m"], "range": ["circle", "square"]}


def test_marks_lie_where_their_numbers_say() -> None:
    assert {"x": 1, "y": 0.73, "label": "bound", "step": 1} in values(CURVE)
    assert {"x": 1, "y": 0.72, "low": 0.7, "high": 0.74, "label": "measured"} in values(CURVE)


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
    for marks in ((), (*CURVE.marks, *BARS.marks), (*TILES.marks, *BARS.marks), TILES.marks * 2):
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


def values(picture: Picture) -> list[dict[str, object]]:
    return [value for values in chart(picture).to_dict()["datasets"].values() for value in values]


def test_an_axis_reaches_to_all_there_is_to_show() -> None:
    """Whatever was asked of it: no point is outside or cut off, and an interval down to zero ends there."""
    picture = Picture(
        title="",
        caption="",
        x=Axis(title="people", log=True),
        y=Axis(title="error", log=True, low=1, high=2),
        marks=(Points(label="one", points=((10.0, 5.0, 0.0, 30.0), (1e4, 0.5, 0.4, 0.6))),),
    )
    x, y = (chart(picture).to_dict()["layer"][-1]["encoding"][name] for name in ("x", "y"))
    assert x["scale"]["domain"][0] < 10 and x["scale"]["domain"][1] > 1e4
    assert x["axis"]["values"] == [10, 100, 1000, 10000]
    low, high = y["scale"]["domain"]
    assert 0 < low < 0.4 and high > 30
    assert {"x": 10.0, "y": 5.0, "low": low, "high": 30.0, "label": "one"} in values(picture)
    assert "clip-path" not in svg(picture)


def test_bars_start_at_zero_and_lie_where_their_names_are_long() -> None:
    bars = tuple((f"a region with a long name, {at}", 7.0 + at) for at in range(5))
    long = Picture(title="", caption="", x=BARS.x, y=BARS.y, marks=(Bars(label="n", bars=bars),))
    upright, lying = chart(BARS).to_dict()["encoding"], chart(long).to_dict()["encoding"]
    assert upright["y"]["scale"]["domain"] == [0, 0.9] and upright["x"]["field"] == "name"
    assert lying["x"]["scale"]["domain"] == [0, 11] and lying["y"]["field"] == "name"


def test_bars_have_intervals() -> None:
    bars = Bars(label="n", bars=(("a", 5.0), ("b", -1.0)), intervals=((4.0, 6.0), (-3.0, 1.0)))
    picture = Picture(title="", caption="", x=BARS.x, y=BARS.y, marks=(bars,))
    assert {"name": "b", "y": -1.0, "label": "n", "low": -3.0, "high": 1.0} in values(picture)
    assert chart(picture).to_dict()["layer"][1]["encoding"]["y"]["scale"]["domain"] == [-3, 6]


def test_series_differ_by_more_than_colour() -> None:
    """Points by shape, dashed lines by their dashes; what is beyond the axis by an arrow."""
    marks = (
        Points(label="a", points=((1.0, 1.0, 1.0, 1.0),)),
        Points(label="b", points=((1.0, 2.0, 2.0, 2.0),)),
        Points(label="c", points=((1.0, 3.0, 3.0, 3.0),), beyond=True),
        Line(label="d", points=((1, 1), (2, 2)), dashed=True),
        Line(label="e", points=((1, 1), (2, 2)), dashed=True),
    )
    layers = chart(Picture(title="", caption="", x=BARS.x, y=BARS.y, marks=marks)).to_dict()["layer"]
    assert layers[0]["encoding"]["shape"]["scale"]["range"][:3] == ["circle", "square", "triangle-up"]
    dashes = layers[3]["encoding"]["strokeDash"]["scale"]["range"]
    assert dashes[3] != dashes[4] and dashes[0] == [1, 0]


def test_letters_that_cannot_be_printed_are_written_by_their_numbers() -> None:
    """The converter ends the process at a control character, which a group or an alias may hold."""
    bars = Bars(label="\x1b\ufffe", bars=(("a\x07", 0.1), ("b\u2028", 0.9)))
    axes = {"x": Axis(title="\x00"), "y": Axis(title="share")}
    drawn = svg(Picture(title="Shares\x1b", caption="", **axes, marks=(bars,)))
    assert "\\x07" in drawn and "\\x2028" in drawn and drawn.isprintable()
