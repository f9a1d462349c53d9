"""Pictures: frozen data until they are drawn; drawn as Altair charts, without a browser or a network.

    picture = Picture(title=.., caption=.., x=Axis(..), y=Axis(..), marks=(Line(..), Points(..)))
    chart(picture)               an Altair chart: a notebook shows it
    save(picture, "roc.svg")     or .png, or .html, which holds all it needs
    svg(picture)                 text, to put into a page

Drawing needs the extra `sfumato[plots]`; making a picture does not.
"""

from __future__ import annotations

import datetime
import json
import math
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sfumato.errors import InvalidArgument, Unsupported
from sfumato.printable import printable

if TYPE_CHECKING:
    import altair

__all__ = [
    "Axis", "Band", "Bars", "Line", "Mark", "Picture", "Points", "Tiles", "chart",
    "check_drawing", "date_text", "save", "svg",
    "thinned",
]  # fmt: skip

# Every colour stands out from white by 3 to 1 at least; the stylesheet of pages has its twin for the dark.
_COLOURS = ("#1664a8", "#c8421b", "#00806b", "#8f4a9e", "#956a00", "#555b61")
_INK, _MUTED, _GRID = "#1f2328", "#57606a", "#d0d7de"
_SHAPES = ("circle", "square", "diamond", "cross")
_DASHES = ([6, 4], [2, 3], [9, 3, 2, 3])
_WIDTH, _HEIGHT = 480, 300  # a phone shows it at three quarters of its size, a desk at four thirds
_FOUR_DIGITS = 10_000  # below it no comma is needed: 2019 may be a year
_LETTERS, _LETTER = 13, 7.2  # the size of letters, and the width of most of them
_X = TypeVar("_X", bound=float)
_FONT = "Arial, Helvetica, Liberation Sans, sans-serif"  # letters of one width, here and where it is seen


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """What an axis shows, and how: `percent` of a share, `log` of what spans many sizes, `time` of dates.

    It reaches from `low` to `high`, and further where there is something to show. Dates are given as
    milliseconds since 1970.

    >>> Axis(title="success", percent=True, low=0, high=1).title
    'success'
    """

    title: str
    low: float | None = None
    high: float | None = None
    log: bool = False
    percent: bool = False
    time: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A curve through points, in their order; `dashed` for what is not measured: a bound, a guess.

    >>> Line(label="bound", points=((0.1, 0.5), (1, 0.73)), dashed=True).points[-1]
    (1, 0.73)
    """

    label: str
    points: tuple[tuple[float, float], ...]
    dashed: bool = False

    @classmethod
    def flat(cls, label: str, y: float, ends: tuple[float, float], *, dashed: bool = False) -> Line:
        """Return a horizontal line between two values of x."""
        return cls(label=label, points=tuple((x, y) for x in ends), dashed=dashed)

    @classmethod
    def curve(
        cls, label: str, function: Callable[[_X], float], places: Iterable[_X], *, dashed: bool = False
    ) -> Line:
        """Return the curve of a function at some values of x."""
        return cls(label=label, points=tuple((float(x), function(x)) for x in places), dashed=dashed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Points:
    """Measured points: x, y, and the interval around y. `beyond` for what lies above the axis, at its end.

    >>> Points(label="measured", points=((1, 0.72, 0.70, 0.74),)).points[0][1]
    0.72
    """

    label: str
    points: tuple[tuple[float, float, float, float], ...]
    beyond: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """A curve through many measured points, x, y and the interval around y, which is shaded.

    >>> Band(label="north", points=((1, 5, 3, 7), (2, 9, 6, 12))).points[1][2:]
    (6, 12)
    """

    label: str
    points: tuple[tuple[float, float, float, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """One bar for each named thing, with an interval for each where there are `intervals`.

    A picture with bars has no other marks than bars.

    >>> Bars(label="unique", bars=(("zip", 0.1), ("all", 0.9))).bars[0]
    ('zip', 0.1)
    """

    label: str
    bars: tuple[tuple[str, float], ...]
    intervals: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tiles:
    """A heat map: a value, written and coloured, for pairs of named things. It is the only mark of a picture.

    >>> Tiles(label="error", tiles=(("age", "sex", 12.5),)).tiles[0][2]
    12.5
    """

    label: str
    tiles: tuple[tuple[str, str, float], ...]


Mark = Band | Line | Points | Bars | Tiles
"""What a picture is made of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """What a picture shows, in words and numbers.

    >>> bars = Bars(label="unique", bars=(("zip", 0.1), ("all", 0.9)))
    >>> axes = {"x": Axis(title="known"), "y": Axis(title="share")}
    >>> picture = Picture(title="Unique", caption="", **axes, marks=(bars,))
    >>> svg(picture).startswith("<svg")
    True
    """

    title: str
    caption: str
    x: Axis
    y: Axis
    marks: tuple[Mark, ...]

    def __post_init__(self) -> None:
        kinds = {type(mark) if isinstance(mark, Bars | Tiles) else Line for mark in self.marks}
        if len(kinds) != 1 or (Tiles in kinds and len(self.marks) > 1):
            raise InvalidArgument(
                "a picture has bars, or lines, bands and points, or one heat map; and not nothing",
                place="marks",
            )

    def _repr_mimebundle_(self, *args: Any, **options: Any) -> Any:
        return chart(self)._repr_mimebundle_(*args, **options)


