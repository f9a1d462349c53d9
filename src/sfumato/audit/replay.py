"""Replay: the exact integers of one question on two neighbours, under one frozen salt.

What one unit moved is held against what the plan claims (groups, and each measure's sensitivity), and
priced with the noise that the plan would add: the epsilon of these very neighbours, not an estimate. Where a
quantile is found or keys are selected by weights, it is priced at the worst place, which is an upper bound.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import chain, combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.analysis import Bounding, Cost
from sfumato.analysis.bounded import MeasureKind
from sfumato.analysis.pricing import Noise
from sfumato.analysis.selection import Selection, units_measure
from sfumato.backends.exact import ExactGroups
from sfumato.core.events import Event, Pure, Repeated
from sfumato.core.events.claims import BoundedRange
from sfumato.core.noise_law import NoiseLaw
from sfumato.release.single_quantile import Search
from sfumato.release.weighted_selection import weights_of

__all__ = ["Moved", "moved"]

_Rows = dict[tuple[Any, ...], npt.NDArray[Any]]
_FEW = 24  # shifts of one measure that are priced one by one
_SUBSETS = 6  # up to this many groups, every subset is tried as the groups shown


@dataclass(slots=True)
class Moved:
    """What one unit moved: what that costs with the noise as it is planned, and what was not allowed.

    `appears` is the chance that a key is shown which one of the neighbours does not have.
    """

    events: list[Event] = field(default_factory=list)
    appears: Fraction = Fraction(0)
    wrongs: list[str] = field(default_factory=list)


def moved(
    bounding: Bounding, cost: Cost, before: tuple[ExactGroups, ...], after: tuple[ExactGroups, ...]
) -> Moved:
    """Compare two runs of one question."""
    found = Moved()
    query = bounding.query
    if len(before) != len(query.grouping_sets) or len(after) != len(before):
        found.wrongs.append("another number of grouping sets")
        return found
    for place, (old, new) in enumerate(zip(before, after, strict=True)):
        _Comparison(bounding, cost, place, old, new, found).all()
    return found


def _same(key: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a key that equals itself, NaN included, and nothing of another type."""
    return tuple(f"float {part!r}" if isinstance(part, float) else part for part in key)


def _rows(groups: ExactGroups, values: Any) -> _Rows:
    """Return the numbers of each group, by its key."""
    return {
        _same(key): np.atleast_1d(np.asarray(values[at], dtype=object)) for at, key in enumerate(groups.keys)
    }


