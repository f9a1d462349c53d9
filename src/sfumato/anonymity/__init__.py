"""k-anonymity and its kin: measure what quasi-identifiers give away, and generalise a table to give less.

For the owner of a table, who reads it as it is. A generalised table is not private in the sense of this
package, and never a release: docs/anonymity.md says what it does not protect.

Reading order: `columns`, `classes` (rows as numbers, and what classes of them give away); `measures`;
`ladders`, `hierarchies`, `hierarchy_file` (how values are generalised); `goals`, `lattice`, `mondrian`,
`reaching` (how a goal is reached); `recoded`, `losses`, `generalised`, `pictures`, `report` (what comes of
it).
"""

from sfumato.anonymity.generalised import Generalised
from sfumato.anonymity.goals import Goal
from sfumato.anonymity.hierarchies import Calendar, Flat, Hierarchy, Intervals, Levels, Prefixes
from sfumato.anonymity.losses import ColumnLoss, Loss
from sfumato.anonymity.measures import AnonymityMeasures, Diversity, measure
from sfumato.anonymity.pictures import risk_picture, size_picture, trade_picture
from sfumato.anonymity.reaching import reach
from sfumato.anonymity.recoded import Recoded

__all__ = [
    "AnonymityMeasures",
    "Calendar",
    "ColumnLoss",
    "Diversity",
    "Flat",
    "Generalised",
    "Goal",
    "Hierarchy",
    "Intervals",
    "Levels",
    "Loss",
    "Prefixes",
    "Recoded",
    "measure",
    "reach",
    "risk_picture",
    "size_picture",
    "trade_picture",
]
