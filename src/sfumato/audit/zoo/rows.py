"""Broken counts over tables: keys that tell, caps in the wrong place, rows that push others out."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.analysis.keys import threshold
from sfumato.audit.output_table import OutputColumns
from sfumato.audit.subject import Claim, Subject
from sfumato.audit.worlds import Rows, tables
from sfumato.audit.zoo.animal import Animal
from sfumato.catalog import Catalog, Field, Kind, Table, Unit, between, one_of
from sfumato.core.laplace import LaplaceNoise
from sfumato.core.noise import discrete_laplace

__all__ = ["ANIMALS", "CATALOG"]

_ONE = Claim(epsilon=1)
_DELTA = 0.01
_GROUPS = 4
_REGIONS = ("north", "south", "east", "west")

CATALOG = Catalog(
    (
        Table(
            name="visits",
            fields=(
                Field("person", Kind.INTEGER),
                Field("region", Kind.TEXT, one_of(*_REGIONS)),
                Field("word", Kind.TEXT),
                Field("amount", Kind.REAL, between(0, 10)),
            ),
            unit=Unit(name="person", column="person"),
        ),
        Table(
            name="calls",
            fields=(Field("caller", Kind.INTEGER), Field("minutes", Kind.INTEGER, between(0, 60))),
            unit=Unit(name="person", column="caller"),
        ),
    )
)
"""What people did: visits, with a region and a word of their own, and calls."""

_WORLDS = tables(CATALOG)


def _people_by_word(data: Rows) -> Counter[str]:
    """Count the people of each word; everybody in at most four, which ones depends on their own rows."""
    chosen: dict[Any, set[str]] = {}
    for row in data["visits"]:
        if row["word"] is not None:
            chosen.setdefault(row["person"], set()).add(row["word"])
    return Counter(word for words in chosen.values() for word in sorted(words)[:_GROUPS])


def _shown(counts: Counter[str], trials: int, *, least: float) -> OutputColumns:
    """Return noisy counts of those words that reach a threshold, and which do."""
    columns = {}
    for word, people in counts.items():
        noisy = people + discrete_laplace(_GROUPS, size=trials)
        columns[f"count of {word!r}"] = np.where(noisy >= least, noisy, np.nan)
    return OutputColumns(trials, columns)


def _every_key(data: Rows, trials: int) -> OutputColumns:
    return _shown(_people_by_word(data), trials, least=-math.inf)


def _low_threshold(data: Rows, trials: int) -> OutputColumns:
    least = threshold(LaplaceNoise(Fraction(_GROUPS)), 1, Fraction(_DELTA), gathered=False)
    return _shown(_people_by_word(data), trials, least=least)


def _right_threshold(data: Rows, trials: int) -> OutputColumns:
    least = threshold(LaplaceNoise(Fraction(_GROUPS)), _GROUPS, Fraction(_DELTA), gathered=False)
    return _shown(_people_by_word(data), trials, least=least)


# -- joins and limits -------------------------------------------------------------------------


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


def _cap_then_join(data: Rows, trials: int) -> Any:
    rows = _joined(_capped(data["visits"], "person", 2), data["calls"])
    return len(rows) + discrete_laplace(2, size=trials)


def _join_then_cap(data: Rows, trials: int) -> Any:
    rows = _capped(_joined(data["visits"], data["calls"]), "person", 2)
    return len(rows) + discrete_laplace(2, size=trials)


def _by_region(rows: list[dict[str, Any]], trials: int) -> OutputColumns:
    counts = Counter(row["region"] for row in rows)
    return OutputColumns(
        trials, {region: counts[region] + discrete_laplace(2, size=trials) for region in _REGIONS}
    )


def _first_rows(data: Rows, trials: int) -> OutputColumns:
    """Keep two rows of each person, and of all these the first twenty-two."""
    return _by_region(_capped(data["visits"], "person", 2)[:22], trials)


def _all_rows(data: Rows, trials: int) -> OutputColumns:
    return _by_region(_capped(data["visits"], "person", 2), trials)


def _subject(name: str, run: Any, claim: Claim = _ONE, trials: int = 30_000) -> Subject:
    return Subject(name=name, claim=claim, run=run, neighbours=_WORLDS, trials=trials)


_SELECTED = _subject("keys above a threshold", _right_threshold, Claim(epsilon=1, delta=_DELTA))

ANIMALS = (
    Animal(
        subject=_subject("every key there is", _every_key),
        twin=_SELECTED,
        mistake="groups that exist are shown, with noise on their counts: a rare key names its only owner",
        source="GROUP BY over an open domain; Korolova, Kenthapadi, Mishra and Ntoulas 2009 on search logs",
    ),
    Animal(
        subject=_subject("a threshold for one key", _low_threshold, Claim(epsilon=1, delta=_DELTA), 80_000),
        twin=_SELECTED,
        mistake="the threshold holds delta for one key of a person, who has four",
        source="a peer claimed a delta of 0.0049 where 0.0127 was measured",
    ),
    Animal(
        subject=_subject("caps before a join", _cap_then_join),
        twin=_subject("caps after a join", _join_then_cap),
        mistake="rows are capped per person, and then multiplied by a join",
        source="truncation that is not the last step; stability through joins has to be charged or bounded",
    ),
    Animal(
        subject=_subject("a limit for all", _first_rows),
        twin=_subject("a limit for each", _all_rows),
        mistake="the first rows of the table are kept: one person more pushes somebody else out",
        source="LIMIT, SAMPLE and row numbers over several people, taken for row-wise steps",
    ),
)
