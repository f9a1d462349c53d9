"""The attack lab: why people choose differential privacy, shown on real code paths.

Each attack is a function that returns a `AttackResult`: how often it succeeds against the naive release that
people make, how often against real releases of this system, what guessing gets, and pictures. Data is
invented, or an owner's own; then the finding is for that owner, and never a release.

Reading order: `attack_result` (what an attack says); `victims`, `population` (who is attacked);
`differencing`, `refusing`, `averaging`, `reconstruction`, `membership`, `homogeneity`, `linkage` with
`joined`, `ratings` with `scoreboard`, `census` with `blocks` (the attacks); `report`.
"""

from sfumato.attacks.attack_result import EPSILONS, AttackResult, MeasuredRate, bit_bound
from sfumato.attacks.averaging import averaging
from sfumato.attacks.census import census
from sfumato.attacks.differencing import differencing
from sfumato.attacks.homogeneity import homogeneity
from sfumato.attacks.linkage import linkage
from sfumato.attacks.membership import membership
from sfumato.attacks.ratings import ratings
from sfumato.attacks.reconstruction import reconstruction
from sfumato.attacks.refusing import refusing
from sfumato.attacks.report import html_report

__all__ = [
    "AttackResult",
    "EPSILONS",
    "MeasuredRate",
    "averaging",
    "bit_bound",
    "census",
    "differencing",
    "homogeneity",
    "html_report",
    "linkage",
    "membership",
    "ratings",
    "reconstruction",
    "refusing",
]
