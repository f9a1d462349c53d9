"""The pictures for a class show what is true, and each has a page with its picture and lines to try."""

from __future__ import annotations

import math
import re
from pathlib import Path
from statistics import NormalDist

import pytest

from sfumato import lessons
from sfumato.plots import Bars, Line, Picture

DOCS = Path(__file__).parent.parent / "docs"
LEARN = DOCS / "learn"


@pytest.mark.parametrize("name", lessons.LESSONS)
def test_the_picture_that_is_kept_has_its_words(name: str) -> None:
    """It says what the picture of today says."""
    kept, picture = (LEARN / f"{name}.svg").read_text(), lessons.LESSONS[name]()
    texts = [picture.title, picture.x.title, picture.y.title, *(mark.label for mark in picture.marks)]
    for word in " ".join(texts).split():
        assert word in kept, f"{name}.svg lacks {word!r}: make pictures"


@pytest.mark.parametrize("path", sorted(DOCS.rglob("*.svg")), ids=lambda path: path.stem)
def test_a_picture_that_is_kept_is_small_and_loads_nothing(path: Path) -> None:
    kept = path.read_text()
    assert len(kept) < 60_000
    assert not re.search(r"(href|src)=[\"']https?:|@import|url\([\"']?https?:", kept)


@pytest.mark.parametrize("name", lessons.LESSONS)
def test_every_lesson_has_a_page(name: str) -> None:
    text = (LEARN / f"{name}.md").read_text()
    assert f"]({name}.svg)" in text and "*In one sentence:" in text
    lines = text.split("## Three lines to try")[1].split("```python\n")[1].split("```")[0].splitlines()
    assert sum(line.startswith(">>>") for line in lines) >= 3
    assert f"({name}.md)" in (LEARN / "index.md").read_text()


def lines(picture: Picture) -> list[dict[float, float]]:
    return [dict(mark.points) for mark in picture.marks if isinstance(mark, Line)]


def bars(picture: Picture) -> list[dict[str, float]]:
    return [dict(mark.bars) for mark in picture.marks if isinstance(mark, Bars)]


def test_a_coin_toss_has_the_ratio_that_it_names() -> None:
    yes, no = bars(lessons.coin_toss(0.9))
    assert yes["says yes"] / no["says yes"] == pytest.approx(9)
    assert "9 times" in lessons.coin_toss(0.9).caption


@pytest.mark.parametrize("law", [(0.5, 0.3, 0.2), (0.9, 0.05, 0.05), (1 / 3, 1 / 3, 1 / 3)])
def test_corners_of_a_neighbourhood_are_at_the_limit(law: tuple[float, float, float]) -> None:
    """Every corner has ratios within e^epsilon, two of them at a limit."""
    picture = lessons.simplex(law, epsilons=(0.5,))
    mark = picture.marks[1]
    assert isinstance(mark, Line) and len(mark.points) >= 4 and mark.points[0] == mark.points[-1]
    for x, third in mark.points:
        other = (1 - x - third / 2, x - third / 2, third)
        losses = [abs(math.log(q / p)) for p, q in zip(law, other, strict=True)]
        assert max(losses) <= 0.5 + 1e-9
        assert sum(loss > 0.5 - 1e-9 for loss in losses) >= 2


def test_both_kinds_of_noise_have_the_deviation_that_is_named() -> None:
    laplace, gaussian = (
        sum(mass * noise**2 for noise, mass in law.items()) for law in lines(lessons.laplace_and_gaussian(3))
    )
    assert gaussian == pytest.approx(9, rel=0.01)
    assert 8 < laplace < 9, "but for the long tails, which are not drawn"


def test_delta_falls_and_the_loss_is_a_law() -> None:
    for curve in lines(lessons.delta()):
        values = [curve[epsilon] for epsilon in sorted(curve)]
        assert values == sorted(values, reverse=True)
    for law in lines(lessons.privacy_loss()):
        assert sum(law.values()) == pytest.approx(1, abs=1e-3)
        assert sum(loss * mass for loss, mass in law.items()) > 0, "on average an output speaks for the truth"


def test_adding_up_rho_lies_between_exact_and_naive() -> None:
    naive, rho, exact = lines(lessons.zcdp(most=10))
    for releases in list(naive)[1:]:
        assert exact[releases] < rho[releases] < naive[releases]


def test_renyi_divergence_rises_with_the_order_up_to_epsilon() -> None:
    laplace, gaussian, limit = lines(lessons.renyi())
    for curve in (laplace, gaussian):
        assert list(curve.values()) == sorted(curve.values())
    assert max(laplace.values()) < limit[1.0]


def test_groups_and_series_add_up_and_parallel_does_not() -> None:
    series, parallel = bars(lessons.composition(0.5, counts=(1, 3)))
    assert series == {"1": 0.5, "3": 1.5} and parallel == {"1": 0.5, "3": 0.5}
    (belief,) = lines(lessons.group_privacy((0.5,), most=3))
    for size, most in belief.items():
        assert most == pytest.approx(1 / (1 + math.exp(-0.5 * size)))


def test_post_processing_moves_what_is_below_zero_to_zero() -> None:
    noisy, raised = bars(lessons.post_processing(count=2))
    assert raised["-1"] == 0 and raised["3"] == noisy["3"]
    assert raised["0"] > sum(noisy[output] for output in ("-4", "-3", "-2", "-1", "0"))
    assert raised["0"] + sum(raised[str(output)] for output in range(1, 9)) == pytest.approx(1, abs=0.05)


def test_beliefs_change_by_the_odds_that_epsilon_allows() -> None:
    after, before = lines(lessons.pure((1.0,)))
    for prior in list(after)[1:-1]:
        assert after[prior] / (1 - after[prior]) == pytest.approx(math.e * prior / (1 - prior))
    assert before == {0.0: 0.0, 1.0: 1.0}


def test_the_best_test_is_that_of_two_bell_curves() -> None:
    normal = NormalDist()
    found, _ = lines(lessons.gaussian((1.0,)))
    for accused in list(found)[1:-1]:
        assert found[accused] == pytest.approx(normal.cdf(normal.inv_cdf(accused) + 1), rel=1e-4)


def test_individual_noise_gives_away_who_is_missing() -> None:
    every, without = bars(lessons.individual())
    assert every["2"] == 1 and sum(every.values()) == 1
    assert without["3"] > 0.05, "and with everybody it is never 3"


def test_local_noise_shrinks_with_the_root_and_central_noise_with_the_number() -> None:
    alone, trusted = lines(lessons.local(epsilon=1, people=(100, 10_000)))
    assert alone[100] / alone[10_000] == pytest.approx(10)
    assert trusted[100] / trusted[10_000] == pytest.approx(100)
    truth = math.e / (1 + math.e)  # each report is a coin; half of the people mean yes
    assert alone[100] == pytest.approx(math.sqrt(truth * (1 - truth) / 100) / (2 * truth - 1), rel=1e-6)


def test_shuffling_helps_with_people_and_never_harms() -> None:
    (after,) = lines(lessons.shuffled((2,), people=(10, 150, 300)))
    assert 2 >= after[10] > 1.99 and after[10] > after[150] > after[300]


def test_every_change_of_measure_loses_something() -> None:
    for promise in bars(lessons.implications()):
        start, *changed = promise.values()
        assert all(start < each for each in changed)
