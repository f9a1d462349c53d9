"""Continual release: statistics that are published period after period, for one fixed charge.

Participation     in how many periods one person may appear, and how far apart
square_root       the noise of one period used again in later ones, for a known horizon
buffers           the same with a state that does not grow
CorrelatedNoise   exact integers that follow from them
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato.contents import contents as _contents

if TYPE_CHECKING:
    from sfumato.continual.correlated_noise import CorrelatedNoise
    from sfumato.continual.factorisation import Factorisation, square_root
    from sfumato.continual.participation import Participation
    from sfumato.continual.rates import Buffers, buffers
    from sfumato.continual.series import deviation, total_deviations

__all__ = [
    "Buffers",
    "CorrelatedNoise",
    "Factorisation",
    "Participation",
    "buffers",
    "deviation",
    "square_root",
    "total_deviations",
]

__getattr__, __dir__ = _contents(
    __name__,
    __all__,
    {
        "rates": ["Buffers", "buffers"],
        "correlated_noise": ["CorrelatedNoise"],
        "factorisation": ["Factorisation", "square_root"],
        "participation": ["Participation"],
        "series": ["deviation", "total_deviations"],
    },
)
