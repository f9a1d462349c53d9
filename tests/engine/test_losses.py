"""What caps and bounds take is told with each answer: measured for a part of its cost, or as unknown."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from sfumato.analysis.loss_measurement import MEASURED_PART
from sfumato.release.formats import rendered
from tests.release import made

UNKNOWN = "`sfumato losses` (losses=True) tells how much"


def visits(people: int = 4000, extra: list[tuple[Any, ...]] | None = None) -> pd.DataFrame:
    """Return ten rows of each person, five in each of two places, with four costs of ten beyond 20."""
    who = np.repeat(np.arange(people), 10)
    place = np.tile(np.repeat(["a", "b"], 5), people)
    cost = np.tile([5.0, 5, 5, 50, 50] * 2, people)
    frame = pd.DataFrame({"who": who, "place": place, "cost": cost})
    if extra is None:
        return frame
    return pd.concat([frame, pd.DataFrame(extra, columns=list(frame.columns))], ignore_index=True)


def opened(frame: pd.DataFrame, unit: str | None = "who", **given: Any) -> sf.Database:
    return sf.connect(
        frame,
        name="t",
        unit=unit,
        columns={"cost": sf.between(0, 20), "place": sf.one_of("a", "b")},
        budget=given.pop("budget", sf.Budget(epsilon=100, delta=1e-6)),
        **given,
    )


def told(notes: tuple[str, ...]) -> list[tuple[float, float, float]]:
    """Return the shares that notes tell, with their intervals."""
    found = [re.findall(r"about ([\d.]+)% \(([\d.]+)%\.\.([\d.]+)%\)", note) for note in notes]
    return [tuple(float(end) for end in one) for each in found for one in each]  # type: ignore[misc]


@pytest.mark.parametrize(
    ("text", "caps", "left", "outside"),
    [
        ("SELECT COUNT(*) AS n FROM t", {"max_rows": 2}, 80, None),
        ("SELECT COUNT(*) AS n FROM t", {"max_rows": 1}, 87.5, None),  # of ten rows eight are looked at
        ("SELECT SUM(cost) AS s FROM t", {"max_rows": 5}, 50, 40),
        ("SELECT place, AVG(cost) AS s FROM t GROUP BY place", {"max_rows": 5, "max_groups": 1}, 50, 40),
        ("SELECT place, COUNT(*) AS n FROM t GROUP BY place", {"max_rows": 2, "max_groups": 1}, 80, None),
        ("SELECT place, COUNT(DISTINCT who) AS n FROM t GROUP BY place", {"max_groups": 1}, 50, None),
        ("SELECT SUM(cost) AS s FROM t WHERE place = 'a'", {"max_rows": 5}, 0, 40),
    ],
)
def test_losses_are_measured_with_the_question(
    text: str, caps: dict[str, int], left: float, outside: float | None
) -> None:
    """Deviations of shares are below 0.1% here: an interval misses by 1% with a chance below 1e-9."""
    db = opened(visits())
    question = db.sql(text, epsilon=50, losses=True, **caps)
    release = question.release()
    expected = [value for value in (left, outside) if value is not None]
    found = told(release.notes)
    assert len(found) == len(expected)
    for (value, low, high), truth in zip(found, expected, strict=True):
        assert abs(value - truth) < 1 and low - 1 < truth < high + 1 and high - low < 2
    assert any("5% of the cost" in note for note in release.notes)
    assert not any(UNKNOWN in note for note in release.notes)
    assert "of the cost measures" in question.explain()
    assert sf.Release.from_json(release.to_json()).notes == release.notes


def test_the_measurement_is_a_part_of_one_charge() -> None:
    """Both together cost what epsilon allows, in one reservation, and the answer's noise grows by 2.6%."""
    for budget, growth in (
        (sf.Budget(epsilon=3, delta=1e-6), 0.95**-0.5),
        (sf.Budget(epsilon=3, delta=1e-6, rule="pure"), 1 / 0.95),
    ):
        db = opened(visits(50), budget=budget, max_rows=2, max_groups=1)
        text = "SELECT place, SUM(cost) AS s FROM t GROUP BY place"
        plain, measured = (db.sql(text, epsilon=1, losses=on).priced() for on in (False, True))
        [loss] = measured.losses
        assert loss.cost is not None and loss.cost.part == MEASURED_PART
        assert measured.costs[0].part == 1 - MEASURED_PART and measured.epsilon == plain.epsilon == 1
        allowed = db.terms.allowance(Fraction(1))
        rule = db.terms.rule
        price = sum((Fraction(rule.price(one)) * times for one, times in measured.event.parts()), Fraction(0))
        alone = sum(
            (Fraction(rule.price(one)) * times for one, times in loss.cost.event.parts()), Fraction(0)
        )
        assert allowed * Fraction(99, 100) < price <= allowed
        assert MEASURED_PART * allowed * Fraction(99, 100) < alone <= MEASURED_PART * allowed
        noise = [priced.costs[0].noises[0].law.deviation for priced in (plain, measured)]
        assert noise[1] / noise[0] == pytest.approx(growth, rel=1e-3)
        before = db.budget.spent_units
        release = db.sql(text, epsilon=1, losses=True).release()
        assert db.budget.spent_units - before == rule.charge(measured.event)
        assert float(release.cost["epsilon"]) == 1 and len(release.cost["events"]) == 2
        assert measured.fingerprint() != plain.fingerprint()


