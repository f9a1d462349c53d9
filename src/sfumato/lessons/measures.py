"""The measures of privacy: what each promises to a person, and which of them implies which."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from statistics import median_low

import numpy as np

from sfumato.core import (
    GaussianDP,
    IndividualPrivacy,
    LaplaceMechanism,
    PureDP,
    RandomizedResponseMechanism,
    TradeOff,
    ZeroConcentratedDP,
)
from sfumato.core.arguments import Number, exact
from sfumato.core.individual import local_sensitivity
from sfumato.core.measures import Guarantee
from sfumato.lessons.noise import laplace_of, two_kinds
from sfumato.local.shuffling import central_epsilon
from sfumato.plots import Axis, Bars, Line, Picture

__all__ = ["delta", "gaussian", "implications", "individual", "local", "pure", "renyi", "shuffled", "zcdp"]

_EPSILONS = tuple(float(value) for value in np.linspace(0.0, 4.0, 61))
_SHARES = tuple(place / 50 for place in range(51))
_DELTA = Fraction(1, 10**6)


def pure(epsilons: tuple[float, ...] = (0.1, 1.0, 3.0)) -> Picture:
    """Draw pure DP: what anybody may believe about a person afterwards, against what they believed before.

    >>> round(dict(pure().marks[1].points)[0.5], 4)  # from even odds, at epsilon 1
    0.7311
    """

    def after(epsilon: float) -> Line:
        curve = TradeOff.of_approximate(epsilon)
        return Line.curve(f"after, at most: epsilon {epsilon:g}", curve.posterior, _SHARES)

    return Picture(
        title="What one may believe about a person",
        caption="Whatever is published, the odds change by a factor of e to the epsilon at most. Who knew "
        "nothing learns little, if epsilon is small; who was nearly sure stays nearly sure.",
        x=Axis(title="belief before", percent=True, low=0, high=1),
        y=Axis(title="belief after", percent=True, low=0, high=1),
        marks=(
            *(after(epsilon) for epsilon in epsilons),
            Line(label="nothing was learned", points=((0.0, 0.0), (1.0, 1.0)), dashed=True),
        ),
    )


def delta(deviation: int = 2) -> Picture:
    """Draw approximate DP: delta against epsilon, for Laplace and Gaussian noise of one standard deviation.

    >>> laplace, gaussian = delta().marks
    >>> gaussian.points[0][1] < laplace.points[0][1]  # at epsilon 0 both are above none
    True
    """
    floor = 1e-9
    return Picture(
        title="Delta: what epsilon does not cover",
        caption="A mechanism has a delta for every epsilon. Laplace noise reaches zero at its epsilon; "
        "Gaussian noise never does, and soon is far below anything that matters.",
        x=Axis(title="epsilon"),
        y=Axis(title="delta", log=True, low=floor, high=1),
        marks=tuple(
            Line(
                label=label,
                points=tuple((e, chance) for e in _EPSILONS if (chance := event.delta(e)) > floor),
            )
            for label, event in two_kinds(deviation)
        ),
    )


def gaussian(mus: tuple[float, ...] = (0.25, 1.0, 2.0)) -> Picture:
    """Draw Gaussian DP: how many participants a test can find, against how many others it accuses.

    >>> round(dict(gaussian().marks[1].points)[0.1], 3)  # mu is 1, and 1 of 10 others is accused
    0.389
    """

    def found(mu: float) -> Line:
        return Line.curve(f"the best test: mu {mu:g}", TradeOff.of_mu(mu).tpr, _SHARES)

    return Picture(
        title="The best test whether a person took part",
        caption="The whole curve is the promise: no test lies above it. It is the curve of one draw from a "
        "bell curve, whose centre is 0 or mu.",
        x=Axis(title="accused, of those who did not take part", percent=True, low=0, high=1),
        y=Axis(title="found, of those who did", percent=True, low=0, high=1),
        marks=(
            *(found(mu) for mu in mus),
            Line(label="guessing", points=((0.0, 0.0), (1.0, 1.0)), dashed=True),
        ),
    )


def zcdp(sigma: int = 20, most: int = 100) -> Picture:
    """Draw what up to `most` Gaussian releases cost together: adding epsilon, adding rho, and exactly.

    >>> added, rho, exact = (mark.points[-1][1] for mark in zcdp(most=10).marks)
    >>> exact < rho < added
    True
    """
    rho, mu, chance = Fraction(1, 2 * sigma**2), Fraction(1, sigma), Fraction(1, 10**6)
    counts = sorted({round(most ** (i / 16)) for i in range(17)})

    def naive(k: int) -> float:
        return k * float(GaussianDP(mu=mu).to_approximate(chance / k).epsilon)

    def by_rho(k: int) -> float:
        return float(ZeroConcentratedDP(rho=k * rho).to_approximate(chance).epsilon)

    def exactly(k: int) -> float:
        root = Fraction(math.sqrt(k)).limit_denominator(10**9)
        return float(GaussianDP(mu=mu * root).to_approximate(chance).epsilon)

    ways: tuple[tuple[str, Callable[[int], float]], ...] = (
        ("adding up epsilon", naive),
        ("adding up rho (zCDP)", by_rho),
        ("exactly", exactly),
    )
    return Picture(
        title="Rho adds up, and stays small",
        caption=f"Gaussian noise of deviation {sigma}, all at delta one in a million. Adding up rho is "
        "simple, and close to exact; adding up epsilon is neither.",
        x=Axis(title="releases"),
        y=Axis(title="epsilon of all together", low=0),
        marks=tuple(Line.curve(label, way, counts) for label, way in ways),
    )


def renyi(deviation: int = 2) -> Picture:
    """Draw the Renyi divergence of every order, for Laplace and Gaussian noise of one standard deviation.

    >>> laplace, gaussian = renyi().marks[:2]
    >>> laplace.points[-1][1] < gaussian.points[-1][1]  # at high orders the bounded loss wins
    True
    """
    limit = float(laplace_of(deviation).epsilon())
    orders = tuple(float(order) for order in np.linspace(1.05, 20.0, 60))
    return Picture(
        title="Renyi divergence, order by order",
        caption="An average of the loss that counts large losses the more, the higher the order. That of "
        "Gaussian noise rises for ever; that of Laplace noise has epsilon as its limit. Divergences of one "
        "order add up.",
        x=Axis(title="order", low=1, high=20),
        y=Axis(title="divergence", low=0),
        marks=(
            *(Line.curve(label, event.renyi, orders) for label, event in two_kinds(deviation)),
            Line.flat("epsilon of the Laplace noise", limit, (1.0, 20.0), dashed=True),
        ),
    )


def individual(epsilon: Number = 1) -> Picture:
    """Draw individual DP: a median with noise for this data set alone, and the same without one person.

    >>> with_person, without = individual().marks
    >>> dict(with_person.bars)["2"], round(dict(without.bars)["2"], 3)
    (1.0, 0.071)
    """
    ages, outputs = (2, 2, 2, 9, 9), range(-4, 9)

    def law(rows: Sequence[int]) -> tuple[tuple[str, float], ...]:
        middle = median_low(rows)
        scale = IndividualPrivacy(epsilon=exact(epsilon, "epsilon")).scale(
            local_sensitivity(median_low, rows, range(10))
        )
        if scale == 0:
            return tuple((str(output), float(output == middle)) for output in outputs)
        noisy = LaplaceMechanism(scale)
        return tuple((str(output), float(noisy.pmf(output, middle))) for output in outputs)

    return Picture(
        title="Noise that fits the data tells about the data",
        caption="The median of five ages, 2, 2, 2, 9 and 9. No single person can move it, so it is published "
        "without noise. Without one of those aged 2 somebody could: noise is added. Any output but 2 gives "
        "away that she is missing.",
        x=Axis(title="published median"),
        y=Axis(title="probability", percent=True, low=0, high=1),
        marks=(
            Bars(label="all five", bars=law(ages)),
            Bars(label="without one person aged 2", bars=law(ages[1:])),
        ),
    )


def local(epsilon: Number = 1, people: tuple[int, ...] = (100, 1_000, 10_000, 100_000, 1_000_000)) -> Picture:
    """Draw local DP: the error of a share of half the people, if nobody is trusted and if a collector is.

    >>> alone, trusted = (mark.points[0][1] for mark in local().marks)
    >>> round(alone, 3), round(trusted, 4)  # of a hundred people
    (0.096, 0.0136)
    """
    coin = RandomizedResponseMechanism.from_epsilon(epsilon)
    deviation = math.sqrt(LaplaceMechanism.from_epsilon(epsilon).law.exact_variance)
    return Picture(
        title="The price of trusting nobody",
        caption=f"The standard error of a share, at epsilon {float(epsilon):g} for every person. Noise in "
        "every answer shrinks with the root of the number of people; noise in the total with the number.",
        x=Axis(title="people", log=True),
        y=Axis(title="standard error", percent=True, log=True),
        marks=(
            Line.curve(
                "local: everybody adds noise", lambda n: math.sqrt(coin.variance(Fraction(1, 2), n)), people
            ),
            Line.curve("central: a trusted collector adds noise", lambda n: deviation / n, people),
        ),
    )


def shuffled(
    epsilons: tuple[float, ...] = (2, 4),
    people: tuple[int, ...] = (30, 100, 150, 300, 1_000, 1_500, 3_000, 10_000),
) -> Picture:
    """Draw what shuffling makes of a local epsilon, against the number of honest people.

    >>> (mark,) = shuffled((2,), people=(30, 1_000)).marks
    >>> [round(epsilon, 2) for _, epsilon in mark.points]
    [2.0, 0.55]
    """

    def hidden(epsilon: float) -> Line:
        label = f"each report by itself: epsilon {epsilon:g}"
        return Line.curve(label, lambda n: central_epsilon(epsilon, n, _DELTA), people)

    return Picture(
        title="Safety in numbers, if the shuffler is honest",
        caption="The epsilon of all reports together, in random order, at delta one in a million. With few "
        "people nothing is gained; with many, each hides among the others.",
        x=Axis(title="honest people", log=True),
        y=Axis(title="epsilon after shuffling", log=True),
        marks=tuple(map(hidden, epsilons)),
    )


def implications(epsilon: Number = 1, mu: Number = Fraction(1, 2), order: int = 8) -> Picture:
    """Draw the epsilon that is left of two promises after each was changed into other measures.

    >>> pure_promise, gaussian_promise = implications().marks
    >>> round(gaussian_promise.bars[0][1], 3)
    2.254
    """
    promise, bell = PureDP(epsilon=exact(epsilon, "epsilon")), GaussianDP(mu=exact(mu, "mu"))

    def left(guarantee: Guarantee) -> float:
        return float(guarantee.to_approximate(_DELTA).epsilon)

    def changed(start: PureDP | GaussianDP) -> tuple[tuple[str, float], ...]:
        return (
            ("Gaussian", left(start.to_gaussian())),
            ("zCDP", left(start.to_zero_concentrated())),
            (f"Renyi of order {order}", left(start.to_renyi(order))),
        )

    return Picture(
        title="Changing the measure loses something",
        caption="One promise, read as another measure and then as epsilon at delta one in a million. Keep "
        "what the mechanism did, and convert once, at the end.",
        x=Axis(title="read as"),
        y=Axis(title="epsilon that is left", low=0),
        marks=(
            Bars(
                label=f"pure, epsilon {float(epsilon):g}", bars=(("pure", left(promise)), *changed(promise))
            ),
            Bars(label=f"Gaussian, mu {float(mu):g}", bars=changed(bell)),
        ),
    )
