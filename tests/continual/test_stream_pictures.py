"""Pictures of a stream: numbers lie where they were published, gaps stay gaps, pages say what they show."""

from __future__ import annotations

from dataclasses import replace

import pytest

import sfumato as sf
from sfumato.cli.chart import chart_lines
from sfumato.continual.stream_release import StreamRelease
from sfumato.errors import InvalidArgument
from sfumato.plots import Band, Line, Mark, Points
from tests.continual.visits import Visit, database, day, stream

PLACES = [f"p{number}" for number in range(8)]
SQL = "SELECT place, COUNT(*) AS n, AVG(cost) AS mean FROM visits GROUP BY place"


@pytest.fixture(scope="module")
def published() -> StreamRelease:
    """Twelve days in eight places; the sixth to eighth and the tenth day are missing.

    With so much epsilon that the mean of the 55 people of a place in a day is told, for 55 are 12 deviations
    above what says nothing. At the 1 of other tests, in one run of twenty no mean of any day would be told.
    """
    rows: list[Visit] = [(who, who % 12, PLACES[min(who % 9, 7)], 5.0) for who in range(2000)]
    columns = {"place": sf.one_of(*PLACES), "cost": sf.between(0, 10)}
    whole = stream(database(rows, columns=columns), SQL, horizon=30, epsilon=20).advance(day(12))
    return replace(whole, outputs={at: one for at, one in whole.outputs.items() if at not in (6, 7, 8, 10)})


def points(mark: Mark) -> tuple[tuple[float, ...], ...]:
    assert isinstance(mark, Band | Points)
    return mark.points


def test_numbers_lie_where_they_were_published(published: StreamRelease) -> None:
    for totals in (True, False):
        picture = published.plot("n", totals=totals, groups=["p0"])
        assert [type(mark) for mark in picture.marks] == [Band, Points, Band], "days 1 to 5, 9, and 11 to 12"
        assert [len(points(mark)) for mark in picture.marks] == [5, 1, 2]
        for number, place in ((3, (0, 2)), (9, (1, 0)), (12, (2, 1))):
            release = published.total(number) if totals else published.period(number)
            ends = release.intervals()["n"][0]
            begin = 1767225600_000 + (number - 1) * 86_400_000  # 2026-01-01 in UTC
            shown = points(picture.marks[place[0]])[place[1]]
            assert ends is not None and shown == (begin, release.column("n")[0], *ends)
        assert "4 of 12 periods were not published" in picture.caption
        assert picture.title == ("n of all days so far" if totals else "n of each day")


def test_of_many_groups_the_largest_are_drawn(published: StreamRelease) -> None:
    picture = published.plot()
    newest = published.total()
    shown = {mark.label for mark in picture.marks}
    counts = dict(zip(newest.column("place"), newest.column("n"), strict=True))
    rest = [abs(count) for place, count in counts.items() if place not in shown]
    assert len(shown) == 6 and min(abs(counts[place]) for place in shown) >= max(rest)
    assert picture.title.startswith("n of") and "6 of 8 groups" in picture.caption
    for groups, said in ((["nowhere"], "no group"), (PLACES, "told apart")):
        with pytest.raises(InvalidArgument, match=said):
            published.plot(groups=groups)
    with pytest.raises(InvalidArgument, match="no column 'place'"):
        published.plot("place")


