"""Pictures: frozen data until they are drawn; drawn as Altair charts, without a browser or a network.

    picture = Picture(title=.., caption=.., x=Axis(..), y=Axis(..), marks=(Line(..), Points(..)))
    chart(picture)               an Altair chart: a notebook shows it
    save(picture, "roc.svg")     or .png, or .html, which holds all it needs
    svg(picture)                 text, to put into a page

Drawing needs the extra `sfumato[plots]`; making a picture does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.errors import InvalidArgument, Unsupported

if TYPE_CHECKING:
    import altair

__all__ = ["Axis", "Bars", "Line", "Mark", "Picture", "Points", "chart", "save", "svg", "thinned"]

_COLOURS = ("#33658a", "#d1495b", "#2e933c", "#8d6a9f", "#e28413", "#4d4d4d")
_WIDTH, _HEIGHT = 460, 280


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """What an axis shows, and how: `percent` of a share, `log` of what spans many sizes."""

    title: str
    low: float | None = None
    high: float | None = None
    log: bool = False
    percent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A curve through points; `dashed` for what is not measured: a bound, a guess."""

    label: str
    points: tuple[tuple[float, float], ...]
    dashed: bool = False

    @classmethod
    def flat(cls, label: str, y: float, ends: tuple[float, float], *, dashed: bool = False) -> Line:
        """Return a horizontal line between two values of x."""
        return cls(label=label, points=tuple((x, y) for x in ends), dashed=dashed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Points:
    """Measured points: x, y, and the interval around y."""

    label: str
    points: tuple[tuple[float, float, float, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """One bar for each named thing. A picture with bars has no other marks than bars."""

    label: str
    bars: tuple[tuple[str, float], ...]


Mark = Line | Points | Bars


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """What a picture shows, in words and numbers."""

    title: str
    caption: str
    x: Axis
    y: Axis
    marks: tuple[Mark, ...]

    def __post_init__(self) -> None:
        kinds = {isinstance(mark, Bars) for mark in self.marks}
        if len(kinds) != 1:
            raise InvalidArgument("a picture has bars, or lines and points; and not nothing", place="marks")

    def _repr_mimebundle_(self, *args: Any, **options: Any) -> Any:
        return chart(self)._repr_mimebundle_(*args, **options)


def thinned(points: Sequence[tuple[float, float]], most: int = 400) -> tuple[tuple[float, float], ...]:
    """Return about `most` of the points at most, and the last: more are not seen."""
    if len(points) <= most:
        return tuple(points)
    return (*points[:: -(-len(points) // most)], points[-1])


def chart(picture: Picture) -> altair.LayerChart | altair.Chart:
    """Draw a picture as an Altair chart."""
    alt = _altair()
    labels = [mark.label for mark in picture.marks]
    colour = alt.Color(
        "label:N",
        title=None,
        scale=alt.Scale(domain=labels, range=[_COLOURS[i % len(_COLOURS)] for i in range(len(labels))]),
        legend=alt.Legend(orient="bottom", columns=1, labelLimit=_WIDTH) if len(labels) > 1 else None,
    )
    drawn = _bars(picture, colour) if isinstance(picture.marks[0], Bars) else _layers(picture, colour)
    styled: altair.LayerChart | altair.Chart = (
        drawn.properties(title=picture.title, width=_WIDTH, height=_HEIGHT)
        .configure_view(strokeWidth=0)
        .configure_axis(grid=True, gridOpacity=0.4)
    )
    return styled


def svg(picture: Picture) -> str:
    """Draw a picture as SVG text."""
    return str(_converter().vegalite_to_svg(chart(picture).to_json()))


def save(picture: Picture, path: str | Path) -> None:
    """Draw a picture into a file: SVG, PNG or HTML that needs no other file, by the ending of its name."""
    file = Path(path)
    match file.suffix.lower():
        case ".svg":
            file.write_text(svg(picture), encoding="utf-8")
        case ".png":
            file.write_bytes(_converter().vegalite_to_png(chart(picture).to_json(), scale=2))
        case ".html":
            page = _converter().vegalite_to_html(chart(picture).to_json(), bundle=True)
            file.write_text(page, encoding="utf-8")
        case _:
            raise InvalidArgument(
                "a picture is written as .svg, .png or .html", place="path", hints=("name it roc.svg",)
            )


def _layers(picture: Picture, colour: Any) -> Any:
    alt = _altair()
    x = _position(alt.X, "x:Q", picture.x)
    y = _position(alt.Y, "y:Q", picture.y)
    layers = []
    for mark in picture.marks:
        if isinstance(mark, Bars):
            continue
        names = ("x", "y", "low", "high")
        rows = [dict(zip(names, point, strict=False)) | {"label": mark.label} for point in mark.points]
        drawn = alt.Chart(alt.InlineData(values=rows))
        if isinstance(mark, Line):
            dash = [5, 4] if mark.dashed else [1, 0]
            layers.append(drawn.mark_line(strokeDash=dash, clip=True).encode(x=x, y=y, color=colour))
        else:
            low, high = _position(alt.Y, "low:Q", picture.y), alt.Y2("high:Q")
            rule, spots = (
                drawn.mark_rule(strokeWidth=2, clip=True),
                {"filled": True, "size": 45, "opacity": 1},
            )
            layers.append(rule.encode(x=x, y=low, y2=high, color=colour))
            layers.append(drawn.mark_point(clip=True, **spots).encode(x=x, y=y, color=colour))
    return alt.layer(*layers)


def _bars(picture: Picture, colour: Any) -> Any:
    alt = _altair()
    rows = [
        {"name": name, "y": height, "label": mark.label}
        for mark in picture.marks
        if isinstance(mark, Bars)
        for name, height in mark.bars
    ]
    names = list(dict.fromkeys(row["name"] for row in rows))
    x = alt.X("name:N", title=picture.x.title, sort=names, axis=alt.Axis(labelAngle=0, labelLimit=120))
    y = _position(alt.Y, "y:Q", picture.y)
    bars = alt.Chart(alt.InlineData(values=rows)).mark_bar()
    if len(picture.marks) == 1:
        return bars.encode(x=x, y=y, color=colour)
    return bars.encode(x=x, y=y, color=colour, xOffset=alt.XOffset("label:N", sort=None))


def _position(channel: Any, field: str, axis: Axis) -> Any:
    alt = _altair()
    scale: dict[str, Any] = {"type": "log"} if axis.log else {"zero": False, "nice": axis.high is None}
    if axis.low is not None:
        scale["domainMin"] = axis.low
    if axis.high is not None:
        scale["domainMax"] = axis.high
    shown = alt.Axis(format="%") if axis.percent else alt.Axis()
    return channel(field, title=axis.title, scale=alt.Scale(**scale), axis=shown)


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
