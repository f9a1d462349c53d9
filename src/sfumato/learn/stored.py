"""What was learned and stored as text: models, choices, clusters and fairness reports."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from sfumato.errors import Unsupported
from sfumato.release.storage import load

__all__ = ["is_learned", "stored_model"]

# By what the text holds; a choice holds its model, too.
_HOMES = {
    "fairness": ("fairness_release", "FairnessReport"),
    "network": ("networks", "FittedNetwork"),
    "additive": ("additive_model", "AdditiveModel"),
    "clusters": ("cluster_model", "ClusterModel"),
    "selection": ("selected_model", "SelectedModel"),
    "model": ("models", "LinearModel"),
}


def is_learned(text: str) -> bool:
    """Return whether a text is a stored model, or something else that was learned.

    >>> is_learned('{"model": 1}'), is_learned('{"marginals": 1}')
    (True, False)
    """
    return not _HOMES.keys().isdisjoint(load(text))


def stored_model(text: str) -> Any:
    """Return what was learned and stored as text."""
    record = load(text)
    for kind, (module, name) in _HOMES.items():
        if kind in record:
            return getattr(import_module(f"sfumato.learn.{module}"), name).from_json(text)
    raise Unsupported("a stored release of another format", place="text")
