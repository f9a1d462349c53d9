"""Pictures of what a table gives away, before and after it was generalised."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sfumato.anonymity.losses import Loss
from sfumato.anonymity.measures import AnonymityMeasures
from sfumato.plots import Axis, Bars, Line, Picture, thinned

__all__ = ["loss_picture", "risk_picture", "size_picture", "trade_picture"]

_SIZES = ((1, "1"), (2, "2"), (4, "3-4"), (9, "5-9"), (19, "10-19"), (99, "20-99"), (10**18, "100 and more"))


def risk_picture(*measures: AnonymityMeasures) -> Picture:
    """Draw the share of rows that are found with at least some chance, for one table or before and after.

    >>> import pyarrow as pa
    >>> from sfumato.anonymity import measure
    >>> people = pa.table({"age": [31, 31, 31, 54]})
    >>> risk_picture(measure(people, ["age"])).y.title
    'share of rows'
    """
    return Picture(
        title="How many rows can be found again",
        caption="Share of rows that who knows the quasi-identifiers finds with at least such a chance.",
        x=Axis(title="chance to be found", log=True),
        y=Axis(title="share of rows", percent=True, low=0, high=1),
        marks=tuple(Line(label=label, points=_risks(each)) for label, each in _labelled(measures)),
    )


def size_picture(*measures: AnonymityMeasures) -> Picture:
    """Draw the share of rows in classes of some sizes, for one table or before and after.

    >>> import pyarrow as pa
    >>> from sfumato.anonymity import measure
    >>> people = pa.table({"age": [31, 31, 31, 54]})
    >>> size_picture(measure(people, ["age"])).y.title
    'share of rows'
    """
    return Picture(
        title="How many rows look alike",
        caption="Share of rows by the number of rows that have the same quasi-identifiers.",
        x=Axis(title="rows in a class"),
        y=Axis(title="share of rows", percent=True),
        marks=tuple(Bars(label=label, bars=_shares(each)) for label, each in _labelled(measures)),
    )


def loss_picture(loss: Loss) -> Picture:
    """Draw what each column has lost."""
    return Picture(
        title="What each column has lost",
        caption="Certainty: the width of what a value may be. Entropy: the bits it takes to learn it anew.",
        x=Axis(title="column"),
        y=Axis(title="share lost", percent=True),
        marks=(
            Bars(label="certainty", bars=tuple((each.column, each.certainty) for each in loss.columns)),
            Bars(label="entropy", bars=tuple((each.column, each.entropy) for each in loss.columns)),
        ),
    )


def trade_picture(losses: Sequence[tuple[int, Loss]]) -> Picture:
    """Draw what is lost against k, from several results for the same table.

    >>> import pyarrow as pa
    >>> from sfumato.anonymity import Goal, reach
    >>> people = pa.table({"age": [31, 34, 38, 52, 54, 57]})
    >>> trade_picture([(k, reach(people, ["age"], Goal(k=k)).loss) for k in (2, 3)]).x.title
    'k'
    """
    return Picture(
        title="What a larger k costs",
        caption="Share of certainty and of entropy that is lost to reach k.",
        x=Axis(title="k", log=True),
        y=Axis(title="share lost", percent=True, low=0, high=1),
        marks=(
            Line(label="certainty", points=tuple((float(k), loss.certainty) for k, loss in losses)),
            Line(label="entropy", points=tuple((float(k), loss.entropy) for k, loss in losses)),
        ),
    )


def _labelled(measures: Sequence[AnonymityMeasures]) -> Iterable[tuple[str, AnonymityMeasures]]:
    labels = ("before", "after") if len(measures) == 2 else ("the table",) * len(measures)
    return zip(labels, measures, strict=True)


def _shares(measures: AnonymityMeasures) -> tuple[tuple[str, float], ...]:
    bars, least = [], 0
    for most, label in _SIZES:
        rows = sum(size * many for size, many in measures.sizes if least < size <= most)
        bars.append((label, rows / measures.rows))
        least = most
    return tuple(bars)


def _risks(measures: AnonymityMeasures) -> tuple[tuple[float, float], ...]:
    """Return a staircase: at each chance, the share of rows with at least that one, and with a higher one."""
    points: list[tuple[float, float]] = []
    rows = measures.rows
    for size, many in reversed(measures.sizes):  # the largest classes have the lowest chance
        points.append((1 / size, rows / measures.rows))
        rows -= size * many
        points.append((1 / size, rows / measures.rows))
    if measures.k > 1:
        points.append((1.0, 0.0))
    return thinned(points)
