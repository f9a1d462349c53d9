"""Noise: the one place where exact values are opened, and nothing exact comes out of it.

For each grouping set: where keys are not declared, those groups stay whose noisy number
of units, or their noisy weight, reaches the public threshold; then every measure of every group
that stays gets its own fresh integer noise. A histogram is summed into layers of neighbouring
cells first, and every block of every layer gets noise; or, for a single quantile, a cell is
chosen, and what is around it gets noise (`finding`); or a cell is chosen, and that is all (`choice`). Where a
question chooses groups, those are shown and no number of any.

What is dropped leaves no trace. Groups come out in the order of their keys, whatever order they
came in: for each key column booleans, then numbers, NaN, texts (by code points), dates,
timestamps, and NULL last.

Theorem: noise and selection cost what their events say (`analysis.pricing`); noise that groups
do not get because they were not selected changes nothing in the law of what is released.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from sfumato.aggregates.answer import Fitted
from sfumato.analysis.bounded import BoundedQuery, Bounding, MeasureKind
from sfumato.analysis.cell_choice import CellChoice
from sfumato.analysis.pricing import Cost, Noise
from sfumato.analysis.selection import Selection
from sfumato.backends.arrays import keys_at
from sfumato.backends.exact import Exact, ExactGroups
from sfumato.backends.totals import SparseCells
from sfumato.catalog.kind import Value
from sfumato.core.noise_law import NoiseLaw
from sfumato.errors import EngineFailure, Unsupported
from sfumato.plan.tree import GroupChoice
from sfumato.release.single_quantile import Search
from sfumato.release.weighted_selection import found_in_rounds, weights_of

if TYPE_CHECKING:
    from sfumato.core.selection import ExponentialMechanism, PermuteAndFlip

__all__ = [
    "NoisyGroups",
    "SortedKeys",
    "add_correlated_noise",
    "add_noise",
    "add_noise_in_steps",
    "add_noise_to_keys",
    "add_noise_to_queries",
    "choose_by_score",
    "hidden",
    "key_order",
    "rest_of",
]

_Secret = TypeVar("_Secret")
_State = TypeVar("_State")
_Part = TypeVar("_Part")

_Integers = npt.NDArray[Any]

_AT_ONCE = 1 << 22  # cells
_WORD = (-(2**63), 2**63 - 1)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NoisyGroups:
    """The noisy integers of one grouping set: all that is ever known of it outside. Public.

    `layers[measure][l]` has a row of blocks per group, of branching^l cells each. Of a choice it has the
    chosen cell, or the place of the chosen group among its rivals; of a single quantile the found one, the
    noisy excess at its lower edge (with Gaussian noise), and the noisy counts around that (if there is to be
    an interval). `fitted` says of measures whose integers were made to add up over grouping sets how far off
    they may be (`release.consistency`).
    """

    grouping_set: tuple[int, ...]
    keys: tuple[tuple[Value, ...], ...]
    measures: dict[str, _Integers]
    layers: dict[str, tuple[_Integers, ...]]
    fitted: dict[str, Fitted] | None = None

    def renamed(self, names: Mapping[str, str]) -> NoisyGroups:
        """Return the measures that `names` has, each under its name there: {own name: name here}."""
        return replace(
            self,
            measures={own: self.measures[name] for own, name in names.items() if name in self.measures},
            layers={own: self.layers[name] for own, name in names.items() if name in self.layers},
        )


def add_noise(
    exact: Exact[tuple[ExactGroups, ...]], bounding: Bounding, cost: Cost
) -> tuple[NoisyGroups, ...]:
    """Return the groups that may be shown, with noise on every number, one entry per grouping set."""
    cells = {measure.name: measure.kind is MeasureKind.CELLS for measure in bounding.query.measures}
    plans = []
    for place in range(len(bounding.query.grouping_sets)):
        noises = {noise.measure: noise for noise in cost.noises if noise.grouping_set == place}
        if noises.keys() != cells.keys():  # unknown means refuse: no measure goes out without noise
            raise Unsupported("a plan whose measures do not have exactly one noise each")
        if bounding.select_keys and bounding.query.grouping_sets[place] and cost.selection(place) is None:
            raise Unsupported("a plan that must select its keys, and does not say how")
        plans.append(noises)
    if bounding.others and {noise.measure for noise in cost.others} != cells.keys():
        raise Unsupported("a plan for everything else whose measures do not have exactly one noise each")
    by_group = [noise for noise in cost.noises if noise.choice is not None and not cells[noise.measure]]
    if len(by_group) != (bounding.query.choice is not None) or (by_group and len(cost.noises) > 1):
        raise Unsupported("a plan that chooses groups, and does not say how")
    found: list[NoisyGroups] = []
    sets = _opened(exact)
    if bounding.query.choice is not None:
        return (_chosen_groups(sets[0], bounding.query.choice, by_group[0]),)
    for place, groups in enumerate(sets):
        noisy, shown = _noisy(groups, place, plans[place], cells, cost)
        found.append(noisy)
        if bounding.others:
            rest = rest_of(groups, shown, bounding.query)
            found.append(_everything_else(rest, {noise.measure: noise for noise in cost.others}, cells))
    return tuple(found)


def add_noise_to_queries(
    exact: Exact[tuple[ExactGroups, ...]],
    queries: Callable[[ExactGroups], Iterable[_Integers]],
    laws: Sequence[NoiseLaw],
) -> tuple[_Integers, ...]:
    """Return noisy integers of linear queries over exact groups: fresh noise of the query's law on each.

    `queries` is public, and returns one array of integers for each law; the groups themselves do not leave.
    What one unit moves each array by, and so what the noise costs, is for the caller to prove.
    """
    sets = _opened(exact)
    [groups] = sets
    pairs = zip(queries(groups), laws, strict=True)
    return tuple(_narrow(np.asarray(_plus_draw(values, law))) for values, law in pairs)


def add_noise_in_steps(
    exact: Exact[_Secret],
    vectors: Callable[[_Secret], Callable[[_State], _Integers]],
    update: Callable[[_State, _Integers], _State],
    state: _State,
    laws: Iterable[NoiseLaw],
) -> _State:
    """Return the public state after one step for each law: an integer vector of the rows, with fresh noise.

    `vectors(rows)` is a function of the state, and returns the exact integers of a step; `update` is given
    the noisy ones, and returns the next state. Neither the rows nor exact integers go on to the next step.
    What one unit moves each vector by, whatever the state, is for the caller to prove; then the steps cost
    what their events, composed adaptively, cost. Whatever goes wrong among the rows is an `EngineFailure`,
    which always says the same.
    """
    secret = _opened(exact)
    of_rows = _guarded(lambda: vectors(secret))
    for law in laws:
        state = update(state, _noisy_vector(partial(of_rows, state), law))
    return state


def _noisy_vector(exact: Callable[[], _Integers], law: NoiseLaw) -> _Integers:
    """Return integers with noise; a later step that fails has no variable with the exact ones."""
    values = _guarded(exact)
    if values.dtype != np.int64 and values.dtype != object:
        raise Unsupported("noise for what are not integers")
    return _narrow(_plus_draw(values, law))


def _guarded(action: Callable[[], _Part]) -> _Part:
    """Return what an action on private rows returns; no error and no warning of it tells anything of them."""
    done: list[_Part] = []
    try:
        with np.errstate(all="ignore"):
            done.append(action())
    except Exception:
        done.clear()
    if not done:  # raised here, so that not even the context of the exception holds a value
        raise EngineFailure
    return done[0]


def hidden(exact: Exact[_Secret], function: Callable[[_Secret], _Part]) -> Exact[_Part]:
    """Return a public function of a secret, as hidden as the secret: the rows of some units, for example."""
    secret = _opened(exact)
    return Exact(_guarded(lambda: function(secret)))


def choose_by_score(
    exact: Exact[_Secret],
    scores: Callable[[_Secret], _Integers],
    mechanism: ExponentialMechanism | PermuteAndFlip,
) -> int:
    """Return the place of the candidate that a mechanism chooses by exact integer scores; no score leaves.

    What one unit moves the scores by, and so what the choice costs, is for the caller to prove.
    """
    secret = _opened(exact)
    found = _guarded(lambda: scores(secret))
    if found.dtype != np.int64 and found.dtype != object:
        raise Unsupported("a choice by what are not integers")
    return mechanism.release(found)


class SortedKeys:
    """Sorts the declared keys of a stream, which are the same in every period: once."""

    def __init__(self) -> None:
        self._given: list[tuple[Value, ...]] = []
        self._sorted: tuple[tuple[tuple[Value, ...], ...], _Integers] = ((), np.zeros(0, dtype=np.int64))

    def __call__(self, keys: Sequence[tuple[Value, ...]]) -> tuple[tuple[tuple[Value, ...], ...], _Integers]:
        """Return keys in their order, the same object for the same keys, and the places that they had."""
        if keys != self._given:
            self._given = list(keys)
            places = sorted(range(len(keys)), key=lambda group: key_order(keys[group]))
            self._sorted = tuple(keys[group] for group in places), np.array(places, dtype=np.int64)
        return self._sorted


def add_correlated_noise(
    exact: Exact[tuple[ExactGroups, ...]],
    bounding: Bounding,
    order: SortedKeys,
    steps: Mapping[str, int],
    noise: Mapping[str, _Integers],
) -> NoisyGroups:
    """Return every measure of every declared group in fine steps, with the noise that is given for it.

    The noise was drawn before, whatever the data is, and is used for nothing else. What it costs is for the
    caller to prove (`continual.pricing`). Groups are in the order of their keys, always the same ones.
    """
    if bounding.select_keys or noise.keys() != {measure.name for measure in bounding.query.measures}:
        raise Unsupported("a plan whose measures do not have exactly one noise each")
    sets = _opened(exact)
    [groups] = sets
    keys, places = order(list(groups.keys))
    measures = {}
    for name, drawn in noise.items():
        if len(drawn) != len(places):
            raise Unsupported("noise for other groups than there are")
        measures[name] = _in_steps(groups.measures[name][places], steps[name]) + drawn
    return NoisyGroups(grouping_set=groups.grouping_set, keys=keys, measures=measures, layers={})


def _in_steps(values: _Integers, steps: int) -> _Integers:
    """Return values times steps: in int64 if none has more than 61 bits, so that noise can be added."""
    largest = max(abs(int(values.min())), abs(int(values.max()))) if values.size else 0
    return values.astype(object if largest * steps >> 61 else np.int64) * steps


def add_noise_to_keys(
    exact: Exact[tuple[ExactGroups, ...]],
    bounding: Bounding,
    selection: Selection,
    steps: Mapping[str, int],
    noise: Callable[[Sequence[tuple[Value, ...]]], tuple[_Integers, Mapping[str, _Integers]]],
) -> Mapping[str, _Integers]:
    """Return every number of every key of a stream so far in fine steps, with the noise that is given for it.

    `noise` is told the keys of this period, and returns the place of each among all keys so far, and for each
    measure the noise of all of these; under "" that of the numbers by which keys are selected, where these
    are no measure. What comes out is not public: the caller holds it back until a key is selected
    (`continual.key_selection`).
    """
    sets = _opened(exact)
    [groups] = sets
    places, drawn = noise(list(groups.keys))
    numbers = dict(groups.measures)
    if selection.measure is None:
        numbers[""] = _deciding(groups, selection)
    if not bounding.select_keys or drawn.keys() != numbers.keys():
        raise Unsupported("a plan whose measures do not have exactly one noise each")
    noisy = {}
    for name, values in drawn.items():
        added = _in_steps(numbers[name], steps[name])
        whole = np.zeros(len(values), dtype=added.dtype)
        whole[places] = added
        noisy[name] = whole + values
    return noisy


def _deciding(groups: ExactGroups, selection: Selection) -> _Integers:
    """Return the numbers by which keys are selected, of units or of weights."""
    if selection.grid > 1 and groups.members is not None:
        return weights_of(groups.members, np.zeros(len(groups.keys), dtype=np.bool_), selection)
    if selection.grid > 1 or groups.units is None:
        raise Unsupported("keys must be selected, and the engine did not say who is where")
    return groups.units


def _opened(exact: Exact[_Secret]) -> _Secret:
    return exact.reveal()


def _everything_else(
    rest: dict[str, _Integers], noises: dict[str, Noise], cells: dict[str, bool]
) -> NoisyGroups:
    return NoisyGroups(
        grouping_set=(),
        keys=((),),
        measures={name: _add(rest[name], noises[name]) for name in rest if not cells[name]},
        layers={
            name: tuple(_add(layer, noises[name]) for layer in _layers(rest[name], noises[name]))
            for name in rest
            if cells[name]
        },
    )


def rest_of(groups: ExactGroups, shown: _Integers, query: BoundedQuery) -> dict[str, _Integers]:
    """Return the exact sum of each measure over the groups that are not shown; of units, how many are there.

    Proof of what this costs: `analysis.remainder_group`.
    """
    rest = np.ones(len(groups.keys), dtype=np.bool_)
    rest[shown] = False
    found: dict[str, _Integers] = {}
    for measure in query.measures:
        values = groups.measures[measure.name]
        if measure.kind is MeasureKind.UNITS and query.max_groups is not None:
            if groups.members is None:
                raise Unsupported("units of everything else, and the engine did not say who is where")
            found[measure.name] = np.array([groups.members.units_outside(~rest)], dtype=np.int64)
        elif isinstance(values, SparseCells):
            found[measure.name] = values.total(rest)
        else:  # Python's integers: no sum wraps around
            found[measure.name] = values[rest].astype(object).sum(axis=0, keepdims=True)
    return found


def key_order(keys: tuple[Value, ...]) -> tuple[tuple[int, Any], ...]:
    """Return what groups are sorted by: a total order over keys of any kinds.

    >>> sorted([("b",), (None,), ("a",), (2,), (True,)], key=key_order)
    [(True,), (2,), ('a',), ('b',), (None,)]
    """
    return tuple(_rank(key) for key in keys)


def _rank(key: Value) -> tuple[int, Any]:
    match key:
        case None:
            return 9, 0
        case bool():
            return 0, key
        case float() if math.isnan(key):
            return 2, 0
        case int() | float() | Decimal():
            return 1, key
        case str():
            return 3, key
        case datetime.datetime():
            return 5, key.isoformat()
        case datetime.date():
            return 4, key.isoformat()


def _noisy(
    groups: ExactGroups, place: int, noises: dict[str, Noise], cells: dict[str, bool], cost: Cost
) -> tuple[NoisyGroups, _Integers]:
    """Return the noisy groups, and which of the exact ones they are."""
    measures: dict[str, _Integers] = {}
    layers: dict[str, tuple[_Integers, ...]] = {}
    chosen = np.arange(len(groups.keys))
    selection = cost.selection(place)
    if selection is not None:
        if selection.measure is not None:
            law = noises[selection.measure].law
            measures[selection.measure] = _plus_draw(groups.measures[selection.measure], law, selection.cut)
            chosen = np.flatnonzero(measures[selection.measure] >= selection.threshold)
        else:
            chosen = np.flatnonzero(_shown(groups, selection))
    shown = zip(chosen.tolist(), keys_at(groups.keys, chosen), strict=True)
    ranked = sorted(shown, key=lambda one: key_order(one[1]))
    order = np.array([group for group, _ in ranked], dtype=np.int64)
    for name, noise in noises.items():
        if cells[name] and noise.choice is not None:
            layers[name] = (_chosen(groups.measures[name], order, noise.choice),)
        elif cells[name] and noise.finding is not None:
            layers[name] = _found(groups.measures[name], order, noise)
        elif cells[name]:
            layers[name] = tuple(_add(layer, noise) for layer in _layers(groups.measures[name][order], noise))
        elif name in measures:  # its noisy value has decided; that very value is shown
            measures[name] = _narrow(measures[name][order])
        else:
            measures[name] = _add(groups.measures[name][order], noise)
    noisy = NoisyGroups(
        grouping_set=groups.grouping_set,
        keys=tuple(key for _, key in ranked),
        measures=measures,
        layers=layers,
    )
    return noisy, order


def _shown(groups: ExactGroups, selection: Selection) -> _Integers:
    """Flag the groups that pass a selection with noise of its own."""

    if selection.rounds:
        if groups.members is None:
            raise Unsupported("keys must be selected by weights, and the engine did not say who is where")
        return found_in_rounds(groups.members, len(groups.keys), selection, _plus_draw)
    if groups.units is None:
        raise Unsupported("keys must be selected, and the engine did not count units")
    flags: _Integers = _plus_draw(groups.units, selection.law, selection.cut) >= selection.threshold
    return flags


def _found(cells: Any, order: _Integers, noise: Noise) -> tuple[_Integers, ...]:
    """Find one quantile of each group that stays, and measure around it; some groups at a time."""
    assert noise.finding is not None
    pieces = []
    for some in _some_at_a_time(order, cells.shape[1]):
        search = Search(cells[some], noise.finding)
        places = search.find()
        piece = [places[:, None]]
        if noise.finding.anchor is not None:
            piece.append(_plus_draw(search.anchors(places), noise.finding.anchor)[:, None])
        if noise.finding.intervals:
            piece.append(_add(search.annuli(places), noise))
        pieces.append(piece)
    return tuple(_narrow(np.concatenate(each)) for each in zip(*pieces, strict=True))


def _chosen(cells: Any, order: _Integers, choice: CellChoice) -> _Integers:
    """Choose a cell of each group that stays, by its count; some groups at a time."""
    pieces = [choice.mechanism.release_each(cells[some]) for some in _some_at_a_time(order, cells.shape[1])]
    return np.concatenate(pieces)[:, None]


def _chosen_groups(groups: ExactGroups, choice: GroupChoice, noise: Noise) -> NoisyGroups:
    """Choose one group of each part by its number; parts with as many groups at once."""
    assert noise.choice is not None
    keys, mechanism = list(groups.keys), noise.choice.mechanism
    scores = groups.measures[noise.measure]
    if scores.dtype != object and len(scores) and np.abs(scores.astype(np.float64)).max() >= 2.0**62:
        scores = scores.astype(object)  # differences do not wrap around
    parts: dict[tuple[Value, ...], list[int]] = {}
    for place, key in enumerate(keys):
        parts.setdefault(tuple(key[at] for at in choice.per), []).append(place)
    chosen: list[tuple[int, int]] = []
    for width in {len(rivals) for rivals in parts.values()}:
        table = np.array([rivals for rivals in parts.values() if len(rivals) == width])
        found = mechanism.release_each(scores[table] if choice.largest else -scores[table])
        chosen += zip(table[np.arange(len(table)), found].tolist(), found.tolist(), strict=True)
    chosen.sort(key=lambda one: key_order(keys[one[0]]))
    return NoisyGroups(
        grouping_set=groups.grouping_set,
        keys=tuple(keys[group] for group, _ in chosen),
        measures={},
        layers={noise.measure: (np.array([place for _, place in chosen], dtype=np.int64)[:, None],)},
    )


def _some_at_a_time(order: _Integers, width: int) -> list[_Integers]:
    return np.array_split(order, max(1, -(-len(order) * width // _AT_ONCE)))


def _layers(cells: _Integers, noise: Noise) -> list[_Integers]:
    """Sum neighbouring cells into blocks: layer l has blocks of branching^l cells, the last one shorter."""
    if cells.dtype != object and cells.size and np.abs(cells.astype(np.float64)).sum(axis=1).max() >= 2.0**62:
        cells = cells.astype(object)
    width = cells.shape[1]
    return [
        np.add.reduceat(cells, np.arange(0, width, noise.branching**layer), axis=1)
        for layer in range(noise.levels)
    ]


def _add(values: _Integers, noise: Noise) -> _Integers:
    return _plus_draw(values, noise.law)


def _plus_draw(values: _Integers, law: NoiseLaw, cut: int | None = None) -> _Integers:
    """Add fresh noise, of at most `cut` if there is one, without wrapping around."""
    noise = law.draw(values.size) if cut is None else law.draw_within(cut, values.size)
    noise = noise.reshape(values.shape)
    if values.dtype == noise.dtype == np.int64:
        total: _Integers = values + noise
        if not (((values ^ total) & (noise ^ total)) < 0).any():  # no sum has a sign of its own
            return total
    return _narrow(np.asarray(values.astype(object) + noise.astype(object), dtype=object))


def _narrow(values: _Integers) -> _Integers:
    """Return 64-bit integers where all fit: the type depends on the noisy values alone."""
    if values.dtype == np.int64:
        return values
    fits = all(_WORD[0] <= entry <= _WORD[1] for entry in values.ravel().tolist())
    return values.astype(np.int64) if fits else values
