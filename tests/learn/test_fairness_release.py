"""What follows from the noisy cells of a fairness report: rates, losses, flags, pages."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sfumato.core.gaussian import GaussianNoise
from sfumato.errors import InvalidArgument, SfumatoError
from sfumato.learn.fairness_cells import GRID, Subgroups
from sfumato.learn.fairness_release import FairnessReport
from sfumato.learn.sweep_report import SweepReport, SweepRun
from tests.learn.invented import SETS, exact_cells, noisy_report

UNEQUAL = {"f": 0.6, "m": 0.9}


@pytest.fixture(scope="module")
def report() -> FairnessReport:
    """A report whose noise happens to be zero, so that what follows from it is known."""
    return without_noise(UNEQUAL)


def without_noise(right: dict[str, float], **more: Any) -> FairnessReport:
    return replace(noisy_report(right=right, **more), measured=exact_cells(right=right, **more)[1])


def test_rates_are_those_of_the_table(report: FairnessReport) -> None:
    [everyone, f, *_] = report.groups
    table = next(report.cells.divided(report.measured)).outcomes[0] / GRID
    assert everyone.units == pytest.approx(table.sum())
    assert everyone.accuracy.value == pytest.approx(np.trace(table) / table.sum())
    [rates] = everyone.classes  # of two classes, one says it
    assert rates.value == "yes"
    assert rates.false_negative is not None and rates.false_positive is not None
    assert rates.false_negative.value == pytest.approx(table[1, 0] / table[1].sum())
    assert rates.false_positive.value == pytest.approx(table[0, 1] / table[0].sum())
    assert f.name == "sex = f" and f.accuracy.value == pytest.approx(0.6, abs=0.02)


def test_who_pays_is_flagged_with_an_interval_and_who_does_not_is_not(report: FairnessReport) -> None:
    named = {one.name: one for one in report.groups}
    assert named["sex = f"].pays and not named["sex = m"].pays and not named["everyone"].pays
    assert named["sex = f"].loss is not None and named["sex = f"].loss.low > 0.1
    assert not named["sex = f, region = far away in the east"].accuracy.informative
    assert not named["sex = f, region = far away in the east"].pays
    assert report.paying[0].name == "sex = f"


def test_losses_allow_for_all_groups_together(report: FairnessReport) -> None:
    """Of what may miss, everyone's accuracy has a tenth, which all losses share, and the 8 groups the rest.

    So all losses hold together with the level of the report, whatever they have in common (union bound).
    """
    [(_, everyone), *others] = report.accuracies(miss=0.05 * 0.9 / 8, everyone=0.05 * 0.1)
    for group, (name, rate) in zip(report.groups[1:], others, strict=True):
        assert group.name == name and group.loss is not None
        assert group.loss == pytest.approx((everyone.low - rate.high, everyone.high - rate.low))
        alone = everyone.value - rate.value, report.groups[0].accuracy.minus(group.accuracy)
        assert group.loss.low < alone[1].low <= alone[0] <= alone[1].high < group.loss.high


def test_a_label_as_group_has_the_accuracy_of_its_class() -> None:
    by_label = (Subgroups(), Subgroups(columns=("ill",), values=(("no", "yes"),)))
    report = without_noise(UNEQUAL, sets=by_label)
    table = next(report.cells.divided(report.measured)).outcomes[0]
    _, no, yes = report.groups
    assert yes.accuracy.value == pytest.approx(table[1, 1] / table[1].sum())
    assert no.accuracy.value == pytest.approx(table[0, 0] / table[0].sum())
    [rates] = yes.classes
    assert rates.false_positive is None  # nobody there is of another class


def test_calibration_says_where_the_model_is_too_sure(report: FairnessReport) -> None:
    f, m = (report.group(f"sex = {one}") for one in "fm")
    assert f.calibration[-1].verdict == "too sure"  # right 60% of the time, and says 90% to 100%
    assert {one.verdict for one in m.calibration} & {"not sure enough"}
    marginal = 0  # bins that are off by themselves, and not for all 45 together
    for times in range(2, 20):
        noisier = replace(report, law=GaussianNoise(report.law.parameter * times**2))
        for each in (one for group in noisier.groups[1:3] for one in group.calibration):
            off = each.right.high < each.low or each.right.low > each.high
            assert off or not each.verdict
            marginal += off and not each.verdict
    assert marginal
    with pytest.raises(InvalidArgument, match="no group"):
        report.group("sex = x")


def test_a_stored_report_comes_back(report: FairnessReport) -> None:
    text = report.to_json()
    again = FairnessReport.from_json(text)
    assert again.to_json() == text
    assert repr(again) == repr(report)
    for damaged in (text.replace('"bins":5', '"bins":6'), text.replace('"fairness":1', '"fairness":2'), "[]"):
        with pytest.raises(SfumatoError):
            FairnessReport.from_json(damaged)


def test_a_report_has_no_place_for_what_was_not_paid_for(report: FairnessReport) -> None:
    """Every field is public or noisy; a comparison without noise has nowhere to go."""
    allowed = {"model", "cells", "measured", "law", "level", "cost", "receipt", "notes"}
    assert {one.name for one in fields(FairnessReport)} == allowed
    assert set(json.loads(report.to_json())) == allowed | {"fairness"}


def test_pages_show_no_rate_without_its_interval(report: FairnessReport) -> None:
    page, text = report.document().html(), repr(report)
    assert "non-private" not in page.lower()
    assert "pays" in page and "pays" in text and "no information at this budget" in text
    assert report.group("sex = f").accuracy.said() in page
    assert "-- each unit counts as one" in text
    assert "pays" in report._repr_html_()


def test_a_sweep_flags_what_a_group_loses_against_the_largest_epsilon(report: FairnessReport) -> None:
    worse = without_noise({"f": 0.5, "m": 0.88})
    runs = (
        SweepRun(epsilon=Fraction(1, 10), model=None, report=worse),
        SweepRun(epsilon=Fraction(1), model=None, report=report),
    )
    sweep = SweepReport(runs=runs)
    curves = {one.name: one for one in sweep.curves}
    assert curves["sex = f"].verdict(0) == "pays more than everyone"
    assert curves["everyone"].verdict(0) == "pays"
    assert [one.verdict(1) for one in sweep.curves] == [""] * 9
    assert "sex = f" in sweep.paying
    assert sweep.paying[0] in repr(sweep) and "Charged: trainings at epsilon 0.1, 1" in sweep.cost_said()
    assert "points lost" in sweep._repr_html_()
    page = sweep.document().html()
    for run in runs:  # error rates and calibration across epsilon, with intervals
        group = run.report.group("sex = f")
        assert group.classes[0].false_negative is not None
        assert group.classes[0].false_negative.said() in page and group.calibration[-1].right.said() in page
    with pytest.raises(InvalidArgument, match="two epsilons"):
        SweepReport(runs=runs[:1])
    other = noisy_report(right=UNEQUAL, sets=SETS[:2])
    with pytest.raises(InvalidArgument, match="same groups"):
        SweepReport(runs=(runs[0], replace(runs[1], report=other)))
