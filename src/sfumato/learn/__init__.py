"""Models of private tables: fitted on the one path, charged once, and released with a receipt."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato.contents import contents as _contents

if TYPE_CHECKING:
    from sfumato.learn.logistic import LogisticRegression
    from sfumato.learn.models import LinearModel
    from sfumato.learn.networks import FittedNetwork, NeuralNetwork

__all__ = ["FittedNetwork", "LinearModel", "LogisticRegression", "NeuralNetwork"]

__getattr__, __dir__ = _contents(
    __name__,
    __all__,
    {
        "logistic": ["LogisticRegression"],
        "models": ["LinearModel"],
        "networks": ["FittedNetwork", "NeuralNetwork"],
    },
)
