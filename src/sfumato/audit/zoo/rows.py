"""Broken counts over tables: keys that tell, caps in the wrong place, rows that push others out."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from sfumato.audit.output_table import OutputColumns
from sfumato.audit.subject import ONE, Animal, Claim, Subject
from sfumato.audit.worlds import CATALOG, Rows, tables
from sfumato.core.laplace import LaplaceNoise
from sfumato.core.noise import discrete_laplace
from sfumato.core.search import least_whole

__all__ = ["ANIMALS"]

_DELTA = 0.01
_GROUPS = 4
_REGIONS = ("north", "south", "east")
_WORLDS = tables(CATALOG)


def _shown(data: Rows, trials: int, *, least: float) -> OutputColumns:
    """Return noisy numbers of people by word, of words that reach a threshold.

    Everybody counts in at most four words; which ones depends on their own rows.
    """
    chosen: dict[Any, set[str]] = {}
    for row in data["visits"]:
        if row["word"] is not None:
            chosen.setdefault(row["person"], set()).add(row["word"])
    counts = Counter(word for words in chosen.values() for word in sorted(words)[:_GROUPS])
    columns = {}
    for word, people in counts.items():
        noisy = people + discrete_laplace(_GROUPS, size=trials)
        columns[f"count of {word!r}"] = np.where(noisy >= least, noisy, np.nan)
    return OutputColumns(trials, columns)


def _threshold(keys: int) -> int:
    """Return a threshold that holds delta for a person of this many keys."""
    law = LaplaceNoise(Fraction(_GROUPS))
    return least_whole(lambda least: keys * law.tail(least - 1) <= _DELTA, 2)


def _capped(rows: Iterable[dict[str, Any]], unit: str, most: int) -> list[dict[str, Any]]:
    """Keep at most a given number of rows of each unit."""
    seen: Counter[Any] = Counter()
    kept = []
    for row in rows:
        seen[row[unit]] += 1
        if seen[row[unit]] <= most:
            kept.append(row)
    return kept


def _joined(visits: Iterable[dict[str, Any]], calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    by_person: dict[Any, list[dict[str, Any]]] = {}
    for call in calls:
        by_person.setdefault(call["caller"], []).append(call)
    return [{**visit, **call} for visit in visits for call in by_person.get(visit["person"], [])]


def _pairs(data: Rows, trials: int, *, cap_first: bool) -> Any:
    """Count pairs of a visit and a call of one person, of whom two rows are kept."""
    if cap_first:
        rows = _joined(_capped(data["visits"], "person", 2), data["calls"])
    else:
        rows = _capped(_joined(data["visits"], data["calls"]), "person", 2)
    return len(rows) + discrete_laplace(2, size=trials)


def _by_region(data: Rows, trials: int, *, first: int | None = None) -> OutputColumns:
    """Keep two rows of each person, and of all these the first few."""
    counts = Counter(row["region"] for row in _capped(data["visits"], "person", 2)[:first])
    return OutputColumns(
        trials, {region: counts[region] + discrete_laplace(2, size=trials) for region in _REGIONS}
    )


def _subject(name: str, run: Any, claim: Claim = ONE, trials: int = 30_000) -> Subject:
    return Subject(name=name, claim=claim, run=run, neighbours=_WORLDS, trials=trials)


_AT_DELTA = Claim(epsilon=1, delta=_DELTA)
_SELECTED = _subject("keys above a threshold", partial(_shown, least=_threshold(_GROUPS)), _AT_DELTA)

ANIMALS = (
    Animal(
        subject=_subject("every key there is", partial(_shown, least=-math.inf)),
        twin=_SELECTED,
        mistake="groups that exist are shown, with noise on their counts: a rare key names its only owner",
        source="GROUP BY over an open domain; Korolova, Kenthapadi, Mishra and Ntoulas 2009 on search logs",
    ),
    Animal(
        subject=_subject("a threshold for one key", partial(_shown, least=_threshold(1)), _AT_DELTA, 80_000),
        twin=_SELECTED,
        mistake="the threshold holds delta for one key of a person, who has four",
        source="a peer claimed a delta of 0.0049 where 0.0127 was measured",
    ),
    Animal(
        subject=_subject("caps before a join", partial(_pairs, cap_first=True)),
        twin=_subject("caps after a join", partial(_pairs, cap_first=False)),
        mistake="rows are capped per person, and then multiplied by a join",
        source="truncation that is not the last step; stability through joins has to be charged or bounded",
    ),
    Animal(
        subject=_subject("a limit for all", partial(_by_region, first=22)),
        twin=_subject("a limit for each", _by_region),
        mistake="the first rows of the table are kept: one person more pushes somebody else out",
        source="LIMIT, SAMPLE and row numbers over several people, taken for row-wise steps",
    ),
)
