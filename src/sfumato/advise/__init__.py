"""Which epsilon? Advice from the mechanism that runs and from public facts: it reads no data, spends nothing.

risk_of      what any attacker can learn: advantage, belief, secrets; of a person, a family, over a year
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato.contents import contents as _contents

if TYPE_CHECKING:
    from sfumato.advise.risk import Risk, RiskSource, risk_of

__all__ = [
    "Risk",
    "RiskSource",
    "risk_of",
]

__getattr__, __dir__ = _contents(
    __name__,
    __all__,
    {
        "risk": ["Risk", "RiskSource", "risk_of"],
    },
)
