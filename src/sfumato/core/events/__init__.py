"""What a mechanism did, as frozen records that price themselves."""

from sfumato.core.events.base import Direction, Event
from sfumato.core.events.claims import Approximate, BoundedRange, Pure, ZeroConcentrated
from sfumato.core.events.combined import Composed, Parallel, Repeated
from sfumato.core.events.finite import FinitePair, RandomizedResponse
from sfumato.core.events.gaussian import DiscreteGaussian, DiscreteGaussianVector, Gaussian
from sfumato.core.events.laplace import DiscreteLaplace, Laplace
from sfumato.core.events.sampled import PoissonSubsampled

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
