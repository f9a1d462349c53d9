"""A generalised table: what would be handed over, what it gives away before and after, and what it cost.

It is k-anonymous, and that is not privacy: who knows more than the quasi-identifiers, or sees a second
table, can learn what a class has in common. Nothing here is a release.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.anonymity.classes import group
from sfumato.anonymity.columns import OWNER, Coding, Integers, encode
from sfumato.anonymity.goals import Goal
from sfumato.anonymity.losses import Loss
from sfumato.anonymity.measures import AnonymityMeasures
from sfumato.anonymity.pictures import loss_picture, risk_picture, size_picture
from sfumato.anonymity.recoded import Recoded
from sfumato.pages import PageTable
from sfumato.plots import Picture

__all__ = ["Generalised", "WARNING"]

WARNING = "k hides which row of a class is whose; not what the rows of a class have in common."
"""What everybody must know who relies on k."""


@dataclass(frozen=True, kw_only=True)
class Generalised:
    """A table whose rows hide in classes.

    `source` is what was read; row for row with it, `class_of` is the class of each row, -1 if it was
    suppressed, and `columns` hold the generalised values and what they stand for. `tried` is the number of
    combinations of levels that were looked at.

    >>> import pyarrow as pa
    >>> from sfumato.anonymity import reach
    >>> people = pa.table({"age": [31, 34, 38, 52, 54, 57]})
    >>> made = reach(people, ["age"], Goal(k=3))
    >>> made.before.k, made.after.k, made.table["age"][0].as_py()
    (1, 3, '[31, 38]')
    """

    method: str
    goal: Goal
    coding: Coding
    columns: tuple[Recoded, ...]
    class_of: Integers
    before: AnonymityMeasures
    after: AnonymityMeasures
    loss: Loss
    tried: int | None = None

    def __repr__(self) -> str:
        return f"<generalised by {self.method}: {self.goal}; {self.after.rows:,} rows>"

    @property
    def source(self) -> Any:
        """The table as it was read, an Arrow table: quasi-identifiers, sensitive and kept columns."""
        return self.coding.table

    @property
    def suppressed(self) -> np.ndarray:
        """Which rows were left out."""
        return np.asarray(self.class_of < 0)

    @property
    def levels(self) -> dict[str, int]:
        """The level of its hierarchy that each column was raised to; empty for Mondrian."""
        return {each.name: each.level for each in self.columns if each.level is not None}

    def column(self, name: str) -> Recoded:
        """Return what became of a column."""
        return next(each for each in self.columns if each.name == name)

    @cached_property
    def table(self) -> Any:
        """What would be handed over, an Arrow table: the rows left, sorted so that their order tells nothing.

        It has the generalised quasi-identifiers, the sensitive columns and those that were kept as they
        are, and no others: an identifier that slipped through would undo everything.
        """
        kept = np.flatnonzero(self.class_of >= 0)
        rest = [encode(name, self.source.column(name)) for name in self.coding.others]
        ranked = [self.class_of, *(each.codes for each in (*self.coding.sensitive, *rest))]
        sizes = [self.after.classes, *(each.size for each in (*self.coding.sensitive, *rest))]
        number, _, _ = group([codes[kept] for codes in ranked], sizes)
        order = kept[np.argsort(number)]
        columns = {each.name: each.labels.take(pa.array(each.of_row[order])) for each in self.columns}
        left = self.source.select([*(each.name for each in self.coding.sensitive), *self.coding.others])
        left = left.take(pa.array(order))
        return pa.table(columns | {name: left.column(name) for name in left.column_names})

    def pictures(self) -> tuple[Picture, ...]:
        """Draw the risk of rows and the sizes of classes, before and after, and what each column lost."""
        return (
            risk_picture(self.before, self.after),
            size_picture(self.before, self.after),
            loss_picture(self.loss),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers, JSON-ready; not the rows."""
        return {
            "method": self.method,
            "goal": {"k": self.goal.k, "l": self.goal.l, "entropy_l": self.goal.entropy_l, "t": self.goal.t},
            "levels": self.levels,
            "rows": self.after.rows,
            "suppressed": int(self.suppressed.sum()),
            "before": self.before.to_dict(),
            "after": self.after.to_dict(),
            "loss": self.loss.to_dict(),
            "note": OWNER,
        }

    def rows(self) -> list[tuple[str, str, str]]:
        """Return what is measured, and what it was before and after; as texts."""
        was, now = self.before, self.after
        rows = [
            ("rows", f"{was.rows:,}", f"{now.rows:,}"),
            ("classes", f"{was.classes:,}", f"{now.classes:,}"),
            ("k, the smallest class", f"{was.k:,}", f"{now.k:,}"),
            ("unique rows", f"{was.uniqueness:.2%}", f"{now.uniqueness:.2%}"),
            ("highest chance to be found", f"{was.highest_risk:.2%}", f"{now.highest_risk:.2%}"),
            ("average chance to be found", f"{was.average_risk:.2%}", f"{now.average_risk:.2%}"),
            (f"rows with a chance above {now.risk:.0%}", f"{was.at_risk:.2%}", f"{now.at_risk:.2%}"),
        ]
        for old, new in zip(was.diversity, now.diversity, strict=True):
            rows += [
                (f"{new.column}: l, distinct values", str(old.distinct_l), str(new.distinct_l)),
                (f"{new.column}: entropy l", f"{old.entropy_l:.2f}", f"{new.entropy_l:.2f}"),
                (f"{new.column}: t, distance", f"{old.t:.3f}", f"{new.t:.3f}"),
                (f"{new.column}: known without doubt", f"{old.homogeneous:.1%}", f"{new.homogeneous:.1%}"),
            ]
        return rows

    def __str__(self) -> str:
        table = PageTable(heads=("", "before", "after"), rows=self.rows(), sides="lrr")
        lines = (f"  {line}" for line in table.text().splitlines())
        first = f"generalised by {self.method}, to reach {self.goal}"
        return "\n".join([first, *lines, str(self.loss), WARNING, OWNER])