def test_one_person_moves_no_measured_sum_by_more_than_is_paid_for() -> None:
    """A person of 5,000 rows, another with one row, one with everything in one group: the box holds."""
    huge = [(9_999, place, 1e9) for place in ("a", "b") for _ in range(2500)]
    for extra in (huge, huge[:1], huge[:2500], [(9_999, "a", None)] * 700, [(9_999, None, 3.0)] * 50):
        for text, caps in (
            ("SELECT place, SUM(cost) AS s FROM t GROUP BY place", {"max_rows": 3, "max_groups": 1}),
            ("SELECT COUNT(*) AS n FROM t", {"max_rows": 1}),
            ("SELECT place, COUNT(DISTINCT who) AS n FROM t GROUP BY place", {"max_groups": 1}),
        ):
            totals = []
            for frame in (visits(20), visits(20, extra)):
                db = opened(frame)
                [loss] = db.sql(text, epsilon=1, losses=True, **caps).priced().losses
                assert loss.bounding is not None
                [groups] = db.backend.run(loss.bounding.query).reveal()
                totals.append({name: int(values[0]) for name, values in groups.measures.items()})
                sensitivities = {one.name: one.sensitivity for one in loss.bounding.query.measures}
            for name, bound in sensitivities.items():
                assert abs(totals[1][name] - totals[0][name]) <= bound, (text, name)
            assert len(sensitivities) >= 2


def test_what_is_not_measured_is_said_to_be_unknown() -> None:
    db = opened(visits(50), max_rows=2, max_groups=1)
    grouped = db.sql("SELECT place, AVG(cost) AS c FROM t GROUP BY place", epsilon=1)
    [note] = [note for note in grouped.release().notes if UNKNOWN in note]
    assert "what max_rows = 2, max_groups = 1, the bounds of `cost` left out;" in note
    release = db.sql("SELECT COUNT(*) AS n FROM t", epsilon=1).release()
    [note] = [note for note in release.notes if UNKNOWN in note]
    assert "what max_rows = 2 left out;" in note
    assert note in repr(release) and note in release._repr_html_()
    assert note in json.loads(rendered(release, "json", 0.95))["notes"]
    assert note in rendered(release, "markdown", 0.95).decode() and note in grouped_note(db)


def grouped_note(db: sf.Database) -> str:
    return db.sql("SELECT COUNT(*) AS n FROM t", epsilon=1).explain()


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("SELECT COUNT(DISTINCT who) AS n FROM t", {}),
        ("SELECT place, COUNT(DISTINCT who) AS n FROM t GROUP BY place", {"max_groups": 2}),
        ("SELECT COUNT(*) AS n FROM (SELECT who FROM t GROUP BY who)", {}),
        ("SELECT SUM(LEAST(n, 20)) AS n FROM (SELECT who, COUNT(*) AS n FROM t GROUP BY who)", {}),
    ],
)
def test_nothing_is_said_where_nothing_can_bite(text: str, options: dict[str, int]) -> None:
    db = opened(visits(50), max_rows=2)
    for on in (False, True):
        question = db.sql(text, epsilon=1, losses=on, **options)
        assert question.priced().losses == () and not told(question.release().notes)
        assert not any("left out" in note for note in question.release().notes)


def test_rows_that_are_units_have_bounds_only() -> None:
    db = opened(visits(4000), unit=None)
    assert db.sql("SELECT COUNT(*) AS n FROM t", epsilon=1).priced().losses == ()
    inside = db.sql("SELECT SUM(cost) AS s FROM t WHERE cost BETWEEN 0 AND 9", epsilon=1, losses=True)
    assert inside.priced().losses == ()
    release = db.sql("SELECT SUM(cost) AS s FROM t", epsilon=2, losses=True).release()
    [(value, low, high)] = told(release.notes)
    assert abs(value - 40) < 1 and low - 1 < 40 < high + 1


def test_estimates_say_themselves_what_they_leave_out() -> None:
    db = opened(visits(50), max_rows=2)
    asked = db.sql("SELECT SUM(cost) AS s FROM t", epsilon=1)
    for question in (db.caps(epsilon=1), db.bounds("cost", epsilon=1), asked.losses(epsilon=1)):
        assert question.priced().losses == ()
        assert not any(UNKNOWN in note for note in question.release().notes)


def test_too_little_to_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if every draw is zero: the noise may have been a thousand rows, and there are thirty."""
    made.freeze(monkeypatch)
    release = opened(visits(3), max_rows=2).sql("SELECT COUNT(*) FROM t", epsilon=0.01, losses=True).release()
    assert any("an unknown share" in note for note in release.notes) and not told(release.notes)
