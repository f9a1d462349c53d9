"""The checker: what one person more changed, held against what the plan and its cost claim.

A claim is read from the bounded query and the cost alone; what happened, from the exact integers,
the engine's log, and the layout of the answer. Exact values are opened here, in a test, and nowhere else.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.analysis import Bounding, Cost, bound, price
from sfumato.analysis.bounded import BoundedQuery
from sfumato.analysis.group_choice import with_group_choice
from sfumato.analysis.pricing import Noise
from sfumato.backends import Source
from sfumato.backends.duckdb import DuckDBBackend
from sfumato.backends.exact import ExactGroups
from sfumato.catalog import Catalog
from sfumato.core.accountant import PrivacyBudget
from sfumato.core.events import DiscreteGaussian, DiscreteGaussianVector, DiscreteLaplace, Pure
from sfumato.core.events.claims import BoundedRange
from sfumato.plan.options import Options
from sfumato.plan.sql import parse
from sfumato.plan.tree import GroupChoice
from sfumato.release.single_quantile import Search
from sfumato.release.weighted_selection import weights_of
from tests.engine.questions import Asked
from tests.engine.worlds import CATALOG

__all__ = [
    "BUDGET",
    "Recorded",
    "Replay",
    "chosen_too_far",
    "differences",
    "found_too_far",
    "leaves",
    "planned",
    "record",
]

SALT = 0x5F3759DF
BUDGET = PrivacyBudget(epsilon=3, delta=1e-6, keys_delta=1e-7)


@dataclass(frozen=True, slots=True)
class Replay:
    """A question with its price: what is held against what happens.

    `run` is what is given to the engine, which is the query itself unless a test lies.
    """

    bounding: Bounding
    cost: Cost
    run: BoundedQuery

    @property
    def query(self) -> BoundedQuery:
        """What is claimed."""
        return self.bounding.query


@dataclass(frozen=True, slots=True, eq=False)
class Recorded:
    """What one run did: the statements it gave the engine, and what came of it; an error as its text."""

    statements: tuple[str, ...]
    groups: tuple[ExactGroups, ...]
    error: str | None


def planned(asked: Asked, catalog: Catalog = CATALOG) -> Replay:
    """Return the plan and the price of a question, which know the catalog and no data."""
    request = with_group_choice(parse(asked.text, catalog), catalog, None)
    (named,) = request.queries
    options = Options(**asked.options)
    bounding = bound(named.query, catalog, options)
    cost = price(bounding, BUDGET, epsilon=Fraction(1, 2), options=Options(noise=options.noise))
    return Replay(bounding, cost, bounding.query)


# -- recording ------------------------------------------------------------------------------


class _Log:
    """A cursor that writes down what it is asked."""

    def __init__(self, cursor: Any, statements: list[str]) -> None:
        self._cursor = cursor
        self._statements = statements

    def execute(self, sql: str, *more: Any) -> Any:
        self._statements.append(sql)
        return self._cursor.execute(sql, *more)

    def sql(self, sql: str, *more: Any) -> Any:
        self._statements.append(sql)
        return self._cursor.sql(sql, *more)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cursor, name)


class _Logged:
    def __init__(self, source: Source, statements: list[str]) -> None:
        self._source = source
        self._statements = statements

    def cursor(self) -> Any:
        return _Log(self._source.cursor(), self._statements)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)


def record(
    query: BoundedQuery, source: Source, *, threads: int, salt: int = SALT, catalog: Catalog = CATALOG
) -> Recorded:
    """Run a bounded query with its salt frozen."""
    statements: list[str] = []
    backend = DuckDBBackend(_Logged(source, statements), catalog, threads=threads)  # type: ignore[arg-type]
    error, groups = None, ()
    try:
        groups = backend.run(query, _salt=salt).reveal()
    except Exception as caught:  # whatever it is, it must not depend on the data
        error = f"{type(caught).__name__}: {caught}"
    renamed = tuple(re.sub(r"__t[0-9a-f]{16}", "__t", text) for text in statements)
    return Recorded(renamed, groups, error)


# -- comparing ------------------------------------------------------------------------------


def differences(first: Recorded, second: Recorded) -> Iterator[str]:
    """Tell in what two runs over the same rows differ: with the salt frozen, nothing may."""
    if first.error != second.error:
        yield f"error {first.error} and {second.error}"
        return
    if first.statements != second.statements:
        yield "other statements"
    for one, other in zip(first.groups, second.groups, strict=True):
        if [_same_key(key) for key in one.keys] != [_same_key(key) for key in other.keys]:
            yield "other keys, or another order of them"
            return
        for name, values in one.measures.items():
            if values.dtype != other.measures[name].dtype or not np.array_equal(values, other.measures[name]):
                yield f"other integers in {name}"
        if (one.units is None) != (other.units is None) or not np.array_equal(_units(one), _units(other)):
            yield "other units"
        if (one.members is None) != (other.members is None):
            yield "members in one of them"
        elif one.members is not None and other.members is not None and _pairs(one) != _pairs(other):
            yield "other members"


def leaves(replay: Replay, before: Recorded, after: Recorded) -> Iterator[str]:
    """Tell how one unit more leaves the claimed box, or changes what must not change at all."""
    if before.error is not None or after.error is not None:
        yield f"error {before.error} and {after.error}"
        return
    yield from _other_statements(replay.query, before, after)
    if len(before.groups) != len(replay.query.grouping_sets) or len(after.groups) != len(before.groups):
        yield "another number of grouping sets"
        return
    for place, (old, new) in enumerate(zip(before.groups, after.groups, strict=True)):
        yield from _other_shape(replay.query, place, old, new)
        yield from _too_heavy(replay, place, old, new)
        yield from _out_of_box(replay, place, _changes(replay.query, old, new))
        for noise in replay.cost.noises:
            if noise.grouping_set == place and noise.finding is not None:
                yield from found_too_far(noise, old, new)
            if noise.grouping_set == place and noise.choice is not None:
                yield from chosen_too_far(noise, old, new, replay.query.choice)


def _other_statements(query: BoundedQuery, before: Recorded, after: Recorded) -> Iterator[str]:
    """The texts are the plan's; the number of keys, where it is private, only lays out words."""
    if query.declared is not None:
        if before.statements != after.statements:
            yield "other statements"
        return
    if len(before.statements) != len(after.statements):
        if all(len(groups.keys) for run in (before, after) for groups in run.groups):
            yield "another number of statements"  # no key at all needs no grouping: a matter of time
        return
    other = [
        at
        for at, (old, new) in enumerate(zip(before.statements, after.statements, strict=True))
        if old != new
    ]
    if len(other) > 1 or any(" code" not in before.statements[at] for at in other):
        yield "other statements"