def test_a_long_stream_is_thinned_but_keeps_its_gaps(
    published: StreamRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sfumato.continual.stream_picture._POINTS", 4)
    picture = published.plot("n", groups=["p0"])
    drawn = [(at - 1767225600_000) / 86_400_000 + 1 for mark in picture.marks for at, *_ in points(mark)]
    assert drawn == [1, 3, 5, 11, 12] and "One period in 2 is drawn" in picture.caption
    assert [len(points(mark)) for mark in picture.marks] == [3, 2]


def test_the_end_of_the_design_is_marked() -> None:
    endless = stream(database([]), "SELECT COUNT(*) AS n FROM visits", horizon=None, design=16)
    marks = [endless.advance(day(days)).plot().marks for days in (16, 18)]
    assert [len(found) for found in marks] == [1, 2]
    [band, line] = marks[1]
    assert isinstance(line, Line) and line.label == "designed up to here"
    ends = [end for _, *three in points(band) for end in three]
    assert line.points == ((points(band)[15][0], min(ends)), (points(band)[15][0], max(ends)))
    picture = endless.show().plot()
    assert "designed for 16 days" in picture.caption and len(chart_lines(picture)) == 12


def test_a_period_that_is_answered_otherwise_is_a_gap() -> None:
    """Post-processing fails on the second day, and then the noisy table itself is shown."""
    rows: list[Visit] = [(who, 0 if who < 50 else 2, "a", 1.0) for who in range(100)] + [(999, 1, "a", 1.0)]
    columns = {"place": sf.one_of("a"), "cost": sf.between(0, 10)}
    db = database(rows, columns=columns, max_rows=1, max_groups=1)
    tiles = "NTILE(COUNT(*) - 25) OVER (ORDER BY place)"  # of fewer than none there are none
    sql = f"SELECT place, COUNT(*) AS n, {tiles} AS t FROM visits GROUP BY place"
    published = stream(db, sql, horizon=3, epsilon=50).advance(day(3))
    assert published.period(1).columns == ("place", "n", "t") != published.period(2).columns
    picture = published.plot(totals=False)
    assert [len(points(mark)) for mark in picture.marks] == [1, 1]


def test_groups_without_names_are_not_drawn() -> None:
    """And a column without intervals is no name."""
    db = database([])
    told = stream(db, "SELECT place, COUNT(*) AS n, COUNT(*) * COUNT(*) AS s FROM visits GROUP BY place")
    assert {mark.label for mark in told.advance(day(2)).plot("n").marks} == {"a", "b", "c"}
    lost = stream(db, "SELECT COUNT(*) AS n FROM visits GROUP BY place", name="lost").advance(day(2))
    with pytest.raises(InvalidArgument, match="told apart"):
        lost.plot()
    assert "<figure" not in lost._repr_html_()


def test_keys_that_appear() -> None:
    """Groups that nobody declared are drawn from the first day on; their delta is in the baseline."""
    rows: list[Visit] = [(who, who % 4, "abc"[who % 3], 5.0) for who in range(2000)]
    budget = sf.Budget(epsilon=100, delta=2e-6, keys_delta=1e-6)
    db = database(rows, columns={}, max_groups=1, max_rows=1, budget=budget)
    asked = stream(db, "SELECT place, COUNT(*) AS n FROM visits GROUP BY place")
    picture = asked.advance(day(4)).plot()
    assert [(mark.label, len(points(mark))) for mark in picture.marks] == [("a", 4), ("b", 4), ("c", 4)]
    ours, fresh, anew = asked.baseline().ways
    assert ours.delta == fresh.delta == float(asked.priced().cost.delta) < anew.delta


def test_pages_and_notebooks(published: StreamRelease, monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawn in `tests/browser`; here the words around pictures."""
    monkeypatch.setattr("sfumato.pages.figure.svg", lambda picture: "<svg ></svg>")
    page, notebook = published.document().html(), published._repr_html_()
    for text, pictures in ((page, 4), (notebook, 2)):
        assert text.count("<svg role") == pictures and "12 of 30 days" in text
        assert "2026-01-12</td>" in text, "the numbers of pictures have dates"
    assert "Everything on this page was published with noise" in page
    begun = replace(published, outputs={}, taken=0)
    assert "0 of 30 days" in begun._repr_html_() and "0 of 30 days" in begun.document().html()
    with pytest.raises(InvalidArgument, match="no period"):
        begun.plot()


def test_a_chart_of_letters(published: StreamRelease) -> None:
    lines = chart_lines(published.plot("n", groups=["p0", "p1"]), width=24, height=6)
    assert lines[0] == "n of all days so far: p0" and len(lines) == 2 * (1 + 6 + 1)
    drawn = [line.partition("│")[2].ljust(24) for line in lines[1:7]]
    columns = ["".join(row[place] for row in drawn).strip() for place in range(24)]
    days = [columns[2 * number] != "" for number in range(12)]  # two letters wide each
    assert days == [number not in (6, 7, 8, 10) for number in range(1, 13)]
    assert all("•" in column for column in columns if column)
    assert lines[7].split() == ["2026-01-01", "2026-01-12"]
