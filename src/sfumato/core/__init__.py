"""Trusted mathematics: exact noise, mechanisms, what they cost, and what a budget still allows.

No data, no SQL, no files. Reading order: `entropy`, `exponential`, `coins`, `staircase`,
`noise` (how noise is drawn); `laplace`, `gaussian`, `response`, `selection`, `sparse`, `finite`
(what is done with it); `events`, `losses`, `composition` (what that costs); `measures`,
`tradeoff`, `rules`, `accountant`, `calibration`, `approximate_gaussian` (how cost is stated, limited,
chosen).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato.contents import contents as _contents

if TYPE_CHECKING:
    from sfumato.core import calibration, conversions, events, renyi
    from sfumato.core.accountant import Odometer, PrivacyBudget, PrivacyFilter
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
    from sfumato.core.mechanism import Mechanism, PostProcessed
    from sfumato.core.noise import discrete_gaussian, discrete_laplace, geometric
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

__getattr__, __dir__ = _contents(
    __name__,
    __all__,
    {
        "accountant": ["Odometer", "PrivacyBudget", "PrivacyFilter"],
        "adjacency": ["Adjacency", "Sensitivity"],
        "coins": ["bernoulli", "bernoulli_exp"],
        "composition": ["Composition"],
        "finite": ["FiniteMechanism"],
        "gaussian": ["GaussianMechanism"],
        "grid": ["Grid"],
        "individual": ["IndividualPrivacy"],
        "laplace": ["LaplaceMechanism"],
        "losses": ["LossDistribution"],
        "measures": ["ApproximateDP", "GaussianDP", "PureDP", "RenyiCurve", "RenyiDP", "ZeroConcentratedDP"],
        "mechanism": ["Mechanism", "PostProcessed"],
        "noise": ["discrete_gaussian", "discrete_laplace", "geometric"],
        "proportion": ["Proportion"],
        "response": ["RandomizedResponseMechanism"],
        "rules": ["GaussianRule", "PureRule", "RenyiRule", "ZeroConcentratedRule"],
        "selection": ["ExponentialMechanism", "PermuteAndFlip", "ReportNoisyMax"],
        "sparse": ["SparseVector"],
        "tradeoff": ["TradeOff"],
        "uniform": ["uniform_below"],
    },
)
