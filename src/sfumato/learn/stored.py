"""What was learned and stored as text: models and fairness reports."""

from __future__ import annotations

from typing import Any

from sfumato.errors import Unsupported
from sfumato.release.storage import load

__all__ = ["is_learned", "stored_model"]

_KINDS = ("fairness", "model", "network")


def is_learned(text: str) -> bool:
    """Return whether a text is a stored model or fairness report.

    >>> is_learned('{"model": 1}'), is_learned('{"marginals": 1}')
    (True, False)
    """
    return any(kind in load(text) for kind in _KINDS)


def stored_model(text: str) -> Any:
    """Return the model or the fairness report that was stored as text."""
    record = load(text)
    if "fairness" in record:
        from sfumato.learn.fairness_release import FairnessReport

        return FairnessReport.from_json(text)
    if "network" in record:
        from sfumato.learn.networks import FittedNetwork

        return FittedNetwork.from_json(text)
    if "model" in record:
        from sfumato.learn.models import LinearModel

        return LinearModel.from_json(text)
    raise Unsupported("a stored release of another format", place="text")
