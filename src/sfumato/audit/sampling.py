"""Sampling a question: noise drawn many times on the same exact integers, by the code that releases them.

One run of the engine takes milliseconds, and its integers are the same in every trial, the salt being frozen.
So they are laid out side by side, each copy with a number in front of its keys, and `release.noise` adds
noise to all copies in one call, as it does to groups: noise and selection of each group are its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.analysis import Bounding, Cost
from sfumato.backends.exact import Exact, ExactGroups, Members
from sfumato.release.noise import NoisyGroups, add_noise

__all__ = ["NumberPlace", "noisy_columns", "places_of", "released", "size_of"]

_MOST = 24  # numbers of a release that are looked at
_AT_ONCE = 1 << 20  # integers


@dataclass(frozen=True, slots=True)
class NumberPlace:
    """One number of a release: its table, group and measure; in a histogram also its layer and block."""

    table: int
    key: tuple[Any, ...]
    measure: str
    layer: int | None = None
    block: int = 0

    def __str__(self) -> str:
        where = ", ".join(map(str, self.key)) or "all"
        return f"{self.measure} of {where}" + ("" if self.layer is None else f" [{self.layer}.{self.block}]")


def places_of(noisy: tuple[tuple[NoisyGroups, ...], ...]) -> list[NumberPlace]:
    """Return the numbers that releases have: those whose means differ most, in standard deviations.

    `noisy` are a few releases of either neighbour, drawn for the purpose. What only one of them shows
    comes first.
    """
    seen: dict[tuple[int, tuple[str, ...], str, int | None], list[list[npt.NDArray[np.float64]]]] = {}
    for side, tables in enumerate(noisy):
        for table, groups in enumerate(tables):
            for row, key in enumerate(groups.keys):
                known = tuple(map(repr, key[1:]))
                for name, values in groups.measures.items():
                    number = np.array([values[row]], dtype=np.float64)
                    seen.setdefault((table, known, name, None), [[], []])[side].append(number)
                for name, layers in groups.layers.items():
                    for layer, blocks in enumerate(layers):
                        numbers = blocks[row].astype(np.float64)
                        seen.setdefault((table, known, name, layer), [[], []])[side].append(numbers)
    apart: list[tuple[float, NumberPlace]] = []
    for (table, known, name, place), (one, other) in seen.items():
        if one and other:
            spread = np.std(one, axis=0) + np.std(other, axis=0) + 1e-9
            distances = np.abs(np.mean(one, axis=0) - np.mean(other, axis=0)) / spread
        else:
            distances = np.full(len((one or other)[0]), np.inf)
        for block in np.argsort(-distances)[:_MOST].tolist():
            apart.append((float(distances[block]), NumberPlace(table, known, name, place, block)))
    return [place for _, place in sorted(apart, key=lambda both: -both[0])[:_MOST]]


def noisy_columns(
    bounding: Bounding, cost: Cost, groups: tuple[ExactGroups, ...], trials: int, places: list[NumberPlace]
) -> dict[str, npt.NDArray[np.float64]]:
    """Return `trials` releases, number by number; NaN where a group was not shown."""
    columns = {str(place): np.full(trials, np.nan) for place in places}
    wanted: dict[tuple[int, tuple[str, ...]], list[NumberPlace]] = {}
    for place in places:
        wanted.setdefault((place.table, place.key), []).append(place)
    for begin, tables in released(bounding, cost, groups, trials):
        for table, noisy in enumerate(tables):
            rows: dict[tuple[str, ...], tuple[list[int], list[int]]] = {}
            for row, key in enumerate(noisy.keys):
                copies, places_in = rows.setdefault(tuple(map(repr, key[1:])), ([], []))
                copies.append(begin + int(key[0]))
                places_in.append(row)
            for known, (copies, places_in) in rows.items():
                for place in wanted.get((table, known), ()):
                    if place.layer is None:
                        values = noisy.measures[place.measure][places_in]
                    else:
                        values = noisy.layers[place.measure][place.layer][places_in, place.block]
                    columns[str(place)][copies] = values.astype(np.float64)
    return columns


def released(bounding: Bounding, cost: Cost, groups: tuple[ExactGroups, ...], trials: int) -> Any:
    """Yield (number of the first copy, noisy tables), whose keys begin with the number of their copy."""
    if bounding.others:  # a row for the rest of all groups: one release at a time
        for copy in range(trials):
            tables = add_noise(Exact(groups), bounding, cost)
            yield copy, tuple(replace(one, keys=tuple((0, *key) for key in one.keys)) for one in tables)
        return
    if (choice := bounding.query.choice) is not None:  # one in each copy
        of_each = replace(choice, per=(0, *(place + 1 for place in choice.per)))
        bounding = replace(bounding, query=replace(bounding.query, choice=of_each))
    at_once = max(1, min(trials, _AT_ONCE // size_of(groups)))
    for begin in range(0, trials, at_once):
        copies = min(at_once, trials - begin)
        tiled = tuple(_tiled(one, copies) for one in groups)
        yield begin, add_noise(Exact(tiled), bounding, cost)


def size_of(groups: tuple[ExactGroups, ...]) -> int:
    """Return how many integers one release is made of."""
    sizes = (np.prod(np.shape(values), dtype=np.int64) for one in groups for values in one.measures.values())
    return max(1, int(sum(sizes)))


def _tiled(groups: ExactGroups, copies: int) -> ExactGroups:
    def tiled(values: Any) -> npt.NDArray[Any]:
        return np.tile(np.asarray(values), (copies,) + (1,) * (np.ndim(values) - 1))

    keys = list(groups.keys)
    members = groups.members
    if isinstance(members, Members):
        offsets = np.repeat(np.arange(copies, dtype=np.int64) * len(keys), len(members.groups))
        members = Members(
            groups=np.tile(members.groups.astype(np.int64), copies) + offsets,
            sizes=np.tile(members.sizes, copies),
        )
    return ExactGroups(
        grouping_set=groups.grouping_set,
        keys=[(copy, *key) for copy in range(copies) for key in keys],
        measures={name: tiled(values) for name, values in groups.measures.items()},
        units=None if groups.units is None else tiled(groups.units),
        members=members,
    )
