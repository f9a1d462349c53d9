"""Neural networks on private rows, by noisy gradient descent on random samples of people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato.contents import contents as _contents

if TYPE_CHECKING:
    from sfumato.learn.networks.estimator import NeuralNetwork
    from sfumato.learn.networks.fitted import FittedNetwork

__all__ = ["FittedNetwork", "NeuralNetwork"]

__getattr__, __dir__ = _contents(
    __name__, __all__, {"estimator": ["NeuralNetwork"], "fitted": ["FittedNetwork"]}
)
