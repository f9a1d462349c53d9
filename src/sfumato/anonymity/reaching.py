"""Reach what is wanted: generalise a table until every class of rows has at least k, and l and t.

mondrian    cuts the table into classes where its rows are: loses least, with intervals of any width
recoding    raises whole columns to levels of hierarchies, and leaves out a few rows: easier to read
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sfumato.anonymity.classes import Classes, Units, group
from sfumato.anonymity.columns import Coding, read
from sfumato.anonymity.generalised import Generalised
from sfumato.anonymity.goals import Goal
from sfumato.anonymity.hierarchies import Flat, Hierarchy
from sfumato.anonymity.ladders import Ladder
from sfumato.anonymity.lattice import best_node
from sfumato.anonymity.losses import loss_of
from sfumato.anonymity.measures import RISK, measured
from sfumato.anonymity.mondrian import parts
from sfumato.anonymity.recoded import Recoded, by_level, by_run
from sfumato.core.arguments import exact
from sfumato.errors import InvalidArgument

__all__ = ["reach"]


def reach(
    table: Any,
    quasi: Sequence[str],
    goal: Goal,
    *,
    sensitive: str | Sequence[str] = (),
    keep: str | Sequence[str] = (),
    method: str = "mondrian",
    hierarchies: Mapping[str, Hierarchy] | None = None,
    suppress: float = 0.0,
    risk: float = RISK,
) -> Generalised:
    """Generalise the quasi-identifiers of a table until it reaches a goal.

    `sensitive` and `keep` name columns that stay as they are; all others are left out. `suppress` is the
    share of rows that recoding may leave out. Recoding shows a column without a hierarchy as it is or as `*`.

    >>> import pyarrow as pa
    >>> people = pa.table({"age": [31, 34, 38, 52, 54, 57], "ill": [1, 2, 1, 2, 2, 1]})
    >>> found = reach(people, ["age"], Goal(k=3, l=2), sensitive="ill")
    >>> found.after.k, found.table.column("age").unique().to_pylist()
    (3, ['[31, 38]', '[52, 57]'])
    """
    hierarchies = dict(hierarchies or {})
    coding = read(table, quasi, sensitive, keep)
    _sensible(coding, goal, method, hierarchies, suppress)
    rows = Units.rows(coding.rows)
    number, many, _ = group([each.codes for each in coding.quasi], [each.size for each in coding.quasi])
    before = measured(Classes.of(number, many, rows, coding.sensitive), coding, risk)
    goal.reachable(Classes.of(np.zeros(coding.rows, dtype=np.int64), 1, rows, coding.sensitive))

    ladders = [hierarchies.get(each.name, Flat()).ladder(each) for each in coding.quasi]
    tried = None
    if method == "mondrian":
        columns = _cut(ladders, coding, goal)
    else:
        node, suppressed, tried = best_node(ladders, goal, coding.sensitive, float(suppress))
        columns = [
            by_level(ladder, level).without(suppressed) for ladder, level in zip(ladders, node, strict=True)
        ]

    kept = columns[0].of_row >= 0
    number, many, _ = group([each.of_row[kept] for each in columns], [len(each.labels) for each in columns])
    classes = Classes.of(number, many, rows, coding.sensitive, kept)
    class_of = np.full(coding.rows, -1)
    class_of[kept] = number
    return Generalised(
        method=method,
        goal=goal,
        coding=coding,
        columns=tuple(columns),
        class_of=class_of,
        before=before,
        after=measured(classes, coding, risk),
        loss=loss_of(columns, classes.sizes, goal.k),
        tried=tried,
    )


def _cut(ladders: Sequence[Ladder], coding: Coding, goal: Goal) -> list[Recoded]:
    """Generalise by Mondrian: each class to the ends of its rows along each column."""
    counted = [*coding.quasi, *(coding.sensitive if goal.about_values else ())]
    number, many, first = group([each.codes for each in counted], [each.size for each in counted])
    units = Units.rows(coding.rows).joined(number, many, first)
    of_unit = parts(ladders, units, goal, coding.sensitive)
    order = np.argsort(of_unit, kind="stable")
    starts = np.searchsorted(of_unit[order], np.arange(int(of_unit.max()) + 1))
    columns = []
    for ladder in ladders:
        along = ladder.position[ladder.column.codes[units.examples[order]]]
        low, high = np.minimum.reduceat(along, starts), np.maximum.reduceat(along, starts)
        columns.append(by_run(ladder, low, high, of_unit[number]))
    return columns


def _sensible(
    coding: Coding, goal: Goal, method: str, hierarchies: Mapping[str, Hierarchy], suppress: float
) -> None:
    if goal.about_values and not coding.sensitive:
        raise InvalidArgument(
            "l and t are about a sensitive column, and none is named",
            place="sensitive",
            hints=("name the column that nobody should learn of a person",),
        )
    if method not in ("mondrian", "recoding"):
        raise InvalidArgument(
            "the method is not known", place="method", hints=("it is mondrian or recoding",)
        )
    if not 0 <= exact(suppress, "suppress") < 1:
        raise InvalidArgument(
            "the share of rows to suppress lies between 0 and 1",
            place="suppress",
            hints=("0.05 lets one row in twenty go",),
        )
    if method == "mondrian" and suppress:
        raise InvalidArgument(
            "Mondrian suppresses nothing", place="suppress", hints=("leave it out, or use recoding",)
        )
    known = [each.name for each in coding.quasi]
    for name, hierarchy in hierarchies.items():
        if name not in known:
            raise InvalidArgument(
                f"there is a hierarchy for `{name}`, which is no quasi-identifier",
                place=name,
                hints=(f"they are {', '.join(known)}",),
            )
        if not isinstance(hierarchy, Hierarchy):
            raise InvalidArgument(
                f"the hierarchy of `{name}` is none", place=name, hints=("such as Intervals(widths=(5, 10))",)
            )
