"""Two kinds of noise to compare: Laplace and Gaussian, of about the same standard deviation."""

from __future__ import annotations

import math
from fractions import Fraction

from sfumato.core import events
from sfumato.core.arguments import Number, exact

__all__ = ["laplace_of", "two_kinds"]


def laplace_of(deviation: Number) -> events.Laplace:
    """Return Laplace noise of about this standard deviation, which moves by 1 with one person.

    >>> round(float(laplace_of(10).scale), 3)
    7.071
    """
    return events.Laplace(scale=Fraction(float(deviation) / math.sqrt(2)).limit_denominator(1000))


def two_kinds(deviation: Number) -> tuple[tuple[str, events.Event], tuple[str, events.Event]]:
    """Return both kinds of noise, each with its name.

    >>> [name for name, _ in two_kinds(2)]
    ['Laplace', 'Gaussian']
    """
    gaussian = events.Gaussian(sigma=exact(deviation, "deviation"))
    return ("Laplace", laplace_of(deviation)), ("Gaussian", gaussian)
