"""What a mechanism did, as frozen records that price themselves."""

from sfumato.core.events.additive import DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace
from sfumato.core.events.base import Cost, Direction, Event, FloatArray
from sfumato.core.events.claims import Approximate, Pure, ZeroConcentrated
from sfumato.core.events.combined import Composed, Parallel, Repeated
from sfumato.core.events.finite import FinitePair, RandomizedResponse
from sfumato.core.events.sampled import PoissonSubsampled

__all__ = [
    "Approximate",
    "Composed",
    "Cost",
    "Direction",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Event",
    "FinitePair",
    "FloatArray",
    "Gaussian",
    "Laplace",
    "Parallel",
    "PoissonSubsampled",
    "Pure",
    "RandomizedResponse",
    "Repeated",
    "ZeroConcentrated",
]
