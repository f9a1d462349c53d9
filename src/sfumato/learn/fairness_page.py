"""The fairness report as a page: no number without its interval."""

from __future__ import annotations

from collections.abc import Sequence

from sfumato.learn.fairness_cells import value_said
from sfumato.learn.fairness_release import FairnessReport, GroupReport
from sfumato.learn.rates import ConfidenceLimits
from sfumato.pages import (
    Block,
    Figure,
    Flag,
    Notes,
    Notice,
    Page,
    PageTable,
    Paragraph,
    Section,
)
from sfumato.plots import Axis, Bars, Line, Picture, Points
from sfumato.release.published import CLOSING

__all__ = ["fairness_page", "loss_said", "report_blocks", "verdict"]

_BARS = 24  # groups of one picture
_CURVES = 5  # groups of one picture of calibration


def fairness_page(report: FairnessReport) -> Page:
    """Return the report as one page."""
    groups = report.groups
    notice, table = _notice(report, groups), _accuracy_table(report, groups)
    return Page(
        title=f"Fairness report: {report.model}",
        made=_made(report),
        brief=(table, notice, Notes(report.notes)),
        opening=(notice,),
        sections=(
            Section("Accuracy by group", *_pictures(groups), table),
            Section("Error rates by group", _error_table(groups)),
            Section(
                "Calibration by group",
                Paragraph(
                    "Where the model gives its prediction a probability, it should be right as often as that."
                ),
                *_calibration_pictures(groups),
                _calibration_table(groups),
            ),
            *report.last_sections(),
        ),
        closing=CLOSING,
    )


def report_blocks(report: FairnessReport) -> tuple[Block, ...]:
    """Return who pays, and the table of accuracies."""
    groups = report.groups
    return _notice(report, groups), _accuracy_table(report, groups)


def verdict(groups: Sequence[GroupReport], level: float) -> str:
    """Say which groups pay, in a sentence."""
    paying = [one.name for one in groups if one.pays]
    unknown = sum(not one.accuracy.informative for one in groups)
    said = f"no group is seen to pay, at {level:.0%} for all groups together"
    if paying:
        some = "; ".join(paying[:5]) + (f"; and {len(paying) - 5} more" if len(paying) > 5 else "")
        said = f"lower accuracy than everyone, at {level:.0%} for all groups together: {some}"
    if unknown:
        said += f". Of {unknown} of {len(groups)} groups nothing is known at this budget"
    return f"{said[0].upper()}{said[1:]}."


def loss_said(loss: ConfidenceLimits | None) -> str:
    """Return a loss of accuracy in points, as what it lies between.

    >>> loss_said(ConfidenceLimits(0.02, 0.053))
    '+2.0 to +5.3'
    """
    return "" if loss is None else f"{100 * loss.low:+.1f} to {100 * loss.high:+.1f}"


def _made(report: FairnessReport) -> str:
    epsilon, delta = (float(report.cost.get(name, 0)) for name in ("epsilon", "delta"))
    return f"This report cost epsilon {epsilon:.4g}, delta {delta:.3g}, beside what the model cost."


def _notice(report: FairnessReport, groups: Sequence[GroupReport]) -> Notice:
    return Notice(verdict(groups, report.level), tone="bad" if any(one.pays for one in groups) else "plain")


def _accuracy_table(report: FairnessReport, groups: Sequence[GroupReport]) -> PageTable:
    rows: list[tuple[str | Flag, ...]] = [
        (
            one.name,
            f"{one.units:,.0f} ({one.units_interval.low:,.0f} to {one.units_interval.high:,.0f})",
            one.accuracy.said(),
            loss_said(one.loss) if one.accuracy.informative else "",
            Flag("pays") if one.pays else "",
        )
        for one in groups
    ]
    return PageTable(
        heads=("group", "units", "accuracy", "points below everyone", "verdict"),
        rows=rows,
        caption=f"{report.level:.0%} intervals; those of points below everyone hold for all groups together.",
    )


def _error_table(groups: Sequence[GroupReport]) -> PageTable:
    return PageTable(
        heads=("group", "class", "false negatives", "false positives"),
        rows=[
            (one.name, value_said(each.value), *(
                "" if rate is None else rate.said() for rate in (each.false_negative, each.false_positive)
            ))
            for one in groups
            for each in one.classes
        ],
        caption="False negatives: of those who are of the class. False positives: of those who are not.",
    )  # fmt: skip


def _calibration_table(groups: Sequence[GroupReport]) -> PageTable:
    return PageTable(
        heads=("group", "probability of the prediction", "how often it is right", "verdict"),
        rows=[
            (
                one.name,
                f"{each.low:.0%} to {each.high:.0%}",
                each.right.said(),
                Flag(each.verdict) if each.verdict else "",
            )
            for one in groups
            for each in one.calibration
        ],
        caption="Verdicts hold for all bins of all groups together.",
    )


def _pictures(groups: Sequence[GroupReport]) -> tuple[Block, ...]:
    known = [one for one in groups if one.accuracy.informative]
    return tuple(
        Figure(
            Picture(
                title="Accuracy by group",
                caption="Each line is an interval. Groups of which nothing is known are left out.",
                x=Axis(title="group"),
                y=Axis(title="accuracy", percent=True, low=0, high=1),
                marks=(
                    Bars(
                        label="accuracy",
                        bars=tuple((one.name, one.accuracy.value) for one in some),
                        intervals=tuple((one.accuracy.low, one.accuracy.high) for one in some),
                    ),
                ),
            )
        )
        for some in (known[at : at + _BARS] for at in range(0, len(known), _BARS))
    )


def _calibration_pictures(groups: Sequence[GroupReport]) -> tuple[Block, ...]:
    """Return a picture of everyone and of the first groups of which something is known."""
    curves: list[Points] = []
    for one in groups:
        known = [each for each in one.calibration if each.right.informative]
        points = [
            ((each.low + each.high) / 2, each.right.value, each.right.low, each.right.high) for each in known
        ]
        if points and len(curves) < _CURVES:
            curves.append(Points(label=one.name, points=tuple(points)))
    if not curves:
        return ()
    low = groups[0].calibration[0].low
    picture = Picture(
        title="How often predictions are right, by their probability",
        caption="On the dashed line probabilities are as they should be.",
        x=Axis(title="probability of the prediction", percent=True, low=low, high=1),
        y=Axis(title="right", percent=True, low=0, high=1),
        marks=(Line(label="as it should be", points=((low, low), (1.0, 1.0)), dashed=True), *curves),
    )
    return (Figure(picture),)
