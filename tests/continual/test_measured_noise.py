"""The noise of a priced stream, drawn as `advance` draws it: running totals vary by sigma^2 S_n S_t."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import chi2, norm

import sfumato as sf
from sfumato.continual.correlated_noise import CorrelatedNoise
from sfumato.continual.factorisation import BITS, Factorisation
from sfumato.continual.pricing import PricedStream
from sfumato.continual.rates import Buffers, buffers
from sfumato.continual.series import total_deviations
from sfumato.core.arguments import FloatArray
from tests.continual.visits import database, stream

FALSE_ALARM = 1e-9


def priced(horizon: int) -> tuple[PricedStream, float]:
    """Return a stream of a count, and the deviation sigma of one release of the same epsilon."""
    db = database([], columns={"place": sf.one_of("a"), "cost": sf.between(0, 10)})
    asked = stream(db, "SELECT COUNT(*) AS n FROM visits", horizon=horizon)
    return asked.priced(), asked.question.priced().costs[0].noises[0].law.deviation


def drawn(
    stream: PricedStream, factorisation: Factorisation | Buffers, many: int, periods: int
) -> FloatArray:
    """Return the noise of many streams, period by period, in units."""
    [measure] = stream.laws
    noise = CorrelatedNoise(factorisation)
    numbers = range(1, periods + 1)
    return np.array(
        [
            noise.next(stream.fresh(measure, at, many)).astype(float) / stream.steps(measure, at)
            for at in numbers
        ]
    )


def column(horizon: int) -> FloatArray:
    """Return c_0 = 1, c_k = c_(k-1) (2k - 1) / (2k)."""
    later = [(2 * k - 1) / (2 * k) for k in range(1, horizon)]
    return np.cumprod([1.0, *later])


def disagreements(noise: FloatArray, sigma: float) -> list[str]:
    """Return what of the theory the noise of many streams contradicts, with a false alarm of 1e-9 in all.

    The squares of many normal totals of known variance have the chi-square law, at each t. The whole stream
    is made white by C: what is left has no correlation at any lag, and the variance sigma^2 S_n throughout.
    A sum of p products has the logarithmic moment s^2 p / 2 + s^4 p at most, for the small s that matter:
    with p >= 4000 a bound that is 5% wider than the normal one is passed no more often.
    """
    horizon, many = noise.shape
    c = column(horizon)
    sums = np.cumsum(c**2)  # S_t
    each = FALSE_ALARM / (3 * horizon)
    low, high = chi2.ppf(each / 2, many), chi2.isf(each / 2, many)
    found = []
    for t, totals in enumerate(np.cumsum(noise, axis=0), 1):
        squares = float((totals**2).sum()) / (sigma**2 * sums[-1] * sums[t - 1])
        if not low < squares < high:
            found.append(f"variance at t = {t} is {squares / many:.3f} of what it should be")
    white = np.array([c[t::-1] @ noise[: t + 1] for t in range(horizon)]) / (sigma * math.sqrt(sums[-1]))
    for lag in range(1, horizon):
        products = (white[lag:] * white[:-lag]).sum()
        pairs = (horizon - lag) * many
        if abs(products) > norm.isf(each / 2) * math.sqrt(pairs) * 1.05:
            found.append(f"correlation at lag {lag}: {products / pairs:.4f}")
    if not chi2.ppf(each, white.size) < (white**2).sum() < chi2.isf(each, white.size):
        found.append("the noise that is left has another variance")
    return found


@pytest.mark.parametrize(("horizon", "many"), [(32, 4_000), pytest.param(365, 4_000, marks=pytest.mark.soak)])
def test_totals_vary_as_the_theory_says(horizon: int, many: int) -> None:
    """At every t; false alarm 1e-9. Power: a variance off by 15% at one t, a coefficient off by 1/16."""
    asked, sigma = priced(horizon)
    assert disagreements(drawn(asked, asked.factorisation, many, horizon), sigma) == []


@pytest.mark.parametrize("planted", ["coefficient", "sigma"])
def test_planted_bugs_are_seen(planted: str) -> None:
    """One wrong coefficient of 32; or noise that was not raised by S_n."""
    asked, sigma = priced(32)
    assert isinstance(asked.factorisation, Factorisation)
    first, second, *rest = asked.factorisation.coefficients
    wrong = Factorisation((first, second - (1 << BITS - 4), *rest))
    if planted == "coefficient":
        assert any("lag 1:" in one for one in disagreements(drawn(asked, wrong, 4_000, 32), sigma))
    else:
        length = math.sqrt(asked.factorisation.l2_squared(asked.participation))
        noise = drawn(asked, asked.factorisation, 4_000, 32) / length
        assert len(disagreements(noise, sigma)) >= 32


def test_the_largest_error_of_a_year() -> None:
    """At most 2.95 sigma at n = 365, beside 19.1 for fresh noise each day at the same cost."""
    asked, sigma = priced(365)
    [(measure, law)] = asked.laws.items()
    errors = law.deviation / asked.steps(measure) / sigma * total_deviations(asked.factorisation, 365)
    sums = np.cumsum(column(365) ** 2)
    assert errors == pytest.approx(np.sqrt(sums[-1] * sums), rel=1e-5)
    assert 2.94 < errors.max() < 2.95 < 19.1 < math.sqrt(365)


def test_totals_of_a_stream_without_an_end_vary_as_the_theory_says() -> None:
    """At every t, also past the design horizon, where steps are finer; false alarm 1e-9."""
    many, periods = 4_000, 70
    db = database([], columns={"place": sf.one_of("a"), "cost": sf.between(0, 10)})
    asked = stream(db, "SELECT COUNT(*) AS n FROM visits", horizon=None, design=16)
    sigma = asked.question.priced().costs[0].noises[0].law.deviation
    length = math.sqrt(buffers(16).l2_squared(asked.participation))
    variances = (sigma * length * total_deviations(buffers(16), periods)) ** 2
    totals = np.cumsum(drawn(asked.priced(), buffers(16), many, periods), axis=0)
    squares = (totals**2).sum(axis=1) / variances
    each = FALSE_ALARM / (2 * periods)
    assert chi2.ppf(each, many) < squares.min() and squares.max() < chi2.isf(each, many)
