"""What generalising has cost: how much less the table says than before, by the usual measures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from sfumato.anonymity.columns import Floats, Integers
from sfumato.anonymity.recoded import Recoded

__all__ = ["ColumnLoss", "Loss", "loss_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnLoss:
    """What one column has lost, each as a share of all it could lose.

    `certainty`: the normalised certainty penalty (Xu et al. 2006) of its cells; see `ladders.certainty`.
    `entropy`: non-uniform entropy (Gionis and Tassa 2009). To learn a value from what it was
    generalised to takes -log2 of its share among the values that could be meant, in bits; as a share of
    what it takes to learn it from nothing.
    `height`: the level it was raised to, of the levels there are; None without a hierarchy.
    A suppressed row has lost everything.

    >>> import pyarrow as pa
    >>> from sfumato.anonymity import Goal, reach
    >>> people = pa.table({"age": [31, 34, 38, 52, 54, 57]})
    >>> [age] = reach(people, ["age"], Goal(k=3)).loss.columns
    >>> age.column, 0 < age.certainty < 1
    ('age', True)
    """

    column: str
    certainty: float
    entropy: float
    height: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """What the whole table has lost.

    `certainty`: the mean of the columns' certainty penalties, the global certainty penalty (Ghinita
    et al. 2007); searches make it small. `entropy`: the mean of the columns' lost entropies.
    `precision`: 1 less the mean height of the cells in their hierarchies (Sweeney 2002); None without
    hierarchies. `discernibility`: the sum over rows of how many rows each is confused with, the whole
    table for a suppressed one (Bayardo and Agrawal 2005). `class_size`: the mean size of a class in units
    of k (LeFevre et al. 2006), 1 at best. `suppressed`: the share of rows left out.

    >>> import pyarrow as pa
    >>> from sfumato.anonymity import Goal, reach
    >>> people = pa.table({"age": [31, 34, 38, 52, 54, 57]})
    >>> loss = reach(people, ["age"], Goal(k=3)).loss
    >>> loss.suppressed, loss.class_size
    (0.0, 1.0)
    """

    certainty: float
    entropy: float
    precision: float | None
    discernibility: int
    class_size: float
    suppressed: float
    columns: tuple[ColumnLoss, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return everything, JSON-ready."""
        return asdict(self)

    def __str__(self) -> str:
        lost = f"{self.certainty:.1%} of certainty, {self.entropy:.1%} of entropy"
        size = f"{self.class_size:.1f} times as large as they need be"
        lines = [
            f"lost: {lost}; {self.suppressed:.2%} of rows suppressed",
            f"  classes are {size}; discernibility {self.discernibility:,}",
        ]
        if self.precision is not None:
            lines.append(f"  precision {self.precision:.1%}")
        width = max(len(each.column) for each in self.columns)
        for each in self.columns:
            raised = "" if each.height is None else f", raised by {each.height:.0%} of its levels"
            lines.append(
                f"  {each.column:{width}}  certainty {each.certainty:.1%}, entropy {each.entropy:.1%}{raised}"
            )
        return "\n".join(lines)


def loss_of(columns: Sequence[Recoded], sizes: Integers, k: int) -> Loss:
    """Work out what was lost; `sizes` are those of the classes that are left."""
    rows = len(columns[0].of_row)
    suppressed = rows - int(sizes.sum())
    each = tuple(_column(column) for column in columns)
    heights = [column.height for column in each]
    raised = [height for height in heights if height is not None]
    return Loss(
        certainty=float(np.mean([column.certainty for column in each])),
        entropy=float(np.mean([column.entropy for column in each])),
        precision=1 - float(np.mean(raised)) if len(raised) == len(each) else None,
        discernibility=sum(int(size) ** 2 for size in sizes.tolist()) + rows * suppressed,
        class_size=float(sizes.mean() / k),
        suppressed=suppressed / rows,
        columns=each,
    )


def _column(column: Recoded) -> ColumnLoss:
    kept = column.of_row >= 0
    label = column.of_row[kept]
    lost = np.ones(len(kept))
    lost[kept] = column.costs[label]
    height = None
    if column.level is not None and column.height:
        height = float(np.where(kept, column.level / column.height, 1.0).mean())
    return ColumnLoss(
        column=column.name, certainty=float(lost.mean()), entropy=_entropy(column, kept, label), height=height
    )


def _entropy(column: Recoded, kept: np.ndarray, label: Integers) -> float:
    rows = len(kept)
    counts = np.bincount(column.positions, minlength=len(column.values))
    below = np.concatenate([[0], np.cumsum(counts)])
    meant = np.full(rows, rows)
    meant[kept] = (below[column.stops] - below[column.starts])[label]
    own: Floats = counts[column.positions].astype(np.float64)
    most = np.log2(rows / own).sum()
    return float(np.log2(meant / own).sum() / most) if most > 0 else 0.0