@dataclass(slots=True)
class _Comparison:
    bounding: Bounding
    cost: Cost
    place: int
    old: ExactGroups
    new: ExactGroups
    found: Moved
    keys: list[tuple[Any, ...]] = field(default_factory=list)
    novel: set[tuple[Any, ...]] = field(default_factory=set)
    moves: dict[str, _Rows] = field(default_factory=dict)

    def all(self) -> None:
        """Look at keys, at the box, and at what everything costs."""
        sides = [[_same(key) for key in groups.keys] for groups in (self.old, self.new)]
        self.keys = list(dict.fromkeys([*sides[0], *sides[1]]))
        self.novel = set(sides[0]) ^ set(sides[1])
        selects = self.bounding.select_keys and bool(self.old.grouping_set)
        if self.novel and not selects:
            self.found.wrongs.append("groups that are always shown differ between neighbours")
        kept = set(sides[0]) & set(sides[1])
        if [key for key in sides[0] if key in kept] != [key for key in sides[1] if key in kept]:
            self.found.wrongs.append("groups come in another order")
        for name in self.old.measures:
            self.moves[name] = self._moves(self.old.measures[name], self.new.measures[name])
        if self.old.units is not None and self.new.units is not None:
            self.moves["units"] = self._moves(self.old.units, self.new.units)
        self._box()
        self._noises()
        self._selection()

    # -- what moved -----------------------------------------------------------------------

    def _moves(self, before: Any, after: Any) -> _Rows:
        old, new = _rows(self.old, before), _rows(self.new, after)
        changes: dict[tuple[Any, ...], Any] = {key: new.get(key, 0) - old.get(key, 0) for key in self.keys}
        return {key: change for key, change in changes.items() if change.any()}

    def _box(self) -> None:
        """Compare what moved with the plan: at most `max_groups` groups, each measure by its sensitivity."""
        query = self.bounding.query
        most = query.max_groups or 1
        changed = {key for moves in self.moves.values() for key in moves}
        if len(changed) > most:
            self.found.wrongs.append(f"one unit moved {len(changed)} groups, not {most}")
        finest = len(set(query.grouping_sets[self.place])) == len(query.keys)
        for measure in query.measures:
            far = [int(np.abs(change).sum()) for change in self.moves[measure.name].values()]
            allowed = measure.sensitivity if finest else measure.sensitivity * most
            if max(far, default=0) > allowed:
                self.found.wrongs.append(
                    f"one unit moved {measure.kind.value} {measure.name} by {max(far)}, not {allowed}"
                )

    # -- what it costs --------------------------------------------------------------------

    def _noises(self) -> None:
        noises = {noise.measure: noise for noise in self.cost.noises if noise.grouping_set == self.place}
        for name in self.old.measures:
            if name not in noises:
                self.found.wrongs.append(f"{name} has no noise")
            elif noises[name].choice is not None:
                self._choice(noises[name])
            elif noises[name].finding is not None:
                self._finding(noises[name])
            elif self.bounding.others:
                self._with_others(noises[name])
            else:
                shifts = [
                    shift
                    for key, change in self.moves[name].items()
                    if key not in self.novel
                    for shift in self._layers(change, noises[name])
                ]
                self.found.events += _events(noises[name].law, shifts)

    def _layers(self, change: npt.NDArray[Any], noise: Noise) -> Iterator[int]:
        """Yield by how much each noisy number of a group moved: a histogram has layers of blocks."""
        cells = any(
            measure.name == noise.measure and measure.kind is MeasureKind.CELLS
            for measure in self.bounding.query.measures
        )
        for layer in range(noise.levels if cells else 1):
            width = noise.branching**layer
            yield from (
                abs(int(change[at : at + width].sum()))
                for at in range(0, len(change), width)
                if change[at : at + width].sum()
            )

    def _with_others(self, noise: Noise) -> None:
        """Price the worst of what may be shown: the groups that are not are added up to one row."""
        rest = next(one for one in self.cost.others if one.measure == noise.measure)
        moves = self.moves[noise.measure]
        deciding = noise.measure == units_measure(self.bounding.query)
        apart = [key for key in moves if key not in self.novel]
        chosen = chain.from_iterable(combinations(apart, size) for size in range(len(apart) + 1))
        worst: list[Event] = []
        for shown in chosen if len(apart) <= _SUBSETS else [(), tuple(apart)]:
            hidden = [change for key, change in moves.items() if key not in shown]
            seen = apart if deciding else shown
            shifts = [shift for key in seen for shift in self._layers(moves[key], noise)]
            events = _events(noise.law, shifts)
            total = sum(hidden, np.zeros(1, dtype=object))
            if deciding and hidden:
                total = np.array([1], dtype=object)  # a unit counts once in it
            events += _events(rest.law, list(self._layers(np.atleast_1d(total), rest)))
            if not worst or _weight(events) > _weight(worst):
                worst = events
        self.found.events += worst

    def _choice(self, noise: Noise) -> None:
        """Price cells that are chosen by their counts, or groups by their numbers."""
        assert noise.choice is not None
        moves = self.moves[noise.measure]
        if (by_group := self.bounding.query.choice) is not None:
            parts: dict[tuple[Any, ...], list[int]] = {}
            for key in self.keys:
                rises = parts.setdefault(tuple(key[at] for at in by_group.per), [])
                rises.append(int(moves[key][0]) if key in moves else 0)
            moves = {part: np.array(rises, dtype=object) for part, rises in parts.items()}
        for key, rise in moves.items():
            if key not in self.novel:
                self._chosen(noise.choice.rate, noise.choice.flips, rise)

    def _chosen(self, rate: Fraction, flips: bool, rise: npt.NDArray[Any]) -> None:
        """Price one choice, of whose candidates the utilities rose by so much."""
        if loss := rate * int(rise.max() - rise.min()):
            self.found.events.append(Pure(loss=loss) if flips else BoundedRange(loss=loss))

    def _finding(self, noise: Noise) -> None:
        """Price a quantile that is found and then measured: at the place where that costs most."""
        finding = noise.finding
        assert finding is not None
        tables = [_rows(groups, groups.measures[noise.measure]) for groups in (self.old, self.new)]
        for key in self.moves[noise.measure]:
            if key in self.novel:
                continue
            before, after = (Search(np.array([table[key].tolist()]), finding) for table in tables)
            rise = (after.utilities() - before.utilities()).ravel()
            self._chosen(finding.rate, finding.flips, rise)
            if finding.anchor is not None:
                anchor = int(np.abs(after.excess - before.excess)[:, :-1].max())
                self.found.events += _events(finding.anchor, [anchor])
            if not finding.intervals:
                continue
            width = len(tables[0][key])
            places = sorted({0, width // 2, width - 1, *np.flatnonzero(self.moves[noise.measure][key])[:4]})
            around = [
                np.abs(after.annuli(np.array([at])) - before.annuli(np.array([at]))).ravel().tolist()
                for at in places
            ]
            far = max(around, key=lambda shifts: sum(int(shift) ** 2 for shift in shifts))
            self.found.events += _events(noise.law, [int(shift) for shift in far])

    # -- keys -----------------------------------------------------------------------------

    def _selection(self) -> None:
        selection = self.cost.selection(self.place)
        if selection is None:
            if self.bounding.select_keys and self.old.grouping_set:
                self.found.wrongs.append("keys that nobody declared are shown without selection")
            return
        before = self.found.appears
        if selection.rounds:
            self._rounds(selection)
        else:
            named = "units" if selection.measure is None else selection.measure
            if selection.measure is None:
                units = self.moves["units"].items()
                shifts = [abs(int(change[0])) for key, change in units if key not in self.novel]
                self.found.events += _events(selection.law, shifts)
            if selection.cut is not None:
                moved = [abs(int(change[0])) for change in self.moves[named].values()]
                self.found.appears += _any_leaves(selection.law, selection.cut, moved)
            elif self.bounding.select_keys:
                self.found.wrongs.append("keys that nobody declared are selected by noise without a cut")
        if self.found.appears - before > selection.delta * (1 + Fraction(1, 10**9)):
            self.found.wrongs.append("a key of one unit appears more often than its delta says")

    def _rounds(self, selection: Selection) -> None:
        """Price each round of a selection by weights, whatever the earlier ones found: the worst of a few."""
        for at, one in enumerate(selection.rounds):
            worst: tuple[Any, list[Event], Fraction] | None = None
            for share in (0, 1, 2) if at else (0,):
                flags = {key for place, key in enumerate(self.keys) if share and place % 3 < share}
                sides = []
                for groups in (self.old, self.new):
                    known = [_same(key) for key in groups.keys]
                    if groups.members is None:
                        self.found.wrongs.append("keys are selected by weights, and there are none")
                        return
                    found = np.array([key in flags for key in known], dtype=np.bool_)
                    sides.append(
                        dict(zip(known, weights_of(groups.members, found, selection).tolist(), strict=True))
                    )
                moves = {key: abs(sides[1].get(key, 0) - sides[0].get(key, 0)) for key in self.keys}
                old = [move for key, move in moves.items() if move and key not in self.novel]
                events: list[Event] = [_joint(one.law, old)] if old else []
                appears = _any_leaves(one.law, one.cut, list(moves.values()))
                weight = (_weight(events), appears)
                if worst is None or weight > worst[0]:
                    worst = weight, events, max(appears, worst[2] if worst else Fraction(0))
            assert worst is not None
            self.found.events += worst[1]
            self.found.appears += worst[2]


def _any_leaves(law: NoiseLaw, cut: int, moves: list[int]) -> Fraction:
    """Return the chance that one of the numbers that a unit moves leaves its window (`analysis.keys`)."""
    none = Fraction(1)
    for move in moves:
        none *= 1 - (Fraction(law.tail_within(cut, cut - move + 1)) if move <= cut else Fraction(1))
    return 1 - none


def _events(law: NoiseLaw, shifts: list[int]) -> list[Event]:
    """Return what independent noise on moved numbers costs; where they are many, by their norm."""
    counts = Counter(abs(shift) for shift in shifts if shift)
    if len(counts) > _FEW:
        return [_joint(law, list(counts.elements()))]
    events = [(law.event(shift), times) for shift, times in counts.items()]
    return [one if times == 1 else Repeated(event=one, times=times) for one, times in events]


def _joint(law: NoiseLaw, shifts: list[int]) -> Event:
    return law.joint_event(l1=sum(shifts), l2_squared=sum(shift**2 for shift in shifts))


def _weight(events: list[Event]) -> Any:
    """Return what tells the costlier of two lists of events: rho, which adds up."""
    return sum((Fraction(event.rho()) for event in events), Fraction(0))
