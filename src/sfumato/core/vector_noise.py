"""Noise on a vector of whole numbers, of whose change by one unit the Euclidean norm alone is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from sfumato.core.events import Composed, Event, Repeated
from sfumato.core.gaussian import GaussianNoise
from sfumato.core.noise_allocation import weight_of_share
from sfumato.core.noise_law import NoiseLaw

__all__ = ["VectorNoise", "event_of_vectors"]


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorNoise:
    """A vector of whole numbers that gets noise of one law, or several in turn: `times` vectors.

    One unit moves each of them by a vector d of whole numbers with |d|^2 <= `l2_squared`.

    Theorem: |d|_1 <= |d|^2, since |x| <= x^2 for whole numbers; so noise on all entries of one vector costs
    what `NoiseLaw.joint_event` says of these two norms. A vector may be chosen after the noisy ones before
    it: by adaptive composition all of them cost as much as `times` vectors that were fixed. Together they
    move like one vector of the squared norm `times` * `l2_squared`, by which the noise is calibrated.
    Assumes: noise is drawn anew for each entry of each vector.

    >>> VectorNoise(l2_squared=4, times=10).event(GaussianNoise(Fraction(200))).rho()
    Fraction(1, 10)
    """

    l2_squared: int
    times: int = 1
    importance: Fraction = Fraction(1)  # the weight of its variance in the allocation

    def event(self, law: NoiseLaw) -> Event:
        """Return what all vectors cost with noise of a law."""
        each = law.joint_event(l1=self.l2_squared, l2_squared=self.l2_squared)
        return each if self.times == 1 else Repeated(event=each, times=self.times)

    def with_share(self, share: Fraction) -> VectorNoise:
        """Return the vector with the importance by which Gaussian noise on it gets a share of the cost."""
        norm = self.norm_under(GaussianNoise)
        return replace(self, importance=weight_of_share(share, GaussianNoise, norm, pure=False))

    # -- what `least_noise` asks ----------------------------------------------------------------

    @property
    def sensitivity(self) -> int:
        """One: norms are in whole numbers."""
        return 1

    def norm_under(self, law: type[NoiseLaw]) -> int | Fraction:
        """Return the norm of all vectors together that the cost under a law depends on."""
        together = self.times * self.l2_squared
        return law.norm(together, together)

    def alike(self) -> VectorNoise:
        """Return the vector itself: equal ones get the same noise."""
        return self


def event_of_vectors(vectors: Sequence[VectorNoise], laws: Sequence[NoiseLaw]) -> Event:
    """Return what several vectors cost as one batch, each with noise of its own law."""
    return Composed(events=tuple(one.event(law) for one, law in zip(vectors, laws, strict=True)))
