"""Fifty questions about the Adult data, one by one and in one workload: what is charged, and how far off.

    python bench/workload.py <adult.parquet>

asks nothing of the data: prices and errors are known beforehand.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from adult import EPSILON, connect
from adult import QUESTIONS as TWENTY
from report import Row, show

import sfumato as sf
from sfumato.session.workload import Workload

__all__ = ["QUESTIONS", "together", "workload_rows"]

_GROUPS = ("sex", "income", "race", "sex, income", "sex, race")
_ASKED = (
    "COUNT(*) AS people, AVG(age) AS age",
    "AVG(age) AS age",
    "AVG(hours_per_week) AS hours",
    "COUNT(*) AS people, AVG(hours_per_week) AS hours, AVG(age) AS age",
    "SUM(hours_per_week) AS hours",
    "COUNT(*) AS people, SUM(hours_per_week) AS hours",
)
QUESTIONS = (
    *(question.sql for question in TWENTY),
    *(f"SELECT {keys}, {asked} FROM adult GROUP BY {keys}" for keys in _GROUPS for asked in _ASKED),
)
"""The twenty of docs/adult.md, and six more for each of five groupings."""


def together(database: sf.Database) -> Workload:
    """Return the workload in which every question has the noise that it has alone, or less."""
    return database.workload([database.sql(sql, epsilon=EPSILON) for sql in QUESTIONS])


def workload_rows(path: str) -> Iterator[Row]:
    """Compare what fifty questions are charged together and one by one, with no larger errors."""
    price = together(connect(path)).price()
    alone = price.record()["share_one_by_one"]
    alone = float(EPSILON * len(QUESTIONS))
    yield Row(
        name=f"{len(QUESTIONS)} questions in one workload, share of the budget (rival: one by one)",
        ours=price.share,
        rival=alone,
        unit="",
        ratio=price.share / alone,
        most=1.0,
    )
    yield Row(
        name=f"{len(QUESTIONS)} questions, epsilon together (rival: the sum of their epsilons)",
        ours=float(price.epsilon),
        rival=alone,
        unit="",
        ratio=float(price.epsilon) / alone,
        most=1.0,
    )


if __name__ == "__main__":
    show(workload_rows(sys.argv[1]), {})
