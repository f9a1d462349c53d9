"""Pictures show the numbers of the reports, and a page holds all it needs."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from sfumato.anonymity import Generalised, Goal, measure, reach, risk_picture, size_picture, trade_picture
from sfumato.anonymity.report import generalised_page
from sfumato.plots import Bars, Line, svg


@pytest.fixture(scope="module")
def made() -> Generalised:
    draw = np.random.default_rng(2)
    table = pa.table({"age": draw.integers(0, 60, 900), "sex": draw.choice(["f", "m"], 900)})
    return reach(table, ["age", "sex"], Goal(k=6))


def test_risks_fall_from_everybody_to_nobody_where_the_measures_say(made: Generalised) -> None:
    before, after = risk_picture(made.before, made.after).marks
    assert isinstance(before, Line) and isinstance(after, Line)
    assert after.points[0] == (1 / made.after.largest, 1.0) and after.points[-1] == (1.0, 0.0)
    assert max(chance for chance, share in after.points if share > 0) == made.after.highest_risk
    above = max(share for chance, share in before.points if chance > made.before.risk)
    assert above == pytest.approx(made.before.at_risk)
    for one, other in pairwise(after.points):
        assert one[0] <= other[0] and one[1] >= other[1]


def test_sizes_add_up(made: Generalised) -> None:
    for mark in size_picture(made.before, made.after).marks:
        assert isinstance(mark, Bars)
        assert sum(height for _, height in mark.bars) == pytest.approx(1)
    after = dict(size_picture(made.after).marks[0].bars)  # type: ignore[union-attr]
    assert after["1"] == after["2"] == after["3-4"] == 0
    unique = dict(size_picture(measure(pa.table({"x": [1, 2, 2]}), ["x"])).marks[0].bars)  # type: ignore[union-attr]
    assert unique["1"] == pytest.approx(1 / 3) and unique["2"] == pytest.approx(2 / 3)


def test_losses_are_drawn_against_k(made: Generalised) -> None:
    picture = trade_picture([(2, made.loss), (6, made.loss)])
    assert picture.marks[0].points == ((2.0, made.loss.certainty), (6.0, made.loss.certainty))  # type: ignore[union-attr]


def test_pictures_are_drawn_into_a_page_that_needs_nothing_else(made: Generalised) -> None:
    text = generalised_page(made).html()
    assert text.count("<svg") == 3
    for row in made.rows():
        for cell in row:
            assert f">{cell}</t" in text
    assert "nor a release" in text and "k, the smallest class" in text
    assert "<script" not in text and "href=" not in text.replace("xlink:href", "")
    assert "</svg>" in svg(risk_picture(made.before))


def test_a_picture_of_many_sizes_is_no_large_file() -> None:
    sizes = [number for number in range(1, 800) for _ in range(number)]
    (line,) = risk_picture(measure(pa.table({"x": sizes}), ["x"])).marks
    assert isinstance(line, Line) and len(line.points) <= 402 and line.points[0] == (1 / 799, 1.0)
