"""What a mechanism did, as frozen records that price themselves."""

from sfumato.core.events.additive import DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace
from sfumato.core.events.base import Direction, Event
from sfumato.core.events.claims import Approximate, BoundedRange, Pure, ZeroConcentrated
from sfumato.core.events.combined import Composed, Parallel, Repeated
from sfumato.core.events.finite import FinitePair, RandomizedResponse
from sfumato.core.events.sampled import PoissonSubsampled
from sfumato.core.events.vector import DiscreteGaussianVector

__all__ = [
    "Approximate",
    "BoundedRange",
    "Composed",
    "Direction",
    "DiscreteGaussian",
    "DiscreteGaussianVector",
    "DiscreteLaplace",
    "Event",
    "FinitePair",
    "Gaussian",
    "Laplace",
    "Parallel",
    "PoissonSubsampled",
    "Pure",
    "RandomizedResponse",
    "Repeated",
    "ZeroConcentrated",
]
