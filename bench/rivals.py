"""Time the rivals, in an environment of their own, and print what was measured as JSON.

Rivals: OpenDP's exact vector samplers, numpy's inexact normal generator, and the
privacy-loss distributions of dp-accounting with their default step, in the tightest form they offer.
"""

from __future__ import annotations

import argparse
import json
import sys
from importlib.metadata import version
from typing import Any

from cases import ACCOUNTING, DRAWS, SIGMA, Case, Part, best


def main() -> None:
    """Measure everything and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=3, help="timings per entry; the best one counts")
    parser.add_argument("--draws", type=int, default=DRAWS, help="how many samples OpenDP draws")
    options = parser.parse_args()
    json.dump(
        {
            "versions": {name: version(name) for name in ("dp-accounting", "numpy", "opendp", "scipy")},
            "samplers": samplers(options.draws),
            "accounting": {case.name: account(case, options.times) for case in ACCOUNTING},
        },
        sys.stdout,
    )


def samplers(draws: int) -> dict[str, float]:
    """Return seconds per DRAWS samples of each rival."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    gaussian = dp.m.make_gaussian(domain, dp.l2_distance(T="i64"), scale=float(SIGMA))
    laplace = dp.m.make_laplace(domain, dp.l1_distance(T="i64"), scale=float(SIGMA))
    zeros = [0] * draws
    return {
        # One timing each: they take ten seconds or more, so noise of the machine is small beside them.
        "opendp gaussian": best(lambda: gaussian(zeros), times=1) * DRAWS / draws,
        "opendp laplace": best(lambda: laplace(zeros), times=1) * DRAWS / draws,
    }


def account(case: Case, times: int) -> dict[str, Any]:
    """Return the epsilon that is claimed, a lower bound, and the seconds the claim took."""
    try:
        return {
            "epsilon": epsilon(case, pessimistic=True),
            "lower": epsilon(case, pessimistic=False),
            "seconds": best(lambda: epsilon(case, pessimistic=True), times=times),
        }
    except Exception as error:  # a rival that cannot answer is a result, not a failure of the run
        return {"error": f"{type(error).__name__}: {error}"[:200]}


def epsilon(case: Case, *, pessimistic: bool) -> float:
    """Compose the case's loss distributions and read epsilon off."""
    first, *others = [distribution(part, pessimistic).self_compose(part.count) for part in case.parts]
    for other in others:
        first = first.compose(other)
    return float(first.get_epsilon_for_delta(case.delta))


def distribution(part: Part, pessimistic: bool) -> Any:
    """Return dp-accounting's privacy-loss distribution of one run of a mechanism."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    # The tighter of its two discretisations exists for upper bounds only.
    estimate = {"pessimistic_estimate": pessimistic, "use_connect_dots": pessimistic}
    match part.kind:
        case "gaussian":
            return pld.from_gaussian_mechanism(part.noise, **estimate)
        case "subsampled":
            return pld.from_gaussian_mechanism(part.noise, sampling_prob=part.rate, **estimate)
        case "laplace":
            return pld.from_laplace_mechanism(part.noise, **estimate)
        case "discrete laplace":
            return pld.from_discrete_laplace_mechanism(1 / part.noise, **estimate)
        case "discrete gaussian":
            return pld.from_discrete_gaussian_mechanism(part.noise, **estimate)
        case _:
            raise ValueError(f"unknown mechanism {part.kind!r}")


if __name__ == "__main__":
    main()
