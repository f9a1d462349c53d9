"""Trusted mathematics: exact noise, mechanisms, what they cost, and what a budget still allows.

No data, no SQL, no files. Reading order: `entropy`, `exponential`, `coins`, `staircase`,
`noise` (how noise is drawn); `laplace`, `gaussian`, `response`, `selection`, `sparse`, `finite`
(what is done with it); `events`, `losses`, `composition` (what that costs); `measures`,
`tradeoff`, `rules`, `accountant`, `odometer`, `calibration` (how cost is stated, limited, chosen).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sfumato.core import calibration, conversions, events, renyi
    from sfumato.core.accountant import PrivacyBudget, PrivacyFilter
    from sfumato.core.adjacency import Adjacency, Sensitivity
    from sfumato.core.coins import bernoulli, bernoulli_exp
    from sfumato.core.composition import Composition
    from sfumato.core.finite import FiniteMechanism
    from sfumato.core.gaussian import GaussianMechanism
    from sfumato.core.grid import Grid
    from sfumato.core.individual import IndividualPrivacy
    from sfumato.core.laplace import LaplaceMechanism
    from sfumato.core.losses import LossDistribution
    from sfumato.core.measures import (
        ApproximateDP,
        GaussianDP,
        PureDP,
        RenyiCurve,
        RenyiDP,
        ZeroConcentratedDP,
    )
    from sfumato.core.mechanism import Mechanism
    from sfumato.core.noise import discrete_gaussian, discrete_laplace, geometric
    from sfumato.core.odometer import Odometer
    from sfumato.core.processed import PostProcessed
    from sfumato.core.proportion import Proportion
    from sfumato.core.response import RandomizedResponseMechanism
    from sfumato.core.rules import GaussianRule, PureRule, RenyiRule, ZeroConcentratedRule
    from sfumato.core.selection import ExponentialMechanism, PermuteAndFlip, ReportNoisyMax
    from sfumato.core.sparse import SparseVector
    from sfumato.core.tradeoff import TradeOff
    from sfumato.core.uniform import uniform_below

__all__ = [
    "Adjacency",
    "ApproximateDP",
    "Composition",
    "ExponentialMechanism",
    "FiniteMechanism",
    "GaussianDP",
    "GaussianMechanism",
    "GaussianRule",
    "Grid",
    "IndividualPrivacy",
    "LaplaceMechanism",
    "LossDistribution",
    "Mechanism",
    "Odometer",
    "PermuteAndFlip",
    "PostProcessed",
    "PrivacyBudget",
    "PrivacyFilter",
    "Proportion",
    "PureDP",
    "PureRule",
    "RandomizedResponseMechanism",
    "RenyiCurve",
    "RenyiDP",
    "RenyiRule",
    "ReportNoisyMax",
    "Sensitivity",
    "SparseVector",
    "TradeOff",
    "ZeroConcentratedDP",
    "ZeroConcentratedRule",
    "bernoulli",
    "bernoulli_exp",
    "calibration",
    "conversions",
    "discrete_gaussian",
    "discrete_laplace",
    "events",
    "geometric",
    "renyi",
    "uniform_below",
]

_HOMES = {
    "Adjacency": "adjacency",
    "ApproximateDP": "measures",
    "Composition": "composition",
    "ExponentialMechanism": "selection",
    "FiniteMechanism": "finite",
    "GaussianDP": "measures",
    "GaussianMechanism": "gaussian",
    "GaussianRule": "rules",
    "Grid": "grid",
    "IndividualPrivacy": "individual",
    "LaplaceMechanism": "laplace",
    "LossDistribution": "losses",
    "Mechanism": "mechanism",
    "Odometer": "odometer",
    "PermuteAndFlip": "selection",
    "PostProcessed": "processed",
    "PrivacyBudget": "accountant",
    "PrivacyFilter": "accountant",
    "Proportion": "proportion",
    "PureDP": "measures",
    "PureRule": "rules",
    "RandomizedResponseMechanism": "response",
    "RenyiCurve": "measures",
    "RenyiDP": "measures",
    "RenyiRule": "rules",
    "ReportNoisyMax": "selection",
    "Sensitivity": "adjacency",
    "SparseVector": "sparse",
    "TradeOff": "tradeoff",
    "ZeroConcentratedDP": "measures",
    "ZeroConcentratedRule": "rules",
    "bernoulli": "coins",
    "bernoulli_exp": "coins",
    "discrete_gaussian": "noise",
    "discrete_laplace": "noise",
    "geometric": "noise",
    "uniform_below": "uniform",
}


def __getattr__(name: str) -> Any:
    """Import a part of the core when it is first used: an answer needs half of it."""
    if name in _HOMES:
        return getattr(importlib.import_module(f"sfumato.core.{_HOMES[name]}"), name)
    if name in __all__:
        return importlib.import_module(f"sfumato.core.{name}")
    raise AttributeError(f"module 'sfumato.core' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
