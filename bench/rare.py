"""Sampled Gaussians at every rate: upper and lower bounds on epsilon, beside dp-accounting.

    python bench/rare.py            the corners of the range, with an independent lower bound
    python bench/rare.py --rival    and what dp-accounting says, where it answers (slow)

Range: rates 1e-9 to 0.5, sigma 0.3 to 20, 2 to 1e9 steps, delta 1e-5 and 1e-12. Bounds are to be within 1% of
each other, or within FLOOR where epsilon is next to nothing, and both take under 2 seconds.
"""

from __future__ import annotations

import argparse
import itertools
import math
import time
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from report import Row

from sfumato.core.composition import Composition
from sfumato.core.events import Gaussian, PoissonSubsampled

__all__ = ["CORNERS", "FLOOR", "batch", "lower_bound", "rare_rows", "rival_bounds"]

RATES = ("1e-9", "1e-6", "1e-3", "0.5")
SIGMAS = ("0.3", "1", "20")
STEPS = (2, 10**3, 10**6, 10**9)
DELTAS = (1e-5, 1e-12)
FLOOR = 1e-12
"""A difference of epsilons below this is none: the counted data never shows it."""

CORNERS = tuple(itertools.product(RATES, SIGMAS, STEPS, DELTAS))
SHOWN = (("1e-6", "1", 10**6, 1e-6), ("1e-9", "1", 10**9, 1e-12), ("1e-9", "0.3", 10**9, 1e-12))
"""The rows of `make bench`."""


def batch(rate: str, sigma: str, steps: int) -> Composition:
    """Return a batch of sampled Gaussians."""
    event = PoissonSubsampled(event=Gaussian(sigma=Fraction(sigma)), rate=Fraction(rate))
    return Composition([(event, steps)])


def lower_bound(rate: str, sigma: str, steps: int, delta: float) -> float:
    """Return a lower bound on epsilon that shares nothing with the code under test.

    Of the outputs only one thing is looked at: whether any one of them lies above a threshold. That is
    post-processing, so that delta is at least P(any) - e^epsilon Q(any), for every threshold; normal tails
    give both. Good where single outputs tell something, and 0 where only their sum does.
    """
    from scipy.special import log_ndtr

    r, s = float(rate), float(sigma)
    thresholds = np.linspace(0.0, 14.0 + 1.0 / s, 4001)
    q = np.exp(log_ndtr(-thresholds))
    p = (1.0 - r) * q + r * np.exp(log_ndtr(1.0 / s - thresholds))
    any_p, any_q = -np.expm1(steps * np.log1p(-p)), -np.expm1(steps * np.log1p(-q))
    kept = (any_p > delta) & (any_q > 0.0)
    return max(0.0, float(np.max(np.log((any_p[kept] - delta) / any_q[kept]), initial=0.0)))


def rival_bounds(rate: str, sigma: str, steps: int, delta: float) -> tuple[float, float, float]:
    """Return (lower, upper, seconds) of dp-accounting's privacy-loss distributions, by its defaults."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    start = time.perf_counter()
    found = []
    for pessimistic in (False, True):
        one = pld.from_gaussian_mechanism(
            float(sigma), sampling_prob=float(rate), pessimistic_estimate=pessimistic,
            use_connect_dots=pessimistic,
        )  # fmt: skip
        found.append(float(one.self_compose(steps).get_epsilon_for_delta(delta)))
    return found[0], found[1], time.perf_counter() - start


def rare_rows() -> Iterator[Row]:
    """Return what `make bench` shows: both bounds, their seconds, and dp-accounting's."""
    for rate, sigma, steps, delta in SHOWN:
        start = time.perf_counter()
        low, high = batch(rate, sigma, steps).epsilon_bounds(delta)
        seconds = time.perf_counter() - start
        low = max(low, lower_bound(rate, sigma, steps, delta))
        name = f"{steps:.0e} Gaussians, sigma {sigma}, rate {rate}, delta {delta:.0e}"
        yield from [
            Row(name=f"{name}: upper against lower", ours=high, rival=low, unit="",
                ratio=high / low, least=1, most=1.01),
            Row(name=f"{name}: both bounds, share of 2 s", ours=seconds, rival=None, unit="s",
                ratio=seconds / 2, most=1),
        ]  # fmt: skip
        if steps <= 10**6:
            _, peer, peer_seconds = rival_bounds(rate, sigma, steps, delta)
            yield from [
                Row(name=f"{name}: upper beside dp-accounting", ours=high, rival=peer, unit="",
                    ratio=high / peer, most=1.001),
                Row(name=f"{name}: seconds beside dp-accounting", ours=seconds, rival=peer_seconds, unit="s",
                    ratio=seconds / peer_seconds, most=1),
            ]  # fmt: skip


def main() -> int:
    """Print the corners; the exit status says whether all of them are as required."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rival", action="store_true", help="ask dp-accounting, too")
    options = parser.parse_args()
    print("   rate sigma steps delta        upper        lower  apart    independent  seconds   cpu")
    wrong = 0
    for rate, sigma, steps, delta in CORNERS:
        start, spent = time.perf_counter(), time.process_time()
        low, high = batch(rate, sigma, steps).epsilon_bounds(delta)
        seconds, spent = time.perf_counter() - start, time.process_time() - spent
        other = lower_bound(rate, sigma, steps, delta)
        fine = low <= high and other <= high * (1 + 1e-9) and (high <= 1.01 * low or high - low <= FLOOR)
        wrong += not fine
        apart = high / low - 1 if low > 0 else 0.0 if high == 0 else math.inf
        text = f"{rate:>7} {sigma:>5} {steps:5.0e} {delta:5.0e} {high:12.6g} {low:12.6g} {apart:6.0e}"
        print(
            f"{text} {other:12.6g} {seconds:8.2f} {spent:6.2f} {'' if fine else 'NOT AS REQUIRED'}",
            flush=True,
        )
        if options.rival and steps <= 10**6 and float(rate) >= 1e-6:
            print(
                "  dp-accounting: {:.6g} to {:.6g}, {:.1f} s".format(*rival_bounds(rate, sigma, steps, delta))
            )
    print(f"{len(CORNERS)} corners, {wrong} not as required")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
