"""Models of private tables: fitted on the one path, charged once, and released with a receipt."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato.contents import contents as _contents

if TYPE_CHECKING:
    from sfumato.learn.additive import AdditiveClassifier
    from sfumato.learn.additive_model import AdditiveModel
    from sfumato.learn.cluster_model import ClusterModel
    from sfumato.learn.fairness import fairness_report
    from sfumato.learn.fairness_release import FairnessReport
    from sfumato.learn.k_means import KMeans
    from sfumato.learn.linear import LinearRegression
    from sfumato.learn.logistic import LogisticRegression
    from sfumato.learn.models import LinearModel
    from sfumato.learn.networks import FittedNetwork, NeuralNetwork
    from sfumato.learn.public_comparison import compare_with_public
    from sfumato.learn.selected_model import SelectedModel
    from sfumato.learn.selection import ModelSelection, select_model
    from sfumato.learn.sweep import fairness_sweep
    from sfumato.learn.sweep_report import SweepReport

__all__ = [
    "AdditiveClassifier",
    "AdditiveModel",
    "ClusterModel",
    "FairnessReport",
    "FittedNetwork",
    "KMeans",
    "LinearModel",
    "LinearRegression",
    "LogisticRegression",
    "ModelSelection",
    "NeuralNetwork",
    "SelectedModel",
    "SweepReport",
    "compare_with_public",
    "fairness_report",
    "fairness_sweep",
    "select_model",
]

__getattr__, __dir__ = _contents(
    __name__,
    __all__,
    {
        "additive": ["AdditiveClassifier"],
        "additive_model": ["AdditiveModel"],
        "cluster_model": ["ClusterModel"],
        "fairness": ["fairness_report"],
        "fairness_release": ["FairnessReport"],
        "k_means": ["KMeans"],
        "linear": ["LinearRegression"],
        "logistic": ["LogisticRegression"],
        "models": ["LinearModel"],
        "networks": ["FittedNetwork", "NeuralNetwork"],
        "public_comparison": ["compare_with_public"],
        "selected_model": ["SelectedModel"],
        "selection": ["ModelSelection", "select_model"],
        "sweep": ["fairness_sweep"],
        "sweep_report": ["SweepReport"],
    },
)