def _other_shape(query: BoundedQuery, place: int, old: ExactGroups, new: ExactGroups) -> Iterator[str]:
    if old.grouping_set != query.grouping_sets[place] or new.grouping_set != old.grouping_set:
        yield "another grouping set"
    for name, values in old.measures.items():
        if values.dtype != new.measures[name].dtype or values.shape[1:] != new.measures[name].shape[1:]:
            yield f"another type or width of {name}"
    if (old.units is None) != (new.units is None):
        yield "units are counted in one of them"
    keys, more = ([_same_key(key) for key in groups.keys] for groups in (old, new))
    if len(set(keys)) != len(keys) or len(set(more)) != len(more):
        yield "a key occurs twice"
    if query.declared is not None or not old.grouping_set:
        if keys != more:
            yield "declared keys differ, or their order"
        whole = {tuple(_same_key(key)[at] for at in old.grouping_set) for key in query.declared or ((),)}
        if set(keys) != whole:
            yield "not all declared keys are there"
        return
    kept = set(keys) & set(more)
    if [key for key in keys if key in kept] != [key for key in more if key in kept]:
        yield "another order of keys"


def _changes(query: BoundedQuery, old: ExactGroups, new: ExactGroups) -> dict[Any, dict[str, int]]:
    """Return for each group that changed how far each measure moved; a group that is absent is zero."""
    sides = []
    for groups in (old, new):
        entries: dict[Any, dict[str, Any]] = {}
        for at, key in enumerate(groups.keys):
            entries[_same_key(key)] = {
                name: np.atleast_1d(values[at]) for name, values in groups.measures.items()
            }
            if groups.units is not None:
                entries[_same_key(key)]["units"] = np.atleast_1d(groups.units[at])
        sides.append(entries)
    changed = {}
    for key in dict.fromkeys([*sides[0], *sides[1]]):
        moved = {}
        for name in (*old.measures, *(() if old.units is None else ("units",))):
            a, b = ([0] if side.get(key) is None else side[key][name].tolist() for side in sides)
            width = max(len(a), len(b))
            a, b = (part if len(part) == width else [0] * width for part in (a, b))
            moved[name] = sum(abs(y - x) for x, y in zip(a, b, strict=True))
        if any(moved.values()):
            changed[key] = moved
    return changed


