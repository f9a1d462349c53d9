"""What every law of noise promises, for all of them: a new law is tested by being registered."""

from __future__ import annotations

import ast
import itertools
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from sfumato.core.noise_law import NoiseLaw, noise_law, noise_laws
from sfumato.errors import InvalidArgument

F = Fraction
SOURCE = Path(__file__).parent.parent.parent / "src" / "sfumato"
LAWS = [kind(parameter) for kind in noise_laws() for parameter in (F(1, 3), F(2), F(37, 2), F(80))]


def wide(law: NoiseLaw) -> int:
    return math.ceil(45 * law.deviation) + 30


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_masses_tails_and_half_widths_are_of_one_law(law: NoiseLaw) -> None:
    masses = np.array([law.mass(x) for x in range(wide(law))])
    assert masses[0] + 2 * math.fsum(masses[1:]) == pytest.approx(1, abs=1e-11)
    assert (np.diff(masses) <= 0).all()
    for gap in (1, 2, math.ceil(2 * law.deviation), math.ceil(6 * law.deviation)):
        exact = math.fsum(masses[gap:])
        assert exact * (1 - 1e-11) <= law.tail(gap) <= exact * (1 + 1e-9) + 1e-15
    for level in (0.5, 0.95, 0.999):
        width = law.half_width(level)
        assert 2 * math.fsum(masses[width + 1 :]) <= (1 - level) * (1 + 1e-9)
        assert width == 0 or 2 * math.fsum(masses[width:]) > (1 - level) * (1 - 1e-9)
    for x, y in ((0, 1), (3, -2), (5, 5)):
        assert float(law.loss(x, y)) == pytest.approx(math.log(law.mass(x) / law.mass(y)), abs=1e-9)


@pytest.mark.parametrize("times", [2, 7, 100])
@pytest.mark.parametrize("law", LAWS, ids=str)
def test_half_widths_of_sums_hold_and_are_tight(law: NoiseLaw, times: int) -> None:
    """Against the exact law of the sum, by its transform; small noise may be rounded up by more."""
    size = 1 << 18
    places = np.minimum(np.arange(size), size - np.arange(size))
    masses = np.zeros(size)
    reach = min(wide(law), size // 2)
    masses[:reach] = [law.mass(x) for x in range(reach)]
    masses[size - reach + 1 :] = masses[1:reach][::-1]
    exact = np.fft.irfft(np.fft.rfft(masses) ** times, size)
    for miss in (F(1, 2), F(1, 20), F(1, 10**6)):
        width = law.sum_half_width(times, miss)
        assert exact[places > width].sum() <= float(miss) * (1 + 1e-9) + 1e-12
        if law.variance >= 4:
            tight = math.floor(width * 0.98) - 1
            assert tight <= 0 or exact[places > tight].sum() > float(miss)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_variances_are_of_that_law(law: NoiseLaw) -> None:
    found = 2 * math.fsum(x * x * law.mass(x) for x in range(1, wide(law)))
    assert law.exact_variance == pytest.approx(found, rel=1e-9)
    assert found <= float(law.variance) * (1 + 1e-9)
    assert law.deviation == pytest.approx(math.sqrt(law.variance))


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_draws_have_that_law(law: NoiseLaw) -> None:
    """False alarm 1e-9 in all; power: a parameter off by a twentieth."""
    drawn = law.draw(100_000)
    far = max(2, math.ceil(2 * law.deviation))
    edges = np.unique(np.linspace(-far, far, 12).round())
    masses = {x: law.mass(x) for x in range(-far, far + 1)}
    bins = [math.fsum(masses[x] for x in range(int(a), int(b))) for a, b in itertools.pairwise(edges)]
    counts = [((drawn >= a) & (drawn < b)).sum() for a, b in itertools.pairwise(edges)]
    chances = np.array([*bins, 1 - math.fsum(bins)])
    seen = np.array([*counts, len(drawn) - sum(counts)])
    assert stats.chisquare(seen, chances * len(drawn), sum_check=False).pvalue > 1e-9 / len(LAWS)
    assert type(law.draw()) is int


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("shift", [1, 3])
def test_events_cover_the_loss_of_a_shift(law: NoiseLaw, shift: int) -> None:
    """The hockey-stick divergence of the law and its shift, summed up, is at most the event's delta."""
    event, span = law.event(shift), range(-wide(law), wide(law))
    for epsilon in (0.0, 0.1, 0.7):
        apart = math.fsum(max(0.0, law.mass(x) - math.exp(epsilon) * law.mass(x - shift)) for x in span)
        assert apart <= event.delta(epsilon) * (1 + 1e-9) + 1e-12
    if law.pure:
        assert event.epsilon() == law.norm(shift, shift**2) / law.parameter
        assert law.choice(shift, F(1, 4)) == event.epsilon() / 4


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_shapes_of_cost(law: NoiseLaw) -> None:
    """Scaling changes nothing, joint events cover their parts, and divided shifts do not exceed the whole."""
    assert law.scaled(7).event(14).rho() == pytest.approx(float(law.event(2).rho()), rel=0.2)
    several = [1, 2, 2]
    joint = law.joint_event(l1=sum(several), l2_squared=sum(shift**2 for shift in several))
    assert joint.rho() >= sum(F(law.event(shift).rho()) for shift in several) * (1 - F(1, 10**9))
    for number in (1, 2, 3, 10):
        part = law.divided(1000, number)
        assert law.norm(number * part, number * part**2) <= law.norm(1000, 1000**2)
        assert law.norm(number * (part + 1), number * (part + 1) ** 2) > law.norm(1000, 1000**2)
    halves = [F(law.share(F(1, 2)).event(1).rho()) for _ in range(2)]
    assert sum(halves) <= F(law.event(1).rho()) * (1 + F(1, 10**6))
    groups = 4
    most = F(law.joint_event(l1=groups, l2_squared=groups).rho())
    for shown in range(groups + 1):
        rest = law.widened(groups).event(groups - shown).rho() if shown < groups else 0
        assert shown * F(law.event(1).rho()) + F(rest) <= most * (1 + F(1, 10**9))


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_stored_laws_come_back(law: NoiseLaw) -> None:
    assert noise_law(law.name, law.parameter) == law
    chance = 0.03
    z = np.array([law.standard_quantile(chance)])
    assert law.standard_tail(z)[0] == pytest.approx(chance, rel=1e-6)


def test_unknown_noise_is_refused() -> None:
    with pytest.raises(InvalidArgument, match=r"noise must be .*laplace.* got .uniform."):
        noise_laws("uniform")
    with pytest.raises(InvalidArgument):
        noise_law("laplace", F(0))


def asks(text: str) -> list[int]:
    """Return the lines that compare something with the name of a law."""
    names = {law.name for law in noise_laws()}
    found = []
    for node in ast.walk(ast.parse(text)):
        compared = [node.left, *node.comparators] if isinstance(node, ast.Compare) else []
        compared += [node.value] if isinstance(node, ast.MatchValue) else []
        constants = [leaf for part in compared for leaf in ast.walk(part) if isinstance(leaf, ast.Constant)]
        found += [leaf.lineno for leaf in constants if leaf.value in names]
    return found


@pytest.mark.long
def test_nothing_asks_which_law_it_has() -> None:
    assert asks('if kind == "laplace": pass') and asks('match kind:\n    case "gaussian": pass')
    for path in SOURCE.rglob("*.py"):
        assert not asks(path.read_text()), path
