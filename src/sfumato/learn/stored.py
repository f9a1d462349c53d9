"""Stored text of every kind: to import this module is to make all published kinds known."""

from __future__ import annotations

from sfumato.learn.additive_model import AdditiveModel
from sfumato.learn.cluster_model import ClusterModel
from sfumato.learn.fairness_release import FairnessReport
from sfumato.learn.models import LinearModel
from sfumato.learn.networks.fitted import FittedNetwork
from sfumato.learn.selected_model import SelectedModel
from sfumato.release import Published, Release
from sfumato.release.workload_release import WorkloadRelease
from sfumato.workloads.marginal_release import Marginals

__all__ = ["KINDS", "read_stored"]

KINDS: tuple[type[Published], ...] = (
    AdditiveModel,
    ClusterModel,
    FairnessReport,
    FittedNetwork,
    LinearModel,
    Marginals,
    Release,
    SelectedModel,
    WorkloadRelease,
)
"""All kinds of what can be stored as text."""


def read_stored(text: str) -> Published:
    """Return what was stored as `text`, whatever kind it is.

    >>> read_stored('{"model": 1}')
    Traceback (most recent call last):
        ...
    sfumato.errors.InvalidArgument: ...
    """
    return Published.from_json(text)