def date_text(at: float) -> str:
    """Return the date, and the time if there is one, of a place along an axis of time.

    >>> date_text(86_400_000), date_text(3_600_000)
    ('1970-01-02', '1970-01-01 01:00')
    """
    moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(milliseconds=at)
    return moment.isoformat(" ", "minutes").removesuffix(" 00:00")


def thinned(points: Sequence[tuple[float, float]], most: int = 400) -> tuple[tuple[float, float], ...]:
    """Return about `most` of the points at most, and the last: more are not seen.

    >>> len(thinned([(x, x * x) for x in range(10_000)], most=100))
    101
    """
    if len(points) <= most:
        return tuple(points)
    return (*points[:: -(-len(points) // most)], points[-1])


def chart(picture: Picture) -> altair.LayerChart | altair.Chart:
    """Draw a picture as an Altair chart.

    >>> bars = Bars(label="unique", bars=(("zip", 0.1), ("all", 0.9)))
    >>> axes = {"x": Axis(title="known"), "y": Axis(title="share")}
    >>> picture = Picture(title="Unique", caption="", **axes, marks=(bars,))
    >>> type(chart(picture)).__name__
    'Chart'
    """
    alt = _altair()
    bars = [mark for mark in picture.marks if isinstance(mark, Bars)]
    if isinstance(picture.marks[0], Tiles):
        drawn, height = _tiles(picture, picture.marks[0])
    else:
        drawn, height = _bars(picture, bars) if bars else (_layers(picture), _HEIGHT)
    labels = _labels(picture)
    height += 20 * len(labels) + 24 if len(labels) > 1 else 0
    if picture.title:
        lines = _wrapped(picture.title, 52)
        drawn = drawn.properties(title=alt.TitleParams(lines, anchor="start", frame="bounds", offset=12))
        height += 18 * len(lines) + 12
    fitted = alt.AutoSizeParams(type="fit", contains="padding")
    styled: altair.LayerChart | altair.Chart = (
        drawn.properties(width=_WIDTH, height=height, autosize=fitted)
        .configure(font=_FONT, aria=False, padding=6)
        .configure_view(stroke=None)
        .configure_title(color=_INK, fontSize=_LETTERS + 2)
        .configure_axis(
            gridColor=_GRID, domainColor=_MUTED, tickColor=_MUTED, labelColor=_INK, titleColor=_INK,
            labelFontSize=_LETTERS, titleFontSize=_LETTERS, titleFontWeight="normal", titlePadding=10,
            labelFlush=False, labelSeparation=6,
        )
        .configure_axisX(labelPadding=8)
        .configure_legend(
            labelColor=_INK, labelFontSize=_LETTERS, labelLimit=_WIDTH - 40, orient="bottom", columns=1,
            symbolSize=110, symbolStrokeWidth=2, rowPadding=5, offset=12,
        )
    )  # fmt: skip
    return styled


def _specification(picture: Picture) -> str:
    """Return what the converter draws. A letter that is not printable ends its process, or is refused."""
    return json.dumps(_readable(chart(picture).to_dict()), sort_keys=True)


def _readable(value: Any) -> Any:
    """Return a value in whose texts each letter that is not printable is written by its number."""
    match value:
        case str():
            return "\n".join(map(printable, value.split("\n")))  # names of groups are broken into lines
        case dict():
            return {_readable(name): _readable(one) for name, one in value.items()}
        case list():
            return [_readable(one) for one in value]
        case _:
            return value


def svg(picture: Picture) -> str:
    """Draw a picture as SVG text.

    >>> bars = Bars(label="unique", bars=(("zip", 0.1), ("all", 0.9)))
    >>> axes = {"x": Axis(title="known"), "y": Axis(title="share")}
    >>> picture = Picture(title="Unique", caption="", **axes, marks=(bars,))
    >>> "Unique" in svg(picture)
    True
    """
    return str(_converter().vegalite_to_svg(_specification(picture)))


def save(picture: Picture, path: str | Path) -> None:
    """Draw a picture into a file: SVG, PNG or HTML that needs no other file, by the ending of its name.

    >>> import tempfile
    >>> bars = Bars(label="unique", bars=(("zip", 0.1), ("all", 0.9)))
    >>> axes = {"x": Axis(title="known"), "y": Axis(title="share")}
    >>> picture = Picture(title="Unique", caption="", **axes, marks=(bars,))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(picture, f"{folder}/unique.svg")
    """
    check_drawing(path)
    file = Path(path)
    match file.suffix.lower():
        case ".svg":
            file.write_text(svg(picture), encoding="utf-8")
        case ".png":
            file.write_bytes(_converter().vegalite_to_png(_specification(picture), scale=2))
        case _:
            page = _converter().vegalite_to_html(_specification(picture), bundle=True)
            file.write_text(page, encoding="utf-8")


def check_drawing(path: str | Path) -> None:
    """Refuse a file that no picture can be drawn into, and to draw where what draws is not installed.

    >>> check_drawing("unique.svg")
    """
    if Path(path).suffix.lower() not in (".svg", ".png", ".html"):
        raise InvalidArgument(
            "a picture is written as .svg, .png or .html", place="path", hints=("name it roc.svg",)
        )
    _altair()
    _converter()


def _labels(picture: Picture) -> list[str]:
    return list(dict.fromkeys(mark.label for mark in picture.marks))


def _looks(picture: Picture) -> dict[str, Any]:
    """Return what tells series apart, as channels: colours, and shapes and dashes for who sees no colours."""
    alt = _altair()
    labels = _labels(picture)
    shapes, dashes = dict.fromkeys(labels, "stroke"), {label: [1, 0] for label in labels}
    plain, dashed = iter(_SHAPES * len(labels)), iter(_DASHES * len(labels))
    for mark in picture.marks:
        if isinstance(mark, Points) and shapes[mark.label] == "stroke":
            shapes[mark.label] = "triangle-up" if mark.beyond else next(plain)
        elif isinstance(mark, Line) and mark.dashed:
            dashes[mark.label] = next(dashed)
    colours = [_COLOURS[place % len(_COLOURS)] for place in range(len(labels))]

    drawn = any(isinstance(mark, Band) for mark in picture.marks)  # an area would make all symbols discs
    lines = drawn and not any(isinstance(mark, Points) for mark in picture.marks)
    legend = alt.Legend(symbolType="stroke") if lines else alt.Undefined

    def channel(kind: Any, values: list[Any]) -> Any:
        shown = legend if len(labels) > 1 else None
        return kind("label:N", title=None, legend=shown, scale=alt.Scale(domain=labels, range=values))

    return {
        "color": channel(alt.Color, colours),
        "shape": channel(alt.Shape, list(shapes.values())),
        "strokeDash": channel(alt.StrokeDash, list(dashes.values())),
    }


def _layers(picture: Picture) -> Any:
    alt = _altair()
    marks = [mark for mark in picture.marks if isinstance(mark, Band | Line | Points)]
    looks = _looks(picture)
    across = _Span.of(picture.x, [point[0] for mark in marks for point in mark.points])
    along = _Span.of(picture.y, [y for mark in marks for point in mark.points for y in point[1:]])
    x, y = across.position(alt.X, "x:Q"), along.position(alt.Y, "y:Q")
    layers: list[Any] = []
    for mark in marks:
        names = ("x", "y", "low", "high")
        rows: list[dict[str, Any]] = [
            dict(zip(names, point, strict=False)) | {"label": mark.label} for point in mark.points
        ]
        colour = {"x": x, "y": y, "color": looks["color"]}
        if isinstance(mark, Band):
            shaded = alt.Chart(alt.InlineData(values=rows)).mark_area(fillOpacity=0.25)
            low = along.position(alt.Y, "low:Q")
            behind = shaded.encode(x=x, y=low, y2=alt.Y2("high:Q"), color=looks["color"])
            layers.insert(0, behind)  # so that no area tints a line
        if isinstance(mark, Band | Line):
            steps = [row | {"step": step} for step, row in enumerate(rows)]
            drawn = alt.Chart(alt.InlineData(values=steps)).mark_line(strokeWidth=2)
            layers.append(drawn.encode(**colour, strokeDash=looks["strokeDash"], order=alt.Order("step:Q")))
            continue
        ends = [row | {"low": max(row["low"], along.low)} for row in rows if row["low"] < row["high"]]
        if ends:
            rule = alt.Chart(alt.InlineData(values=ends)).mark_rule(strokeWidth=2)
            low = along.position(alt.Y, "low:Q")
            layers.append(rule.encode(x=x, y=low, y2=alt.Y2("high:Q"), color=looks["color"]))
        spots = alt.Chart(alt.InlineData(values=rows)).mark_point(filled=True, size=55, opacity=1)
        layers.append(spots.encode(**colour, shape=looks["shape"]))
    return alt.layer(*layers)


def _bars(picture: Picture, marks: Sequence[Bars]) -> tuple[Any, int]:
    """Return bars and how high the drawing is: upright, or lying where upright names would collide."""
    alt = _altair()
    names = list(dict.fromkeys(name for mark in marks for name, _ in mark.bars))
    letters = int((_WIDTH - 90) / (len(names) * _LETTER)) - 1
    crowded = len(names) > 30  # so many names are not all shown
    lying = not crowded and any(len(_wrapped(name, letters)) > 2 for name in names)
    rows: list[dict[str, Any]] = [
        {"name": name, "y": height, "label": mark.label} | dict(zip(("low", "high"), ends, strict=False))
        for mark in marks
        for (name, height), ends in zip(mark.bars, mark.intervals or [()] * len(mark.bars), strict=True)
    ]
    heights = [row[key] for row in rows for key in ("y", "low", "high") if key in row]
    along = _Span.of(picture.y, [0.0, *heights])
    width = 24 if lying else letters
    wrapped = {name: name if crowded else "\n".join(_wrapped(name, width)) for name in names}
    rows = [row | {"name": wrapped[row["name"]]} for row in rows]
    lines = "split(datum.label, '\\n')"
    axis = alt.Axis(labelAngle=0, labelLimit=200, labelOverlap=crowded, labelExpr=lines)
    title, order = None if lying else _wrapped(picture.x.title, 60), list(wrapped.values())
    named = (alt.Y if lying else alt.X)("name:N", title=title, sort=order, axis=axis)
    long, end = (alt.X, alt.X2) if lying else (alt.Y, alt.Y2)
    across, length = ("y", "x") if lying else ("x", "y")
    places: dict[str, Any] = {across: named}
    if len(marks) > 1:
        beside = alt.YOffset if lying else alt.XOffset
        places[f"{across}Offset"] = beside("label:N", sort=None, scale=alt.Scale(domain=_labels(picture)))
    data = alt.InlineData(values=rows)
    known = any("low" in row for row in rows)  # an interval is drawn over its bar, and must stand out from it
    colour = _looks(picture)["color"]
    bars = alt.Chart(data).mark_bar(opacity=0.7 if known else 1)
    drawn = bars.encode(**places, **{length: along.position(long, "y:Q")}, color=colour)
    if known:
        ends = {length: along.position(long, "low:Q"), f"{length}2": end("high:Q")}
        drawn = alt.layer(
            drawn, alt.Chart(data).mark_rule(color=_INK, strokeWidth=1.5).encode(**places, **ends)
        )
    return drawn, 70 + len(names) * (14 + 18 * len(marks)) if lying else _HEIGHT


def _tiles(picture: Picture, mark: Tiles) -> tuple[Any, int]:
    """Return a heat map and how high it is: light is little, and every value is written on its tile."""
    alt = _altair()
    rows = [{"x": x, "y": y, "value": value, "text": _short(value)} for x, y, value in mark.tiles]
    sizes = [value for _, _, value in mark.tiles]
    dark = (max(sizes) + min(sizes)) / 2
    names = [list(dict.fromkeys(tile[axis] for tile in mark.tiles)) for axis in (0, 1)]
    if set(names[0]) == set(names[1]):  # the same order along both axes
        names[0] = names[1]
    crowded = len(names[0]) > 8
    shown = alt.Axis(labelAngle=-45 if crowded else 0, labelLimit=140, labelOverlap=False, grid=False)
    places = {
        "x": alt.X("x:N", title=picture.x.title or None, sort=names[0], axis=shown),
        "y": alt.Y("y:N", title=picture.y.title or None, sort=names[1], axis=alt.Axis(labelLimit=140)),
    }
    data = alt.InlineData(values=rows)
    colour = alt.Color("value:Q", title=mark.label, scale=alt.Scale(scheme="blues"), legend=None)
    tiles = alt.Chart(data).mark_rect(stroke="white").encode(**places, color=colour)
    ink = alt.condition(alt.datum.value > dark, alt.value("white"), alt.value(_INK))
    words = (
        alt.Chart(data).mark_text(fontSize=_LETTERS - 3 * crowded).encode(**places, text="text:N", color=ink)
    )
    return alt.layer(tiles, words), 110 + 24 * len(names[1])


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _wrapped(text: str, letters: int) -> list[str]:
    """Return a text in lines; a word that does not fit is broken."""
    return textwrap.wrap(text, max(1, letters)) or [""]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Span:
    """From where to where an axis reaches: as asked, and to all there is to show."""

    axis: Axis
    low: float
    high: float
    whole: bool
    """Whether only whole numbers are shown along it."""

    @classmethod
    def of(cls, axis: Axis, values: Sequence[float]) -> _Span:
        shown = [value for value in values if math.isfinite(value) and (value > 0 or not axis.log)]
        ends = [*shown, *(end for end in (axis.low, axis.high) if end is not None)] or [1.0]
        low, high = float(min(ends)), float(max(ends))
        if axis.log:
            margin = (high / low) ** 0.03 if high > low else 2.0
            low, high = low / margin, high * margin
        elif low == high:
            low, high = low - 1, high + 1
        whole = not axis.percent and all(value == int(value) for value in shown)
        return cls(axis=axis, low=low, high=high, whole=whole)

    def position(self, channel: Any, field: str) -> Any:
        """Return the channel that places a field along the axis."""
        alt = _altair()
        axis = self.axis
        shown: dict[str, Any] = {}
        open_ended = not axis.log and (axis.low is None or axis.high is None)
        scale: dict[str, Any] = {"domain": [self.low, self.high], "nice": open_ended, "zero": False}
        if axis.log:
            scale |= {"type": "log"}
            shown["values"] = list(self._ticks())
        elif axis.time:
            field = field.replace(":Q", ":T")
            scale |= {"type": "utc"}
        elif self.whole:
            shown["tickMinStep"] = 1
            if self.high < _FOUR_DIGITS:
                shown["format"] = "d"
        if axis.percent:
            shown["format"] = "~%"
        elif axis.log:
            shown["format"] = "~s" if self.low >= 1 and self.high > 1e5 else ",~g"
        if channel is alt.X and not axis.log:
            shown["tickCount"] = 5
        lines = 34 if channel is alt.Y else 60
        title = _wrapped(axis.title, lines)
        return channel(field, title=title, scale=alt.Scale(**scale), axis=alt.Axis(**shown))

    def _ticks(self) -> Iterator[float]:
        """Yield 1, 2, 5, 10, 20, .., and of many of them powers of ten alone."""
        first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        steps = (1, 2, 5) if self.high / self.low < 500 else (1,)
        for power in range(first, last + 1, max(1, (last - first) // 8)):
            for step in steps:
                tick = float(f"{step}e{power}")
                if self.low <= tick <= self.high:
                    yield tick


def _altair() -> Any:
    try:
        import altair
    except ImportError:
        raise _missing() from None
    return altair


def _converter() -> Any:
    try:
        import vl_convert
    except ImportError:
        raise _missing() from None
    return vl_convert


def _missing() -> Unsupported:
    return Unsupported("drawing needs Altair", hints=("install it: pip install 'sfumato[plots]'",))