def _out_of_box(replay: Replay, place: int, changed: dict[Any, dict[str, int]]) -> Iterator[str]:
    query = replay.query
    groups = query.max_groups or 1
    chosen = query.grouping_sets[place]
    finest = len(set(chosen)) == len(query.keys)
    if len(changed) > groups:
        yield f"{len(changed)} groups moved, not {groups}"
    reaches = {measure.name: measure.sensitivity for measure in query.measures}
    for name in reaches.keys() | {name for moved in changed.values() for name in moved}:
        reach = reaches.get(name, 1)
        parts = [-(-moved[name] // reach) for moved in changed.values() if name in moved]
        if finest and max(parts, default=0) > 1:
            yield f"{name} moved by {max(moved[name] for moved in changed.values())}, not {reach}"
        if sum(parts) > groups:  # finest groups that fell together
            yield f"{name} moved by {sum(parts)} reaches altogether"
        if name == "units" and max(parts, default=0) > 1:
            yield "one unit counts twice"
    for noise in replay.cost.noises:
        if noise.grouping_set == place and noise.finding is None and noise.choice is None:
            moved_by = [moved[noise.measure] for moved in changed.values()]
            yield from _undercharged(noise, moved_by)


def _too_heavy(replay: Replay, place: int, old: ExactGroups, new: ExactGroups) -> Iterator[str]:
    """Hold the weights that select keys against what each round is charged for, whatever was found before."""
    selection = replay.cost.selection(place)
    if selection is None or not selection.rounds:
        return
    if old.members is None or new.members is None:
        yield "keys are to be selected by weights, and there are none"
        return
    keys = [_same_key(key) for groups in (old, new) for key in groups.keys]
    for share in (0, 1, 2):  # nothing found, a third, two thirds of the keys: any would do
        found = {key for key in keys if zlib.crc32(repr(key).encode()) % 3 < share}
        sides = []
        for groups in (old, new):
            known = [_same_key(key) for key in groups.keys]
            flags = np.array([key in found for key in known], dtype=np.bool_)
            sides.append(dict(zip(known, weights_of(groups.members, flags, selection).tolist(), strict=True)))
        moved = [abs(sides[1].get(key, 0) - sides[0].get(key, 0)) for key in dict.fromkeys(keys)]
        for one in selection.rounds:
            match one.event:
                case DiscreteLaplace(scale=parameter, sensitivity=most) if selection.law.name == "laplace":
                    far = sum(moved) > most
                case DiscreteGaussianVector(sigma_squared=parameter, l2_squared=most) if (
                    selection.law.name == "gaussian"
                ):
                    far = sum(weight**2 for weight in moved) > most
                case _:
                    yield f"an event of another kind than its noise: {type(one.event).__name__}"
                    return
            if far:
                yield "weights moved further than is paid for"
            if parameter != one.law.parameter:
                yield "an event of another parameter than its noise"


def _pairs(groups: ExactGroups) -> list[tuple[int, ...]]:
    """Return each unit's groups, with the units in an order of their own."""
    assert groups.members is not None
    ends = np.cumsum(groups.members.sizes)[:-1]
    parts = np.split(groups.members.groups, ends) if len(groups.members.sizes) else []
    return sorted(tuple(sorted(part.tolist())) for part in parts)


def _undercharged(noise: Any, moved: list[int]) -> Iterator[str]:
    """Hold what moved against the shifts that the event itself was charged for, layer by layer."""
    total = squares = Fraction(0)
    for part, times in noise.event.parts():
        number = Fraction(times, noise.levels)
        match part:
            case DiscreteLaplace(scale=parameter, sensitivity=shift) if noise.law.name == "laplace":
                total += shift * number
            case DiscreteGaussian(sigma_squared=parameter, sensitivity=shift) if noise.law.name == "gaussian":
                squares += Fraction(shift) ** 2 * number
            case DiscreteGaussianVector(sigma_squared=parameter, l2_squared=most) if (
                noise.law.name == "gaussian"
            ):
                squares += Fraction(most) * number
            case _:
                yield f"an event of another kind than its noise: {type(part).__name__}"
                return
        if parameter != noise.law.parameter:
            yield "an event of another parameter than its noise"
    if noise.law.name == "laplace" and sum(moved) > total:
        yield f"{noise.measure} moved by {sum(moved)} in total, and {total} is paid for"
    if noise.law.name == "gaussian" and sum(one**2 for one in moved) > squares:
        yield f"{noise.measure} moved further than is paid for"


def found_too_far(noise: Noise, old: ExactGroups, new: ExactGroups) -> Iterator[str]:
    """Hold what one unit moved of a quantile's utilities, anchors and annuli against what is charged.

    Wherever the place is: anchors at every edge, annuli around a few.
    """
    assert noise.finding is not None
    losses: list[Fraction] = []
    anchors: list[int] = []
    annuli: list[list[int]] = []
    for cells in _moved_cells(noise, old, new):
        before, after = (Search(each, noise.finding) for each in cells)
        rise = (after.utilities() - before.utilities()).ravel()
        losses.append(noise.finding.rate * int(rise.max() - rise.min()))
        anchors.append(int(np.abs(after.excess - before.excess)[:, :-1].max()))
        moved = np.flatnonzero(cells[0] != cells[1])
        width = cells[0].shape[1]
        places = {0, width // 2, width - 1, *moved[:3].tolist()}
        apart = [
            np.abs(after.annuli(np.array([at])) - before.annuli(np.array([at]))).ravel() for at in places
        ]
        annuli.append([int(max(one.sum() for one in apart)), int(max((one**2).sum() for one in apart))])
    each = [part for event in noise.event.events for part in event.parts()]  # type: ignore[attr-defined]
    anchored, measured = noise.finding.anchor is not None, noise.finding.intervals
    steps = 1 + anchored + measured  # what is not done of them is not charged
    if len(each) % steps:
        yield "another number of charges than of steps"
        return
    choices = each[::steps]
    at_edge, anchors = (each[1::steps], anchors) if anchored else ([], [])
    around, annuli = (each[steps - 1 :: steps], annuli) if measured else ([], [])
    charged = Pure if noise.finding.flips else BoundedRange
    if any(not isinstance(part, charged) for part, _ in choices):
        yield "a choice that is not charged as one"
    elif sum(losses) > sum(part.loss * times for part, times in choices):
        yield f"a choice may lose {float(sum(losses)):g}, more than is paid for"
    for name, parts, law, l1, l2 in (
        ("anchors", at_edge, noise.finding.anchor, sum(anchors), sum(one**2 for one in anchors)),
        ("annuli", around, noise.law, sum(one for one, _ in annuli), sum(one for _, one in annuli)),
    ):
        scales = [part.scale if noise.law.name == "laplace" else part.sigma_squared for part, _ in parts]
        if any(scale != law.parameter for scale in scales):
            yield f"{name}: an event of another parameter than its noise"
        if noise.law.name == "laplace" and l1 > sum(part.sensitivity * times for part, times in parts):
            yield f"{name} moved by {l1}, more than is paid for"
        if noise.law.name == "gaussian" and l2 > sum(part.sensitivity**2 * times for part, times in parts):
            yield f"{name} moved further than is paid for"


def chosen_too_far(
    noise: Noise, old: ExactGroups, new: ExactGroups, of_groups: GroupChoice | None = None
) -> Iterator[str]:
    """Hold what one unit moved of the numbers that a choice goes by against what is charged.

    The loss of a choice is within the range of how far numbers rose, at the rate that the mechanism has.
    """
    assert noise.choice is not None
    rate, losses = noise.choice.mechanism._rate, Fraction(0)
    if of_groups is not None:
        old, new = (_side_by_side(noise, groups, of_groups) for groups in (old, new))
    for before, after in _moved_cells(noise, old, new):
        rise = (after - before).ravel().tolist()
        losses += rate * (max(rise) - min(rise))
    charged, parts = Pure if noise.choice.flips else BoundedRange, list(noise.event.parts())
    if any(not isinstance(part, charged) for part, _ in parts):
        yield "a choice that is not charged as one"
    elif losses > sum(part.loss * times for part, times in parts):  # type: ignore[attr-defined]
        yield f"a choice may lose {float(losses):g}, more than is paid for"


def _side_by_side(noise: Noise, groups: ExactGroups, choice: GroupChoice) -> ExactGroups:
    """Return the numbers of the groups among which one is chosen as the cells of one group."""
    parts: dict[tuple[Any, ...], list[Any]] = {}
    for key, number in zip(groups.keys, groups.measures[noise.measure], strict=True):
        parts.setdefault(tuple(key[at] for at in choice.per), []).append(number)
    cells = [np.array(part, dtype=object) for part in parts.values()]
    return replace(groups, keys=list(parts), measures={noise.measure: cells})


def _moved_cells(noise: Noise, old: ExactGroups, new: ExactGroups) -> Iterator[list[Any]]:
    """Yield the histograms of each group that one unit moved, before and after."""
    tables = [
        dict(zip(map(_same_key, one.keys), one.measures[noise.measure], strict=True)) for one in (old, new)
    ]
    for key in dict.fromkeys([*tables[0], *tables[1]]):
        empty = np.zeros(len(next(table[key] for table in tables if key in table)), dtype=np.int64)
        cells = [np.atleast_2d(table.get(key, empty)) for table in tables]
        if not np.array_equal(*cells):
            yield cells


def _units(groups: ExactGroups) -> Any:
    return np.zeros(0) if groups.units is None else groups.units


def _same_key(key: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a key that equals itself, NaN included, and nothing of another type."""
    return tuple(repr(part) if isinstance(part, float) else part for part in key)
