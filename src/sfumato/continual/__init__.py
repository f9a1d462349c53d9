"""Continual release: statistics that are published period after period, for one fixed charge.

Participation     in how many periods one person may appear, and how far apart
square_root       the noise of one period used again in later ones, for a known horizon
buffers           nearly the same for streams without an end, with a state that does not grow
CorrelatedNoise   exact integers that follow from them
Periods           hours, days, weeks or months, one after the other
PricedStream      a question about each period, and what all of them cost together
StreamRelease     what was published: periods, running totals, differences
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato.contents import contents as _contents

if TYPE_CHECKING:
    from sfumato.continual.correlated_noise import CorrelatedNoise
    from sfumato.continual.factorisation import Factorisation, square_root
    from sfumato.continual.participation import Participation
    from sfumato.continual.periods import Periods
    from sfumato.continual.pricing import PricedStream
    from sfumato.continual.rates import Buffers, buffers
    from sfumato.continual.series import deviation, total_deviations
    from sfumato.continual.stream_release import StreamRelease

__all__ = [
    "Buffers",
    "CorrelatedNoise",
    "Factorisation",
    "Participation",
    "Periods",
    "PricedStream",
    "StreamRelease",
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
        "periods": ["Periods"],
        "pricing": ["PricedStream"],
        "series": ["deviation", "total_deviations"],
        "stream_release": ["StreamRelease"],
    },
)
