"""No trusted collector: every person randomises their own answer before anyone sees it.

Reading order: `odds`, `protocol` (what a protocol is); `response`, `ballots`, `hashing`, `hadamard`,
`geometry` (one of many answers); `sets` (several of them); `means`, `piecewise` (numbers); `vectors`,
`pairs`, `hitters` (texts); `chooser`, `survey`, `client`, `collector` (a whole survey); `longitudinal`,
`shuffling`, `deniability`, `compare` (what it costs, and what it is worth).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato.contents import contents as _contents

if TYPE_CHECKING:
    from sfumato.local.ballots import SubsetSelection, UnaryEncoding
    from sfumato.local.chooser import choose
    from sfumato.local.collector import Collector, collect
    from sfumato.local.deniability import Deniability, told
    from sfumato.local.geometry import ProjectiveGeometry
    from sfumato.local.hadamard import HadamardResponse
    from sfumato.local.hashing import LocalHashing
    from sfumato.local.longitudinal import Memoised, Renewed
    from sfumato.local.means import Duchi
    from sfumato.local.pairs import PairResponse
    from sfumato.local.piecewise import Hybrid, Piecewise, best_for_number
    from sfumato.local.prefix_tree import PrefixTree
    from sfumato.local.questions import NumberIn, OneAnswer, SeveralOf, Text, YesNo
    from sfumato.local.response import KaryResponse
    from sfumato.local.results import Result
    from sfumato.local.sets import SetSelection, SeveralAnswers, UnarySets, best_for_several
    from sfumato.local.shuffling import Amplification, amplification, central_epsilon, local_epsilon
    from sfumato.local.stages import TwoStageResponse, TwoStageUnary
    from sfumato.local.survey import Survey
    from sfumato.local.vectors import PrivUnit

__all__ = [
    "Amplification",
    "Collector",
    "Deniability",
    "Duchi",
    "HadamardResponse",
    "Hybrid",
    "KaryResponse",
    "LocalHashing",
    "Memoised",
    "NumberIn",
    "OneAnswer",
    "PairResponse",
    "Piecewise",
    "PrefixTree",
    "PrivUnit",
    "ProjectiveGeometry",
    "Renewed",
    "Result",
    "SetSelection",
    "SeveralAnswers",
    "SeveralOf",
    "SubsetSelection",
    "Survey",
    "Text",
    "TwoStageResponse",
    "TwoStageUnary",
    "UnaryEncoding",
    "UnarySets",
    "YesNo",
    "amplification",
    "best_for_number",
    "best_for_several",
    "central_epsilon",
    "choose",
    "collect",
    "local_epsilon",
    "told",
]

__getattr__, __dir__ = _contents(
    __name__,
    __all__,
    {
        "ballots": ["SubsetSelection", "UnaryEncoding"],
        "chooser": ["choose"],
        "collector": ["Collector", "collect"],
        "deniability": ["Deniability", "told"],
        "geometry": ["ProjectiveGeometry"],
        "hadamard": ["HadamardResponse"],
        "hashing": ["LocalHashing"],
        "longitudinal": ["Memoised", "Renewed"],
        "means": ["Duchi"],
        "pairs": ["PairResponse"],
        "piecewise": ["Hybrid", "Piecewise", "best_for_number"],
        "prefix_tree": ["PrefixTree"],
        "questions": ["NumberIn", "OneAnswer", "SeveralOf", "Text", "YesNo"],
        "response": ["KaryResponse"],
        "results": ["Result"],
        "sets": ["SetSelection", "SeveralAnswers", "UnarySets", "best_for_several"],
        "shuffling": ["Amplification", "amplification", "central_epsilon", "local_epsilon"],
        "stages": ["TwoStageResponse", "TwoStageUnary"],
        "survey": ["Survey"],
        "vectors": ["PrivUnit"],
    },
)
