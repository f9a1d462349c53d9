"""`sfumato stream ..`: statistics period after period, as `[streams]` of the project file declares them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from sfumato.cli.options import (
    AnalystOption,
    FormatOption,
    LevelOption,
    OutputOption,
    ProjectOption,
    command,
    group_of,
    style_of,
)
from sfumato.cli.outputs import can_write, kept, write
from sfumato.cli.screen import screen, working
from sfumato.errors import InvalidArgument

if TYPE_CHECKING:
    from sfumato.catalog import Project
    from sfumato.session.database import Database
    from sfumato.session.stream import Stream

__all__ = ["declared_stream", "stream_app"]

stream_app = group_of("Statistics period after period, for one charge.")

_Name = Annotated[str, Argument(help="The stream: [streams.<name>] of the project file.")]


@command(stream_app, "start")
def _start(
    name: _Name,
    analyst: AnalystOption = None,
    dry_run: Annotated[bool, Option("--dry-run", help="Show the price, and spend nothing.")] = False,
    project: ProjectOption = "sfumato.toml",
) -> None:
    """Charge all periods of a stream, once. Nothing is published yet."""
    stream = _opened(name, project, analyst)
    if dry_run:
        stream.priced()  # refuses what repr only tells
        screen().print(repr(stream), markup=False, highlight=False)
        return
    if stream.begun:
        stream.start()  # refuses another stream of this name
        screen().print(f"stream `{name}` has begun before: nothing was charged now", markup=False)
        return
    with working("charging"):
        stream.start()
    screen().print(f"begun: `sfumato stream advance {name}` publishes each period that is over", markup=False)


@command(stream_app, "advance")
def _advance(
    name: _Name,
    now: Annotated[
        str | None, Option("--now", help="The moment up to which periods are over; else the clock's, in UTC.")
    ] = None,
    analyst: AnalystOption = None,
    project: ProjectOption = "sfumato.toml",
) -> None:
    """Publish every period that is over and was not published. Charges the stream if nobody has."""
    stream = _opened(name, project, analyst)
    with working("computing, adding noise"):
        published = stream.advance(now)
    screen().print(f"{stream.periods.said(len(published))} are published", markup=False)
    if not len(published):
        screen().print(f"the first is over on {stream.periods.end(1)} UTC", markup=False)
    if published.skipped:
        screen().print(f"skipped, because they failed: {', '.join(published.skipped)}", markup=False)


@command(stream_app, "show")
def _show(
    name: _Name,
    period: Annotated[
        str | None, Option("--period", help="A date or moment: that period alone, not the running total.")
    ] = None,
    until: Annotated[
        str | None, Option("--until", help="A date or moment: the running total up to its period.")
    ] = None,
    series: Annotated[bool, Option("--all", help="Every running total, each with its interval.")] = False,
    plot: Annotated[
        bool, Option("--plot", help="Draw running totals over time, with their bands, in letters.")
    ] = False,
    each: Annotated[
        bool, Option("--each", help="With --all and --plot: periods by themselves, not running totals.")
    ] = False,
    html: Annotated[
        str | None, Option("--html", help="Write a page with pictures, in one file that needs no other.")
    ] = None,
    given: FormatOption = None,
    output: OutputOption = None,
    level: LevelOption = 0.95,
    analyst: AnalystOption = None,
    project: ProjectOption = "sfumato.toml",
) -> None:
    """Show what is published: the running total, one period by itself, or all of it as a picture. Free."""
    from sfumato.catalog import read_project
    from sfumato.cli.chart import chart_lines
    from sfumato.core.mechanism import confidence
    from sfumato.release.formats import rendered, rendered_series

    confidence(level)
    if sum((period is not None, until is not None, html is not None, plot, series)) > 1:
        raise InvalidArgument("--period, --until, --all, --plot and --html: one of them", place="show")
    style = style_of(given, output).value
    can_write(output, kept(read_project(project)), style=style)
    can_write(html, kept(read_project(project)), place="--html")
    published = _opened(name, project, analyst).show()
    if html is not None:
        write(published.document(level=level).html().encode(), html, place="--html")
        screen(error=True).print(f"written: {html}")
        return
    if plot:
        picture = published.plot(totals=not each, level=level)
        text = "\n".join([*chart_lines(picture), picture.caption])
        write(f"{text}\n".encode(), output)
        return
    if series:
        table = published.series(totals=not each, level=level)
        write(rendered_series(table, style, level), output)
        return
    release = published.total(until) if period is None else published.period(period)
    write(rendered(release, style, level), output)


def _opened(name: str, project: str, analyst: str | None) -> Stream:
    from sfumato.cli.project import open_tables

    return declared_stream(name, *open_tables(project, analyst=analyst))


def declared_stream(name: str, project: Project, database: Database) -> Stream:
    """Return a stream as the project file declares it."""
    from sfumato.continual import Participation

    found = next((one for one in project.streams if one.name == name), None)
    if found is None:
        known = ", ".join(one.name for one in project.streams)
        hint = f"it declares {known}" if known else "declare one: [streams.daily]"
        raise InvalidArgument("the project file declares no such stream", place=name, hints=(hint,))
    return database.stream(
        found.question,
        name=name,
        by=found.by,
        every=found.every,
        start=found.start,
        horizon=found.horizon,
        design=found.design,
        epsilon=found.epsilon,
        participation=Participation(periods=found.periods, apart=found.apart),
        late=found.late,
        duplicates=found.duplicates,
        row_id=found.row_id,
        purpose=found.purpose,
    )
