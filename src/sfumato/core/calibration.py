"""Noise from a wanted guarantee or a wanted error, and error from noise.

Scales and squared sigmas are exact fractions, rounded to the side of more noise where a formula is
irrational. Sensitivities are `Sensitivity.l1` for Laplace and `Sensitivity.l2_squared` for Gaussian noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from sfumato.core.arguments import Number, budget_quantity, count, non_negative, positive, upper_float
from sfumato.core.conversions import largest_mu, positive_delta
from sfumato.core.events.base import Event
from sfumato.core.search import bracket, largest, lower_float, round_up, smallest
from sfumato.errors import Unsupported

__all__ = [
    "analytic_sigma_squared",
    "calibrate",
    "discrete_sigma_squared",
    "discrete_sigma_squared_of_mu",
    "gaussian_error",
    "laplace_error",
    "laplace_scale",
    "laplace_scale_of_error",
    "sigma_squared_of_error",
    "sigma_squared_of_mu",
    "sigma_squared_of_rho",
    "textbook_sigma",
]

_FINE = 2.0**-40  # the relative resolution of searches over a noise scale
_WIDEST = 1e200  # the largest squared scale
_WIDEST_ERROR = 2**50  # beyond it noise swamps every count; the search for its scale would take long


def laplace_scale(l1: Number, epsilon: Number) -> Fraction:
    """Return the Laplace scale whose loss is at most epsilon everywhere: l1 / epsilon, exactly.

    Theorem: Dwork, McSherry, Nissim, Smith (2006).

    >>> laplace_scale(3, 0.1)
    Fraction(30, 1)
    """
    return positive(l1, "l1") / budget_quantity(epsilon, "epsilon")


def sigma_squared_of_rho(l2_squared: Number, rho: Number) -> Fraction:
    """Return the squared sigma of rho-zCDP: l2^2 / (2 rho), exactly; discrete or continuous.

    Theorem: Bun and Steinke (2016); for integer noise Canonne, Kamath, Steinke (2020).

    >>> sigma_squared_of_rho(1, 0.125)
    Fraction(4, 1)
    """
    return positive(l2_squared, "l2_squared") / (2 * budget_quantity(rho, "rho"))


def sigma_squared_of_mu(l2_squared: Number, mu: Number) -> Fraction:
    """Return the squared sigma of mu-Gaussian DP: (l2 / mu)^2, exactly; for continuous noise.

    Theorem: Dong, Roth, Su (2022), Theorem 2.7. Integer noise needs a little more:
    `discrete_sigma_squared_of_mu`.

    >>> sigma_squared_of_mu(1, 0.5)
    Fraction(4, 1)
    """
    return positive(l2_squared, "l2_squared") / budget_quantity(mu, "mu") ** 2


def analytic_sigma_squared(l2_squared: Number, epsilon: Number, delta: Number) -> Fraction:
    """Return the smallest squared sigma of continuous Gaussian noise that is (epsilon, delta)-private.

    Theorem: the analytic Gaussian mechanism (Balle and Wang 2018). Rounds: up, by about 1e-12.

    >>> round(math.sqrt(analytic_sigma_squared(1, 1, 1e-5)), 4)
    3.7306
    """
    mu = Fraction(largest_mu(epsilon, delta))
    return _finite(upper_float(positive(l2_squared, "l2_squared") / mu**2))


def textbook_sigma(l2: Number, epsilon: Number, delta: Number) -> float:
    """Return the textbook sigma, l2 sqrt(2 ln(1.25/delta)) / epsilon: simple, and more noise than needed.

    Theorem: Dwork and Roth (2014), Theorem A.1. Assumes: epsilon < 1; the formula is wrong
    above, so it is refused there. Rounds: up.

    >>> round(textbook_sigma(1, 0.5, 1e-5), 4)
    9.6896
    """
    loss, failure = budget_quantity(epsilon, "epsilon"), positive_delta(delta)
    if loss >= 1:
        raise Unsupported(
            "the textbook sigma is proved for epsilon below 1 only",
            place="epsilon",
            hints=("analytic_sigma_squared holds for every epsilon, and needs less noise",),
        )
    factor = math.sqrt(2 * math.log(1.25 / failure))
    return round_up(float(_finite(upper_float(positive(l2, "l2") / loss))) * factor)


def discrete_sigma_squared(sensitivity: int, epsilon: Number, delta: Number) -> Fraction:
    """Return about the smallest squared sigma of integer Gaussian noise that is (epsilon, delta)-private.

    Theorem: the exact delta of the discrete Gaussian (Canonne, Kamath, Steinke 2020, Theorem 7).
    Rounds: up: the result itself was tested.

    >>> round(float(discrete_sigma_squared(1, 1, 1e-5)), 2)
    13.99
    """
    from sfumato.core.events import DiscreteGaussian

    shift, failure = count(sensitivity, "sensitivity"), positive_delta(delta)
    loss = lower_float(budget_quantity(epsilon, "epsilon"))

    def private(square: float) -> bool:
        return DiscreteGaussian(sigma_squared=Fraction(square), sensitivity=shift).delta(loss) <= failure

    return _least(private, float(analytic_sigma_squared(shift**2, epsilon, delta)))


def discrete_sigma_squared_of_mu(sensitivity: int, mu: Number) -> Fraction:
    """Return about the smallest squared sigma of integer Gaussian noise that is mu-Gaussian DP.

    Theorem: the mu of a discrete Gaussian is certified threshold by threshold (`DiscreteGaussian.mu`).
    Rounds: up: the result itself was tested.

    >>> float(discrete_sigma_squared_of_mu(1, 0.5)) >= 4  # that of continuous noise is 4
    True
    """
    from sfumato.core.events import DiscreteGaussian

    shift, distance = count(sensitivity, "sensitivity"), budget_quantity(mu, "mu")

    def private(square: float) -> bool:
        return DiscreteGaussian(sigma_squared=Fraction(square), sensitivity=shift).mu() <= distance

    return _least(private, upper_float(sigma_squared_of_mu(shift**2, distance)))


def calibrate(
    make_event: Callable[[float], Event],
    *,
    epsilon: Number,
    delta: Number,
    times: int = 1,
    start: float = 1.0,
    resolution: float = 1e-6,
) -> float:
    """Return about the least noise for which a fixed batch of `times` events is (epsilon, delta)-private.

    `make_event` builds the event from an amount of noise; more noise must cost less. The search
    begins at `start` and stops within a relative `resolution`.

    Theorem: composition of privacy-loss distributions. Assumes: the events are fixed in advance.
    Rounds: up: the result itself was tested.

    >>> from sfumato.core import events
    >>> round(calibrate(lambda sigma: events.Gaussian(sigma=sigma), epsilon=1, delta=1e-6, times=52), 1)
    30.5
    """
    from sfumato.core.composition import Composition

    number, failure = count(times, "times"), positive_delta(delta)
    target = lower_float(budget_quantity(epsilon, "epsilon"))

    def private(noise: float) -> bool:
        return Composition([(make_event(noise), number)]).delta(target) <= failure

    fine, first = upper_float(positive(resolution, "resolution")), upper_float(positive(start, "start"))
    return smallest(private, *bracket(private, float(_finite(first))), fine)


def laplace_error(scale: Number, level: float = 0.95) -> int:
    """Return the smallest w such that integer Laplace noise stays within +-w with probability `level`.

    >>> laplace_error(2), laplace_error(2, level=0.5)
    (6, 1)
    """
    from sfumato.core.laplace import LaplaceMechanism

    return int(LaplaceMechanism(scale).error(level))


def gaussian_error(sigma_squared: Number, level: float = 0.95) -> int:
    """Return the smallest w such that integer Gaussian noise stays within +-w with probability `level`.

    >>> gaussian_error(100), gaussian_error(100, level=0.5)
    (20, 7)
    """
    from sfumato.core.gaussian import GaussianMechanism

    return int(GaussianMechanism(sigma_squared=sigma_squared).error(level))


def laplace_scale_of_error(error: Number, level: float = 0.95) -> Fraction:
    """Return about the largest Laplace scale whose error at `level` is within `error`.

    The epsilon is then l1 / scale. Rounds: down, to less error.

    >>> scale = laplace_scale_of_error(10)
    >>> round(float(scale), 2), laplace_error(scale)
    (3.52, 10)
    """
    return _most(lambda scale: laplace_error(scale, level), error)


def sigma_squared_of_error(error: Number, level: float = 0.95) -> Fraction:
    """Return about the largest squared sigma whose error at `level` is within `error`.

    The rho is then l2^2 / (2 sigma^2). Rounds: down, to less error.

    >>> square = sigma_squared_of_error(10)
    >>> round(float(square), 1), gaussian_error(square)
    (28.8, 10)
    """
    return _most(lambda square: gaussian_error(square, level), error)


def _finite(noise: float) -> Fraction:
    """Return an amount of noise that floats can work with."""
    if not noise <= _WIDEST:
        raise Unsupported("no amount of noise reaches the target", hints=("ask for less privacy",))
    return Fraction(noise)


def _least(private: Callable[[float], bool], start: float) -> Fraction:
    return Fraction(smallest(private, *bracket(private, float(_finite(start))), _FINE))


def _most(error_of: Callable[[float], int], error: Number) -> Fraction:
    wanted = min(non_negative(error, "error"), Fraction(_WIDEST_ERROR))

    def fits(noise: float) -> bool:
        return error_of(noise) <= wanted

    beyond, _ = bracket(lambda inverse: fits(1 / inverse), 1 / max(1.0, float(wanted)))
    return Fraction(largest(fits, 1 / (2 * beyond), 1 / beyond, _FINE))
